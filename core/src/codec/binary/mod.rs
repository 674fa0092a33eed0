//! The binary wire, `godwit.v1.binary`: one frame a WebSocket message (protocol/binary.md, whose clauses the comments name).

mod parse;
pub mod varint;
mod write;

pub(super) use parse::Commands;
pub(super) use write::{put_push, put_reply};

/// What the first byte of a frame says, with bit 7 clear.
mod kind {
    pub(super) const BATCH: u8 = 0x00;
    pub(super) const ANNOUNCE: u8 = 0x01;
    pub(super) const GAP: u8 = 0x02;
    pub(super) const DROPPED: u8 = 0x03;
    pub(super) const RESUME_TOKEN: u8 = 0x04;
    pub(super) const INTEREST: u8 = 0x05;
    pub(super) const TOKEN_EXPIRING: u8 = 0x06;
    pub(super) const DRAINING: u8 = 0x07;
    pub(super) const ENDED: u8 = 0x08;
    pub(super) const EPOCHS: u8 = 0x09;
    pub(super) const INTEREST_STATE: u8 = 0x0a;

    pub(super) const CONNECTED: u8 = 0x20;
    pub(super) const SUBSCRIBED: u8 = 0x21;
    pub(super) const UNSUBSCRIBED: u8 = 0x22;
    pub(super) const PUBLISHED: u8 = 0x23;
    pub(super) const PONG: u8 = 0x24;
    pub(super) const WATCHING: u8 = 0x25;
    pub(super) const UNWATCHED: u8 = 0x26;
    pub(super) const ERROR: u8 = 0x2f;

    pub(super) const CONNECT: u8 = 0x40;
    pub(super) const SUBSCRIBE: u8 = 0x41;
    pub(super) const UNSUBSCRIBE: u8 = 0x42;
    pub(super) const PUBLISH: u8 = 0x43;
    pub(super) const PING: u8 = 0x44;
    pub(super) const WATCH: u8 = 0x45;
    pub(super) const UNWATCH: u8 = 0x46;
}

/// The byte after `reply_to` in a frame of kind `MORE`: the kind of content, and these (binary.md, B4 and B5).
mod more {
    /// The kind that announces the byte.
    pub(super) const MORE: u8 = 0x03;
    pub(super) const PATCH: u8 = 0x04;
    pub(super) const REMOVAL: u8 = 0x08;
    pub(super) const FIELDS: u8 = 0x10;
    /// Of a publish: it replaces the snapshot, whatever its pattern says.
    pub(super) const WHOLE: u8 = 0x20;
}
