//! Shared subscriptions on one shard: its members of a group sit in one stream, and messages are dealt to them in turn, one
//! each, to whoever can take more. Where the group stands is the node's; what a lost member had not settled goes back there.
use std::sync::Arc;

use super::Waiting;
use super::deliver::{Put, Wanted};
use super::parts::Parts;
use crate::codec::Wire;
use crate::command::{Outcome, Refusal};
use crate::cursor::CursorState;
use crate::message::Message;
use crate::mqtt::{Options, Qos, shared_name};
use crate::node::Node;
use crate::shard::connection::Phase;
use crate::shard::{Shard, lock};
use crate::stream::{Source, Stream};
use crate::subject::{Pattern, Selector};

/// Messages dealt in one turn, so that other shards' members get theirs.
const TURN_MESSAGES: usize = 256;

/// What a shard has to do for its groups.
#[derive(Debug, Default)]
pub(in crate::shard) struct Dealing {
    /// Streams of groups that may have something to deal.
    pub(in crate::shard) streams: Vec<u32>,
    /// Messages that a member has settled or was not to have: their groups and arrivals.
    pub(super) settled: Vec<(u32, u64)>,
    /// Connections that say nothing before the disk has caught up.
    pub(super) disk_waits: Waiting,
}

/// What a client wants to share, and how it wants its part.
pub(super) struct Share<'a> {
    pub(super) group: &'a str,
    pub(super) selector: &'a Selector,
    pub(super) options: Options,
    pub(super) subscription_id: u32,
}

impl Shard {
    pub(super) fn subscribe_shared(&mut self, socket: u32, share: &Share<'_>) -> Result<Qos, Refusal> {
        let name = shared_name(share.group, share.selector);
        if let Some(id) = self.cursor_of(socket, &name) {
            self.change_share(id, share);
            return Ok(share.options.qos);
        }
        let node = Arc::clone(&self.node);
        let mut node = lock(&node);
        self.seat_member(socket, share, &mut node)?;
        self.wakes |= node.take_wakes();
        drop(node);
        self.report_subscribed(socket, &name, Outcome::Live, None, None);
        Ok(share.options.qos)
    }

    fn change_share(&mut self, id: u32, share: &Share<'_>) {
        if let Some(cursor) = self.cursors.get_mut(id) {
            (cursor.options, cursor.subscription_id) = (share.options.byte(), share.subscription_id);
        }
    }

    pub(super) fn seat_member(&mut self, socket: u32, share: &Share<'_>, node: &mut Node) -> Result<(), Refusal> {
        let Share { group, selector, .. } = *share;
        self.may_hold(socket)?;
        self.ask_as(socket, node);
        let pattern = Pattern::parse(selector.text())?;
        let access = self.connections.get(socket).and_then(|connection| connection.access.as_ref());
        let tenant = access.map_or_else(Arc::default, |access| Arc::clone(&access.holder.tenant));
        let number = node.join_group(self.index, group, &pattern, &tenant);
        let stream = match self.shared.get(&number) {
            Some(stream) => *stream,
            None => match self.open_shared_stream(group, selector, number, node) {
                Ok(stream) => stream,
                Err(refusal) => {
                    node.leave_group(self.index, number);
                    return Err(refusal);
                }
            },
        };
        let id = self.seat_cursor(socket, stream, false);
        self.change_share(id, share);
        if let Some(cursor) = self.cursors.get_mut(id) {
            cursor.stand = CursorState::Current;
        }
        if let Some(mqtt) = self.connections.get_mut(socket).and_then(|c| c.mqtt.as_mut()) {
            mqtt.is_sharing = true;
        }
        self.note_deal(stream);
        Ok(())
    }

    fn open_shared_stream(
        &mut self,
        group: &str,
        selector: &Selector,
        number: u32,
        node: &mut Node,
    ) -> Result<u32, Refusal> {
        let source = match selector {
            Selector::Subject(subject) => Source::Subject(node.open(self.index, subject, self.now)?),
            Selector::Pattern(pattern) => {
                node.open_pattern(self.index, pattern, self.now)?;
                Source::Pattern(Arc::new(pattern.clone()))
            }
        };
        let name = shared_name(group, selector);
        let stream = Stream::new(Arc::from(name), source.clone(), Wire::MqttShared(number).into());
        match self.add_stream(stream) {
            Ok(stream) => {
                self.shared.insert(number, stream);
                Ok(stream)
            }
            Err(refusal) => {
                match source {
                    Source::Subject(log) => node.close(self.index, log, self.now),
                    Source::Pattern(pattern) => node.close_pattern(self.index, &pattern, self.now),
                }
                Err(refusal)
            }
        }
    }

