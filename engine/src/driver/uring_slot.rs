//! What the io_uring driver remembers of a socket: which operations of it are in the kernel, and what was asked of it.
//! Eight bytes with the generation, since there are very many and most are idle.

#[derive(Default)]
pub(super) struct Slot {
    /// Operations in the kernel, sends aside: those end within a flush.
    pub(super) operations: u8,
    flags: u8,
}

pub(super) const RECEIVING: u8 = 1;
pub(super) const PAUSED: u8 = 1 << 1;
pub(super) const WANTING: u8 = 1 << 2;
pub(super) const CLOSING: u8 = 1 << 3;
pub(super) const GONE: u8 = 1 << 4;
pub(super) const TO_ARM: u8 = 1 << 5;
pub(super) const CONNECTING: u8 = 1 << 6;
/// Set from the accept or connect to the end of the close: what is asked of any other slot is passed over.
pub(super) const LIVE: u8 = 1 << 7;

impl Slot {
    /// Whether it has any of these flags.
    pub(super) fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    pub(super) fn set(&mut self, flag: u8, on: bool) {
        self.flags = if on { self.flags | flag } else { self.flags & !flag };
    }
}
