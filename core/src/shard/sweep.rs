//! What happens by the clock, in small portions: silent and half-done connections, streams nobody listens to, resume tokens, ages
//! in the node. Owns the pace: a sweep every quarter of a second looks at an eighth of what there is; where there is very
//! much, smaller sweeps come sooner, so that no message waits long for one.
use std::sync::Arc;

use super::connection::{NOTIFIED, Phase};
use super::mqtt::put_notice;
use super::{Shard, SocketOutput, lock};
use crate::codec::{self, Wire};
use crate::codes::Code;
use crate::command::Push;
use crate::cursor::CursorState;
use crate::holder::client_of;
use crate::node::Overdue;
use crate::position::ResumeToken;
use crate::report::Report;
use crate::stream::{Source, Stream};
use crate::websocket;

const SWEEP_INTERVAL_MS: u64 = 250;
/// Tokens that end sooner than this are ended to the millisecond. A connection is looked at every two seconds.
const EXPIRING_MS: u64 = 5_000;
/// A sweep looks at one of so many parts.
const PARTS: u32 = 8;
/// The same for streams: each is looked at once a second.
const STREAM_PARTS: u32 = 4;
/// Up to so many connections, streams and logs the parts and the interval are those above; for every doubling there are twice
/// as many parts in half the interval, to a sixteenth.
const SIZE: u32 = 8_192;
const DOUBLINGS_MAX: u32 = 4;
/// Pieces of the node's sweep done in one of ours, each its own section under the lock.
const NODE_SWEEPS: u32 = 2;
/// A resume token is told at least so often (in resume token intervals) when only other subjects' messages arrived.
const QUIET_INTERVALS: u64 = 30;

/// What a stream of events says at the end of its token: EventSource would come again with the old one.
const STREAM_ENDED: &str = "the token has expired: open the stream again with a new token and the id of the last event (Last-Event-ID or last_event_id)";

impl Shard {
    pub(super) fn sweep<O: SocketOutput>(&mut self, out: &mut O) {
        let end = self.connections.end();
        // One shard keeps the pace that the node's logs need; should it give up, the others sweep them more slowly.
        let logs = if self.index == 0 { self.node_size } else { 0 };
        let doublings = doublings(end.max(self.streams.end()).max(logs));
        self.next_sweep_ms = self.now.mono_ms + (SWEEP_INTERVAL_MS >> doublings);
        self.sweep_node(SWEEP_INTERVAL_MS >> doublings);
        self.written.has_rows |= self.settings.journal.is_some();
        let (parts, stream_parts) = (PARTS << doublings, STREAM_PARTS << doublings);
        let part = self.sweep_from % parts;
        self.sweep_from = part + 1;
        let width = end.div_ceil(parts).max(1);
        let looked: Vec<u32> =
            self.connections.indices_from(part * width).take_while(|&s| s < (part + 1) * width).collect();
        for socket in looked {
            self.look_at(socket, out);
        }
        self.look_at_hasty(out);
        self.sweep_streams(part % stream_parts, stream_parts);
        self.sweep_ledger();
        self.sweep_drain(out);
        self.buffers.truncate(64);
    }

    /// The node's own, by whichever shard comes first: one that gave up leaves it to the others.
    fn sweep_node(&mut self, interval_ms: u64) {
        let node = Arc::clone(&self.node);
        let mut held = lock(&node);
        self.node_size = held.size();
        let is_due = held.begin_sweep(self.now, interval_ms / 2);
        drop(held);
        if !is_due {
            return;
        }
        self.accounts.sweep(self.now.mono_ms.saturating_mul(1_000_000));
        let (mut wills, mut overdue) = (Vec::new(), Vec::new());
        for _ in 0..NODE_SWEEPS {
            let mut node = lock(&node);
            let has_more = node.sweep(self.now);
            self.wakes |= node.take_wakes();
            wills.append(&mut node.take_wills());
            overdue.append(&mut node.take_overdue());
            if !has_more {
                break;
            }
        }
        self.publish_wills(wills);
        for Overdue { name, messages, bytes } in overdue {
            let name = Arc::from(client_of(&name));
            self.report(Report::MqttOverdue { name, messages, bytes });
        }
    }

