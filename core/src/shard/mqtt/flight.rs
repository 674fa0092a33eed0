//! Packets of QoS 1 and 2 to a client that it has not settled, in the order in which they were sent. Owns their identifiers and
//! how many may be under way; a session that resumes sends them again, as far as the client takes them, before anything new.
mod disk;

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};

use crate::message::LogId;
use crate::node::{InFlight, Node};

pub(in crate::shard) use disk::{OnDisk, Waiting};

/// Packet identifiers that there are: 1 to 65,535.
const IDENTIFIERS: usize = u16::MAX as usize;

#[derive(Debug, Default)]
pub(super) struct Flight {
    /// At most one for each packet identifier.
    packets: VecDeque<InFlight>,
    /// How many of them, counted from the first, were sent on this connection.
    sent: u16,
    /// How many of those stand for messages that are not sent again: they take identifiers, and no room of the client's.
    withdrawn: u16,
    last_id: u16,
    /// Some identifiers in use may be higher than the last one assigned: they wrapped around, or come from an earlier connection.
    has_higher: bool,
}

/// How a PUBREC or PUBCOMP relates to the packets in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Receipt {
    Taken,
    Unknown,
    /// The packet is not answered so, or not yet.
    Wrong,
}

impl Flight {
    /// What a session kept: nothing of it has been sent on this connection.
    pub(super) fn resumed(mut packets: Vec<InFlight>, last_id: u16) -> Self {
        packets.truncate(IDENTIFIERS);
        let has_higher = !packets.is_empty();
        Self { packets: packets.into(), sent: 0, withdrawn: 0, last_id, has_higher }
    }

    pub(super) fn keep(self) -> (Vec<InFlight>, u16) {
        (self.packets.into(), self.last_id)
    }

    /// The same as `keep`, of a session that goes on.
    pub(super) fn show(&self) -> (Vec<InFlight>, u16) {
        (self.packets.iter().cloned().collect(), self.last_id)
    }

