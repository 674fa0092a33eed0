//! The memory of a driver's receive buffers, shared by all its sockets, so that an idle connection holds none.

use super::{Buffer, pages::Pages};
use std::io;

/// A read takes at most this much.
pub(super) const BUFFER_BYTES: usize = 16 * 1024;

pub(super) struct ReceiveMemory {
    pages: Pages,
    lengths: Box<[u32]>,
}

impl ReceiveMemory {
    pub(super) fn new(count: u16) -> io::Result<Self> {
        let pages = Pages::map(usize::from(count) * BUFFER_BYTES)?;
        Ok(Self { pages, lengths: vec![0; usize::from(count)].into_boxed_slice() })
    }

    pub(super) fn count(&self) -> u16 {
        u16::try_from(self.lengths.len()).unwrap_or(u16::MAX)
    }

    /// The whole buffer, to be read into.
    pub(super) fn whole(&mut self, buffer: u16) -> &mut [u8] {
        self.pages.slice_mut(usize::from(buffer) * BUFFER_BYTES, BUFFER_BYTES)
    }

    /// Where the buffer lies, to be told to the kernel.
    pub(super) fn address(&self, buffer: u16) -> u64 {
        self.pages.start() as u64 + u64::from(buffer) * BUFFER_BYTES as u64
    }

    pub(super) fn set_length(&mut self, buffer: u16, length: usize) {
        self.lengths[usize::from(buffer)] = u32::try_from(length.min(BUFFER_BYTES)).unwrap_or(0);
    }

    /// What was received into it.
    pub(super) fn received(&mut self, buffer: Buffer) -> &mut [u8] {
        let length = self.lengths[usize::from(buffer.0)] as usize;
        self.pages.slice_mut(usize::from(buffer.0) * BUFFER_BYTES, length)
    }
}