    /// A member has left its stream.
    pub(in crate::shard) fn leave_shared(&mut self, stream: u32) {
        let Some(stream) = self.streams.get(stream) else { return };
        if let Wire::MqttShared(number) = stream.wire {
            if stream.cursors.len() <= 1 {
                self.shared.remove(&number);
            }
            let mut node = lock(&self.node);
            node.leave_group(self.index, number);
            self.wakes |= node.take_wakes();
        }
    }

    /// Notes that a group's stream may have something to deal, and somebody to deal it to.
    pub(in crate::shard) fn note_deal(&mut self, stream: u32) {
        if !self.dealing.streams.contains(&stream) {
            self.dealing.streams.push(stream);
        }
    }

    /// A client can take more: its groups are looked at.
    pub(in crate::shard) fn stir_shared(&mut self, socket: u32) {
        let Some(connection) = self.connections.get(socket) else { return };
        if connection.mqtt.as_ref().is_none_or(|mqtt| !mqtt.is_sharing) {
            return;
        }
        let mut id = connection.first_cursor;
        while let Some(cursor) = self.cursors.get(id) {
            let stream = cursor.stream;
            id = cursor.next;
            if self.streams.get(stream).is_some_and(|stream| matches!(stream.wire, Wire::MqttShared(_))) {
                self.note_deal(stream);
            }
        }
    }

    /// What members have settled is held for their groups no longer.
    pub(in crate::shard) fn tell_settled(&mut self) {
        if self.dealing.settled.is_empty() {
            return;
        }
        let mut node = lock(&self.node);
        for (number, arrival) in self.dealing.settled.drain(..) {
            node.settle_dealt(number, arrival);
        }
    }

    /// Deals what has come to the groups of this shard.
    pub(in crate::shard) fn deal(&mut self) {
        self.tell_settled();
        for id in std::mem::take(&mut self.dealing.streams) {
            let mut left = TURN_MESSAGES;
            while left > 0 {
                let able = self.able_members(id);
                let Some(Wire::MqttShared(number)) = self.streams.get(id).map(|stream| stream.wire) else { break };
                let wanted = able.len().min(left);
                let mut node = lock(&self.node);
                let messages = node.deal(number, self.index, wanted);
                self.wakes |= node.take_wakes();
                drop(node);
                for (member, portion) in able.iter().zip(&messages) {
                    if !self.deal_one(*member, number, &portion.message) {
                        lock(&self.node).pass_dealt(number, portion.look);
                    }
                }
                left -= messages.len();
                if messages.len() < wanted || wanted == 0 {
                    break;
                }
            }
            if left == 0 {
                self.note_deal(id);
            }
        }
    }

    /// Members that can take a message now, the next in turn first.
    fn able_members(&mut self, id: u32) -> Vec<u32> {
        let bytes_max = self.settings.limits.reply_buffer_bytes_max;
        let Some(stream) = self.streams.get_mut(id) else { return Vec::new() };
        let turn = stream.marked as usize % stream.cursors.len().max(1);
        let (before, after) = stream.cursors.split_at(turn.min(stream.cursors.len()));
        let is_able = |cursor: &u32| {
            let Some(cursor) = self.cursors.get(*cursor) else { return false };
            let Some(connection) = self.connections.get(cursor.connection) else { return false };
            let has_room = connection.mqtt.as_ref().is_some_and(|mqtt| cursor.options & 3 == 0 || mqtt.has_room());
            has_room
                && connection.phase == Phase::Open
                && !connection.is_blocked()
                && connection.private.len() < bytes_max
        };
        after.iter().chain(before).copied().filter(is_able).collect()
    }

    /// False where the member is not to have it.
    fn deal_one(&mut self, id: u32, number: u32, message: &Message) -> bool {
        let wall_ms = self.now.wall_ms;
        let Some(cursor) = self.cursors.get(id) else { return false };
        let (socket, stream) = (cursor.connection, cursor.stream);
        if let Some(stream) = self.streams.get_mut(stream) {
            stream.marked = u64::from(cursor.seat) + 1;
        }
        let Some(parts) = Parts::of(message) else { return false };
        let Some(connection) = self.connections.get_mut(socket) else { return false };
        let Some(mqtt) = connection.mqtt.as_mut() else { return false };
        let put = mqtt.put(&Wanted::of(cursor), &parts, false, wall_ms, &mut connection.private);
        match put {
            Put::Sent { is_tracked: true } => mqtt.flight.note_shared(number),
            Put::Stalled => {
                lock(&self.node).give_back(number, &[(message.log, message.sequence, message.arrival)]);
            }
            Put::Sent { .. } | Put::Passed => self.dealing.settled.push((number, message.arrival)),
        }
        self.make_ready(socket);
        put != Put::Passed
    }
}
