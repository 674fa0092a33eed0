//! Retained messages at a subscribe: what each subject retained when the subscription began. Owns the walk over the names; it
//! stops where the client can take no more and goes on from there. Nothing is passed over: what a subject was sent meanwhile
//! comes live, retained or not.
use std::sync::Arc;

use super::deliver::{Put, Wanted};
use super::parts::Parts;
use crate::cursor::{CursorState, Job, Join, Plan};
use crate::message::LogId;
use crate::node::Node;
use crate::shard::Shard;
use crate::stream::Source;

impl Shard {
    /// Begins to send what was retained up to `bound`, or goes on after the subject `done`; the live messages after it follow.
    pub(super) fn begin_retained(&mut self, id: u32, bound: u64, done: Option<&str>) {
        let done = done.map(Arc::from);
        if let Some(cursor) = self.cursors.get_mut(id) {
            let join = Join { bound, plan: Plan::Snapshots, follows_gap: false, done, inner: None };
            cursor.job = Some(Box::new(Job { join: Some(join), ..Job::default() }));
            cursor.stand = CursorState::Joining;
        }
        self.queue_behind(id);
    }

    /// One step: fills the connection's private bytes up to the reply buffer's limit.
    pub(in crate::shard) fn continue_retained(&mut self, id: u32, source: &Source, node: &mut Node) {
        let bytes_max = self.settings.limits.reply_buffer_bytes_max;
        let mut bytes = Vec::new();
        let mut is_stalled = false;
        while bytes.len() < bytes_max {
            let join = self.cursors.get_mut(id).and_then(|cursor| cursor.job.as_mut()?.join.as_mut());
            let Some(join) = join else { break };
            let (found, next) = match source {
                Source::Subject(log) if join.done.is_none() => (Some((Arc::from("/"), *log)), None),
                Source::Subject(_) => (None, None),
                Source::Pattern(pattern) => {
                    let mut names = Vec::new();
                    let done = join.done.clone();
                    let next = node.names(pattern, done.as_deref(), 1, &mut names);
                    (names.pop(), next)
                }
            };
            match (found, next) {
                (Some((subject, log)), _) => {
                    is_stalled = self.put_retained(id, log, node, &mut bytes) == Put::Stalled;
                    if is_stalled {
                        break;
                    }
                    self.pass_name(id, Some(subject));
                }
                (None, None) => {
                    self.tell(id, &bytes);
                    self.finish_retained(id);
                    return;
                }
                (None, next) => {
                    self.pass_name(id, next);
                    break;
                }
            }
        }
        self.tell(id, &bytes);
        if !is_stalled {
            self.queue_behind(id);
        }
    }

    fn pass_name(&mut self, id: u32, name: Option<Arc<str>>) {
        if let Some(join) = self.cursors.get_mut(id).and_then(|cursor| cursor.job.as_mut()?.join.as_mut()) {
            join.done = name;
        }
    }

    fn finish_retained(&mut self, id: u32) {
        let Some(cursor) = self.cursors.get_mut(id) else { return };
        let Some(join) = cursor.job.take().and_then(|job| job.join) else { return };
        cursor.stand = CursorState::Behind(join.bound);
        self.queue_behind(id);
    }

    fn put_retained(&mut self, id: u32, log: LogId, node: &Node, out: &mut Vec<u8>) -> Put {
        let Some(snapshot) = node.snapshot(log, self.now) else { return Put::Passed };
        let Some(cursor) = self.cursors.get(id) else { return Put::Passed };
        let bound = cursor.job.as_ref().and_then(|job| Some(job.join.as_ref()?.bound)).unwrap_or(0);
        if snapshot.last.arrival > bound {
            return Put::Passed;
        }
        let Some(parts) = Parts::of_snapshot(&snapshot) else {
            return Put::Passed;
        };
        let mqtt = self.connections.get_mut(cursor.connection).and_then(|connection| connection.mqtt.as_mut());
        let Some(mqtt) = mqtt else { return Put::Passed };
        mqtt.put(&Wanted::of(cursor), &parts, true, self.now.wall_ms, out)
    }
}