    /// Where the messages stand that the client has not said it has.
    pub(super) fn unreleased(&self) -> impl Iterator<Item = (LogId, u64)> + '_ {
        self.packets.iter().filter(|packet| packet.needs_message()).map(|packet| (packet.log, packet.sequence))
    }

    /// Messages up to an arrival that the client takes its time with are held here, too.
    pub(super) fn pin(&mut self, until: u64, node: &Node) {
        self.packets.iter_mut().filter(|packet| packet.arrival <= until).for_each(|packet| node.pin(packet));
    }

    /// Whether something of it has to be on the disk before the client hears of it.
    pub(super) fn has_on_disk(&self) -> bool {
        self.packets.iter().any(disk::is_on_disk)
    }

    /// Whether this packet is one of those.
    pub(super) fn is_on_disk(&self, packet_id: u16) -> bool {
        self.find(packet_id).and_then(|at| self.packets.get(at)).is_some_and(disk::is_on_disk)
    }

    /// Adds what tells this state from another.
    pub(super) fn hash_state(&self, hasher: &mut impl Hasher) {
        (self.last_id, self.packets.len()).hash(hasher);
        self.packets.iter().for_each(|packet| (packet.packet_id, packet.flags).hash(hasher));
    }

    /// Whether one more message may be sent to a client that takes `max`.
    pub(super) fn has_room(&self, max: u16) -> bool {
        let has_identifier = self.packets.len() < IDENTIFIERS;
        has_identifier && usize::from(self.sent) == self.packets.len() && self.under_way() < max
    }

    /// Packets that the client has yet to settle, as its receive maximum counts them.
    fn under_way(&self) -> u16 {
        self.sent - self.withdrawn
    }

    /// Notes a message that is sent now; returns its packet identifier.
    pub(super) fn send(&mut self, sent: InFlight) -> u16 {
        // Identifiers are assigned in ascending order: until they wrap around, those in use are lower than the next.
        let mut packet_id = next(self.last_id);
        self.has_higher = !self.packets.is_empty() && (self.has_higher || packet_id < self.last_id);
        while self.has_higher && self.packets.iter().any(|packet| packet.packet_id == packet_id) {
            packet_id = next(packet_id);
        }
        self.last_id = packet_id;
        self.packets.push_back(InFlight { packet_id, ..sent });
        self.sent += 1;
        packet_id
    }

    /// The message that was sent last was dealt by a group.
    pub(super) fn note_shared(&mut self, group: u32) {
        if let Some(packet) = self.packets.back_mut() {
            packet.group = group;
        }
    }

    /// The last `count` were not sent after all.
    pub(super) fn take_back(&mut self, count: usize) {
        for _ in 0..count {
            if let Some(packet) = self.packets.pop_back() {
                self.sent -= 1;
                self.last_id = packet.packet_id.wrapping_sub(1);
            }
        }
    }

    /// The next packet to be sent again, if the client takes one more.
    pub(super) fn resend(&mut self, max: u16) -> Option<InFlight> {
        loop {
            let packet = self.packets.get(usize::from(self.sent)).filter(|_| self.under_way() < max)?;
            self.sent += 1;
            if !packet.is_withdrawn() || packet.is_released() {
                return Some(packet.clone());
            }
            self.withdrawn += 1;
        }
    }

    /// What is to be sent again is gone. The client may hold its identifier, so that stays taken [MQTT-4.4.0-1].
    pub(super) fn withdraw_resent(&mut self) {
        if let Some(packet) = self.packets.get_mut(usize::from(self.sent.wrapping_sub(1))) {
            packet.flags |= InFlight::WITHDRAWN;
            self.withdrawn += 1;
        }
    }

    fn find(&self, packet_id: u16) -> Option<usize> {
        self.packets.iter().take(self.sent.into()).position(|packet| packet.packet_id == packet_id)
    }

    fn remove(&mut self, at: usize) -> Option<InFlight> {
        let packet = self.packets.remove(at);
        self.sent -= 1;
        if packet.as_ref().is_some_and(|packet| packet.is_withdrawn() && !packet.is_released()) {
            self.withdrawn -= 1;
        }
        if self.packets.is_empty() && self.packets.capacity() > 16 {
            self.packets = VecDeque::new();
        }
        packet
    }

    /// PUBACK: the packet is settled. An error: it was of QoS 2.
    pub(super) fn acknowledge(&mut self, packet_id: u16) -> Result<Option<InFlight>, ()> {
        let Some(at) = self.find(packet_id) else { return Ok(None) };
        match self.packets.get(at) {
            Some(packet) if packet.flags & InFlight::EXACTLY_ONCE != 0 => Err(()),
            _ => Ok(self.remove(at)),
        }
    }

    /// The group that dealt a packet, and its message's arrival.
    pub(super) fn dealt(&self, packet_id: u16) -> Option<(u32, u64)> {
        let packet = self.packets.get(self.find(packet_id)?)?;
        (packet.group > 0).then_some((packet.group, packet.arrival))
    }

    /// PUBREC: the client has the message; it is not sent again.
    pub(super) fn receive(&mut self, packet_id: u16, is_failure: bool) -> Receipt {
        let Some(at) = self.find(packet_id) else { return Receipt::Unknown };
        let Some(packet) = self.packets.get_mut(at) else { return Receipt::Unknown };
        if packet.flags & InFlight::EXACTLY_ONCE == 0 {
            return Receipt::Wrong;
        }
        if packet.is_withdrawn() && !packet.is_released() {
            self.withdrawn -= 1; // its release is under way now
        }
        packet.flags |= InFlight::RELEASED;
        packet.message = None;
        if is_failure {
            self.remove(at);
        }
        Receipt::Taken
    }

    /// PUBCOMP: the packet is settled, if it was released.
    pub(super) fn complete(&mut self, packet_id: u16) -> Receipt {
        let Some(at) = self.find(packet_id) else { return Receipt::Unknown };
        if !self.packets.get(at).is_some_and(InFlight::is_released) {
            return Receipt::Wrong;
        }
        self.remove(at);
        Receipt::Taken
    }
}

fn next(packet_id: u16) -> u16 {
    packet_id.wrapping_add(1).max(1)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{Flight, InFlight, LogId};

    fn packet() -> InFlight {
        InFlight {
            packet_id: 0,
            flags: 0,
            log: LogId { slot: 0, generation: 0 },
            sequence: 1,
            subscription_id: 0,
            group: 0,
            arrival: 1,
            message: None,
        }
    }

    #[test]
    fn an_identifier_in_use_is_not_given_again_however_long_it_takes_to_be_settled() {
        let mut flight = Flight::default();
        let mut used: BTreeSet<u16> = (0..9).map(|_| flight.send(packet())).collect();
        for settled in [1, 4, 9] {
            assert!(flight.acknowledge(settled).is_ok_and(|packet| packet.is_some()) && used.remove(&settled));
        }
        for _ in 0..3 * usize::from(u16::MAX) {
            let given = flight.send(packet());
            assert!(given != 0 && !used.contains(&given), "{given} is still in use");
            assert!(flight.acknowledge(given).is_ok_and(|packet| packet.is_some()));
        }
        // The same of what a session kept.
        let (kept, last) = flight.keep();
        let mut flight = Flight::resumed(kept, last);
        while flight.resend(u16::MAX).is_some() {}
        for _ in 0..usize::from(u16::MAX) {
            let given = flight.send(packet());
            assert!(!used.contains(&given) && flight.acknowledge(given).is_ok(), "{given} is still in use");
        }
    }
}
