//! The process's limit of open descriptors, which is what bounds its connections: raised at start as far as it goes.

use std::io;
use std::os::fd::RawFd;

/// Descriptors that no connection of a client gets, because others need them as well: the admin port's, the journal's files. Of a
/// process that may have very few, an eighth.
const KEPT: u64 = 96;

fn get() -> io::Result<libc::rlimit> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to a valid rlimit of this frame.
    match unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } {
        0 => Ok(limit),
        _ => Err(io::Error::last_os_error()),
    }
}

/// How many descriptors this process may have open.
///
/// # Errors
/// When the system does not say.
pub fn descriptor_limit() -> io::Result<u64> {
    get().map(|limit| limit.rlim_cur)
}

/// Raises the soft limit of open descriptors to the hard one; returns the limit then in force.
///
/// # Errors
/// When the system does not say what the limit is. One that cannot be raised stays as it is.
pub fn raise_descriptor_limit() -> io::Result<u64> {
    let limit = get()?;
    let raised = libc::rlimit { rlim_cur: limit.rlim_max, rlim_max: limit.rlim_max };
    // SAFETY: the pointer is to a valid rlimit of this frame.
    match unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) } {
        0 => Ok(raised.rlim_cur),
        _ => Ok(limit.rlim_cur),
    }
}

/// The first that is kept for others; none where the system does not say. Asked anew each time, because it may be changed from outside.
pub(super) fn first_kept_descriptor() -> RawFd {
    let limit = descriptor_limit().unwrap_or(u64::MAX);
    RawFd::try_from(limit - KEPT.min(limit / 8)).unwrap_or(RawFd::MAX)
}
