//! Zeroed memory straight from the kernel: page-aligned, and a page costs nothing until it is first touched.
//! Used for receive buffers and for the ring that tells the kernel of them.

use std::io;
use std::ptr::NonNull;

pub(super) struct Pages {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping is owned by this value alone, like a Box<[u8]>.
unsafe impl Send for Pages {}

impl Pages {
    pub(super) fn map(bytes: usize) -> io::Result<Self> {
        // SAFETY: an anonymous private mapping at an address of the kernel's choice touches no other memory.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANON,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        match NonNull::new(start.cast()) {
            Some(start) => Ok(Self { start, bytes }),
            None => Err(io::Error::from(io::ErrorKind::OutOfMemory)),
        }
    }

    pub(super) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Gives the memory back to the system: whatever is read there next is zero, or what was there before.
    pub(super) fn forget(&mut self) {
        #[cfg(target_os = "linux")]
        let advice = libc::MADV_DONTNEED;
        #[cfg(not(target_os = "linux"))]
        let advice = libc::MADV_FREE;
        // SAFETY: exactly the range that was mapped; the caller keeps nothing there. Failure would mean a wrong range.
        let result = unsafe { libc::madvise(self.start.as_ptr().cast(), self.bytes, advice) };
        debug_assert_eq!(result, 0, "madvise of an own mapping");
    }

    /// Where a range lies, checked to be within.
    pub(super) fn range(&self, from: usize, length: usize) -> NonNull<[u8]> {
        assert!(from.checked_add(length).is_some_and(|end| end <= self.bytes), "a range outside the mapping");
        // SAFETY: the offset is within the mapping.
        NonNull::slice_from_raw_parts(unsafe { self.start.add(from) }, length)
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: exactly the range that was mapped, which nothing borrows any more. Failure would mean a wrong range.
        let result = unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
        debug_assert_eq!(result, 0, "munmap of an own mapping");
    }
}
