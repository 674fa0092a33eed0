//! Wakes the io_uring driver: the ring polls an eventfd, whose value is never read.

use super::waker::{WakeSource, Waker};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::FromRawFd;
use std::sync::Arc;

struct EventFd(Arc<File>);

impl WakeSource for EventFd {
    fn signal(&self) -> io::Result<()> {
        (&*self.0).write_all(&1_u64.to_ne_bytes())
    }
}

/// The eventfd to poll, and the waker that signals it.
pub(super) fn open() -> io::Result<(Arc<File>, Waker)> {
    // SAFETY: no pointer is passed.
    let descriptor = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a new descriptor that nothing else owns.
    let wake_source = Arc::new(unsafe { File::from_raw_fd(descriptor) });
    Ok((Arc::clone(&wake_source), Waker::new(Box::new(EventFd(wake_source)))))
}
