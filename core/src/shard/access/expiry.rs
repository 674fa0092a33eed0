//! When a connection's token expires, and when its client is notified before that.
use crate::shard::Shard;
use crate::shard::connection::{Connection, NOTIFIED};

/// How long before the token expires its holder is notified, at most and at least.
const NOTICE_MS_MAX: u64 = 60_000;
const NOTICE_MS_MIN: u64 = 1_500;

impl Connection {
    /// It shows no token that expires.
    pub(in crate::shard) fn clear_expiry(&mut self) {
        if let Some(papers) = self.papers.as_mut() {
            (papers.expires_ms, papers.notice_ms) = (None, NOTIFIED);
        }
    }

    /// Sets when its token expires and when it is notified of that (both Unix ms). Each expiry is notified once.
    pub(in crate::shard) fn set_expiry(&mut self, expires_ms: u64, notice_ms: u64) {
        let papers = self.papers();
        if papers.expires_ms != Some(expires_ms) {
            (papers.expires_ms, papers.notice_ms) = (Some(expires_ms), notice_ms);
        }
    }

    /// When it is notified: a third of the token's remaining lifetime before it expires, at most a minute. The last quarter of that
    /// is drawn by its serial, so that tokens issued together are not renewed together.
    fn notice_ms(&self, expires_ms: u64, wall_ms: u64) -> u64 {
        let most_ms = (expires_ms.saturating_sub(wall_ms) / 3).clamp(NOTICE_MS_MIN, NOTICE_MS_MAX);
        let drawn_ms = (u64::from(self.serial.wrapping_mul(0x9e37_79b1)) * (most_ms / 4)) >> 32;
        expires_ms.saturating_sub((most_ms - drawn_ms).max(NOTICE_MS_MIN))
    }
}

impl Shard {
    /// A connection shows a token that was granted until then, if that ends (Unix ms).
    pub(in crate::shard) fn grant_until(&mut self, socket: u32, expires_ms: Option<u64>) {
        let wall_ms = self.now.wall_ms;
        let Some(connection) = self.connections.get_mut(socket) else { return };
        match expires_ms {
            Some(expires_ms) => connection.set_expiry(expires_ms, connection.notice_ms(expires_ms, wall_ms)),
            None => connection.clear_expiry(),
        }
    }
}
