//! What MQTT has no word for, told to who asks (protocol.md, 16.11): a client that subscribes to `$godwit/gaps` gets its own gaps, at
//! QoS 0 whatever it asked for (SUBACK grants 0: these reports are in no log, and no session keeps them), one that subscribes to `$godwit/notices` hears that its token ends, that
//! the node drains, that a subscription was ended: each as the object that the other wires tell. Nobody publishes there, and
//! each client sees its own there alone, so it takes no right.
use super::Mqtt;
use crate::codec;
use crate::command::Push;
use crate::mqtt::{Outgoing, Qos, Reason};
use crate::shard::Shard;
use crate::shard::connection::{Connection, NOTIFIED};

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Own {
    Gaps,
    Notices,
}

impl Own {
    pub(super) fn of(filter: &str) -> Option<Self> {
        [Self::Gaps, Self::Notices].into_iter().find(|own| own.topic() == filter)
    }

    const fn topic(self) -> &'static str {
        match self {
            Self::Gaps => "$godwit/gaps",
            Self::Notices => "$godwit/notices",
        }
    }
}

/// Appends what a client missed, if it speaks MQTT and asked for it.
pub(in crate::shard) fn put_gap(connection: Option<&Connection>, push: &Push<'_>, out: &mut Vec<u8>) {
    if let Some(mqtt) = connection.and_then(|connection| connection.mqtt.as_ref()) {
        mqtt.put_own(Own::Gaps, push, out);
    }
}

/// Appends what concerns the whole connection, on its wire; where that is MQTT, if it asked for it.
pub(in crate::shard) fn put_notice(connection: &mut Connection, push: &Push<'_>) {
    match &connection.mqtt {
        Some(mqtt) => mqtt.put_own(Own::Notices, push, &mut connection.private),
        None => codec::push(connection.wire, &mut connection.private, push),
    }
}

impl Mqtt {
    fn asked(&mut self, own: Own) -> &mut Option<u32> {
        let rare = self.rare_mut();
        match own {
            Own::Gaps => &mut rare.gaps,
            Own::Notices => &mut rare.notices,
        }
    }

    /// Appends a message of the server's own to this client, at QoS 0, if it asked for those.
    fn put_own(&self, own: Own, push: &Push<'_>, out: &mut Vec<u8>) {
        let (gaps, notices) = self.notified();
        let asked = if own == Own::Gaps { gaps } else { notices };
        let Some(subscription_id) = asked else { return };
        let mut payload = Vec::new();
        codec::object(&mut payload, push);
        let message = Outgoing {
            topic: own.topic(),
            payload: &payload,
            qos: Qos::AtMostOnce,
            packet_id: 0,
            is_duplicate: false,
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
    pub(super) fn tell_own(&mut self, socket: u32, own: Own, subscription_id: u32) -> Qos {
        let Some(connection) = self.connections.get_mut(socket) else { return Qos::AtMostOnce };
        if let Some(mqtt) = connection.mqtt.as_mut() {
            *mqtt.asked(own) = Some(subscription_id);
        }
        if own == Own::Notices
            && let Some(papers) = connection.papers.as_mut()
        {
            // That its token ends soon may have been found while nobody wanted to hear it: the next look says it again.
            if papers.notice_ms == NOTIFIED {
                papers.notice_ms = 0;
            }
        }
        Qos::AtMostOnce
    }

    pub(super) fn hide_own(&mut self, socket: u32, own: Own) -> Reason {
        let mqtt = self.connections.get_mut(socket).and_then(|connection| connection.mqtt.as_mut());
        if mqtt.and_then(|mqtt| mqtt.asked(own).take()).is_some() { Reason::SUCCESS } else { Reason::NO_SUBSCRIPTION }
    }
}
