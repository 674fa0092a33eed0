//! Packets to MQTT clients that are not settled. Decides when a packet holds its message itself, because the log may evict it meanwhile.
use std::sync::Arc;

use crate::message::{LogId, Message};
use crate::node::Node;

/// A packet to a client that it has not settled.
#[derive(Clone, Debug)]
pub struct InFlight {
    pub packet_id: u16,
    pub flags: u8,
    pub log: LogId,
    pub sequence: u64,
    pub subscription_id: u32,
    /// The group that it was dealt by; 0 none.
    pub group: u32,
    pub arrival: u64,
    /// Its message, once the session is away or the client takes its time: it is no longer the log's alone.
    pub message: Option<Arc<Message>>,
}

impl InFlight {
    /// The client has taken a message of QoS 2: only its release is still to be settled.
    pub const RELEASED: u8 = 1;
    /// It was sent as a retained message.
    pub const RETAINED: u8 = 2;
    /// QoS 2; else 1.
    pub const EXACTLY_ONCE: u8 = 4;
    /// Its message is not sent again: the client may not have it, or it is gone. Its identifier stays taken until the client settles it.
    pub const WITHDRAWN: u8 = 8;
    /// QoS 2, and its subject promises the disk: what the client is sent of it is on the disk first.
    pub const ON_DISK: u8 = 16;
    /// It was sent as what its subject retained, which may be made of several messages.
    pub const STATE: u8 = 32;

    #[must_use]
    pub const fn is_released(&self) -> bool {
        self.flags & Self::RELEASED != 0
    }

    #[must_use]
    pub const fn is_withdrawn(&self) -> bool {
        self.flags & Self::WITHDRAWN != 0
    }

    /// Whether a group dealt it and may deal it to another member.
    const fn is_returnable(&self) -> bool {
        self.group > 0 && self.flags & Self::EXACTLY_ONCE == 0
    }

    /// Whether its message may still have to be sent again.
    #[must_use]
    pub const fn needs_message(&self) -> bool {
        self.flags & (Self::RELEASED | Self::WITHDRAWN) == 0
    }
}

impl Node {
    /// A packet holds its message itself from now on, if that is still kept.
    pub fn pin(&self, packet: &mut InFlight) {
        if packet.message.is_none() && !packet.is_released() {
            packet.message = self.message(packet.log, packet.sequence).cloned();
        }
    }

    /// What groups dealt to a session goes back to them at QoS 1, unless the session `keeps` it: its client has reconnected already. QoS 2 is that
    /// session's alone, or nobody's [MQTT-4.8.2-4, MQTT-4.8.2-5].
    pub fn return_shared(&mut self, in_flight: &mut Vec<InFlight>, keeps: bool) {
        for packet in in_flight.iter().filter(|packet| packet.group > 0) {
            if packet.flags & InFlight::EXACTLY_ONCE != 0 {
                self.settle_dealt(packet.group, packet.arrival);
            }
        }
        if !keeps {
            let is_returned = |packet: &mut InFlight| packet.is_returnable();
            let returned: Vec<InFlight> = in_flight.extract_if(.., is_returned).collect();
            self.deal_again(&returned);
        }
    }

    /// The same of what a session may not have any more: its identifiers stay taken [MQTT-4.4.0-1].
    pub fn return_withdrawn(&mut self, in_flight: &mut [InFlight]) {
        let is_returned = |packet: &&mut InFlight| packet.is_returnable() && packet.is_withdrawn();
        let mut returned = Vec::new();
        for packet in in_flight.iter_mut().filter(is_returned) {
            returned.push(packet.clone());
            packet.group = 0;
        }
        self.deal_again(&returned);
    }

    fn deal_again(&mut self, packets: &[InFlight]) {
        for packets in packets.chunk_by(|one, next| one.group == next.group).rev() {
            let places: Vec<_> = packets.iter().map(|one| (one.log, one.sequence, one.arrival)).collect();
            if let Some(first) = packets.first() {
                self.give_back(first.group, &places);
            }
        }
    }

    /// A message by where it stands, if it is still kept: in its log, or as what its subject retains.
    pub fn message(&self, log: LogId, sequence: u64) -> Option<&Arc<Message>> {
        let log = self.names.get(log)?;
        log.get(sequence).or_else(|| log.latest.last().filter(|last| last.sequence == sequence))
    }
}
