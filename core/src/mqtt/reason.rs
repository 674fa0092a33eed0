//! The reason codes of MQTT 5.0, section 2.4, and what a 3.1.1 CONNACK makes of them.

/// One byte that says what became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reason(pub u8);

impl Reason {
    pub const SUCCESS: Self = Self(0x00);
    pub const DISCONNECT_WITH_WILL: Self = Self(0x04);
    pub const NO_SUBSCRIPTION: Self = Self(0x11);
    pub const UNSPECIFIED: Self = Self(0x80);
    pub const MALFORMED: Self = Self(0x81);
    pub const PROTOCOL_ERROR: Self = Self(0x82);
    pub const IMPLEMENTATION: Self = Self(0x83);
    pub const VERSION_UNSUPPORTED: Self = Self(0x84);
    pub const CLIENT_ID_INVALID: Self = Self(0x85);
    pub const BAD_CREDENTIALS: Self = Self(0x86);
    pub const NOT_AUTHORIZED: Self = Self(0x87);
    pub const UNAVAILABLE: Self = Self(0x88);
    pub const BUSY: Self = Self(0x89);
    pub const SHUTTING_DOWN: Self = Self(0x8b);
    pub const BAD_METHOD: Self = Self(0x8c);
    pub const KEEP_ALIVE_TIMEOUT: Self = Self(0x8d);
    pub const TAKEN_OVER: Self = Self(0x8e);
    pub const FILTER_INVALID: Self = Self(0x8f);
    pub const TOPIC_INVALID: Self = Self(0x90);
    pub const PACKET_ID_UNKNOWN: Self = Self(0x92);
    pub const RECEIVE_MAXIMUM: Self = Self(0x93);
    pub const ALIAS_INVALID: Self = Self(0x94);
    pub const PACKET_TOO_LARGE: Self = Self(0x95);
    pub const RATE_TOO_HIGH: Self = Self(0x96);
    pub const QUOTA: Self = Self(0x97);
    pub const ADMINISTRATIVE: Self = Self(0x98);
    pub const PAYLOAD_INVALID: Self = Self(0x99);
    pub const CONNECT_TIME: Self = Self(0xa0);

    /// Whether it says that something went wrong.
    #[must_use]
    pub const fn is_failure(self) -> bool {
        self.0 >= 0x80
    }

    /// The return code of a 3.1.1 CONNACK; none where that standard has no word and the connection is just closed.
    #[must_use]
    pub const fn return_code(self) -> Option<u8> {
        match self {
            Self::SUCCESS => Some(0),
            Self::VERSION_UNSUPPORTED => Some(1),
            Self::CLIENT_ID_INVALID => Some(2),
            Self::UNAVAILABLE | Self::BUSY | Self::SHUTTING_DOWN | Self::QUOTA | Self::RATE_TOO_HIGH => Some(3),
            Self::BAD_CREDENTIALS => Some(4),
            Self::NOT_AUTHORIZED => Some(5),
            _ => None,
        }
    }
}
