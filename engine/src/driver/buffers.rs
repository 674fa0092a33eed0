//! The memory of a driver's receive buffers, shared by all its sockets, so that an idle connection holds none.
//! A buffer is in one of three hands: the driver's (or the kernel's), lent by number, or lent out whole as a `ReceiveBuffer`.

use super::{Buffer, pages::Pages};
use std::io;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::rc::Rc;

/// A read takes at most this much.
pub(super) const BUFFER_BYTES: usize = 16 * 1024;

/// Fewer receives between two rests are no rush: to touch their memory anew costs less than to keep it.
pub(super) const RECEIVES_FEW: usize = 64;

/// A received buffer that borrows nothing: the driver can be used while its bytes are looked at. Given back by `take_back`;
/// one that is dropped instead is lost to the driver.
pub struct ReceiveBuffer {
    bytes: NonNull<[u8]>,
    buffer: u16,
    _pages: Rc<Pages>,
}

impl Deref for ReceiveBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the range lies in the mapping kept by `_pages`, and `ReceiveMemory` hands it to nobody else meanwhile.
        unsafe { self.bytes.as_ref() }
    }
}

impl DerefMut for ReceiveBuffer {
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
    /// Buffers lent since the last rest.
    lent: usize,
    /// Some were lent since the memory was last given back.
    is_touched: bool,
    hands: Box<[Hand]>,
    lengths: Box<[u16]>,
}

impl ReceiveMemory {
    pub(super) fn new(count: u16) -> io::Result<Self> {
        let count = usize::from(count);
        let pages = Rc::new(Pages::map(count * BUFFER_BYTES)?);
        let (hands, lengths) = (vec![Hand::Driver; count].into(), vec![0; count].into());
        Ok(Self { pages, lent: 0, is_touched: false, hands, lengths })
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
        self.lent += 1;
        Buffer(buffer)
    }

    /// Gives what a rush has touched back to the system, once fewer receives than `few` came since the last call. Only while no
    /// buffer holds anything. True when it did.
    pub(super) fn rest(&mut self, few: usize) -> bool {
        let lent = std::mem::take(&mut self.lent);
        self.is_touched |= lent > 0;
        let is_unused = self.hands.iter().all(|hand| *hand == Hand::Driver);
        let Some(pages) = Rc::get_mut(&mut self.pages).filter(|_| self.is_touched && lent < few && is_unused) else {
            return false;
        };
        pages.forget();
        self.is_touched = false;
        true
    }

    /// What a lent buffer holds.
    pub(super) fn received(&mut self, buffer: Buffer) -> &mut [u8] {
        let at = usize::from(buffer.0);
        assert!(self.hands[at] == Hand::Number, "a buffer that is not lent");
        // SAFETY: within the mapping, lent by number only, and borrowed with `self`.
        unsafe { self.range(buffer.0, usize::from(self.lengths[at])).as_mut() }
    }

    pub(super) fn lend_out(&mut self, buffer: Buffer) -> ReceiveBuffer {
        let at = usize::from(buffer.0);
        assert!(self.hands[at] == Hand::Number, "a buffer that is not lent");
        self.hands[at] = Hand::Whole;
        let bytes = self.range(buffer.0, usize::from(self.lengths[at]));
        ReceiveBuffer { bytes, buffer: buffer.0, _pages: Rc::clone(&self.pages) }
    }

    /// A `ReceiveBuffer` comes back; it is lent by number again until it is released.
    pub(super) fn take_back(&mut self, lent: ReceiveBuffer) -> Buffer {
        self.hands[usize::from(lent.buffer)] = Hand::Number;
        Buffer(lent.buffer)
    }

    /// Whether it was lent by number, and is in the driver's hand now.
    pub(super) fn release(&mut self, buffer: Buffer) -> bool {
        let hand = &mut self.hands[usize::from(buffer.0)];
        *hand == Hand::Number && std::mem::replace(hand, Hand::Driver) == Hand::Number
    }
}

#[cfg(test)]
mod tests {
    use super::ReceiveMemory;

    fn receive(memory: &mut ReceiveMemory, buffer: u16) {
        memory.whole(buffer)[..5].copy_from_slice(b"hello");
        let lent = memory.lend(buffer, 5);
        assert_eq!(memory.received(lent), b"hello");
        assert!(memory.release(lent));
    }

    #[test]
    fn what_a_rush_touched_is_given_back_once_it_is_over() {
        let mut memory = ReceiveMemory::new(4).unwrap();
        assert!(!memory.rest(2), "nothing was touched");
        (0..4).for_each(|buffer| receive(&mut memory, buffer));
        assert!(!memory.rest(2), "too many came");
        assert!(memory.rest(2), "nothing came since");
        assert!(!memory.rest(2), "it has been given back");
        if cfg!(target_os = "linux") {
            assert!(memory.whole(3)[..5].iter().all(|&byte| byte == 0));
        }
        receive(&mut memory, 1);
        assert!(memory.rest(2));
    }

    #[test]
    fn what_is_lent_is_kept() {
        let mut memory = ReceiveMemory::new(2).unwrap();
        memory.whole(0)[..2].copy_from_slice(b"ab");
        let buffer = memory.lend(0, 2);
        assert!(!memory.rest(9));
        let lent = memory.lend_out(buffer);
        assert!(!memory.rest(9));
        assert_eq!(&*lent, b"ab");
        let buffer = memory.take_back(lent);
        assert!(memory.release(buffer) && memory.rest(9));
    }
}
