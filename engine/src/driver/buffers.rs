//! The memory of a driver's receive buffers, shared by all its sockets, so that an idle connection holds none.
//! A buffer is in one of three hands: the driver's (or the kernel's), lent by number, or lent out whole as a `Lent`.

use super::{Buffer, pages::Pages};
use std::io;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::rc::Rc;

/// A read takes at most this much.
pub(super) const BUFFER_BYTES: usize = 16 * 1024;

/// A received buffer that borrows nothing: the driver can be used while its bytes are looked at. Given back by `take_back`;
/// one that is dropped instead is lost to the driver.
pub struct Lent {
    bytes: NonNull<[u8]>,
    buffer: u16,
    _pages: Rc<Pages>,
}

impl Deref for Lent {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the range lies in the mapping kept by `_pages`, and `ReceiveMemory` hands it to nobody else meanwhile.
        unsafe { self.bytes.as_ref() }
    }
}

impl DerefMut for Lent {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `self` is borrowed mutably.
        unsafe { self.bytes.as_mut() }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Hand {
    Driver,
    Number,
    Whole,
}

pub(super) struct ReceiveMemory {
    pages: Rc<Pages>,
    hands: Box<[Hand]>,
    lengths: Box<[u16]>,
}

impl ReceiveMemory {
    pub(super) fn new(count: u16) -> io::Result<Self> {
        let count = usize::from(count);
        let pages = Rc::new(Pages::map(count * BUFFER_BYTES)?);
        Ok(Self { pages, hands: vec![Hand::Driver; count].into(), lengths: vec![0; count].into() })
    }

    pub(super) fn count(&self) -> u16 {
        self.lengths.len() as u16
    }

    fn range(&self, buffer: u16, length: usize) -> NonNull<[u8]> {
        self.pages.range(usize::from(buffer) * BUFFER_BYTES, length)
    }

    /// The whole of a buffer in the driver's hand, to be read into.
    pub(super) fn whole(&mut self, buffer: u16) -> &mut [u8] {
        assert!(self.hands[usize::from(buffer)] == Hand::Driver, "a lent buffer is not read into");
        // SAFETY: within the mapping, lent to nobody, and borrowed with `self`.
        unsafe { self.range(buffer, BUFFER_BYTES).as_mut() }
    }

    /// Where a buffer lies, to be told to the kernel.
    pub(super) fn address(&self, buffer: u16) -> u64 {
        self.range(buffer, BUFFER_BYTES).as_ptr().cast::<u8>() as u64
    }

    /// Lends a buffer that holds `length` received bytes.
    pub(super) fn lend(&mut self, buffer: u16, length: usize) -> Buffer {
        self.lengths[usize::from(buffer)] = length.min(BUFFER_BYTES) as u16;
        self.hands[usize::from(buffer)] = Hand::Number;
        Buffer(buffer)
    }

    /// What a lent buffer holds.
    pub(super) fn received(&mut self, buffer: Buffer) -> &mut [u8] {
        let at = usize::from(buffer.0);
        assert!(self.hands[at] == Hand::Number, "a buffer that is not lent");
        // SAFETY: within the mapping, lent by number only, and borrowed with `self`.
        unsafe { self.range(buffer.0, usize::from(self.lengths[at])).as_mut() }
    }

    pub(super) fn lend_out(&mut self, buffer: Buffer) -> Lent {
        let at = usize::from(buffer.0);
        assert!(self.hands[at] == Hand::Number, "a buffer that is not lent");
        self.hands[at] = Hand::Whole;
        let bytes = self.range(buffer.0, usize::from(self.lengths[at]));
        Lent { bytes, buffer: buffer.0, _pages: Rc::clone(&self.pages) }
    }

    /// A `Lent` comes back; it is lent by number again until it is released.
    pub(super) fn take_back(&mut self, lent: Lent) -> Buffer {
        self.hands[usize::from(lent.buffer)] = Hand::Number;
        Buffer(lent.buffer)
    }

    /// Whether it was lent by number, and is in the driver's hand now.
    pub(super) fn release(&mut self, buffer: Buffer) -> bool {
        let hand = &mut self.hands[usize::from(buffer.0)];
        *hand == Hand::Number && std::mem::replace(hand, Hand::Driver) == Hand::Number
    }
}
