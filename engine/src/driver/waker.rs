//! Wakes a shard: any thread may do it, and a shard that is awake is not signalled at all.
//! A wake costs a system call only when the shard sleeps, and only the first since its last turn.
//! Invariant: after `wake` returned, the shard's next turn reports `Wake`.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

const AWAKE: u8 = 0;
const ASLEEP: u8 = 1;
const WOKEN: u8 = 2;

/// Ends the wait of a sleeping turn; each driver has its own.
pub(super) trait WakeSource: Send + Sync {
    fn signal(&self) -> io::Result<()>;
}

struct Shared {
    state: AtomicU8,
    wake_source: Box<dyn WakeSource>,
}

/// Wakes one driver. Clones wake the same one.
#[derive(Clone)]
pub struct Waker(Arc<Shared>);

impl Waker {
    pub(super) fn new(wake_source: Box<dyn WakeSource>) -> Self {
        Self(Arc::new(Shared { state: AtomicU8::new(AWAKE), wake_source }))
    }

    /// Makes the driver's next turn report `Wake`, ending its wait if it sleeps.
    pub fn wake(&self) {
        if self.0.state.swap(WOKEN, Ordering::AcqRel) == ASLEEP {
            // The counter cannot overflow and its descriptor lives as long as this value: no other failure could be
            // handled here, and the shard looks at its inbox at its next deadline anyway.
            let _ = self.0.wake_source.signal();
        }
    }

    /// Before waiting: whether the driver may sleep. False when it was woken meanwhile.
    pub(super) fn fall_asleep(&self) -> bool {
        self.0.state.compare_exchange(AWAKE, ASLEEP, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// After waiting: whether it was woken since the last turn.
    pub(super) fn rise(&self) -> bool {
        self.0.state.swap(AWAKE, Ordering::AcqRel) == WOKEN
    }
}
