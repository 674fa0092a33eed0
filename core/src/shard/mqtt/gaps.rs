//! Gaps at QoS 0, told to who asks: MQTT has no word for them, so a client that subscribes to `$godwit/gaps` gets its own, each as
//! the object that the other wires tell (protocol.md, 16.11). At QoS 1 and 2 a gap ends the session instead.
use super::Mqtt;
use crate::command::Push;
use crate::mqtt::{Outgoing, Qos, Reason};
use crate::shard::Shard;
use crate::shard::connection::Connection;
use crate::wire;

/// Nobody publishes there, and each client sees its own there alone, so it takes no right.
pub(super) const TOPIC: &str = "$godwit/gaps";

/// Appends what a client missed, if it speaks MQTT and asked for it.
pub(in crate::shard) fn put_gap(connection: Option<&Connection>, push: &Push<'_>, out: &mut Vec<u8>) {
    let Some(mqtt) = connection.and_then(|connection| connection.mqtt.as_ref()) else { return };
    let Some(subscription_id) = mqtt.gaps else { return };
    let mut payload = Vec::new();
    wire::object(&mut payload, push);
    mqtt.put_own(TOPIC, &payload, subscription_id, out);
}

impl Mqtt {
    /// Appends a message of the server's own to this client, at QoS 0.
    fn put_own(&self, topic: &str, payload: &[u8], subscription_id: u32, out: &mut Vec<u8>) {
        let message = Outgoing {
            topic,
            payload,
            qos: Qos::AtMostOnce,
            packet_id: 0,
            is_repeat: false,
            is_retained: false,
            alias: 0,
            subscription_id,
            further_ids: &[],
            expiry_s: None,
            response_topic: None,
            carried: &[],
        };
        if self.writer.publish_bytes(&message) <= self.packet_bytes_max as usize {
            self.writer.publish(out, &message);
        }
    }
}

impl Shard {
    /// The client wants to be told; whatever it asked for, at QoS 0.
    pub(super) fn tell_gaps(&mut self, socket: u32, subscription_id: u32) -> Qos {
        if let Some(mqtt) = self.connections.get_mut(socket).and_then(|connection| connection.mqtt.as_mut()) {
            mqtt.gaps = Some(subscription_id);
        }
        Qos::AtMostOnce
    }

    pub(super) fn hide_gaps(&mut self, socket: u32) -> Reason {
        let mqtt = self.connections.get_mut(socket).and_then(|connection| connection.mqtt.as_mut());
        if mqtt.and_then(|mqtt| mqtt.gaps.take()).is_some() { Reason::SUCCESS } else { Reason::NO_SUBSCRIPTION }
    }
}
