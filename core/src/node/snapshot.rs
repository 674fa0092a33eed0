//! A subject's latest retained state: the last message, or what patches made of it. Nearly always it is the last message itself,
//! shared with the log; a merged state is whole, without nulls, and never loses members for want of room: a publish that would make it too large is
//! refused before it is numbered.
use std::sync::Arc;

use crate::json::{self, Nulls};
use crate::message::{Kind, Message};
use crate::position::Position;

/// What a new subscriber is shown first.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The head of the log when the snapshot was read, not the position of the last retained message.
    pub at: Position,
    /// The last retained message.
    pub last: Arc<Message>,
    /// The state that it was merged into; none where the last message says it all.
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

#[derive(Clone, Debug, Default)]
enum State {
    #[default]
    None,
    Message(Arc<Message>),
    Merged(Box<(Arc<Message>, Arc<[u8]>)>),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Latest {
    state: State,
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

    /// What a patch would make of the state; none where the patch itself is the state then.
    fn merge(&self, patch: &[u8]) -> Option<Vec<u8>> {
        let old = self.last().filter(|last| last.kind == Kind::Json).map_or(&b""[..], |last| last.content());
        json::merge(self.merged().map_or(old, |merged| merged), patch, Nulls::Remove)
    }

    /// Whether the state would be larger than `bytes_max` with this patch.
    pub(super) fn would_exceed(&self, patch: &[u8], bytes_max: usize) -> bool {
        let old = self.merged().map_or(self.last().map_or(0, |last| last.content().len()), |merged| merged.len());
        old + patch.len() > bytes_max && self.merge(patch).map_or(patch.len(), |merged| merged.len()) > bytes_max
    }

    /// Takes a newer retained message in. `all_bytes` is what all merged states hold, kept true here.
    pub(super) fn update(&mut self, message: &Arc<Message>, all_bytes: &mut usize) {
        let merged = if message.is_patch { self.merge(message.content()) } else { None };
        *all_bytes -= self.merged_bytes();
        self.state = match merged {
            None => State::Message(Arc::clone(message)),
            Some(merged) => State::Merged(Box::new((Arc::clone(message), merged.into()))),
        };
        *all_bytes += self.merged_bytes();
    }

    /// Another state that the last message was merged into.
    pub(super) fn replace(&mut self, merged: Vec<u8>, all_bytes: &mut usize) {
        *all_bytes -= self.merged_bytes();
        if let Some(last) = self.last().cloned() {
            self.state = if merged == last.content() {
                State::Message(last)
            } else {
                State::Merged(Box::new((last, merged.into())))
            };
        }
        *all_bytes += self.merged_bytes();
    }

    pub(super) fn clear(&mut self, all_bytes: &mut usize) {
        *all_bytes -= self.merged_bytes();
        *self = Self::default();
    }
}
