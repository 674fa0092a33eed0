//! The time of a turn: read once, told to the core, the same for everything in it.

use godwit_core::position::Now;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

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
}