    /// One connection's deadlines.
    pub(super) fn look_at<O: SocketOutput>(&mut self, socket: u32, out: &mut O) {
        let limits = &self.settings.limits;
        let (handshake_ms, idle_ms) = (limits.handshake_ms_max, limits.idle_ms_max);
        let (message_ms_max, ping_interval_ms) = (limits.message_ms_max, limits.ping_interval_ms);
        let now_ms = self.now.mono_ms;
        let now_ns = self.now_ns();
        let Some(connection) = self.connections.get_mut(socket) else { return };
        connection.release_details(now_ns);
        self.look_at_answers(socket);
        let Some(connection) = self.connections.get_mut(socket) else { return };
        let duration_ms = connection.since.age_ms(now_ms);
        let silent_ms = connection.heard.age_ms(now_ms);
        match connection.phase {
            Phase::Http => self.look_at_request(socket, duration_ms, silent_ms, out),
            Phase::Closing => {
                let deadline_ms = connection.details().close.as_ref().map_or(0, |close| close.deadline_ms);
                if now_ms >= deadline_ms && !connection.is_sending {
                    self.forget(socket, Code::GoingAway as u16, out);
                }
            }
            Phase::Open if connection.access.is_none() && duration_ms >= handshake_ms && !connection.is_asking => {
                self.refuse_login(socket, Code::ConnectMissing, Code::ConnectMissing.sentence());
            }
            Phase::Open if connection.wire == Wire::Poll => self.look_at_token(socket),
            // Who waits for an answer is not read, and may well have pinged.
            Phase::Open if connection.is_asking => self.look_at_token(socket),
            Phase::Open if connection.mqtt.as_ref().is_some_and(|mqtt| mqtt.is_silent(now_ms)) => {
                self.close(socket, Code::IdleTimeout, "nothing came for one and a half times the keep alive");
            }
            Phase::Open if silent_ms >= idle_ms && !connection.speaks_packets() => {
                let code = Code::IdleTimeout;
                self.close(socket, code, code.sentence());
            }
            Phase::Open => {
                if connection.mqtt.is_some() {
                    self.hold_stands_again(socket);
                    self.save_session(socket);
                } else if duration_ms >= handshake_ms {
                    self.announce_silent(socket);
                }
                let Some(connection) = self.connections.get_mut(socket) else { return };
                let half_ms = connection.details.as_ref().and_then(|d| d.half_since_ms);
                if half_ms.is_some_and(|since| now_ms >= since + message_ms_max) {
                    self.close(socket, Code::MessageTimeout, Code::MessageTimeout.sentence());
                } else if !connection.wire.is_websocket() {
                    if silent_ms >= ping_interval_ms && connection.private.is_empty() && connection.mqtt.is_none() {
                        self.keep_alive(socket);
                    }
                } else if silent_ms >= ping_interval_ms && !connection.is_pinged && connection.private.is_empty() {
                    connection.is_pinged = true;
                    websocket::ping(&mut connection.private);
                    self.make_ready(socket);
                }
                self.look_at_token(socket);
            }
        }
    }

    /// Ends the connections whose tokens have expired by now, however long the next sweep takes to come.
    pub(super) fn end_expired(&mut self) {
        while let Some(&(expires_ms, socket)) = self.expiring.first() {
            if expires_ms > self.now.wall_ms {
                return;
            }
            self.expiring.pop_first();
            self.look_at_token(socket);
        }
    }

    /// A token is about to expire, or has.
    pub(super) fn look_at_token(&mut self, socket: u32) {
        let wall_ms = self.now.wall_ms;
        let Some(connection) = self.connections.get_mut(socket) else { return };
        let wire = connection.wire;
        // Between HTTP requests there is nothing to say it in, and an array of messages is no place for it.
        let can_hear = connection.phase == Phase::Open && wire != Wire::Poll;
        let Some(papers) = connection.papers.as_mut() else { return };
        let Some(expires_ms) = papers.expires_ms else { return };
        if expires_ms > wall_ms && expires_ms - wall_ms <= EXPIRING_MS {
            self.expiring.insert((expires_ms, socket));
        }
        if wall_ms >= expires_ms {
            let how =
                if matches!(wire, Wire::Sse | Wire::SseMany) { STREAM_ENDED } else { Code::TokenExpired.sentence() };
            self.close(socket, Code::TokenExpired, how);
        } else if can_hear && papers.notice_ms <= wall_ms {
            papers.notice_ms = NOTIFIED;
            let in_ms = expires_ms - wall_ms;
            put_notice(connection, &Push::TokenExpiring { in_ms });
            self.make_ready(socket);
        }
    }

