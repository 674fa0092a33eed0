//! Publishers that wait for the disk: what was numbered is answered once the journal has synced its arrival, in the order of
//! arrival. Owns what is told where the disk fails meanwhile: published, with the level that was reached. Bounded by the commands
//! that a connection may have in flight: past that it is not read.
use std::collections::VecDeque;
use std::sync::Arc;

use crate::codes::Code;
use crate::command::{Ack, Id, Reply};
use crate::node::{Node, Outcome};
use crate::position::Position;
use crate::report::ConnectionId;
use crate::shard::connection::Phase;
use crate::shard::{Shard, SocketOutput, lock};

/// One answer that waits.
#[derive(Debug)]
struct Held {
    arrival: u64,
    connection: ConnectionId,
    id: Id,
    at: Option<Position>,
    is_duplicate: bool,
    /// It is that of a whole request, which knows its answer itself.
    is_request: bool,
}

#[derive(Debug, Default)]
pub(in crate::shard) struct Acks {
    held: VecDeque<Held>,
}

impl Shard {
    /// The journal's news are to reach this shard for as long as any of these outcomes waits for it.
    pub(in crate::shard) fn await_disk(&self, outcomes: &[Outcome], node: &mut Node) {
        let arrivals = outcomes.iter().filter_map(|outcome| match outcome {
            Outcome::Awaits { arrival, .. } => Some(*arrival),
            Outcome::Published { .. } | Outcome::Refused(_) => None,
        });
        if let Some(last) = arrivals.max() {
            node.await_disk(self.index, last);
        }
    }

    /// Keeps the answer to a publish until the disk has it.
    pub(in crate::shard) fn hold_ack(
        &mut self,
        socket: u32,
        id: &Id,
        at: Option<Position>,
        is_duplicate: bool,
        arrival: u64,
    ) {
        let held = Held {
            arrival,
            connection: self.connection_id(socket),
            id: id.clone(),
            at,
            is_duplicate,
            is_request: false,
        };
        self.written.acks.held.push_back(held);
        let in_flight_max = self.settings.limits.commands_in_flight_max;
        let Some(connection) = self.connections.get_mut(socket) else { return };
        let details = connection.details();
        details.awaiting += 1;
        if details.awaiting as usize >= in_flight_max && !connection.is_congesting {
            connection.is_congesting = true;
            self.congesting.push(socket);
        }
    }

    /// Keeps the answer to a request until the disk has all that came with it.
    pub(in crate::shard) fn hold_request(&mut self, socket: u32, arrival: u64) {
        let connection = self.connection_id(socket);
        let (id, at) = (Id::None, None);
        self.written.acks.held.push_back(Held { arrival, connection, id, at, is_duplicate: false, is_request: true });
    }

    /// Whether a connection has as many answers waiting for the disk as it may have.
    pub(in crate::shard) fn awaits_too_many(&self, socket: u32) -> bool {
        let awaiting = self.connections.get(socket).and_then(|c| c.details.as_ref()).map_or(0, |d| d.awaiting);
        awaiting as usize >= self.settings.limits.commands_in_flight_max
    }

    /// Gives the answers that the disk has caught up with, or will not.
    pub(in crate::shard) fn give_acks<O: SocketOutput>(&mut self, out: &mut O) {
        if self.written.acks.held.is_empty() {
            return;
        }
        let node = Arc::clone(&self.node);
        let Some(progress) = lock(&node).journal_progress() else { return };
        while let Some(first) = self.written.acks.held.front()
            && progress.settles(first.arrival)
            && let Some(held) = self.written.acks.held.pop_front()
        {
            let is_kept = progress.holds(held.arrival);
            if let Some(socket) = self.socket_of(held.connection) {
                self.give_ack(socket, &held, is_kept, out);
            }
        }
        if self.written.acks.held.is_empty() {
            self.written.acks.held.shrink_to(1024);
        }
    }

    fn give_ack<O: SocketOutput>(&mut self, socket: u32, held: &Held, is_kept: bool, out: &mut O) {
        let Some(connection) = self.connections.get_mut(socket) else { return };
        if held.is_request {
            if connection.phase == Phase::Http {
                self.answer_held(socket, is_kept, out);
            }
            return;
        }
        let details = connection.details();
        details.awaiting = details.awaiting.saturating_sub(1);
        if connection.mqtt.is_some() {
            let outcome = match is_kept {
                true => Outcome::Published { at: held.at, is_duplicate: held.is_duplicate },
                false => Outcome::Refused(Code::DiskFailing),
            };
            self.settle_draft(socket, &held.id, &outcome);
            return;
        }
        let reached = (!is_kept).then_some(Ack::Cached);
        let reply = Reply::Published { at: held.at, is_duplicate: held.is_duplicate, reached };
        self.reply_if_asked(socket, &held.id, &reply);
    }
}
