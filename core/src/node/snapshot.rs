//! A subject's latest retained state: the last message, or what patches made of it. Nearly always it is the last message itself,
//! shared with the log; a merged state is whole, without nulls, and never loses members for want of room: a publish that would make it too large is
//! refused before it is numbered.
use std::sync::Arc;

use crate::json::{self, Nulls};
use crate::message::{Kind, Message, fields};
use crate::position::Position;

/// What a new subscriber is shown first.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The head of the log when the snapshot was read, not the position of the last retained message.
    pub at: Position,
    /// The last retained message.
    pub last: Arc<Message>,
    /// The content that it was merged into; none where the last message says it all.
    pub merged: Option<Arc<[u8]>>,
    /// The latest value of every field; none where the last message says it all.
    pub fields: Option<Arc<[u8]>>,
}

impl Snapshot {
    pub fn content(&self) -> &[u8] {
        self.merged.as_deref().unwrap_or_else(|| self.last.content())
    }

    pub fn fields(&self) -> &[u8] {
        self.fields.as_deref().unwrap_or_else(|| self.last.fields())
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

/// What is beside the last message.
#[derive(Clone, Debug)]
struct Merged {
    last: Arc<Message>,
    content: Option<Arc<[u8]>>,
    fields: Option<Arc<[u8]>>,
}

#[derive(Clone, Debug, Default)]
enum State {
    #[default]
    None,
    Message(Arc<Message>),
    Merged(Box<Merged>),
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
            State::Merged(merged) => Some(&merged.last),
        }
    }

    pub(super) fn merged(&self) -> Option<&Arc<[u8]>> {
        if let State::Merged(merged) = &self.state { merged.content.as_ref() } else { None }
    }

    fn held_fields(&self) -> Option<&Arc<[u8]>> {
        if let State::Merged(merged) = &self.state { merged.fields.as_ref() } else { None }
    }

    /// The latest value of every field.
    pub(super) fn fields(&self) -> &[u8] {
        match self.held_fields() {
            Some(fields) => fields,
            None => self.last().map_or(&[][..], |last| last.fields()),
        }
    }

    /// The state as it is shown by who stands at the head.
    pub(super) fn show(&self, at: Position) -> Option<Snapshot> {
        let last = Arc::clone(self.last()?);
        Some(Snapshot { at, last, merged: self.merged().cloned(), fields: self.held_fields().cloned() })
    }

    pub(super) fn is_none(&self) -> bool {
        matches!(self.state, State::None)
    }

    /// Nothing was merged: the last message says it all.
    pub(super) fn is_plain(&self) -> bool {
        matches!(self.state, State::Message(_))
    }

    /// Fields of several messages are in it.
    pub(super) fn has_merged_fields(&self) -> bool {
        self.held_fields().is_some()
    }

    /// Bytes of all that it holds, the last message too, whether the log has that or not.
    pub(super) fn held_bytes(&self) -> usize {
        let last = self.last().map_or(0, |last| last.cost_bytes());
        let State::Merged(merged) = &self.state else { return last };
        let bytes = |held: &Option<Arc<[u8]>>| held.as_ref().map_or(0, |held| held.len() + 2 * size_of::<usize>());
        last + bytes(&merged.content) + bytes(&merged.fields)
    }

    /// What a patch would make of the content; none where the patch itself is the content then.
    fn merge(&self, patch: &[u8]) -> Option<Vec<u8>> {
        let old = self.last().filter(|last| last.kind == Kind::Json).map_or(&b""[..], |last| last.content());
        json::merge(self.merged().map_or(old, |merged| merged), patch, Nulls::Remove)
    }

    /// What the fields of a message make of those that are there; none where they alone are there then.
    fn merge_fields(&self, new: &[u8]) -> Option<Arc<[u8]>> {
        let old = self.fields();
        if new.is_empty() {
            // The message before may hold them, and goes.
            return (!old.is_empty()).then(|| self.held_fields().map_or_else(|| old.into(), Arc::clone));
        }
        let merged = fields::merge(old, new, false);
        (merged != new).then(|| merged.into())
    }

    /// Whether what is merged would be larger than `bytes_max` with this patch (empty where it is none) and these fields.
    pub(super) fn would_exceed(&self, patch: &[u8], new_fields: &[u8], bytes_max: usize) -> bool {
        let of_fields = self.fields().len() + new_fields.len();
        let old = self.merged().map_or(self.last().map_or(0, |last| last.content().len()), |merged| merged.len());
        let of_content = if patch.is_empty() { 0 } else { old + patch.len() };
        if of_content + of_fields <= bytes_max {
            return false;
        }
        let merged = || self.merge(patch).map_or(patch.len(), |merged| merged.len());
        let content = if patch.is_empty() { 0 } else { merged() };
        content + fields::merge(self.fields(), new_fields, false).len() > bytes_max
    }

    /// Takes a newer retained message in. `all_bytes` is what all snapshots hold, kept true here.
    pub(super) fn update(&mut self, message: &Arc<Message>, all_bytes: &mut usize) {
        let content = if message.is_patch { self.merge(message.content()).map(Arc::from) } else { None };
        let fields = if self.fields().is_empty() && message.fields_bytes == 0 {
            None
        } else {
            self.merge_fields(message.fields())
        };
        self.set(Arc::clone(message), content, fields, all_bytes);
    }

    /// Another content that the last message was merged into, and other fields.
    pub(super) fn replace(&mut self, content: Vec<u8>, fields: &[u8], all_bytes: &mut usize) {
        if let Some(last) = self.last().cloned() {
            let content = (content != last.content()).then(|| content.into());
            let fields = (fields != last.fields()).then(|| fields.into());
            self.set(last, content, fields, all_bytes);
        }
    }

    fn set(
        &mut self,
        last: Arc<Message>,
        content: Option<Arc<[u8]>>,
        fields: Option<Arc<[u8]>>,
        all_bytes: &mut usize,
    ) {
        *all_bytes -= self.held_bytes();
        self.state = match (content, fields) {
            (None, None) => State::Message(last),
            (content, fields) => State::Merged(Box::new(Merged { last, content, fields })),
        };
        *all_bytes += self.held_bytes();
    }

    pub(super) fn clear(&mut self, all_bytes: &mut usize) {
        *all_bytes -= self.held_bytes();
        *self = Self::default();
    }
}
