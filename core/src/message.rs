//! A message as it is kept: immutable, shared by the log that keeps it and the shards that still have to send it.
//! Numbering is the log's; how it looks on a wire is the wires'.
use std::sync::Arc;

use crate::position::Position;

/// What content is. Bytes are bytes; text is UTF-8; JSON was checked when it was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Json,
    Text,
    Bytes,
}

/// A log's handle in its node: the slot, and which tenant of the slot. Never names another log once forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LogId {
    pub slot: u32,
    pub generation: u32,
}

impl LogId {
    /// What stands for a subject without a log, on which standard messages pass: made of a secret hash of its name, so that
    /// two subjects never share it; no log is found by it.
    pub(crate) fn unkept(hash: u64) -> Self {
        Self { slot: (hash >> 32) as u32 | 1 << 31, generation: hash as u32 }
    }
}

/// One accepted message.
#[derive(Debug)]
pub struct Message {
    pub subject: Arc<str>,
    pub log: LogId,
    pub epoch: u64,
    /// 0: a standard message, which has no position and is kept nowhere.
    pub sequence: u64,
    pub arrival: u64,
    pub time_ms: u64,
    pub kind: Kind,
    pub is_retained: bool,
    pub(crate) content_bytes: u32,
    /// Content, then the reply subject (possibly empty): one allocation for both.
    pub(crate) bytes: Box<[u8]>,
}

impl Message {
    /// The content as published.
    pub fn content(&self) -> &[u8] {
        self.bytes.get(..self.content_bytes as usize).unwrap_or(&[])
    }

    /// The subject on which the publisher awaits answers, if it named one.
    pub fn reply_to(&self) -> Option<&str> {
        let tail = self.bytes.get(self.content_bytes as usize..).unwrap_or(&[]);
        if tail.is_empty() { None } else { std::str::from_utf8(tail).ok() }
    }

    /// Its position; none for a standard message.
    pub fn at(&self) -> Option<Position> {
        (self.sequence > 0).then_some(Position { epoch: self.epoch, sequence: self.sequence })
    }

    /// Bytes it costs while kept, for the limits: content, reply subject and the fixed part.
    pub fn cost_bytes(&self) -> usize {
        size_of::<Self>() + 2 * size_of::<usize>() + self.bytes.len()
    }
}

/// A message about to be accepted: checked against rights and limits, not yet numbered.
#[derive(Debug)]
pub struct Draft {
    /// Where its subject stands in the batch's names.
    pub(crate) subject: std::ops::Range<u32>,
    pub kind: Kind,
    pub is_retained: Option<bool>,
    pub is_guaranteed: bool,
    pub content_bytes: u32,
    /// Content, then the reply subject.
    pub bytes: Box<[u8]>,
    /// The publisher's idempotence key, scoped by `identity` and the subject.
    pub key: Option<Box<[u8]>>,
    pub identity: Arc<str>,
    /// Whose publish it is, handed back with the outcome: a connection's slot, `u32::MAX` for the node itself.
    pub connection: u32,
}

/// What one turn wants appended, in order. Subjects lie in one string so that a known subject costs no allocation.
#[derive(Debug, Default)]
pub struct Batch {
    pub(crate) names: String,
    pub(crate) drafts: Vec<Draft>,
}

impl Batch {
    pub fn push(&mut self, subject: &str, mut draft: Draft) {
        let start = self.names.len() as u32;
        self.names.push_str(subject);
        draft.subject = start..self.names.len() as u32;
        self.drafts.push(draft);
    }

    pub fn subject(&self, draft: &Draft) -> &str {
        self.names.get(draft.subject.start as usize..draft.subject.end as usize).unwrap_or("")
    }

    /// Whose publish each draft is, in order.
    pub fn connections(&self) -> impl Iterator<Item = u32> + '_ {
        self.drafts.iter().map(|draft| draft.connection)
    }

    pub fn len(&self) -> usize {
        self.drafts.len()
    }

    pub fn is_empty(&self) -> bool {
        self.drafts.is_empty()
    }

    pub fn clear(&mut self) {
        self.names.clear();
        self.drafts.clear();
    }
}

impl Draft {
    /// A draft of `content` with the defaults of a publish; `reply_to` may be empty.
    pub fn new(kind: Kind, content: &[u8], reply_to: &str, identity: Arc<str>, connection: u32) -> Self {
        let mut bytes = Vec::with_capacity(content.len() + reply_to.len());
        bytes.extend_from_slice(content);
        bytes.extend_from_slice(reply_to.as_bytes());
        Self {
            subject: 0..0,
            kind,
            is_retained: None,
            is_guaranteed: true,
            content_bytes: content.len() as u32,
            bytes: bytes.into_boxed_slice(),
            key: None,
            identity,
            connection,
        }
    }
}
