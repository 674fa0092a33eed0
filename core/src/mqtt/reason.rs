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
    pub const CONNECT_RATE: Self = Self(0x9f);
    pub const CONNECT_TIME: Self = Self(0xa0);

    /// Whether it says that something went wrong.
    #[must_use]
    pub const fn is_failure(self) -> bool {
        self.0 >= 0x80
    }

    /// The same, or what comes nearest, as a CONNACK may say it (table 3-1).
    #[must_use]
    pub const fn in_connack(self) -> Self {
        match self {
            Self::CONNECT_TIME => Self::BAD_CREDENTIALS,
            Self::RATE_TOO_HIGH => Self::CONNECT_RATE,
            Self::SHUTTING_DOWN | Self::ADMINISTRATIVE => Self::UNAVAILABLE,
            Self(0x00 | 0x80..=0x8a | 0x8c | 0x90 | 0x95 | 0x97 | 0x99..=0x9d | 0x9f) => self,
            _ => Self::UNSPECIFIED,
        }
    }

    /// As a DISCONNECT of a server may say it (table 3-10).
    #[must_use]
    pub const fn in_disconnect(self) -> Self {
        match self {
            Self::BAD_CREDENTIALS => Self::NOT_AUTHORIZED,
            Self::UNAVAILABLE => Self::BUSY,
            Self::PACKET_ID_UNKNOWN => Self::PROTOCOL_ERROR,
            Self(0x00 | 0x80..=0x83 | 0x87 | 0x89 | 0x8b | 0x8d..=0x90 | 0x93..=0xa2) => self,
            _ => Self::UNSPECIFIED,
        }
    }

    /// As PUBACK and PUBREC may say it (tables 3-4 and 3-5).
    #[must_use]
    pub const fn in_puback(self) -> Self {
        match self {
            Self::PACKET_TOO_LARGE | Self::RATE_TOO_HIGH => Self::QUOTA,
            Self(0x00 | 0x10 | 0x80 | 0x83 | 0x87 | 0x90 | 0x91 | 0x97 | 0x99) => self,
            _ => Self::UNSPECIFIED,
        }
    }

    /// As SUBACK may say it (table 3-8).
    #[must_use]
    pub const fn in_suback(self) -> Self {
        match self {
            Self::TOPIC_INVALID => Self::FILTER_INVALID,
            Self(0x00..=0x02 | 0x80 | 0x83 | 0x87 | 0x8f | 0x91 | 0x97 | 0x9e | 0xa1 | 0xa2) => self,
            _ => Self::UNSPECIFIED,
        }
    }

    /// The return code of a 3.1.1 CONNACK; none where that standard has no word and the connection is just closed.
    #[must_use]
    pub const fn return_code(self) -> Option<u8> {
        match self {
            Self::SUCCESS => Some(0),
            Self::VERSION_UNSUPPORTED => Some(1),
            Self::CLIENT_ID_INVALID => Some(2),
            Self::UNAVAILABLE | Self::BUSY | Self::QUOTA | Self::CONNECT_RATE => Some(3),
            Self::BAD_CREDENTIALS => Some(4),
            Self::NOT_AUTHORIZED => Some(5),
            _ => None,
        }
    }
}
