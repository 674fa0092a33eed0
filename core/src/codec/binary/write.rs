//! Replies and pushes as binary frames (binary.md, B3, B4, B6, B7).

use super::kind;
use super::more::{FIELDS, MORE, PATCH, REMOVAL};
use super::varint::{put, put_position, put_signed, put_string};
use crate::codes::Code;
use crate::command::{GapReason, Id, MessageView, Outcome, Push, Reply};
use crate::json::{put_hex, put_number};
use crate::message::Kind;
use crate::message::fields::{Fields, Value};
use crate::position::{Position, ResumeToken};
use crate::websocket;

const SNAPSHOT: u8 = 0x04;
const STANDARD: u8 = 0x08;
const AFTER: u8 = 0x10;
const CONFLATED: u8 = 0x20;
const REPLY_TO: u8 = 0x40;

/// What a small push or reply is likely to take.
const SMALL_BYTES: usize = 48;

pub(in crate::codec) fn put_push(out: &mut Vec<u8>, push: &Push<'_>) {
    match push {
        Push::Message(message) => put_message(out, message),
        other => websocket::binary(out, SMALL_BYTES, |out| put_small(out, other)),
    }
}

#[inline]
fn put_message(out: &mut Vec<u8>, message: &MessageView<'_>) {
    let reply_to = message.reply_to.filter(|subject| !subject.is_empty());
    let after = message
        .at
        .zip(message.after)
        .filter(|(at, after)| after.epoch != at.epoch || after.sequence.checked_add(1) != Some(at.sequence));
    let kind = match message.kind {
        Kind::Json => 0,
        Kind::Text => 1,
        Kind::Bytes => 2,
    };
    let more = if message.is_patch { PATCH } else { 0 }
        | if message.is_removal { REMOVAL } else { 0 }
        | if message.fields.is_empty() { 0 } else { FIELDS };
    let mut flags = 0x80 | if more == 0 { kind } else { MORE };
    flags |= if message.is_snapshot { SNAPSHOT } else { 0 };
    flags |= if message.at.is_none() { STANDARD } else { 0 };
    flags |= if after.is_some() { AFTER } else { 0 };
    flags |= if message.conflated > 0 { CONFLATED } else { 0 };
    flags |= if reply_to.is_some() { REPLY_TO } else { 0 };
    let guess = message.content.len() + message.fields.len() + 8;
    out.reserve(guess + 48);
    websocket::binary(out, guess, |out| {
        out.push(flags);
        put(out, message.number.into());
        if let Some(at) = message.at {
            put(out, at.sequence);
        }
        put_signed(out, message.time_ms.wrapping_sub(message.base_time_ms) as i64);
        if let Some((at, after)) = after {
            put_after(out, at, after);
        }
        if message.conflated > 0 {
            put(out, message.conflated.into());
        }
        if let Some(reply_to) = reply_to {
            put_string(out, reply_to);
        }
        if more != 0 {
            out.push(more | kind);
        }
        if !message.fields.is_empty() {
            put_fields(out, message.fields);
        }
        out.extend_from_slice(message.content);
    });
}

/// B3.4: how many, and each one's name, type and value.
fn put_fields(out: &mut Vec<u8>, fields: &[u8]) {
    put(out, Fields(fields).count() as u64);
    for (name, value) in Fields(fields) {
        put_string(out, name);
        match value {
            Value::Text(text) => {
                out.push(0);
                put_string(out, text);
            }
            Value::Bytes(bytes) => {
                out.push(1);
                put(out, bytes.len() as u64);
                out.extend_from_slice(bytes);
            }
            Value::Removed => out.push(2),
        }
    }
}

/// B3.2: a distance within the epoch; 0, then the whole position, outside of it.
fn put_after(out: &mut Vec<u8>, at: Position, after: Position) {
    if after.epoch == at.epoch && after.sequence < at.sequence {
        put(out, at.sequence - after.sequence);
    } else {
        out.push(0);
        put_position(out, after);
    }
}

fn reason_number(reason: GapReason) -> u8 {
    match reason {
        GapReason::Expired => 0,
        GapReason::Overrun => 1,
        GapReason::Epoch => 2,
        GapReason::Ahead => 3,
        GapReason::Unknown => 4,
        GapReason::TooLarge => 5,
    }
}

fn put_resume_token(out: &mut Vec<u8>, resume_token: ResumeToken) {
    let mut text = Vec::with_capacity(57);
    put_hex(&mut text, resume_token.run);
    text.push(b'.');
    put_number(&mut text, resume_token.arrival);
    text.push(b'.');
    put_number(&mut text, resume_token.time_ms);
    put(out, text.len() as u64);
    out.extend_from_slice(&text);
}

