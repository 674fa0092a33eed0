//! From the feed into the streams: each message is encoded once for every stream it concerns. A stream without a window
//! has one cursor at most: its message is noted for this turn if the cursor is at the head, else it waits in the log.
use std::sync::Arc;

use super::{Shard, encode, lock};
use crate::codec::Wire;
use crate::cursor::CursorState;
use crate::message::Message;
use crate::node::{Entry, Node};

const DRAIN_ENTRIES: usize = 1024;
/// Drains in one turn.
const TURN_BATCHES: usize = 4;

/// One message for the only cursor of its stream, to be sent this turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Single {
    pub connection: u32,
    pub cursor: u32,
    pub entry: u32,
}

impl Shard {
    /// Absorbs what is in the feed, letting go of the node between batches, up to a turn's share: what it brought is sent
    /// before more is taken.
    pub(super) fn absorb_feed(&mut self) {
        let node = Arc::clone(&self.node);
        self.has_more = true;
        for _ in 0..TURN_BATCHES {
            if !self.has_more {
                return;
            }
            let from = self.entries.len();
            let mut held = lock(&node);
            self.has_more = self.drain(&mut held);
            drop(held);
            self.absorb(from);
        }
    }

    /// Absorbs everything in the feed and keeps hold of the node: what is read of it next is as old as the streams.
    pub(super) fn absorb_all(&mut self, node: &mut Node) {
        self.has_more = true;
        while self.has_more {
            let from = self.entries.len();
            self.has_more = self.drain(node);
            self.absorb(from);
        }
    }

    fn drain(&mut self, node: &mut Node) -> bool {
        if let Some(lost) = node.window_misses(self.index) {
            self.fall_off_feed(&lost);
        }
        node.take_mail(self.index, &mut self.mail);
        let has_more = node.drain(self.index, &mut self.entries, DRAIN_ENTRIES);
        self.arrived = node.drained_to(self.index);
        self.token_bound = node.token_bound();
        has_more
    }

    fn absorb(&mut self, from: usize) {
        let mut concerned = Vec::new();
        for index in from..self.entries.len() {
            let Some(entry) = self.entries.get(index) else { break };
            match entry {
                Entry::Message(message) => {
                    let message = Arc::clone(message);
                    self.streams.concerned(message.log, &message.subject, &mut concerned);
                    for &stream in &concerned {
                        self.append(stream, &message, index as u32);
                    }
                }
                Entry::Interest { selector, has_subscribers, .. } => {
                    let (selector, has_subscribers) = (Arc::clone(selector), *has_subscribers);
                    self.tell_watchers(&selector, has_subscribers);
                }
            }
        }
    }

    fn append(&mut self, id: u32, message: &Arc<Message>, entry: u32) {
        let (now_ms, turns) = (self.now.mono_ms, self.written.turns);
        let Some((stream, next_number)) = self.streams.get_with_number(id) else { return };
        stream.used_ms = now_ms;
        if !stream.is_dirty && stream.fresh_turn != turns {
            (stream.fresh_us, stream.fresh_turn) = (message.accepted_us, turns);
        }
        if let Wire::MqttShared(_) = stream.wire {
            return self.note_deal(id);
        }
        if message.sequence == 0 && stream.conflate_ms == 0 {
            stream.standard = stream.standard.wrapping_add(1);
        }
        if let Some(conflation) = &mut stream.conflation {
            if conflation.is_empty() {
                let width = u64::from(stream.conflate_ms);
                conflation.closes_ms = (now_ms / width + 1) * width;
                conflation.closed = message.arrival - 1;
            }
            conflation.add(message);
        } else if stream.wire == Wire::Poll {
            self.wake_polls(id, message);
        } else if stream.window.is_some() {
            let item = encode::Item::message(message);
            encode::append(stream, next_number, &item, message.arrival, &mut self.press);
            self.appended(id);
        } else {
            self.note_single(id, message, entry);
        }
    }

    /// After an append: the window stays within its limits, and the stream is walked this turn unless it holds back.
    pub(super) fn appended(&mut self, id: u32) {
        let limits = &self.settings.limits;
        let (window_max, windows_max) = (limits.stream_window_bytes_max, limits.windows_bytes_max);
        let Some(stream) = self.streams.get_mut(id) else { return };
        let Some(window) = &stream.window else { return };
        if stream.batch_ms > 0 && stream.held.is_none() {
            stream.held = Some((self.now.mono_ms, window.head()));
        }
        let (bytes, before) = (window.bytes(), stream.window_bytes);
        if !stream.is_dirty {
            stream.is_dirty = true;
            self.dirty.push(id);
        }
        if bytes != before {
            let is_over = self.streams.window_bytes + bytes - before > windows_max;
            self.trim_window(id, if is_over { 0 } else { window_max });
        }
    }

    fn note_single(&mut self, id: u32, message: &Message, entry: u32) {
        let Some(stream) = self.streams.get(id) else { return };
        let standard = stream.standard;
        let Some(&cursor_id) = stream.cursors.first() else { return };
        let Some(cursor) = self.cursors.get_mut(cursor_id) else { return };
        if cursor.stand != CursorState::Current {
            return;
        }
        let is_free = self.connections.get(cursor.connection).is_some_and(|c| !c.is_blocked() && !c.is_sending);
        if is_free {
            cursor.standard = standard;
            self.singles.push(Single { connection: cursor.connection, cursor: cursor_id, entry });
        } else {
            cursor.stand = CursorState::Behind(message.arrival - 1);
            cursor.sequence = message.sequence.saturating_sub(1);
            let is_blocked = self.connections.get(cursor.connection).is_none_or(|c| c.is_blocked());
            self.note_late(cursor_id);
            if !is_blocked {
                self.queue_behind(cursor_id);
            }
        }
    }
}
