//! What operators see: the node's totals, and its subjects as rows.
use super::Node;
use super::listen::looks_for;
use crate::report::SubjectRow;
use crate::subject::Pattern;

/// Kept true while the node works.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) messages: usize,
    /// Messages that are kept by a log or by its snapshot alone.
    pub(super) bytes: usize,
    pub(super) snapshots: usize,
    /// All that snapshots hold, their last messages too.
    pub(super) snapshot_bytes: usize,
    pub(super) accepted: u64,
    pub(super) refused: u64,
    pub(super) repeats: u64,
    pub(super) messages_evicted_by_count: u64,
    pub(super) messages_evicted_by_age: u64,
    pub(super) messages_evicted_by_bytes: u64,
    pub(super) evicted_snapshots: u64,
    pub(super) forgotten: u64,
    /// Of messages that are kept only because MQTT sessions or groups are owed them.
    pub(super) owed_bytes: usize,
}

/// The node's figures; counters begin at the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub epoch: u64,
    pub arrival: u64,
    /// A resume token before it is lost: too many subjects were forgotten since.
    pub oldest_resumable_arrival: u64,
    pub subjects: u64,
    pub patterns: u64,
    pub messages: u64,
    pub message_bytes: u64,
    pub snapshots: u64,
    pub snapshot_bytes: u64,
    /// Of messages that are kept only because MQTT sessions or groups are owed them, and of these sessions and groups how many there are.
    pub owed_bytes: u64,
    pub holders: u64,
    /// How often such a session or group had to skip its oldest messages, being owed too much.
    pub owed_skips: u64,
    /// MQTT sessions that have a place, of clients that are connected or away.
    pub mqtt_sessions: u64,
    /// Bytes of the wills of clients that arrive, are connected, or left a will that is not due yet.
    pub mqtt_wills_bytes: u64,
    pub keys: u64,
    pub publishers: u64,
    pub index_entries: u64,
    pub feed_entries: u64,
    pub feed_bytes: u64,
    pub feed_overruns: u64,
    pub accepted: u64,
    pub refused: u64,
    pub repeats: u64,
    pub messages_evicted_by_count: u64,
    pub messages_evicted_by_age: u64,
    pub messages_evicted_by_bytes: u64,
    pub evicted_snapshots: u64,
    pub forgotten: u64,
    /// Addresses, identities and tenants whose use is remembered, and how many were forgotten while they owed.
    pub accounts: u64,
    pub rate_limit_entries_evicted: u64,
}

impl Node {
    pub fn totals(&self) -> Totals {
        let (counts, lag) = (&self.counts, self.feed.lag());
        Totals {
            epoch: self.epoch,
            arrival: self.index.head(),
            oldest_resumable_arrival: self.forgotten.base(),
            subjects: self.names.len() as u64,
            patterns: self.directory.len() as u64,
            messages: counts.messages as u64,
            message_bytes: counts.bytes as u64,
            snapshots: counts.snapshots as u64,
            snapshot_bytes: counts.snapshot_bytes as u64,
            owed_bytes: counts.owed_bytes as u64,
            holders: self.holders.len() as u64,
            owed_skips: self.holders.skips(),
            mqtt_sessions: self.clients.promised() as u64,
            mqtt_wills_bytes: self.wills.bytes() as u64,
            keys: self.keys.len() as u64,
            publishers: self.publishers.len() as u64,
            index_entries: self.index.len() as u64,
            feed_entries: lag.entries as u64,
            feed_bytes: lag.bytes as u64,
            feed_overruns: self.feed.falls,
            accepted: counts.accepted,
            refused: counts.refused,
            repeats: counts.repeats,
            messages_evicted_by_count: counts.messages_evicted_by_count,
            messages_evicted_by_age: counts.messages_evicted_by_age,
            messages_evicted_by_bytes: counts.messages_evicted_by_bytes,
            evicted_snapshots: counts.evicted_snapshots,
            forgotten: counts.forgotten,
            accounts: u64::from(self.accounts.len()),
            rate_limit_entries_evicted: self.accounts.forgiven(),
        }
    }

    /// Subjects after `after` in name order, at most `limit`, that `pattern` holds; and where to go on when not all were
    /// looked at, which may be so with no row found.
    pub fn subjects(&self, after: &str, limit: usize, pattern: Option<&Pattern>) -> (Vec<SubjectRow>, Option<String>) {
        let (mut rows, mut looks) = (Vec::new(), looks_for(limit));
        for (name, slot) in self.names.range_all(pattern, after) {
            let (Some(log), Some(id)) = (self.names.log_at(slot), self.names.id_at(slot)) else { continue };
            if pattern.is_none_or(|pattern| pattern.matches(name)) {
                rows.push(SubjectRow {
                    subject: name.clone(),
                    log: id,
                    at: log.at(),
                    messages: log.len() as u64,
                    bytes: log.bytes() as u64,
                    subscribers: log.listeners.subscribers(),
                    has_snapshot: !log.latest.is_none(),
                    last_ms: log.last_ms(),
                });
            }
            looks -= 1;
            if rows.len() >= limit || looks == 0 {
                return (rows, Some(name.to_string()));
            }
        }
        (rows, None)
    }
}
