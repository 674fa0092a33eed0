//! Server-Sent Events on a connection: how it begins, and the marks of one that listens to several subjects or a pattern. Owns
//! which mark its next event may carry: one that all its cursors have passed once that event is written.
use std::sync::Arc;

use super::consume::Poll;
use crate::command::Id;
use crate::cursor::{NONE, Stand};
use crate::http::{self, Answer, Head, Listen, Method, Refused, Way};
use crate::position::Mark;
use crate::shard::Shard;
use crate::shard::connection::Phase;
use crate::shard::outbound::Frames;
use crate::shard::session::Step;
use crate::subject::Selector;
use crate::wire::{Wire, sse};

/// What a connection remembers whose events carry marks.
#[derive(Debug)]
pub(in crate::shard) struct Marks {
    /// What its subscriptions are, as ids say it.
    digest: String,
    /// The joins are complete, and a mark has said so.
    is_joined: bool,
}

const STREAM_LINES: &str = "Cache-Control: no-store\r\nX-Accel-Buffering: no\r\n";

impl Shard {
    /// Begins what a GET listens to: all of its subjects, or none.
    pub(super) fn listen(&mut self, socket: u32, head: &Head<'_>, way: Way) -> Result<Step, Refused> {
        let settings = Arc::clone(&self.settings);
        let listen = http::read_listen(head, way, &settings.limits)?;
        let mut selectors = Vec::with_capacity(listen.subscribes.len());
        for subscribe in &listen.subscribes {
            let selector = Selector::parse(&subscribe.selector)?;
            match self.may_listen(socket, &selector)? {
                Step::Done => selectors.push(selector),
                step => return Ok(step),
            }
        }
        if way == Way::Stream && head.method == Method::Head {
            self.begin_stream(socket);
            return Ok(Step::Done);
        }
        let wire = match (way, selectors.as_slice()) {
            (Way::Consume, _) => Wire::Poll,
            (Way::Stream, [Selector::Subject(_)]) => Wire::Sse,
            _ => Wire::SseMany,
        };
        self.seat(socket, &listen, &selectors, wire)
    }

    /// Writes the head of an endless answer.
    fn begin_stream(&mut self, socket: u32) {
        if let Some(connection) = self.connections.get_mut(socket) {
            connection.exchange().shape.is_last = true;
        }
        self.answer(socket, &Answer { status: 200, media: "text/event-stream", lines: STREAM_LINES, body: &[] });
    }

    fn seat(&mut self, socket: u32, listen: &Listen<'_>, selectors: &[Selector], wire: Wire) -> Result<Step, Refused> {
        self.commit();
        if wire != Wire::Poll {
            self.begin_stream(socket);
        }
        let deadline_ms = self.now.mono_ms + listen.wait_ms;
        let Some(connection) = self.connections.get_mut(socket) else { return Ok(Step::Done) };
        connection.phase = Phase::Open;
        connection.wire = wire;
        if wire != Wire::Poll {
            self.counters.count_opened(connection, wire);
        }
        let names: Vec<&str> = selectors.iter().map(Selector::text).collect();
        let exchange = connection.exchange();
        exchange.marks = Some(Box::new(Marks { digest: sse::digest(&names), is_joined: wire != Wire::SseMany }));
        exchange.poll = (wire == Wire::Poll).then(|| Box::new(Poll::new(listen.limit, deadline_ms)));
        for (subscribe, selector) in listen.subscribes.iter().zip(selectors) {
            if let Err(refusal) = self.subscribe(socket, &Id::None, subscribe, selector) {
                self.leave_all(socket);
                if let Some(connection) = self.connections.get_mut(socket) {
                    connection.phase = Phase::Http;
                    connection.private.clear();
                    let exchange = connection.exchange();
                    (exchange.marks, exchange.poll) = (None, None);
                }
                return Err(refusal.into());
            }
        }
        if wire == Wire::Poll {
            self.polls.insert((deadline_ms, socket));
        }
        self.make_ready(socket);
        Ok(Step::Done)
    }

