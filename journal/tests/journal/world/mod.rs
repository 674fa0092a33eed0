//! What the tests of the journal share: a folder of their own, rows, and waiting for what the journal says.
pub(crate) mod disk;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use godwit_core::holder::Holder;
use godwit_core::journal::{AccessKind, AccessRow, KeptMessage, MessageRow, Peer, Rows};
use godwit_core::message::{Kind, LogId};
use godwit_core::position::Position;
use godwit_core::report::ConnectionId;
use godwit_journal::{Budget, Settings};

/// However old they are, as long as they have a time: a segment without rows, which has none, hides no others.
pub(crate) const EVERYTHING: Budget = Budget { messages: u64::MAX, bytes: u64::MAX, oldest_ms: 1 };

/// A folder that is gone when the test is.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("godwit-journal-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn settings(folder: &Folder, run: u64) -> Settings {
    Settings { directory: folder.path().join("journal"), node: "n1".into(), run, epoch: run, ..Settings::default() }
}

/// On a simulated disk: nothing waits longer than it must.
pub(crate) fn quick(run: u64) -> Settings {
    Settings {
        directory: "/journal".into(),
        node: "n1".into(),
        run,
        epoch: run,
        write_interval_ms: 0,
        sync_interval_ms: 1,
        probe_interval_ms: 1,
        ..Settings::default()
    }
}

/// A message of a subject; its content tells who it is.
pub(crate) fn message(subject: &str, epoch: u64, sequence: u64, arrival: u64) -> MessageRow {
    message_at(subject, epoch, sequence, arrival, 1_795_250_000_000 + arrival)
}

/// The same, accepted at a time.
pub(crate) fn message_at(subject: &str, epoch: u64, sequence: u64, arrival: u64, time_ms: u64) -> MessageRow {
    let mut kept = KeptMessage::new(0, 0, subject.into(), Position { epoch, sequence });
    kept.arrival = arrival;
    kept.time_ms = time_ms;
    kept.kind = Kind::Text;
    kept.is_retained = true;
    let kept = kept.carry(content(subject, epoch, sequence).as_bytes(), "", &[]);
    MessageRow {
        message: Arc::new(kept.into_message(LogId { slot: 0, generation: 0 })),
        holder: Holder::new("", "basic", "p"),
        key: None,
        numbered: Some(("0123456789abcdef".into(), arrival)),
        is_mqtt: false,
        needs_disk: false,
    }
}

/// Rows of another stream.
pub(crate) fn access_rows(count: usize) -> Rows {
    let row = AccessRow {
        time_us: 1_000,
        kind: AccessKind::Connected,
        peer: Peer { connection: ConnectionId(7), holder: Holder::new("", "basic", "i"), client: "c".into() },
        address: "127.0.0.1:1".parse().unwrap(),
        protocol: "json",
        selector: None,
        outcome: None,
        at: None,
        code: None,
        reason: None,
        duration_ms: None,
    };
    Rows::Access(vec![row; count])
}

pub(crate) fn content(subject: &str, epoch: u64, sequence: u64) -> String {
    format!("{subject} {epoch}.{sequence}")
}

/// Waits until something holds; a minute is for ever.
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < end, "{what} did not come true");
        std::thread::yield_now();
    }
}