    fn sweep_streams(&mut self, part: u32, parts: u32) {
        let (linger_ms, now_ms) = (self.settings.limits.stream_linger_ms, self.now.mono_ms);
        let width = self.streams.end().div_ceil(parts).max(1);
        let ids: Vec<u32> = self.streams.indices_from(part * width).take_while(|&id| id < (part + 1) * width).collect();
        self.recount_subscribers(&ids);
        for id in ids {
            let Some(stream) = self.streams.get(id) else { continue };
            if stream.empty_since_ms.is_some_and(|since| now_ms >= since + linger_ms) {
                self.remove_stream(id);
                continue;
            }
            let is_quiet = now_ms >= stream.used_ms + linger_ms;
            if stream.window_bytes > 0 && is_quiet && stream.conflation.as_ref().is_none_or(|c| c.is_empty()) {
                self.close_window(id);
            }
            self.note_dealt(id);
            self.note_progress(id);
        }
    }

    /// Who joined was counted at once, who left is now.
    fn recount_subscribers(&mut self, streams: &[u32]) {
        let is_news = |stream: &Stream| {
            matches!(stream.source, Source::Subject(_)) && stream.counted != stream.cursors.len() as u32
        };
        let changed: Vec<u32> =
            streams.iter().copied().filter(|&id| self.streams.get(id).is_some_and(is_news)).collect();
        if changed.is_empty() {
            return;
        }
        let node = Arc::clone(&self.node);
        let mut node = lock(&node);
        for id in changed {
            self.count_subscribers(id, 0, &mut node);
        }
    }

    /// Tells a pattern's listeners how far they are, if that is news.
    fn note_progress(&mut self, id: u32) {
        let interval_ms = self.settings.limits.resume_token_interval_ms;
        let reach = self.reach(id);
        let (now, run, resume_token_ms) = (self.now, self.settings.run, self.resume_token_ms);
        let Some(stream) = self.streams.get_mut(id) else { return };
        let since_ms = now.mono_ms.saturating_sub(stream.marked_ms) + SWEEP_INTERVAL_MS;
        let is_due = if stream.used_ms > stream.marked_ms || stream.used_ms == now.mono_ms {
            since_ms >= interval_ms
        } else {
            since_ms >= interval_ms * QUIET_INTERVALS
        };
        if reach <= stream.marked || !is_due || stream.cursors.is_empty() {
            return;
        }
        let (Source::Pattern(_), true) = (&stream.source, stream.wire.is_websocket() && !stream.wire.is_mqtt()) else {
            return;
        };
        (stream.marked, stream.marked_ms) = (reach, now.mono_ms);
        if let Some(window) = &mut stream.window {
            self.press.frame.clear();
            let resume_token = ResumeToken { run, arrival: reach.min(self.token_bound), time_ms: resume_token_ms };
            codec::push(stream.wire, &mut self.press.frame, &Push::ResumeToken { resume_token, pattern: &stream.name });
            window.append_resume_token(&self.press.frame, reach, stream.standard);
            self.appended(id);
        } else if let Some(&cursor_id) = stream.cursors.first()
            && self.cursors.get(cursor_id).is_some_and(|cursor| cursor.stand == CursorState::Current)
            && !self.singles.iter().any(|single| single.cursor == cursor_id)
        {
            let socket = self.cursors.get(cursor_id).map_or(0, |cursor| cursor.connection);
            if self.connections.get(socket).is_some_and(|c| !c.is_blocked()) {
                self.tell_resume_token(cursor_id, reach);
            }
        }
    }
}

/// How often `size` has to be halved to be swept in the ordinary way.
fn doublings(size: u32) -> u32 {
    size.div_ceil(SIZE).max(1).next_power_of_two().ilog2().min(DOUBLINGS_MAX)
}

#[cfg(test)]
mod tests {
    use super::doublings;

    #[test]
    fn the_more_there_is_the_smaller_are_the_parts() {
        let sizes = [0, 8_192, 8_193, 16_384, 20_000, 65_536, 131_072, u32::MAX];
        assert_eq!(sizes.map(doublings), [0, 0, 1, 1, 2, 3, 4, 4]);
    }
}
