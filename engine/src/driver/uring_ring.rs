//! The ring itself: set up, probed, filled with operations and emptied of completions.
//! Under DEFER_TASKRUN one thread owns the ring and completions show only on an enter with GETEVENTS. Reaping may lead to
//! pushing and pushing to reaping, so completions are collected here first and looked at by `uring.rs` afterwards.

use io_uring::squeue::Entry;
use io_uring::types::{CancelBuilder, SubmitArgs, Timespec};
use io_uring::{IoUring, Probe, opcode};
use std::io;
use std::time::Duration;

/// One enter takes this many operations: a fan-out to a thousand sockets is one system call.
const SUBMISSIONS: u32 = 1024;
const COMPLETIONS: u32 = 4096;
/// So much deferred work is done by one enter, by the kernels seen so far; those that do all of it are asked once more.
const WORK_AN_ENTER: usize = 16;

/// What an operation is for; it travels through the kernel in `user_data` with a slot and its generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Operation {
    Accept = 1,
    Receive,
    Send,
    Writable,
    Connect,
    Shutdown,
    Cancel,
    Close,
    WakeSource,
}

impl Operation {
    const ALL: [Self; 9] = [
        Self::Accept,
        Self::Receive,
        Self::Send,
        Self::Writable,
        Self::Connect,
        Self::Shutdown,
        Self::Cancel,
        Self::Close,
        Self::WakeSource,
    ];

    /// 8 bits of operation, 24 of generation, 32 of slot (or of an index of the operation's own).
    pub(super) fn tag(self, generation: u32, index: u32) -> u64 {
        (self as u64) << 56 | u64::from(generation) << 32 | u64::from(index)
    }

    fn of(tag: u64) -> Option<Self> {
        Self::ALL.get(((tag >> 56) as usize).wrapping_sub(1)).copied()
    }
}

/// A completion, taken from the ring.
#[derive(Clone, Copy, Debug)]
pub(super) struct Completion {
    pub(super) tag: u64,
    pub(super) result: i32,
    pub(super) flags: u32,
}

impl Completion {
    pub(super) fn operation(&self) -> Option<Operation> {
        Operation::of(self.tag)
    }

    pub(super) fn generation(&self) -> u32 {
        (self.tag >> 32) as u32 & 0x00ff_ffff
    }

    pub(super) fn index(&self) -> u32 {
        self.tag as u32
    }
}

pub(super) struct Ring {
    uring: IoUring,
    pub(super) reaped: Vec<Completion>,
    pub(super) enters: u64,
}

