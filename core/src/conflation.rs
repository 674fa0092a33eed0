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

/// A window under way. Standard messages are merged apart from guaranteed ones: they have no position to move to.
#[derive(Debug, Default)]
pub struct Conflation {
    parts: HashMap<(LogId, bool), Part>,
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
        match self.parts.entry((message.log, message.sequence == 0)) {
            std::collections::hash_map::Entry::Occupied(mut held) => held.get_mut().add(message),
            std::collections::hash_map::Entry::Vacant(free) => {
                free.insert(Part {
                    message: Arc::clone(message),
                    is_patch: message.is_patch,
                    merged: None,
                    merged_fields: None,
                    first: message.arrival,
                    after: message.after().or_else(|| message.at().map(|_| message.place_before())),
                    count: 1,
                });
            }
        }
    }

    /// Lets go of what was gathered.
    pub fn clear(&mut self) {
        self.parts.clear();
    }

    /// Closes the window at `arrival`: its parts in order of their last message.
    pub fn close(&mut self, arrival: u64) -> Vec<Part> {
        self.closed = arrival;
        let mut parts: Vec<Part> = self.parts.drain().map(|(_, part)| part).collect();
        parts.sort_by_key(|part| part.message.arrival);
        parts
    }
}

impl Part {
    fn add(&mut self, message: &Arc<Message>) {
        if message.is_patch {
            let old = if self.message.kind == Kind::Json { self.content() } else { b"" };
            let nulls = if self.is_patch { Nulls::Keep } else { Nulls::Remove };
            self.merged = json::merge(old, message.content(), nulls);
        } else {
            self.merged = None;
            self.is_patch = false;
        }
        let has_fields = self.merged_fields.is_some() || self.message.fields_bytes > 0;
        self.merged_fields = has_fields.then(|| fields::merge(self.fields(), message.fields(), true));
        self.message = Arc::clone(message);
        self.count += 1;
    }

    pub fn fields(&self) -> &[u8] {
        self.merged_fields.as_deref().unwrap_or(self.message.fields())
    }

    pub fn content(&self) -> &[u8] {
        self.merged.as_deref().unwrap_or(self.message.content())
    }
}
