//! What is written beside the journal's streams while a node runs: its notes, and the snapshots that no row holds. Owns the thread that does it, and
//! when who waits for the disk is told: snapshots, which may be many, keep nobody who waits for notes.

use crate::lines::LinesFile;
use crate::queue::lock;
use crate::snapshots::Snapshots;
use godwit_core::node::Node;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often what is new is written.
const INTERVAL: Duration = Duration::from_millis(200);
/// Of every so many times snapshots are written as well: each costs a line, however often it changed since.
const SNAPSHOTS_EVERY: u32 = 5;
/// The file of notes is written anew once it is so many times as large as what counts.
pub(crate) const FACTOR: u64 = 4;

/// How long a disk is waited for by who must know that the notes are on it.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is written down of the node's notes, by a thread of its own.
#[derive(Debug)]
pub(crate) struct Notes {
    shared: Arc<(Mutex<State>, Condvar)>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What the thread is asked for, and how far it came: numbers of asks.
#[derive(Debug, Default)]
struct State {
    is_closed: bool,
    /// Notes are waited for.
    is_hurried: bool,
    asked: u64,
    answered: u64,
    /// Everything that was noted before this ask is on the disk.
    kept: u64,
}

impl Notes {
    /// Begins writing what `file` is to hold of the node's notes from now on, and `snapshots` of its snapshots.
    /// `wake` wakes the shards of a mask: what they wait for is on the disk.
    pub(crate) fn begin(
        mut file: LinesFile,
        snapshots: Arc<Snapshots>,
        node: Arc<Mutex<Node>>,
        wake: impl Fn(u64) + Send + 'static,
    ) -> io::Result<Self> {
        let shared: Arc<(Mutex<State>, Condvar)> = Arc::default();
        let thread = {
            let shared = Arc::clone(&shared);
            let run = move || {
                let (state, news) = &*shared;
                let mut waiting = BTreeMap::new();
                let mut snapped = Instant::now();
                let (mut has_more, mut last_writes) = (false, None);
                loop {
                    let (is_last, asked, is_asked) = {
                        let is_idle = |state: &mut State| {
                            !has_more && !state.is_closed && !state.is_hurried && state.asked == state.answered
                        };
                        let held = news.wait_timeout_while(lock(state), INTERVAL, is_idle);
                        let mut held = held.unwrap_or_else(PoisonError::into_inner).0;
                        held.is_hurried = false;
                        (held.is_closed, held.asked, held.asked != held.answered)
                    };
                    waiting.append(&mut lock(&node).take_notes());
                    // What the disk refuses is tried again; the journal's own alarm tells of it.
                    let lines =
                        waiting.iter().map(|(name, text): (&String, &Option<String>)| (name.as_str(), text.as_deref()));
                    let is_noted = waiting.is_empty() || file.append(lines, &mut |_| true).is_ok();
                    let woken = if is_noted { lock(&node).notes_synced() } else { lock(&node).notes_refused() };
                    wake(woken);
                    {
                        let mut state = lock(state);
                        state.answered = asked;
                        state.kept = if is_noted { asked } else { state.kept };
                    }
                    news.notify_all();
                    // On a disk that refuses, what has ended without a line is nothing to write: names come and go meanwhile.
                    waiting.retain(|name, text| !is_noted && (text.is_some() || file.may_have(name)));
                    // Snapshots keep no notes waiting: a few of them are written between two looks.
                    let is_due = has_more || is_last || is_asked || snapped.elapsed() >= INTERVAL * SNAPSHOTS_EVERY;
                    snapped = if is_due { Instant::now() } else { snapped };
                    let left = if is_last { *last_writes.get_or_insert_with(|| snapshots.writes()) } else { 1 };
                    has_more = is_due && left > 0 && snapshots.write().unwrap_or(false);
                    last_writes = last_writes.map(|left| left.saturating_sub(1));
                    if is_last && !has_more {
                        return;
                    }
                }
            };
            std::thread::Builder::new().name("journal-notes".to_owned()).spawn(run)?
        };
        Ok(Self { shared, thread: Mutex::new(Some(thread)) })
    }

    /// Has what the node noted so far written, without waiting for it.
    pub(crate) fn hurry(&self) {
        let (state, news) = &*self.shared;
        lock(state).is_hurried = true;
        news.notify_all();
    }

    /// Waits until everything that the node noted so far is on the disk; false when the disk does not take it.
    pub(crate) fn flush(&self) -> bool {
        let (state, news) = &*self.shared;
        let mut held = lock(state);
        held.asked += 1;
        let mine = held.asked;
        news.notify_all();
        let is_open = |state: &mut State| state.answered < mine && !state.is_closed;
        let held = news.wait_timeout_while(held, PATIENCE, is_open).unwrap_or_else(PoisonError::into_inner).0;
        held.kept >= mine
    }

    /// Writes what waits, and ends.
    pub(crate) fn close(&self) {
        lock(&self.shared.0).is_closed = true;
        self.shared.1.notify_all();
        if let Some(thread) = lock(&self.thread).take() {
            let _ = thread.join(); // a panic there has been printed
        }
    }
}

impl Drop for Notes {
    fn drop(&mut self) {
        lock(&self.shared.0).is_closed = true;
        self.shared.1.notify_all();
    }
}
