//! Publishes by POST: one with its subject in the query, or several as the JSON wire writes them. Both are numbered with the
//! turn's other publishes; one answer stands for several only once all of them have their outcome.
use std::sync::Arc;

use super::Kept;
use crate::codec::{self, Wire, sse};
use crate::codes::Code;
use crate::command::{Ack, Command, Id, Publish, Refusal, Reply};
use crate::http::{self, Answer, Head, Refused};
use crate::node::Outcome;
use crate::position::Position;
use crate::shard::session::Step;
use crate::shard::{Shard, SocketOutput};

/// An answer that waits for the disk.
#[derive(Debug, Default)]
pub(in crate::shard) struct Held {
    arrival: u64,
    status: u16,
    lines: &'static str,
    body: Vec<u8>,
    /// What is said instead should the disk fail.
    short: Vec<u8>,
}

impl Shard {
    pub(super) fn produce_one(&mut self, socket: u32, head: &Head<'_>, body: &[u8]) -> Result<Step, Refused> {
        let settings = Arc::clone(&self.settings);
        let publish = http::read_produce(head, body, &settings.limits)?;
        self.publish_alone(socket, &publish)
    }

    /// A DELETE of a snapshot.
    pub(super) fn remove_snapshot(&mut self, socket: u32, head: &Head<'_>) -> Result<Step, Refused> {
        let removal = http::read_removal(head)?;
        if let Some(connection) = self.connections.get_mut(socket) {
            connection.exchange().hint = http::hint_at_plus(head);
        }
        self.publish_alone(socket, &removal)
    }

    /// The one publish of a request.
    fn publish_alone(&mut self, socket: u32, publish: &Publish<'_>) -> Result<Step, Refused> {
        let step = self.publish(socket, &Id::None, publish)?;
        if publish.ack == Ack::Disk || publish.is_removal {
            // Its answer may wait for the disk, and the answers to later requests must not overtake it.
            self.commit();
            self.hold_answer(socket);
        }
        Ok(step)
    }

    pub(super) fn produce_many(
        &mut self,
        socket: u32,
        head: &Head<'_>,
        body: &[u8],
        done: usize,
    ) -> Result<Step, Refused> {
        let settings = Arc::clone(&self.settings);
        http::check_publishes(head, body)?;
        let mut commands = codec::commands(Wire::Json, body, &settings.limits)?;
        self.commit();
        if let Some(connection) = self.connections.get_mut(socket) {
            connection.exchange().outcomes.get_or_insert_default();
        }
        let mut index = 0;
        while let Some((id, command)) = commands.next() {
            index += 1;
            if index <= done {
                continue;
            }
            let step = match command {
                Ok(Command::Publish(publish)) => self.publish(socket, &id, &publish),
                Ok(_) => Err(Refusal::new(Code::CommandUnknown, "only publishes are taken here")),
                Err(refusal) => Err(refusal),
            };
            match step {
                Ok(Step::Done) => {}
                Ok(step) => {
                    self.commit();
                    if let Some(connection) = self.connections.get_mut(socket) {
                        let kept = Kept { head: Vec::new(), body: Vec::new(), done: index - 1 };
                        connection.exchange().kept = Some(Box::new(kept));
                    }
                    return Ok(step);
                }
                Err(refusal) => {
                    self.commit();
                    self.tell_refusal(socket, refusal.code, &refusal.reason);
                    let reply = Reply::Error { code: refusal.code, reason: &refusal.reason };
                    self.note_outcome(socket, &id, &reply, &reply);
                }
            }
        }
        self.commit();
        let outcomes = self.connections.get_mut(socket).and_then(|c| c.exchange().outcomes.take()).unwrap_or_default();
        let body = array(outcomes);
        if let Some(held) = self.connections.get_mut(socket).and_then(|c| c.exchange().held.as_mut()) {
            (held.status, held.body, held.short) = (200, body, array(std::mem::take(&mut held.short)));
            self.hold_answer(socket);
            return Ok(Step::Done);
        }
        self.answer(socket, &Answer { status: 200, media: "application/json", lines: "", body: &body });
        Ok(Step::Done)
    }

    /// Notes what became of one of several publishes, and what is to be said of it should the disk fail.
    fn note_outcome(&mut self, socket: u32, id: &Id, reply: &Reply<'_>, short: &Reply<'_>) {
        let Some(exchange) = self.connections.get_mut(socket).map(|connection| connection.exchange()) else { return };
        if let Some(outcomes) = &mut exchange.outcomes {
            sse::put_outcome(outcomes, id, reply);
        }
        if let Some(held) = &mut exchange.held {
            sse::put_outcome(&mut held.short, id, short);
        }
    }

