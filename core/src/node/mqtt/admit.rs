//! What a shard has to know of a session before it restores it, and the way back where it cannot. Owns that a session which is refused
//! now is the same at the client's next try.
use std::sync::Arc;

use super::super::Node;
use super::{Kept, Will};
use crate::holder::Holder;
use crate::message::LogId;
use crate::position::Now;
use crate::report::ConnectionId;

/// What a claim ended: when the session would have expired, and its delayed will with the time when it was due (monotonic ms).
#[derive(Debug)]
pub struct Before {
    pub(super) expires_ms: u64,
    pub(super) will: Option<Box<(u64, Will)>>,
}

impl Node {
    /// What the session of a client that is away subscribes to, if this identity owns it.
    pub fn kept_selectors(&self, id: &str, holder: &Holder) -> impl Iterator<Item = &str> {
        let client = self.clients.by_id.get(id).filter(|client| client.is_of(holder));
        let kept = client.and_then(|client| client.kept.as_ref());
        kept.into_iter().flat_map(|kept| kept.subscriptions.iter().map(|subscription| &*subscription.selector))
    }

    /// Whether a connection of this identity has the client now.
    pub fn is_connected(&self, id: &str, holder: &Holder) -> bool {
        let client = self.clients.by_id.get(id);
        client.is_some_and(|client| client.owner.is_some() && client.is_of(holder))
    }

    /// The subject of a message in flight, where its log is known.
    pub fn subject_of(&self, log: LogId) -> Option<&str> {
        self.names.get(log).map(|log| &*log.subject)
    }

    /// A claim that was granted led to a refusal: the session and its will are kept as they were.
    pub fn put_back(&mut self, id: &Arc<str>, connection: ConnectionId, kept: Kept, before: Before, now: Now) {
        let will = before.will.map(|boxed| {
            let (due_ms, mut will) = *boxed;
            will.delay_ms = due_ms.saturating_sub(now.mono_ms).max(1);
            will
        });
        let left_ms = before.expires_ms.saturating_sub(now.mono_ms).max(1);
        self.release(id, connection, Some(kept), will, left_ms, now);
    }
}
