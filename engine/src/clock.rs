//! The time of a turn: read once, told to the core, the same for everything in it.

use godwit_core::position::Now;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A monotonic clock that began with the node, shared by its shards so that their times compare.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    began: Instant,
}

impl Clock {
    pub fn start() -> Self {
        Self { began: Instant::now() }
    }

    pub fn now(&self) -> Now {
        let wall_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
        Now { mono_ms: self.began.elapsed().as_millis() as u64, wall_ms }
    }

    /// Monotonic µs, modulo 2³².
    pub(crate) fn us(&self) -> u32 {
        self.began.elapsed().as_micros() as u32
    }
}

/// What one thread has used of a processor, read from another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadClock {
    #[cfg(target_os = "linux")]
    id: libc::clockid_t,
}

#[cfg(target_os = "linux")]
impl ThreadClock {
    pub(crate) fn of_this_thread() -> Option<Self> {
        let mut id = 0;
        // SAFETY: the thread is this one, and the pointer is to one valid clock id of this frame.
        let failed = unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &raw mut id) };
        (failed == 0).then_some(Self { id })
    }

    /// None once the thread has ended.
    pub(crate) fn read(&self) -> Option<Duration> {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the pointer is to one valid timespec of this frame; a clock of a thread that ended is an error.
        let failed = unsafe { libc::clock_gettime(self.id, &raw mut time) };
        (failed == 0).then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
    }
}

#[cfg(not(target_os = "linux"))]
impl ThreadClock {
    pub(crate) fn of_this_thread() -> Option<Self> {
        None
    }

    pub(crate) fn read(&self) -> Option<Duration> {
        None
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::ThreadClock;
    use std::hint::black_box;

    #[test]
    fn a_threads_clock_runs_while_it_works_and_is_readable_from_another() {
        let clock = ThreadClock::of_this_thread().unwrap();
        let before = clock.read().unwrap();
        let sum = (0..2_000_000_u64).fold(0, |sum, i| black_box(sum ^ i));
        black_box(sum);
        let after = std::thread::spawn(move || clock.read()).join().unwrap().unwrap();
        assert!(after > before);
    }
}
