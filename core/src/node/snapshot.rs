//! A subject's latest retained state: the last message, or the union of the latest fields where messages are JSON objects.
//! Nearly always every message has the same fields; then the snapshot is that message itself, shared with the log. Which
//! fields a message has is told by one number made while its members are stepped over; only where it changes is merged.
use std::sync::Arc;

use crate::json;
use crate::message::{Kind, Message};
use crate::position::Position;

/// What a new subscriber is shown first.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The head of the log when the snapshot was read, not the position of the last retained message.
    pub at: Position,
    /// The last retained message; MQTT sends its content as it is.
    pub last: Arc<Message>,
    /// The union of fields; none where the last message says it all.
    pub merged: Option<Arc<[u8]>>,
}

impl Snapshot {
    pub fn content(&self) -> &[u8] {
        self.merged.as_deref().unwrap_or_else(|| self.last.content())
    }

    pub fn kind(&self) -> Kind {
        self.last.kind
    }

    pub fn time_ms(&self) -> u64 {
        self.last.time_ms
    }

    pub fn reply_to(&self) -> Option<&str> {
        self.last.reply_to()
    }
}

/// How much snapshots may hold beside the messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    pub(super) bytes_max: usize,
    pub(super) all_bytes_max: usize,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    None,
    Message(Arc<Message>),
    Merged(Box<(Arc<Message>, Arc<[u8]>)>),
}

#[derive(Debug, Default)]
pub(super) struct Latest {
    state: State,
    /// Which fields the state has, in which order; 0 not known.
    fields: u64,
}

impl Latest {
    pub(super) fn last(&self) -> Option<&Arc<Message>> {
        match &self.state {
            State::None => None,
            State::Message(last) => Some(last),
            State::Merged(both) => Some(&both.0),
        }
    }

    pub(super) fn merged(&self) -> Option<&Arc<[u8]>> {
        match &self.state {
            State::Merged(both) => Some(&both.1),
            _ => None,
        }
    }

    pub(super) fn is_none(&self) -> bool {
        matches!(self.state, State::None)
    }

    /// Bytes it costs beside the last message.
    pub(super) fn merged_bytes(&self) -> usize {
        self.merged().map_or(0, |merged| merged.len() + 2 * size_of::<usize>())
    }

    /// Takes a newer retained message in. `all_bytes` is what all snapshots hold, kept true here.
    pub(super) fn update(&mut self, message: &Arc<Message>, room: Room, all_bytes: &mut usize) {
        let fields = if message.kind == Kind::Json { name_fields(message.content()) } else { 0 };
        let has_same_fields = fields == self.fields && fields != 0;
        let merged = match self.last() {
            Some(last) if !has_same_fields && last.kind == Kind::Json && message.kind == Kind::Json => {
                let old = self.merged().map_or(last.content(), |merged| merged);
                json::merge(old, message.content())
            }
            _ => None,
        };
        *all_bytes -= self.merged_bytes();
        self.fields = fields;
        self.state = State::Message(Arc::clone(message));
        if let Some(merged) = merged
            && merged.len() <= room.bytes_max
            && *all_bytes + merged.len() <= room.all_bytes_max
        {
            self.fields = 0;
            self.state = State::Merged(Box::new((Arc::clone(message), merged.into())));
            *all_bytes += self.merged_bytes();
        }
    }

    pub(super) fn clear(&mut self, all_bytes: &mut usize) {
        *all_bytes -= self.merged_bytes();
        *self = Self::default();
    }
}

/// One number for the names of a JSON object's members in their order, as they are written; 0 for anything but an object.
/// The JSON is known to be valid.
fn name_fields(text: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut bytes = text.iter();
    if bytes.find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
        return 0;
    }
    let (mut depth, mut is_name, mut name) = (1_u32, true, FACTOR);
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' if depth == 1 && is_name => {
                let mut part = 0_u64;
                while let Some(byte) = bytes.next() {
                    match byte {
                        b'"' => break,
                        b'\\' => part = part.wrapping_mul(257) ^ u64::from(bytes.next().copied().unwrap_or(0)) << 32,
                        _ => part = (part.rotate_left(7) ^ u64::from(*byte)).wrapping_mul(FACTOR),
                    }
                }
                name = (name.rotate_left(23) ^ part).wrapping_mul(FACTOR);
                is_name = false;
            }
            b'"' => bytes = json::after_string(bytes.as_slice()).iter(),
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b',' if depth == 1 => is_name = true,
            _ => {}
        }
    }
    name | 1
}

#[cfg(test)]
mod tests {
    use super::name_fields;

    #[test]
    fn the_same_fields_in_the_same_order_have_one_number() {
        let one = name_fields(br#"{"a":1,"b":{"c":[1,2,"}"]},"d":"\",\"x\":"}"#);
        assert_eq!(one, name_fields(br#" { "a" : null , "b" : 3 , "d" : {} } "#));
        for other in
            [r#"{"a":1,"b":2}"#, r#"{"b":1,"a":1,"d":1}"#, r#"{"a":1,"b":2,"d":3,"e":4}"#, "{}", r#"{"ab":1,"d":2}"#]
        {
            assert_ne!(one, name_fields(other.as_bytes()), "{other}");
        }
        assert_ne!(name_fields(br#"{"n":1}"#), name_fields(br#"{"\n":1}"#));
        // A value of any length, with escapes in any place, names nothing.
        for length in 0..40 {
            let padding = "x".repeat(length);
            let value = format!(r#"{padding}\\{padding}\",\"y\":{padding}\u0022{{"#);
            let text = format!(r#"{{"a":"{value}","b":["{padding}\\"],"d":"{padding}\\"}}"#);
            assert_eq!(one, name_fields(text.as_bytes()), "{text}");
        }
        for no_object in ["1", "[{}]", "\"{\"", ""] {
            assert_eq!(name_fields(no_object.as_bytes()), 0);
        }
    }
}