impl Ring {
    /// A ring with a table of `files` direct descriptors.
    ///
    /// # Errors
    /// When the kernel, its settings or a seccomp filter do not allow it, or lack an operation.
    pub(super) fn open(files: u32) -> io::Result<Self> {
        let uring = IoUring::builder()
            .dontfork()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_submit_all()
            .setup_clamp()
            .setup_cqsize(COMPLETIONS)
            .build(SUBMISSIONS)?;
        let mut probe = Probe::new();
        uring.submitter().register_probe(&mut probe)?;
        let needed = [
            opcode::Accept::CODE,
            opcode::RecvMulti::CODE,
            opcode::Send::CODE,
            opcode::PollAdd::CODE,
            opcode::Connect::CODE,
            opcode::Shutdown::CODE,
            opcode::AsyncCancel::CODE,
            opcode::Close::CODE,
        ];
        if !uring.params().is_feature_ext_arg() || needed.iter().any(|&code| !probe.is_supported(code)) {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "this kernel lacks operations"));
        }
        uring.submitter().register_files_sparse(files)?;
        let mut ring = Self { uring, reaped: Vec::new(), enters: 0 };
        // A filter may allow the set-up and forbid the entering.
        ring.enter(Some(Duration::ZERO))?;
        Ok(ring)
    }

    pub(super) fn uring(&self) -> &IoUring {
        &self.uring
    }

    /// Adds an operation; a full ring is submitted first.
    ///
    /// # Panics
    /// When the ring is broken: an operation must not be lost, so the shard is given up.
    ///
    /// # Safety
    /// What the operation points to must be valid until it completes.
    pub(super) unsafe fn push(&mut self, entry: &Entry) {
        // SAFETY: the caller's promise.
        while unsafe { self.uring.submission().push(entry) }.is_err() {
            if let Err(error) = self.submit() {
                panic!("the ring is broken: {error}");
            }
        }
    }

    /// Hands all operations to the kernel and collects what is complete.
    ///
    /// # Errors
    /// When the ring is broken.
    pub(super) fn submit(&mut self) -> io::Result<()> {
        loop {
            self.enters += 1;
            let result = self.uring.submit();
            self.reap();
            match result {
                Ok(_) if self.uring.submission().is_empty() => return Ok(()),
                Ok(_) => {}
                Err(error) => bear(&error)?,
            }
        }
    }

    /// Hands all operations to the kernel, lets it do what is due, and waits until something is complete. Takes about
    /// `most` completions: there may be no buffers for more.
    ///
    /// # Errors
    /// When the ring is broken.
    pub(super) fn wait(&mut self, wait: Option<Duration>, most: usize) -> io::Result<()> {
        let mut before = self.reaped.len();
        self.enter(wait)?;
        // The kernel stops its deferred work early once it has something to show; what else is due belongs to this turn.
        while self.reaped.len() - before >= WORK_AN_ENTER && self.reaped.len() + WORK_AN_ENTER < most {
            before = self.reaped.len();
            self.enter(Some(Duration::ZERO))?;
        }
        Ok(())
    }

    /// One enter: hands all operations to the kernel and waits until something is complete.
    ///
    /// # Errors
    /// When the ring is broken.
    pub(super) fn enter(&mut self, wait: Option<Duration>) -> io::Result<()> {
        self.enters += 1;
        let result = match wait {
            None => self.uring.submit_and_wait(1),
            Some(Duration::ZERO) => {
                let waiting = self.uring.submission().len() as u32;
                // SAFETY: no argument is passed.
                unsafe { self.uring.submitter().enter::<libc::sigset_t>(waiting, 0, GETEVENTS, None) }
            }
            Some(wait) => {
                let time = Timespec::new().sec(wait.as_secs()).nsec(wait.subsec_nanos());
                self.uring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&time))
            }
        };
        self.reap();
        result.map_or_else(|error| bear(&error), |_| Ok(()))
    }

    /// Ends the ring's use: takes the accepts `tags` back from the kernel, so that their listeners free their ports now, and
    /// lets the table go. Nothing more is submitted: the memory of sends that were never flushed may be gone. All other
    /// operations end with the ring, in the background: to cancel them here, one by one among very many, takes minutes.
    pub(super) fn empty(&mut self, tags: impl Iterator<Item = u64>) {
        let patience = Timespec::new().sec(1);
        for tag in tags {
            // Whatever fails here, closing the ring ends it all the same, only later.
            let _ = self.uring.submitter().register_sync_cancel(Some(patience), CancelBuilder::user_data(tag));
        }
        loop {
            self.reaped.clear();
            // SAFETY: nothing is submitted and no argument passed.
            let result = unsafe { self.uring.submitter().enter::<libc::sigset_t>(0, 0, GETEVENTS, None) };
            self.reap();
            if result.is_err() || self.reaped.is_empty() {
                break;
            }
        }
        let _ = self.uring.submitter().unregister_files();
    }

    pub(super) fn has_completions(&mut self) -> bool {
        !self.reaped.is_empty() || !self.uring.completion().is_empty() || self.uring.submission().cq_overflow()
    }

    fn reap(&mut self) {
        for entry in self.uring.completion() {
            self.reaped.push(Completion { tag: entry.user_data(), result: entry.result(), flags: entry.flags() });
        }
    }
}

const GETEVENTS: u32 = 1;

/// Errors of an enter after which the ring works on: the time is up, a signal came, or the kernel is short of memory or of
/// room for completions, which have just been reaped.
fn bear(error: &io::Error) -> io::Result<()> {
    match error.raw_os_error() {
        Some(libc::ETIME | libc::EINTR | libc::EAGAIN | libc::EBUSY) => Ok(()),
        _ => Err(io::Error::new(error.kind(), error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::{Completion, Operation};

    #[test]
    fn a_tag_carries_operation_generation_and_slot() {
        for operation in Operation::ALL {
            let tag = operation.tag(0x00ab_cdef, 0xfedc_ba98);
            let completion = Completion { tag, result: 0, flags: 0 };
            assert_eq!(completion.operation(), Some(operation));
            assert_eq!((completion.generation(), completion.index()), (0x00ab_cdef, 0xfedc_ba98));
        }
        assert_eq!(Operation::of(0), None);
    }
}