fn put_small(out: &mut Vec<u8>, push: &Push<'_>) {
    match *push {
        Push::Message(_) => {}
        Push::Announce { number, subject, epoch, base_time_ms, pattern } => {
            out.push(kind::ANNOUNCE);
            put(out, number.into());
            put(out, epoch);
            put(out, base_time_ms);
            put_string(out, subject);
            put_string(out, pattern.unwrap_or(""));
        }
        Push::Gap { .. } => put_gap(out, push),
        Push::PatternGap { part, pattern, reason } => {
            out.extend_from_slice(&[kind::GAP, 0x08, reason_number(reason)]);
            put_string(out, part);
            put_string(out, pattern);
        }
        Push::Epochs { subject, epochs, pattern } => {
            out.push(kind::EPOCHS);
            put_string(out, subject);
            put(out, epochs.len() as u64);
            epochs.iter().for_each(|epoch| put(out, *epoch));
            put_string(out, pattern.unwrap_or(""));
        }
        Push::Dropped { selector, count } => {
            out.push(kind::DROPPED);
            put(out, count);
            put_string(out, selector);
        }
        Push::ResumeToken { resume_token, pattern } => {
            out.push(kind::RESUME_TOKEN);
            put_resume_token(out, resume_token);
            put_string(out, pattern);
        }
        Push::Interest { selector, has_subscribers } => {
            out.extend_from_slice(&[kind::INTEREST, u8::from(has_subscribers)]);
            put_string(out, selector);
        }
        Push::InterestState { pattern, is_complete } => {
            out.extend_from_slice(&[kind::INTEREST_STATE, u8::from(is_complete)]);
            put_string(out, pattern);
        }
        Push::TokenExpiring { in_ms } => {
            out.push(kind::TOKEN_EXPIRING);
            put(out, in_ms);
        }
        Push::Draining { reconnect_after_ms } => {
            out.push(kind::DRAINING);
            put(out, reconnect_after_ms);
        }
        Push::Ended { selector, code, reason } => {
            out.push(kind::ENDED);
            put(out, code.number().into());
            put_string(out, selector);
            put_string(out, reason);
        }
    }
}

fn put_gap(out: &mut Vec<u8>, push: &Push<'_>) {
    let Push::Gap { subject, after, at, reason, missed, pattern } = *push else { return };
    let flags = u8::from(after.is_some()) | 0x02 | u8::from(missed.is_some()) << 2 | u8::from(pattern.is_some()) << 3;
    out.extend_from_slice(&[kind::GAP, flags, reason_number(reason)]);
    put_string(out, subject);
    if let Some(after) = after {
        put_position(out, after);
    }
    put_position(out, at);
    if let Some(missed) = missed {
        put(out, missed);
    }
    if let Some(pattern) = pattern {
        put_string(out, pattern);
    }
}

pub(in crate::codec) fn put_reply(out: &mut Vec<u8>, id: &Id, reply: &Reply<'_>) {
    // A text id cannot come from this wire; 0 is the absence of one.
    let id = if let Id::Number(number) = id { number.unsigned_abs() } else { 0 };
    websocket::binary(out, SMALL_BYTES, |out| match *reply {
        Reply::Connected { session, node, time_ms, ping_interval_ms, lacks_publisher } => {
            begin(out, kind::CONNECTED, id);
            put_string(out, session);
            put_string(out, node);
            put(out, time_ms);
            put(out, ping_interval_ms);
            if lacks_publisher {
                out.push(1);
            }
        }
        Reply::Subscribed { selector, at, outcome, count } => {
            begin(out, kind::SUBSCRIBED, id);
            let flags = u8::from(at.is_some()) | u8::from(count.is_some()) << 1;
            out.extend_from_slice(&[flags, outcome_number(outcome)]);
            put_string(out, selector);
            if let Some(at) = at {
                put_position(out, at);
            }
            if let Some(count) = count {
                put(out, count);
            }
        }
        Reply::Published { at, is_duplicate, reached } => {
            begin(out, kind::PUBLISHED, id);
            out.push(u8::from(at.is_some()) | u8::from(is_duplicate) << 1 | u8::from(reached.is_some()) << 2);
            if let Some(at) = at {
                put_position(out, at);
            }
        }
        Reply::Pong { time_ms } => {
            begin(out, kind::PONG, id);
            put(out, time_ms);
        }
        Reply::Unsubscribed { selector } => put_named(out, kind::UNSUBSCRIBED, id, selector),
        Reply::Watching { pattern } => put_named(out, kind::WATCHING, id, pattern),
        Reply::Unwatched { pattern } => put_named(out, kind::UNWATCHED, id, pattern),
        Reply::Error { code, reason } => put_error(out, id, code, reason),
    });
}

fn begin(out: &mut Vec<u8>, kind: u8, id: u64) {
    out.push(kind);
    put(out, id);
}

fn put_named(out: &mut Vec<u8>, kind: u8, id: u64, name: &str) {
    begin(out, kind, id);
    put_string(out, name);
}

fn put_error(out: &mut Vec<u8>, id: u64, code: Code, reason: &str) {
    begin(out, kind::ERROR, id);
    out.push(u8::from(code.is_retryable()));
    put(out, code.number().into());
    put_string(out, code.name());
    put_string(out, reason);
}

fn outcome_number(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Snapshot => 0,
        Outcome::Recovered => 1,
        Outcome::History => 2,
        Outcome::Live => 3,
        Outcome::Resync => 4,
    }
}
