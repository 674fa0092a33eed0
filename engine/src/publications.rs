//! What the node itself publishes: checked as it is gathered, then numbered as one batch.

use godwit_core::codes::Code;
use godwit_core::holder::Holder;
use godwit_core::json::{self, JsonFault};
use godwit_core::message::{Batch, Draft, Kind};
use godwit_core::node::Outcome;
use godwit_core::position::Position;
use std::sync::Arc;

/// The connection of drafts that come from no connection.
const NODE: u32 = u32::MAX;

/// A batch of messages of the node's own, in order.
pub struct Publications {
    pub(crate) batch: Batch,
    checks: Vec<Result<(), Code>>,
    holder: Arc<Holder>,
    bytes_max: usize,
    depth_max: usize,
}

impl Publications {
    pub(crate) fn new(bytes_max: usize, depth_max: usize) -> Self {
        Self { batch: Batch::default(), checks: Vec::new(), holder: Holder::nobody(), bytes_max, depth_max }
    }

    /// Adds a message; what is wrong with its content is answered with the others.
    pub fn push(&mut self, subject: &str, content: &[u8], kind: Kind, is_retained: bool) {
        let check = self.check(kind, content);
        if check.is_ok() {
            let mut draft = Draft::new(kind, content, "", Arc::clone(&self.holder), NODE);
            draft.is_retained = Some(is_retained);
            self.batch.push(subject, draft);
        }
        self.checks.push(check);
    }

    /// Adds the removal of a subject's snapshot, and of the fields that it had.
    pub(crate) fn push_removal(&mut self, subject: &str, removed: &[u8]) {
        let mut draft = Draft::new(Kind::Text, b"", "", Arc::clone(&self.holder), NODE).with_fields(removed);
        draft.is_removal = true;
        self.batch.push(subject, draft);
        self.checks.push(Ok(()));
    }

    fn check(&self, kind: Kind, content: &[u8]) -> Result<(), Code> {
        if content.len() > self.bytes_max {
            return Err(Code::MessageTooBig);
        }
        if kind == Kind::Bytes {
            return Ok(());
        }
        let text = std::str::from_utf8(content).map_err(|_| Code::ContentInvalid)?;
        if kind == Kind::Text {
            return Ok(());
        }
        json::check(text, self.depth_max).map_err(|fault| match fault {
            JsonFault::TooDeep => Code::ContentTooDeep,
            _ => Code::ContentInvalid,
        })
    }

    /// Each message's answer, given the outcomes of those that were numbered.
    pub(crate) fn answer(self, outcomes: Vec<Outcome>) -> Vec<Result<Position, Code>> {
        let mut outcomes = outcomes.into_iter();
        let answers = self.checks.into_iter().map(|check| match check.map(|()| outcomes.next()) {
            Err(code) | Ok(Some(Outcome::Refused(code))) => Err(code),
            Ok(Some(Outcome::Published { at: Some(at), .. } | Outcome::Awaits { at: Some(at), .. })) => Ok(at),
            Ok(Some(Outcome::Published { .. } | Outcome::Awaits { .. }) | None) => Err(Code::CommandInternalError),
        });
        answers.collect()
    }
}
