//! The bell of the io_uring driver: an eventfd that the ring watches for rings; its value is never read.

use super::waker::{Bell, Waker};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::FromRawFd;
use std::sync::Arc;

struct EventFd(Arc<File>);

impl Bell for EventFd {
    fn ring(&self) -> io::Result<()> {
        (&*self.0).write_all(&1_u64.to_ne_bytes())
    }
}

/// A bell to be watched, and the waker that rings it.
pub(super) fn open() -> io::Result<(Arc<File>, Waker)> {
    // SAFETY: no pointer is passed.
    let descriptor = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a new descriptor that nothing else owns.
    let bell = Arc::new(unsafe { File::from_raw_fd(descriptor) });
    Ok((Arc::clone(&bell), Waker::new(Box::new(EventFd(bell)))))
}
