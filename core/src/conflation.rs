//! Conflation: what several messages of one subject become. The last content; patches are merged into what came before them. With the
//! count and the position before the first. Owns merging; windows and their clock are the stream's.
use std::collections::HashMap;
use std::sync::Arc;

use crate::json::{self, Nulls};
use crate::message::{Kind, LogId, Message, fields};
use crate::position::Position;

/// One subject's messages of a window, merged.
#[derive(Debug)]
pub struct Part {
    /// The last of them.
    pub message: Arc<Message>,
    /// All of them are patches: so is what they become, and it keeps nulls. Otherwise it replaces.
    pub is_patch: bool,
    /// The merged content, where it differs from the last one's.
    pub merged: Option<Vec<u8>>,
    /// The latest value of every field, where that differs from the last one's; removed ones as well.
    pub merged_fields: Option<Vec<u8>>,
    /// The arrival of the first of them.
    pub first: u64,
    /// The position before the first of them; none of standard messages.
    pub after: Option<Position>,
    pub count: u32,
}

/// Messages of these are merged apart: standard ones have no position to move to, and not all of them are the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Class {
    Guaranteed,
    /// Standard messages that are retained.
    State,
    Standard,
}

impl Class {
    fn of(message: &Message) -> Self {
        match (message.sequence, message.is_retained) {
            (0, true) => Self::State,
            (0, false) => Self::Standard,
            _ => Self::Guaranteed,
        }
    }

    /// The other one that is merged into the same state.
    fn other(self) -> Option<Self> {
        match self {
            Self::Guaranteed => Some(Self::State),
            Self::State => Some(Self::Guaranteed),
            Self::Standard => None,
        }
    }
}

/// A window under way.
#[derive(Debug, Default)]
pub struct Conflation {
    parts: HashMap<(LogId, Class), Part>,
    /// A standard message in it is retained.
    has_state: bool,
    /// While a window is under way: everything up to here is in closed ones.
    pub closed: u64,
    /// When the window under way closes (monotonic ms).
    pub closes_ms: u64,
    /// Somebody waits for that.
    pub is_awaited: bool,
}

impl Conflation {
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    pub fn add(&mut self, message: &Arc<Message>) {
        let class = Class::of(message);
        self.has_state |= class == Class::State;
        // What is sent last has what both became, in the order of acceptance: whoever puts it over the rest has the state.
        let other = class.other().filter(|_| self.has_state).and_then(|other| self.parts.get(&(message.log, other)));
        let other = other.map(|other| (other.message.arrival, other.merge(message)));
        match self.parts.entry((message.log, class)) {
            std::collections::hash_map::Entry::Occupied(mut held) => {
                let held = held.get_mut();
                let newer = other.filter(|(arrival, _)| *arrival > held.message.arrival).map(|(_, merged)| merged);
                let merged = newer.unwrap_or_else(|| held.merge(message));
                held.put(message, merged);
                held.count += 1;
            }
            std::collections::hash_map::Entry::Vacant(free) => {
                let part = free.insert(Part {
                    message: Arc::clone(message),
                    is_patch: message.is_patch,
                    merged: None,
                    merged_fields: None,
                    first: message.arrival,
                    after: message.after().or_else(|| message.at().map(|_| message.place_before())),
                    count: 1,
                });
                if let Some((_, merged)) = other {
                    part.put(message, merged);
                }
            }
        }
    }

    /// Lets go of what was gathered.
    pub fn clear(&mut self) {
        self.parts.clear();
        self.has_state = false;
    }

    /// Closes the window at `arrival`: its parts in order of their last message.
    pub fn close(&mut self, arrival: u64) -> Vec<Part> {
        self.closed = arrival;
        self.has_state = false;
        let mut parts: Vec<Part> = self.parts.drain().map(|(_, part)| part).collect();
        parts.sort_by_key(|part| part.message.arrival);
        parts
    }
}

/// What a part becomes with one more message: whether that is a patch, content and fields where they differ from that message's.
type Merged = (bool, Option<Vec<u8>>, Option<Vec<u8>>);

impl Part {
    fn merge(&self, message: &Message) -> Merged {
        let (is_patch, content) = if message.is_patch {
            let old = if self.message.kind == Kind::Json { self.content() } else { b"" };
            let nulls = if self.is_patch { Nulls::Keep } else { Nulls::Remove };
            (self.is_patch, json::merge(old, message.content(), nulls))
        } else {
            (false, None)
        };
        let has_fields = self.merged_fields.is_some() || self.message.fields_bytes > 0;
        let fields = has_fields.then(|| fields::merge(self.fields(), message.fields(), true));
        // A removal leaves no field of those before it.
        (is_patch, content, if message.is_removal { fields.map(|fields| fields::remove(&fields)) } else { fields })
    }

    fn put(&mut self, message: &Arc<Message>, (is_patch, merged, merged_fields): Merged) {
        (self.is_patch, self.merged, self.merged_fields) = (is_patch, merged, merged_fields);
        self.message = Arc::clone(message);
    }

    pub fn fields(&self) -> &[u8] {
        self.merged_fields.as_deref().unwrap_or(self.message.fields())
    }

    pub fn content(&self) -> &[u8] {
        self.merged.as_deref().unwrap_or(self.message.content())
    }
}