    /// Up to which arrival everything has been sent that a connection listens to; none while a join is under way. Frames noted
    /// for this turn only have not been sent before the turn's deliveries begin.
    pub(super) fn passed(&self, socket: u32) -> Option<u64> {
        let mut id = self.connections.get(socket)?.first_cursor;
        let mut passed = self.arrived;
        while id != NONE {
            let cursor = self.cursors.get(id)?;
            let reach = self.reach(cursor.stream);
            passed = passed.min(match cursor.stand {
                Stand::Current => reach.min(self.delivered),
                Stand::Live(place) => {
                    let window = self.streams.get(cursor.stream)?.window.as_ref()?;
                    if place >= window.head() { reach } else { window.settled(place)?.arrival }
                }
                Stand::Behind(from) => from,
                Stand::Joining => return None,
            });
            id = cursor.next;
        }
        Some(passed)
    }

    /// The mark that the connection's next event may carry.
    fn mark_of(&self, socket: u32) -> Option<Mark> {
        let arrival = self.passed(socket)?;
        Some(Mark { run: self.settings.run, arrival, time_ms: self.mark_ms })
    }

    /// Puts the connection's mark in front of the last of its frames.
    pub(in crate::shard) fn put_mark(&mut self, socket: u32, frames: &mut Frames) {
        let Some(mark) = self.mark_of(socket).filter(|_| !frames.notes.is_empty()) else { return };
        let begin = frames.notes.iter().rev().nth(1).map_or(frames.private, |note| note.end);
        let Some(marks) = self.marks(socket).filter(|marks| marks.is_joined) else { return };
        let mut line = Vec::new();
        sse::put_mark_id(&mut line, mark, &marks.digest);
        let bytes = line.len();
        frames.bytes.splice(begin..begin, line);
        if let Some(last) = frames.notes.last_mut() {
            last.end += bytes;
        }
    }

    fn marks(&self, socket: u32) -> Option<&Marks> {
        self.connections.get(socket)?.details.as_ref()?.exchange.as_ref()?.marks.as_deref()
    }

    /// What a position field says of a connection that listens to several subjects, or to a pattern.
    pub(super) fn mark_text(&self, socket: u32) -> Option<String> {
        Some(format!("{}.{}", self.mark_of(socket)?, self.marks(socket)?.digest))
    }

    /// All joins of a connection are complete: an event of its own says how far it is.
    pub(in crate::shard) fn tell_joined(&mut self, socket: u32) {
        if self.marks(socket).is_some_and(|marks| !marks.is_joined) && !self.is_behind(socket) {
            self.tell_stand(socket, true);
        }
    }

    /// Keeps a silent stream open: with its mark, where it has one.
    pub(in crate::shard) fn keep_alive(&mut self, socket: u32) {
        self.tell_stand(socket, false);
    }

    fn tell_stand(&mut self, socket: u32, is_joining: bool) {
        let mark = self.mark_of(socket);
        let Some(connection) = self.connections.get_mut(socket) else { return };
        let is_many = connection.wire == Wire::SseMany;
        let details = connection.details.get_or_insert_default();
        let marks = details.exchange.as_mut().and_then(|exchange| exchange.marks.as_mut());
        match (marks, mark) {
            (Some(marks), Some(mark)) if is_many && (is_joining || marks.is_joined) => {
                marks.is_joined = true;
                sse::put_mark_event(&mut connection.private, mark, &marks.digest);
            }
            _ if is_joining => return,
            _ => sse::put_comment(&mut connection.private),
        }
        self.make_ready(socket);
    }

    /// Whether a cursor of the connection is not at its stream's head.
    pub(super) fn is_behind(&self, socket: u32) -> bool {
        let mut id = self.connections.get(socket).map_or(NONE, |connection| connection.first_cursor);
        while let Some(cursor) = self.cursors.get(id) {
            if matches!(cursor.stand, Stand::Behind(_) | Stand::Joining) {
                return true;
            }
            id = cursor.next;
        }
        false
    }
}
