//! How soon a shard's thread gets a processor that somebody else works on: where the kernel lets a thread ask for short slices
//! (Linux 6.12), one that wakes goes before those that take long ones. It takes no more of the processor than it would.

/// Somewhat more than a turn takes; three milliseconds are usual.
#[cfg(target_os = "linux")]
const SLICE_NS: u64 = 200_000;

#[cfg(target_os = "linux")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}

/// Of this thread; none where the kernel, or a filter, does not tell.
#[cfg(target_os = "linux")]
fn attributes() -> Option<Attributes> {
    let mut found = Attributes::default();
    let size = size_of::<Attributes>();
    // SAFETY: the kernel writes at most `size` bytes to this frame's value; 0 is the calling thread.
    let result = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut found, size, 0) };
    (result == 0).then_some(found)
}

/// This thread wants the processor often and for a short time. Where it cannot be said, nothing changes.
pub(crate) fn take_short_slices() {
    #[cfg(target_os = "linux")]
    if let Some(known) = attributes().filter(|known| known.policy == libc::SCHED_OTHER as u32) {
        let wanted = Attributes { runtime_ns: SLICE_NS, ..known };
        // SAFETY: the kernel reads one value of this frame; 0 is the calling thread. It may refuse.
        unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const wanted, 0) };
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::{SLICE_NS, attributes, take_short_slices};

    #[test]
    fn a_thread_that_asks_for_short_slices_stays_what_it_was() {
        let Some(before) = attributes() else { return };
        take_short_slices();
        let after = attributes().unwrap();
        assert_eq!((after.policy, after.nice, after.priority), (before.policy, before.nice, before.priority));
        assert!([SLICE_NS, before.runtime_ns].contains(&after.runtime_ns), "{after:?}");
    }
}
