//! MQTT 3.1.1 and 5.0 between bytes and packets: strict, borrowing, without a state of its own. Owns what a well-formed packet
//! is and the reason a malformed one is answered with; what packets mean is `shard::mqtt`'s. Invariant: no bytes panic it,
//! nothing is allocated for a length that has not arrived, and work is linear in the bytes. Why it is our own: docs/decisions/005.
mod acknowledge;
mod connect;
mod fields;
mod packet;
mod properties;
mod publish;
mod reason;
mod subscribe;
mod topic;
mod write;

pub use acknowledge::{Acknowledge, Disconnect};
pub use connect::{Connect, Will};
pub use fields::{Fault, put_varint};
pub use packet::{Packet, Split, parse, split};
pub use publish::{Carried, Publish, split_users};
pub use reason::Reason;
pub use subscribe::{Filter, Filters, Options, Subscribe, Unsubscribe};
pub(crate) use topic::shared_of;
pub use topic::{Selected, is_bridge_state, select, shared_name, split_shared, subject_of, topic_of};
pub use write::{Connack, Outgoing, Writer, put_user_property};

/// Which of the two standards a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    V3,
    V5,
}

/// How often a message may arrive: at most once, at least once, exactly once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Qos {
    AtMostOnce = 0,
    AtLeastOnce = 1,
    ExactlyOnce = 2,
}

impl Qos {
    /// The two bits of a flag byte; none for 3.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Option<Self> {
        match bits & 3 {
            0 => Some(Self::AtMostOnce),
            1 => Some(Self::AtLeastOnce),
            2 => Some(Self::ExactlyOnce),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
