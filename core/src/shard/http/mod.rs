//! HTTP on the client port: requests of one connection, one after the other, each read to its end before it is answered.
//! Owns when a connection is read, keep-alive, pipelining and the end of a connection; what a request asks for is `route`'s.
//! Invariant: answers leave in the order of their requests, and nothing is read ahead beyond one receive while one waits.
mod admit;
mod body;
mod consume;
mod end;
mod event_ids;
mod many;
mod pages;
mod produce;
mod route;
mod stream;
mod switch;

use std::sync::Arc;

use super::access::Excess;
use super::connection::{Access, Connection, Phase};
use super::session::Step;
use super::{Shard, SocketOutput};
use crate::codec::Wire;
use crate::codes::Code;
use crate::http::{self, Chunked, Framing, Head, Method, Refused, Shape};
use crate::report::Report;

/// What a connection needs that speaks HTTP.
#[derive(Debug, Default)]
pub(super) struct Exchange {
    /// What the answers under way owe to their requests.
    pub shape: Shape,
    /// Whose access the connection has: the token that was judged; none: nobody's, or an anonymous client's.
    pub token: Option<Box<str>>,
    /// The access of the token before the one that is being judged.
    pub before: Option<Arc<Access>>,
    /// The request whose body is being received.
    receiving: Option<Box<Receiving>>,
    /// The request whose question is with the server.
    kept: Option<Box<Kept>>,
    /// What came behind a request that is not answered yet.
    ahead: Vec<u8>,
    /// Outcomes of a POST of several publishes so far.
    pub outcomes: Option<Vec<u8>>,
    /// An answer that waits for the disk, or is made while some of what it says does.
    pub held: Option<Box<produce::Held>>,
    pub poll: Option<Box<consume::Poll>>,
    pub event_ids: Option<Box<event_ids::EventIds>>,
    /// What helps if the publish that is being committed finds no snapshot.
    pub hint: &'static str,
    /// The socket closes only after the peer has: bytes may still come, and closing over them would lose the answer.
    pub lingers: bool,
}

#[derive(Debug)]
struct Receiving {
    head: Vec<u8>,
    body: Vec<u8>,
    /// Bytes to come, or the decoder.
    rest: Rest,
}

#[derive(Debug)]
enum Rest {
    Length(usize),
    Chunked(Chunked),
}

#[derive(Debug)]
struct Kept {
    head: Vec<u8>,
    body: Vec<u8>,
    /// Publishes of the body that are done.
    done: usize,
}

/// How reading goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    Next,
    /// More bytes are needed.
    More,
    /// The answer waits; what came behind it is kept.
    Wait,
    /// The connection is closing, or speaks WebSocket now.
    End,
}

impl Shard {
    /// Bytes of a connection that speaks HTTP.
    pub(super) fn read_requests<O: SocketOutput>(&mut self, socket: u32, bytes: &[u8], out: &mut O) {
        let Some(connection) = self.connections.get_mut(socket) else { return };
        let is_polling = connection.wire == Wire::Poll && connection.phase == Phase::Open;
        let details = connection.details.as_ref().and_then(|details| details.exchange.as_ref());
        let has_ahead = details.is_some_and(|exchange| !exchange.ahead.is_empty());
        if connection.is_asking || connection.is_choked || is_polling || has_ahead {
            connection.exchange().ahead.extend_from_slice(bytes);
            // One receive ahead is enough: a client that does not wait for its answers is not read on.
            if !connection.is_paused {
                connection.is_paused = true;
                out.pause_read(socket);
            }
            return;
        }
        let mut held = connection.details.as_mut().map(|details| std::mem::take(&mut details.held)).unwrap_or_default();
        if held.is_empty() {
            self.read_in_order(socket, bytes, out);
        } else {
            held.extend_from_slice(bytes);
            let is_line_whole = bytes.contains(&b'\n') || held.len() > self.settings.limits.header_bytes_max;
            if is_line_whole {
                self.read_in_order(socket, &held, out);
            } else {
                self.hold(socket, held);
            }
        }
    }

