//! The bell of a shard: any thread may ring it, and a shard that is awake is not rung at all.
//! A ring costs a system call only when the shard sleeps, and only the first since it last looked.
//! Invariant: after `wake` returned, the shard's next turn reports `Wake`.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

const AWAKE: u8 = 0;
const ASLEEP: u8 = 1;
const RUNG: u8 = 2;

/// What ends a sleeping turn; each driver has its own.
pub(super) trait Bell: Send + Sync {
    fn ring(&self) -> io::Result<()>;
}

struct Shared {
    state: AtomicU8,
    bell: Box<dyn Bell>,
}

/// Wakes one driver. Clones ring the same bell.
#[derive(Clone)]
pub struct Waker(Arc<Shared>);

impl Waker {
    pub(super) fn new(bell: Box<dyn Bell>) -> Self {
        Self(Arc::new(Shared { state: AtomicU8::new(AWAKE), bell }))
    }

    /// Makes the driver's next turn report `Wake`, ending its wait if it sleeps.
    pub fn wake(&self) {
        if self.0.state.swap(RUNG, Ordering::AcqRel) == ASLEEP {
            // The bell's counter cannot overflow and its descriptor lives as long as this value: no failure is left that
            // something here could help, and the shard looks at its inbox at its next deadline anyway.
            let _ = self.0.bell.ring();
        }
    }

    /// Before waiting: whether the driver may sleep. False when it was rung meanwhile.
    pub(super) fn fall_asleep(&self) -> bool {
        self.0.state.compare_exchange(AWAKE, ASLEEP, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// After waiting: whether it was rung since the last look.
    pub(super) fn rise(&self) -> bool {
        self.0.state.swap(AWAKE, Ordering::AcqRel) == RUNG
    }
}
