//! The receive buffers as io_uring takes them: a ring of entries the kernel picks from when bytes arrive.
//! It begins with few of them, since the ring goes round all it has and so touches their memory, and doubles when they ran out.

use super::Buffer;
use super::buffers::{BUFFER_BYTES, ReceiveMemory};
use super::pages::Pages;
use io_uring::IoUring;
use io_uring::types::BufRingEntry;
use std::io;
use std::sync::atomic::{AtomicU16, Ordering};

pub(super) const GROUP: u16 = 0;

pub(super) struct ProvidedBuffers {
    memory: ReceiveMemory,
    ring: Pages,
    mask: u16,
    tail: u16,
    /// Buffers the kernel was ever given; those above wait until they are needed.
    given: u16,
}

impl ProvidedBuffers {
    /// Registers a ring of `count` buffers, rounded up to a power of two.
    pub(super) fn register(uring: &IoUring, count: u16) -> io::Result<Self> {
        let count = count.clamp(8, 1 << 14).next_power_of_two();
        let memory = ReceiveMemory::new(count)?;
        let ring = Pages::map(usize::from(count) * size_of::<BufRingEntry>())?;
        // SAFETY: the mapping is page-aligned, large enough for `count` entries, and outlives the registration: this value is
        // dropped after the ring (see the order of fields in `Uring`).
        unsafe { uring.submitter().register_buf_ring_with_flags(ring.start() as u64, count, GROUP, 0)? };
        let mut buffers = Self { memory, ring, mask: count - 1, tail: 0, given: 0 };
        for _ in 0..(count / 8).max(8) {
            buffers.give_another();
        }
        Ok(buffers)
    }

    /// Buffers in use, lent or not.
    pub(super) fn given(&self) -> usize {
        usize::from(self.given)
    }

    /// After receives starved, or nearly: twice the buffers, as far as there are any.
    pub(super) fn grow(&mut self) {
        for _ in 0..self.given.min(self.memory.count() - self.given) {
            self.give_another();
        }
    }

    fn give_another(&mut self) {
        let buffer = self.given;
        self.given += 1;
        self.provide(buffer);
    }

    fn provide(&mut self, buffer: u16) {
        let base = self.ring.start().cast::<BufRingEntry>();
        // SAFETY: the masked index lies within the mapping, which is aligned for entries; the kernel reads an entry only
        // after the tail has passed it, and the tail (a field of entry 0 that no setter here touches) is written atomically.
        unsafe {
            let entry = &mut *base.add(usize::from(self.tail & self.mask));
            entry.set_addr(self.memory.address(buffer));
            entry.set_len(BUFFER_BYTES as u32);
            entry.set_bid(buffer);
            self.tail = self.tail.wrapping_add(1);
            AtomicU16::from_ptr(BufRingEntry::tail(base).cast_mut()).store(self.tail, Ordering::Release);
        }
    }

    pub(super) fn memory(&mut self) -> &mut ReceiveMemory {
        &mut self.memory
    }

    /// Gives a lent buffer to the kernel again.
    pub(super) fn release(&mut self, buffer: Buffer) {
        if self.memory.release(buffer) {
            self.provide(buffer.0);
        }
    }
}