    /// An answer that is made waits for the disk up to this arrival.
    fn note_awaited(&mut self, socket: u32, arrival: u64) {
        let Some(exchange) = self.connections.get_mut(socket).map(|connection| connection.exchange()) else { return };
        let short = exchange.outcomes.clone().unwrap_or_default();
        let held = exchange.held.get_or_insert_with(|| Box::new(Held { short, ..Held::default() }));
        held.arrival = held.arrival.max(arrival);
    }

    /// The answer is made but for what waits for the disk.
    fn hold_answer(&mut self, socket: u32) {
        let held = self.connections.get_mut(socket).and_then(|connection| connection.exchange().held.as_ref());
        if let Some(arrival) = held.map(|held| held.arrival) {
            self.hold_request(socket, arrival);
        }
    }

    /// The disk has caught up with an answer, or will not.
    pub(in crate::shard) fn answer_held<O: SocketOutput>(&mut self, socket: u32, is_kept: bool, out: &mut O) {
        let Some(connection) = self.connections.get_mut(socket) else { return };
        let Some(held) = connection.exchange().held.take() else { return };
        connection.is_asking = false;
        let body = if is_kept { &held.body } else { &held.short };
        self.answer(socket, &Answer { status: held.status, media: "application/json", lines: held.lines, body });
        self.after_answer(socket);
        self.read_ahead(socket, out);
    }

    /// What became of a publish that came by POST.
    pub(in crate::shard) fn answer_produce(&mut self, socket: u32, id: &Id, outcome: Outcome) {
        let Some(connection) = self.connections.get_mut(socket) else { return };
        let is_of_many = connection.exchange().outcomes.is_some();
        match outcome {
            Outcome::Published { at, is_duplicate } if is_of_many => {
                let reply = Reply::Published { at, is_duplicate, reached: None };
                self.note_outcome(socket, id, &reply, &reply);
            }
            Outcome::Awaits { at, is_duplicate, arrival } if is_of_many => {
                self.note_awaited(socket, arrival);
                let reply = |reached| Reply::Published { at, is_duplicate, reached };
                self.note_outcome(socket, id, &reply(None), &reply(Some(Ack::Cached)));
            }
            Outcome::Refused(code) if is_of_many => {
                self.counters.count_refused_publish(self.connections.get(socket), code);
                self.tell_refusal(socket, code, "");
                let reply = Reply::Error { code, reason: code.sentence() };
                self.note_outcome(socket, id, &reply, &reply);
            }
            Outcome::Published { at, is_duplicate } => {
                let (lines, body) = (repeat_line(is_duplicate), published(at, ""));
                self.answer(socket, &Answer { status: 201, media: "application/json", lines, body: &body });
            }
            Outcome::Awaits { at, is_duplicate, arrival } => {
                let (body, short) = (published(at, ""), published(at, ",\"ack\":\"cached\""));
                let held = Held { arrival, status: 201, lines: repeat_line(is_duplicate), body, short };
                if let Some(connection) = self.connections.get_mut(socket) {
                    connection.exchange().held = Some(Box::new(held));
                }
            }
            Outcome::Refused(code) => {
                self.counters.count_refused_publish(self.connections.get(socket), code);
                self.tell_refusal(socket, code, "");
                let hint = self.connections.get_mut(socket).map(|connection| connection.exchange().hint);
                let hint = hint.filter(|_| code == Code::SnapshotMissing).unwrap_or_default();
                self.put_refusal(socket, &http::refuse(code, hint));
            }
        }
    }
}

fn repeat_line(is_duplicate: bool) -> &'static str {
    if is_duplicate { "Godwit-Duplicate: true\r\n" } else { "" }
}

/// The object that answers one publish.
fn published(at: Option<Position>, more: &str) -> Vec<u8> {
    let mut body = b"{".to_vec();
    if let Some(at) = at {
        body.extend_from_slice(b"\"at\":\"");
        sse::put_position(&mut body, at);
        body.push(b'"');
        body.extend_from_slice(more.as_bytes());
    }
    body.push(b'}');
    body
}

/// Elements, each with a comma before it, as an array.
pub(super) fn array(mut elements: Vec<u8>) -> Vec<u8> {
    match elements.first_mut() {
        Some(comma) => *comma = b'[',
        None => elements.push(b'['),
    }
    elements.push(b']');
    elements
}
