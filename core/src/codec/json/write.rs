//! Replies and pushes as JSON text frames. No blanks; a publisher's JSON goes out as it came in.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::codes::Code;
use crate::command::{Id, MessageView, Push, Reply};
use crate::json::{put_escaped, put_hex, put_number, put_string};
use crate::message::Kind;
use crate::message::fields::{Fields, Value};
use crate::position::{Position, ResumeToken};
use crate::websocket;

/// What the fixed words of a message take beside subject and content.
const MESSAGE_BYTES: usize = 80;
const REPLY_BYTES: usize = 64;

#[inline]
fn put(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

/// Appends `"EPOCH.SEQUENCE"` after `key`.
#[inline]
fn put_position(out: &mut Vec<u8>, key: &str, at: Position) {
    put(out, key);
    put_number(out, at.epoch);
    out.push(b'.');
    put_number(out, at.sequence);
    out.push(b'"');
}

pub(in crate::codec) fn put_resume_token(out: &mut Vec<u8>, resume_token: ResumeToken) {
    put_hex(out, resume_token.run);
    out.push(b'.');
    put_number(out, resume_token.arrival);
    out.push(b'.');
    put_number(out, resume_token.time_ms);
}

/// Appends `key` and a string.
fn put_text(out: &mut Vec<u8>, key: &str, text: &str) {
    put(out, key);
    put_string(out, text);
}

fn put_pattern(out: &mut Vec<u8>, pattern: Option<&str>) {
    if let Some(pattern) = pattern {
        put_text(out, ",\"pattern\":", pattern);
    }
}

pub(in crate::codec) fn put_code(out: &mut Vec<u8>, code: Code, reason: &str) {
    put_number(out, code.number().into());
    put_text(out, ",\"name\":", code.name());
    put_text(out, ",\"reason\":", reason);
    put(out, if code.is_retryable() { ",\"retry\":true" } else { ",\"retry\":false" });
}

pub(in crate::codec) fn put_push(out: &mut Vec<u8>, push: &Push<'_>) {
    match push {
        Push::Message(message) => {
            let guess = message_bytes(message);
            out.reserve(guess + 16);
            websocket::text(out, guess, |out| put_message(out, message));
        }
        Push::Announce { .. } => {}
        other => websocket::text(out, REPLY_BYTES, |out| put_notice(out, other)),
    }
}

/// About how long a message's object is.
fn message_bytes(message: &MessageView<'_>) -> usize {
    MESSAGE_BYTES + message.subject.len() + message.content.len() + message.fields.len()
}

/// Appends the push's object alone, without a frame around it.
pub(in crate::codec) fn put_object(out: &mut Vec<u8>, push: &Push<'_>) {
    match push {
        Push::Message(message) => {
            out.reserve(message_bytes(message) + 64);
            put_message(out, message);
        }
        Push::Announce { .. } => {}
        other => put_notice(out, other),
    }
}

fn put_message(out: &mut Vec<u8>, message: &MessageView<'_>) {
    put(out, "{\"message\":\"");
    put_escaped(out, message.subject);
    out.push(b'"');
    put_pattern(out, message.pattern);
    if let Some(at) = message.at {
        put_position(out, ",\"at\":\"", at);
        if let Some(after) = message.after
            && (after.epoch != at.epoch || after.sequence.checked_add(1) != Some(at.sequence))
        {
            put_position(out, ",\"after\":\"", after);
        }
    }
    put(out, ",\"time\":");
    put_number(out, message.time_ms);
    if message.conflated > 0 {
        put(out, ",\"conflated\":");
        put_number(out, message.conflated.into());
    }
    if message.is_snapshot {
        put(out, ",\"snapshot\":true");
    }
    if message.is_patch {
        put(out, ",\"merge\":true");
    }
    if message.is_removal {
        put(out, ",\"removed\":true");
    }
    if let Some(reply_to) = message.reply_to {
        put_text(out, ",\"reply_to\":", reply_to);
    }
    if !message.fields.is_empty() {
        put_fields(out, message.fields);
    }
    put_content(out, message.kind, message.content);
    out.push(b'}');
}

/// Texts, and null for what is removed; bytes apart.
fn put_fields(out: &mut Vec<u8>, fields: &[u8]) {
    let mut put_object = |key: &str, is_bytes: bool| {
        let mut begin = key;
        for (name, value) in Fields(fields).filter(|(_, value)| matches!(value, Value::Bytes(_)) == is_bytes) {
            put(out, begin);
            begin = ",";
            put_string(out, name);
            out.push(b':');
            match value {
                Value::Text(text) => put_string(out, text),
                Value::Bytes(bytes) => put_base64(out, bytes),
                Value::Removed => put(out, "null"),
            }
        }
        if begin == "," {
            out.push(b'}');
        }
    };
    put_object(",\"fields\":{", false);
    put_object(",\"fields_bytes\":{", true);
}

/// Appends a string of base64.
fn put_base64(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    let begin = out.len();
    out.resize(begin + bytes.len().div_ceil(3) * 4, 0);
    let written = out.get_mut(begin..).and_then(|place| STANDARD.encode_slice(bytes, place).ok());
    out.truncate(begin + written.unwrap_or(0));
    out.push(b'"');
}

#[inline]
fn put_content(out: &mut Vec<u8>, kind: Kind, content: &[u8]) {
    match kind {
        Kind::Json => {
            put(out, ",\"content\":");
            out.extend_from_slice(content);
        }
        Kind::Text => {
            put(out, ",\"text\":\"");
            // Text was checked when it was accepted.
            put_escaped(out, std::str::from_utf8(content).unwrap_or(""));
            out.push(b'"');
        }
        Kind::Bytes => {
            put(out, ",\"bytes\":");
            put_base64(out, content);
        }
    }
}

fn put_epochs(out: &mut Vec<u8>, subject: &str, epochs: &[u64], pattern: Option<&str>) {
    put_text(out, "{\"epochs\":", subject);
    put(out, ",\"order\":[");
    for (index, epoch) in epochs.iter().enumerate() {
        put(out, if index > 0 { ",\"" } else { "\"" });
        put_number(out, *epoch);
        out.push(b'"');
    }
    out.push(b']');
    put_pattern(out, pattern);
}

/// Everything that is told unasked, beside messages.
fn put_notice(out: &mut Vec<u8>, push: &Push<'_>) {
    match *push {
        Push::Gap { subject, after, at, reason, missed, pattern } => {
            put_text(out, "{\"gap\":", subject);
            if let Some(after) = after {
                put_position(out, ",\"after\":\"", after);
            }
            put_position(out, ",\"at\":\"", at);
            put_text(out, ",\"reason\":", reason.name());
            put(out, ",\"missed\":");
            match missed {
                Some(missed) => put_number(out, missed),
                None => put(out, "null"),
            }
            put_pattern(out, pattern);
        }
        Push::PatternGap { part, pattern, reason } => {
            put_text(out, "{\"gap\":", part);
            put_text(out, ",\"reason\":", reason.name());
            put(out, ",\"missed\":null");
            put_pattern(out, Some(pattern));
        }
        Push::Epochs { subject, epochs, pattern } => put_epochs(out, subject, epochs, pattern),
        Push::Dropped { selector, count } => {
            put_text(out, "{\"dropped\":", selector);
            put(out, ",\"count\":");
            put_number(out, count);
        }
        Push::ResumeToken { resume_token, pattern } => {
            put(out, "{\"resume_token\":\"");
            put_resume_token(out, resume_token);
            out.push(b'"');
            put_pattern(out, Some(pattern));
        }
        Push::Interest { selector, has_subscribers } => {
            put_text(out, "{\"interest\":", selector);
            put(out, if has_subscribers { ",\"subscribers\":true" } else { ",\"subscribers\":false" });
        }
        Push::InterestState { pattern, is_complete } => {
            put_text(out, "{\"interest_state\":", pattern);
            put(out, if is_complete { ",\"complete\":true" } else { ",\"complete\":false" });
        }
        Push::TokenExpiring { in_ms } => {
            put(out, "{\"notice\":\"token_expiring\",\"in_ms\":");
            put_number(out, in_ms);
        }
        Push::Draining { reconnect_after_ms } => {
            put(out, "{\"notice\":\"draining\",\"reconnect_after_ms\":");
            put_number(out, reconnect_after_ms);
        }
        Push::Ended { selector, code, reason } => {
            put_text(out, "{\"ended\":", selector);
            put(out, ",\"error\":");
            put_code(out, code, reason);
        }
        Push::Message(_) | Push::Announce { .. } => {}
    }
    out.push(b'}');
}

pub(in crate::codec) fn put_reply(out: &mut Vec<u8>, id: &Id, reply: &Reply<'_>) {
    websocket::text(out, REPLY_BYTES, |out| put_reply_object(out, id, reply));
}

/// Appends the reply's object alone, without a frame around it.
pub(in crate::codec) fn put_reply_object(out: &mut Vec<u8>, id: &Id, reply: &Reply<'_>) {
    out.push(b'{');
    put_id(out, id);
    match *reply {
        Reply::Connected { session, node, time_ms, ping_interval_ms, lacks_publisher } => {
            put_text(out, "\"ok\":\"connected\",\"session\":", session);
            put_text(out, ",\"node\":", node);
            put(out, ",\"time\":");
            put_number(out, time_ms);
            put(out, ",\"ping_interval_ms\":");
            put_number(out, ping_interval_ms);
            if lacks_publisher {
                put(out, ",\"publisher\":false");
            }
        }
        Reply::Subscribed { selector, at, outcome, count } => {
            put_text(out, "\"ok\":\"subscribed\",\"subject\":", selector);
            if let Some(at) = at {
                put_position(out, ",\"at\":\"", at);
            }
            put_text(out, ",\"outcome\":", outcome.name());
            if let Some(count) = count {
                put(out, ",\"count\":");
                put_number(out, count);
            }
        }
        Reply::Unsubscribed { selector } => put_text(out, "\"ok\":\"unsubscribed\",\"subject\":", selector),
        Reply::Published { at, is_duplicate, reached } => {
            put(out, "\"ok\":\"published\"");
            if let Some(at) = at {
                put_position(out, ",\"at\":\"", at);
            }
            if is_duplicate {
                put(out, ",\"duplicate\":true");
            }
            if let Some(reached) = reached {
                put_text(out, ",\"ack\":", reached.name());
            }
        }
        Reply::Pong { time_ms } => {
            put(out, "\"ok\":\"pong\",\"time\":");
            put_number(out, time_ms);
        }
        Reply::Watching { pattern } => put_text(out, "\"ok\":\"watching\",\"subject\":", pattern),
        Reply::Unwatched { pattern } => put_text(out, "\"ok\":\"unwatched\",\"subject\":", pattern),
        Reply::Error { code, reason } => {
            put(out, "\"error\":");
            put_code(out, code, reason);
        }
    }
    out.push(b'}');
}

fn put_id(out: &mut Vec<u8>, id: &Id) {
    match id {
        Id::None => return,
        Id::Number(number) => {
            put(out, if *number < 0 { "\"id\":-" } else { "\"id\":" });
            put_number(out, number.unsigned_abs());
        }
        Id::Digits(digits) => {
            put(out, "\"id\":");
            put(out, digits);
        }
        Id::Text(text) => put_text(out, "\"id\":", text),
    }
    out.push(b',');
}