    fn read_in_order<O: SocketOutput>(&mut self, socket: u32, bytes: &[u8], out: &mut O) {
        let mut rest = bytes;
        loop {
            let bytes_max = self.settings.limits.reply_buffer_bytes_max;
            let taken = match self.connections.get(socket) {
                Some(connection) if connection.owed_bytes() > bytes_max => Taken::Wait,
                Some(_) if rest.is_empty() => Taken::More,
                Some(_) => self.take_request(socket, &mut rest, out),
                None => Taken::End,
            };
            match taken {
                Taken::Next => {}
                Taken::More => return self.hold(socket, rest.to_vec()),
                Taken::Wait => {
                    if let Some(connection) = self.connections.get_mut(socket) {
                        connection.exchange().ahead = rest.to_vec();
                        self.make_ready(socket);
                    }
                    return;
                }
                Taken::End => return,
            }
        }
    }

    /// Keeps the beginning of a request until the rest of it comes.
    fn hold(&mut self, socket: u32, bytes: Vec<u8>) {
        let now_ms = self.now.mono_ms;
        let Some(connection) = self.connections.get_mut(socket) else { return };
        let has_body =
            connection.details.as_ref().and_then(|d| d.exchange.as_ref()).is_some_and(|e| e.receiving.is_some());
        if bytes.is_empty() && !has_body {
            if let Some(details) = &mut connection.details {
                details.half_since_ms = None;
            }
            return;
        }
        let details = connection.details();
        details.half_since_ms.get_or_insert(now_ms);
        details.held = bytes;
    }

    /// The request before has been answered: goes on with what came behind it.
    pub(super) fn read_ahead<O: SocketOutput>(&mut self, socket: u32, out: &mut O) {
        let Some(connection) = self.connections.get_mut(socket) else { return };
        if connection.phase != Phase::Http || connection.is_asking {
            return;
        }
        let Some(exchange) = connection.details.as_mut().and_then(|details| details.exchange.as_mut()) else { return };
        let ahead = std::mem::take(&mut exchange.ahead);
        if !ahead.is_empty() {
            self.read_requests(socket, &ahead, out);
        }
        let is_waiting = |c: &Connection| {
            c.phase == Phase::Http
                && c.details.as_ref().and_then(|d| d.exchange.as_ref()).is_none_or(|e| e.ahead.is_empty())
        };
        if self.connections.get(socket).is_some_and(is_waiting) {
            self.resume(socket, out);
        }
    }

    fn take_request<O: SocketOutput>(&mut self, socket: u32, rest: &mut &[u8], out: &mut O) -> Taken {
        let Some(connection) = self.connections.get_mut(socket) else { return Taken::End };
        if connection.exchange().receiving.is_some() {
            return self.take_body(socket, rest);
        }
        let settings = Arc::clone(&self.settings);
        let bytes: &[u8] = rest;
        let head = match http::read_head(bytes, &settings.limits) {
            Ok(None) => return Taken::More,
            Ok(Some(head)) => head,
            Err(refused) => {
                // No answer to HEAD has a body, however the rest of it reads.
                self.set_shape(socket, Shape { is_head: bytes.starts_with(b"HEAD "), ..Shape::default() });
                return self.refuse_all(socket, &refused);
            }
        };
        let head_bytes = head.head_bytes;
        let cors = match self.judge_page(socket, &head) {
            Ok(cors) => cors,
            Err(refused) => return self.refuse_all(socket, &refused),
        };
        self.take_forwarded(socket, &head.forwarded);
        let turned_away = self.connections.get(socket).and_then(|c| c.details.as_ref()?.turned_away);
        // Whether an MQTT client takes over is known when its CONNECT has been judged.
        let may_take_over = |excess: Excess| excess.may_take_over() && http::is_mqtt_upgrade(&head);
        if let Some(excess) = turned_away.filter(|excess| !may_take_over(*excess)) {
            return self.refuse_all(socket, &excess.refusal().into());
        }
        // Frames may follow a request for a WebSocket that becomes none.
        let is_last = head.is_last || head.asks_for_websocket();
        let shape = Shape { is_head: head.method == Method::Head, is_last, cors };
        self.set_shape(socket, shape);
        if http::is_upgrade(&head) {
            return self.switch(socket, &head, bytes.get(head_bytes..).unwrap_or(&[]), out);
        }
        if self.must_wait(socket, &head) {
            return Taken::Wait;
        }
        let behind = bytes.get(head_bytes..).unwrap_or(&[]);
        let body_bytes = match head.framing {
            Framing::None => 0,
            Framing::Length(length) if length > settings.limits.message_bytes_max => {
                return self.refuse_all(socket, &http::refuse(Code::BodyTooBig, ""));
            }
            Framing::Length(length) if behind.len() >= length => length,
            framing => {
                *rest = behind;
                self.begin_body(
                    socket,
                    bytes.get(..head_bytes).unwrap_or(bytes),
                    framing,
                    head.wants_continue && behind.is_empty(),
                );
                return self.take_body(socket, rest);
            }
        };
        let (body, behind) = behind.split_at_checked(body_bytes).unwrap_or((behind, &[]));
        *rest = behind;
        self.answer_request(socket, &head, bytes, body, 0)
    }

