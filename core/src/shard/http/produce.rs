//! Publishes by POST: one with its subject in the query, or several as the JSON wire writes them. Both are numbered with the
//! turn's other publishes; one answer stands for several only once all of them have their outcome.
use std::sync::Arc;

use super::Kept;
use crate::codes::Code;
use crate::command::{Command, Id, Refusal, Reply};
use crate::http::{self, Answer, Head, Refused};
use crate::node::Outcome;
use crate::shard::Shard;
use crate::shard::session::Step;
use crate::wire::{self, Wire, sse};

impl Shard {
    pub(super) fn produce_one(&mut self, socket: u32, head: &Head<'_>, body: &[u8]) -> Result<Step, Refused> {
        let settings = Arc::clone(&self.settings);
        let publish = http::read_produce(head, body, &settings.limits)?;
        Ok(self.publish(socket, &Id::None, &publish)?)
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
        let mut commands = wire::commands(Wire::Json, body, &settings.limits)?;
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
                    self.note_outcome(socket, &id, &Reply::Error { code: refusal.code, reason: &refusal.reason });
                }
            }
        }
        self.commit();
        let outcomes = self.connections.get_mut(socket).and_then(|c| c.exchange().outcomes.take()).unwrap_or_default();
        let body = array(outcomes);
        self.answer(socket, &Answer { status: 200, media: "application/json", lines: "", body: &body });
        Ok(Step::Done)
    }

    fn note_outcome(&mut self, socket: u32, id: &Id, reply: &Reply<'_>) {
        let exchange = self.connections.get_mut(socket).map(|connection| connection.exchange());
        if let Some(outcomes) = exchange.and_then(|exchange| exchange.outcomes.as_mut()) {
            sse::put_outcome(outcomes, id, reply);
        }
    }

    /// What became of a publish that came by POST.
    pub(in crate::shard) fn answer_produce(&mut self, socket: u32, id: &Id, outcome: Outcome) {
        let Some(connection) = self.connections.get_mut(socket) else { return };
        let is_of_many = connection.exchange().outcomes.is_some();
        match outcome {
            Outcome::Published { at, is_repeat } if is_of_many => {
                self.note_outcome(socket, id, &Reply::Published { at, is_repeat });
            }
            Outcome::Refused(code) if is_of_many => {
                self.counters.count_refused_publish(self.connections.get(socket), code);
                self.note_outcome(socket, id, &Reply::Error { code, reason: code.sentence() });
            }
            Outcome::Published { at, is_repeat } => {
                let mut body = b"{".to_vec();
                if let Some(at) = at {
                    body.extend_from_slice(b"\"at\":\"");
                    sse::put_position(&mut body, at);
                    body.push(b'"');
                }
                body.push(b'}');
                let lines = if is_repeat { "Godwit-Repeat: true\r\n" } else { "" };
                self.answer(socket, &Answer { status: 201, media: "application/json", lines, body: &body });
            }
            Outcome::Refused(code) => {
                self.counters.count_refused_publish(self.connections.get(socket), code);
                self.put_refusal(socket, &http::refuse(code, ""));
            }
        }
    }
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
