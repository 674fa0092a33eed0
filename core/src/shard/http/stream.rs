//! Server-Sent Events on a connection, and answers that wait: how they begin. Owns that a request listens to all of its subjects or
//! to none; which resume tokens its events carry is `event_ids`'.
use std::sync::Arc;

use super::consume::Poll;
use super::event_ids::EventIds;
use crate::codec::Wire;
use crate::command::Id;
use crate::http::{self, Answer, Head, Listen, Method, Refused, Way};
use crate::limits::FRAME_BYTES_DEFAULT;
use crate::shard::Shard;
use crate::shard::connection::Phase;
use crate::shard::session::Step;
use crate::subject::Selector;

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

    /// Makes a connection that asks for requests one that listens: nothing of what it listens to has begun.
    pub(super) fn open_stream(&mut self, socket: u32, wire: Wire, frame_bytes_max: Option<u32>, event_ids: EventIds) {
        self.commit();
        if wire != Wire::Poll {
            self.begin_stream(socket);
        }
        let Some(connection) = self.connections.get_mut(socket) else { return };
        connection.phase = Phase::Open;
        if frame_bytes_max.is_some() || connection.papers.is_some() {
            connection.papers().frame_bytes_max = frame_bytes_max;
        }
        connection.wire = wire;
        if wire != Wire::Poll {
            self.counters.count_opened(connection, wire);
        }
        connection.exchange().event_ids = Some(Box::new(event_ids));
        self.announce_connection(socket);
    }

    fn seat(&mut self, socket: u32, listen: &Listen<'_>, selectors: &[Selector], wire: Wire) -> Result<Step, Refused> {
        let names: Vec<&str> = selectors.iter().map(Selector::text).collect();
        self.open_stream(socket, wire, listen.frame_bytes_max, EventIds::new(&names, wire == Wire::SseMany));
        let deadline_ms = self.now.mono_ms + listen.wait_ms;
        let frame_bytes_max = listen.frame_bytes_max.unwrap_or(FRAME_BYTES_DEFAULT as u32) as usize;
        let Some(connection) = self.connections.get_mut(socket) else { return Ok(Step::Done) };
        let exchange = connection.exchange();
        exchange.poll = (wire == Wire::Poll).then(|| Box::new(Poll::new(listen.limit, deadline_ms, frame_bytes_max)));
        for (subscribe, selector) in listen.subscribes.iter().zip(selectors) {
            if let Err(refusal) = self.subscribe(socket, &Id::None, subscribe, selector) {
                self.leave_all(socket);
                if let Some(connection) = self.connections.get_mut(socket) {
                    (connection.phase, connection.wire) = (Phase::Http, Wire::Poll);
                    connection.private.clear();
                    let exchange = connection.exchange();
                    (exchange.event_ids, exchange.poll) = (None, None);
                }
                return Err(refusal.into());
            }
        }
        match wire {
            Wire::Poll => {
                self.begin_poll(socket);
                self.polls.insert((deadline_ms, socket));
            }
            // A token that ends soon was granted while there was nothing to say it in.
            _ => self.look_at_token(socket),
        }
        self.make_ready(socket);
        Ok(Step::Done)
    }
}