    /// A listener's first bytes must not fall among an earlier answer's: it begins when those have left.
    fn must_wait(&mut self, socket: u32, head: &Head<'_>) -> bool {
        let listens = head.path == "/v1/stream" || head.path == "/v1/messages" && head.method != Method::Post;
        if listens {
            self.commit();
        }
        let is_waiting = |c: &Connection| !c.private.is_empty() || c.has_rest || c.is_sending || c.is_blocked();
        listens && self.connections.get(socket).is_some_and(is_waiting)
    }

    /// What the next answers owe to their request; those before it are written first, where they owe something else.
    fn set_shape(&mut self, socket: u32, shape: Shape) {
        let Some(connection) = self.connections.get_mut(socket) else { return };
        if connection.exchange().shape != shape {
            self.commit();
            if let Some(connection) = self.connections.get_mut(socket) {
                connection.exchange().shape = shape;
            }
        }
    }

    /// Answers a whole request; `bytes` begin with its head.
    fn answer_request(&mut self, socket: u32, head: &Head<'_>, bytes: &[u8], body: &[u8], done: usize) -> Taken {
        let step = self.route(socket, head, body, done);
        let Some(connection) = self.connections.get_mut(socket) else { return Taken::End };
        match step {
            Ok(Step::Done) if connection.phase == Phase::Http && connection.exchange().held.is_some() => {
                connection.is_asking = true;
                Taken::Wait
            }
            Ok(Step::Done) if connection.phase == Phase::Http => self.after_answer(socket),
            Ok(Step::Done) => Taken::Wait,
            Ok(Step::Wait | Step::Again) => {
                connection.is_asking = true;
                let exchange = connection.exchange();
                let done = exchange.kept.take().map_or(done, |kept| kept.done);
                let head = bytes.get(..head.head_bytes).unwrap_or(bytes).to_vec();
                exchange.kept = Some(Box::new(Kept { head, body: body.to_vec(), done }));
                Taken::Wait
            }
            Err(refused) => {
                self.answer_refusal(socket, &refused);
                self.after_answer(socket)
            }
        }
    }

    /// The server has answered the question of a request: it is answered anew.
    pub(super) fn resume_request<O: SocketOutput>(&mut self, socket: u32, out: &mut O) {
        let settings = Arc::clone(&self.settings);
        let Some(connection) = self.connections.get_mut(socket) else { return };
        let Some(kept) = connection.exchange().kept.take() else { return };
        connection.is_asking = false;
        if connection.phase == Phase::Http
            && let Ok(Some(head)) = http::read_head(&kept.head, &settings.limits)
        {
            self.answer_request(socket, &head, &kept.head, &kept.body, kept.done);
        }
        self.read_ahead(socket, out);
    }
}

impl Shard {
    /// Refuses a request after which nothing more can be read: the connection closes.
    fn refuse_all(&mut self, socket: u32, refused: &Refused) -> Taken {
        self.commit();
        let Some(connection) = self.connections.get_mut(socket) else { return Taken::End };
        let address = connection.peer.address();
        let reason = if refused.reason.is_empty() { refused.code.sentence() } else { &refused.reason };
        let exchange = connection.exchange();
        exchange.shape.is_last = true;
        exchange.lingers = true;
        self.counters.count_refused_command(refused.code);
        self.put_refusal(socket, refused);
        self.counters.count_refused(refused.code);
        self.report(Report::Refused { address, code: refused.code, reason: reason.to_owned() });
        self.begin_close(socket, refused.code as u16, reason);
        Taken::End
    }
}
