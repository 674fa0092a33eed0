//! Server-Sent Events, and the elements of an array: the JSON wire's objects in HTTP's frames (protocol.md, chapter 15).
//! Owns the lines of an event. A line's end within JSON, where it is only a blank, begins another `data:` line, so that no
//! publisher can forge a field. Invariant: an event has an id only where the client, once it has read it, stands there.

use sha1::{Digest, Sha1};

use crate::codes::Code;
use crate::command::{Id, Outcome, Push, Reply};
use crate::json::put_number;
use crate::position::{Position, ResumeToken};

use super::json::{put_code, put_object, put_reply_object, put_resume_token};

fn put(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

/// Appends `push` as an event; with `has_ids` a message's id is its position.
pub(super) fn put_push(out: &mut Vec<u8>, push: &Push<'_>, has_ids: bool) {
    match push {
        Push::Message(message) => {
            if has_ids && let Some(at) = message.at {
                put_id(out, at);
            }
        }
        // The connection's own resume tokens say how far all its subscriptions are; numbers are the binary wire's.
        Push::ResumeToken { .. } | Push::Announce { .. } => return,
        Push::Draining { reconnect_after_ms } => {
            put(out, "retry: ");
            put_number(out, *reconnect_after_ms);
            put(out, "\nevent: notice\n");
        }
        other => {
            put(out, "event: ");
            put(out, name(other));
            out.push(b'\n');
        }
    }
    put_data(out, |out| put_object(out, push));
}

/// The type of an event that is no message.
const fn name(push: &Push<'_>) -> &'static str {
    match push {
        Push::Gap { .. } | Push::PatternGap { .. } => "gap",
        Push::Epochs { .. } => "epochs",
        Push::Dropped { .. } => "dropped",
        Push::Ended { .. } => "ended",
        Push::Interest { .. } => "interest",
        Push::InterestState { .. } => "interest_state",
        _ => "notice",
    }
}

/// Appends the answer to a command of a stream: `subscribed`, the first event of each subscription, `watching`, or `refused`. Its id is where a client stands that gets nothing before
/// what comes live.
pub(super) fn put_reply(out: &mut Vec<u8>, id: &Id, reply: &Reply<'_>, has_ids: bool) {
    match reply {
        Reply::Subscribed { at, outcome, count, .. } => {
            if has_ids
                && *outcome != Outcome::Resync
                && *count == Some(0)
                && let Some(at) = *at
            {
                put_id(out, at);
            }
            put(out, "event: subscribed\n");
        }
        Reply::Watching { .. } => put(out, "event: watching\n"),
        Reply::Error { .. } => put(out, "event: refused\n"),
        _ => return,
    }
    put_data(out, |out| put_reply_object(out, id, reply));
}

/// The longest line with an id of several subscriptions: name, resume token, digest, end.
pub(super) const ID_BYTES_MAX: usize = 4 + 58 + NAMED_MAX * NAMED_DIGITS + 1;

/// Appends the line that gives the event after it its position.
pub fn put_id(out: &mut Vec<u8>, at: Position) {
    put(out, "id: ");
    put_position(out, at);
    out.push(b'\n');
}

/// Appends a position as text.
pub fn put_position(out: &mut Vec<u8>, at: Position) {
    put_number(out, at.epoch);
    out.push(b'.');
    put_number(out, at.sequence);
}

/// Appends the line that gives the event after it the resume token that all subscriptions of a connection have passed, with the
/// digest of what they are.
pub fn put_event_id(out: &mut Vec<u8>, resume_token: ResumeToken, digest: &str) {
    put(out, "id: ");
    put_resume_token(out, resume_token);
    out.push(b'.');
    put(out, digest);
    out.push(b'\n');
}

/// Appends an event that says no more than how far the connection is; its id says it.
pub fn put_resume_token_event(out: &mut Vec<u8>, resume_token: ResumeToken, digest: &str) {
    put_event_id(out, resume_token, digest);
    put(out, "event: resume_token\ndata: {\"resume_token\":\"");
    put_resume_token(out, resume_token);
    put(out, "\"}\n\n");
}

/// Appends a comment, which keeps a silent connection open.
pub fn put_comment(out: &mut Vec<u8>) {
    put(out, ":\n\n");
}

/// Appends the event that ends a stream: the code, and when to come back.
pub fn put_close(out: &mut Vec<u8>, code: Code, reason: &str, reconnect_after_ms: Option<u64>) {
    if let Some(after_ms) = reconnect_after_ms {
        put(out, "retry: ");
        put_number(out, after_ms);
        out.push(b'\n');
    }
    put(out, "event: closed\n");
    put_data(out, |out| {
        put(out, "{\"closed\":");
        put_code(out, code, reason);
        if let Some(after_ms) = reconnect_after_ms {
            put(out, ",\"reconnect_after_ms\":");
            put_number(out, after_ms);
        }
        out.push(b'}');
    });
}

/// Appends the data lines of what `write` appends, and the blank line that ends the event.
fn put_data(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    put(out, "data: ");
    let begin = out.len();
    write(out);
    let is_line_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
    if out.get(begin..).is_some_and(|data| data.iter().any(is_line_end)) {
        let data = out.split_off(begin);
        for (index, line) in data.split(is_line_end).enumerate() {
            if index > 0 {
                put(out, "\ndata: ");
            }
            out.extend_from_slice(line);
        }
    }
    put(out, "\n\n");
}

/// Appends `push` as an array's element, a comma before it. Resume tokens are said by the answer's own field.
pub(super) fn put_element(out: &mut Vec<u8>, push: &Push<'_>) {
    if !matches!(push, Push::ResumeToken { .. } | Push::Announce { .. }) {
        out.push(b',');
        put_object(out, push);
    }
}

/// Appends a reply as an array's element without a frame: what became of one publish of several.
pub fn put_outcome(out: &mut Vec<u8>, id: &Id, reply: &Reply<'_>) {
    out.push(b',');
    put_reply_object(out, id, reply);
}

/// Selectors that a digest names one by one; of more it says only that they are all the same.
const NAMED_MAX: usize = 9;
const NAMED_DIGITS: usize = 8;

/// What stands in an event's id for the selectors of its connection.
#[must_use]
pub fn digest<S: AsRef<str>>(selectors: &[S]) -> String {
    if selectors.len() <= NAMED_MAX {
        return selectors.iter().map(|selector| hash(selector.as_ref().as_bytes(), NAMED_DIGITS)).collect();
    }
    let mut sorted: Vec<&str> = selectors.iter().map(AsRef::as_ref).collect();
    sorted.sort_unstable();
    format!("x{}", hash(sorted.join("\n").as_bytes(), 2 * NAMED_DIGITS))
}

/// Whether an id with this digest speaks of `selector`, which is one of `selectors`; none: that cannot be known.
#[must_use]
pub fn covers(digest: &str, selectors: &[String], selector: &str) -> Option<bool> {
    if digest.starts_with('x') {
        return (digest == self::digest(selectors)).then_some(true);
    }
    let wanted = hash(selector.as_bytes(), NAMED_DIGITS);
    Some(digest.as_bytes().chunks(NAMED_DIGITS).any(|named| named == wanted.as_bytes()))
}

fn hash(bytes: &[u8], digits: usize) -> String {
    let mut text: String = Sha1::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    text.truncate(digits);
    text
}

/// The resume token and the digest of an event's id.
#[must_use]
pub fn parse_id(text: &str) -> Option<(ResumeToken, &str)> {
    let (resume_token, digest) = text.rsplit_once('.')?;
    let is_digest = !digest.is_empty() && digest.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'x');
    Some((ResumeToken::parse(resume_token)?, digest)).filter(|_| is_digest)
}
