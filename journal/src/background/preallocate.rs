//! Preallocated segments: a file of zeros that is synced before rows overwrite it. A sync of overwritten bytes changes neither the file's
//! length nor its blocks, and takes half the time. Owns the thread that writes the zeros, the size of the file, and its removal when the
//! disk is full. A preallocated file only saves time: errors here are never reported as failures.
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::background::spawn;
use crate::disk::{Disk, remove_if_there, write_all};

/// In the stream's folder. A start removes files with this suffix.
const NAME: &str = "preallocated.new";
const BYTES_MIN: u64 = 1 << 20;
/// The next file is this many times as large as the part of the last one that was used.
const GROWTH: u64 = 4;
/// Zeros that are written and synced at once: more would delay the syncs that publishers wait for.
const STEP_BYTES: u64 = 256 << 10;
/// The pause between two steps, as a multiple of what the first took.
const REST: u32 = 1;
/// Nothing is preallocated unless the disk has this many times its size free.
const FREE_TIMES: u64 = 4;
/// How long nothing is preallocated after a write failed.
const PAUSE: Duration = Duration::from_secs(10);
/// How long `give_up` waits for the step that is being written: it takes milliseconds, unless the disk hangs.
const PATIENCE: Duration = Duration::from_secs(1);

/// A file of zeros, to be renamed to what it becomes.
#[derive(Debug)]
pub(crate) struct Spare {
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
}

/// The preallocated file of one stream, and its thread.
#[derive(Debug)]
pub(crate) struct Preallocator {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    state: Mutex<State>,
    news: Condvar,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// There is no file, and none is made before this moment.
    None(Option<Instant>),
    Asked(u64),
    /// The thread is writing it.
    Making,
    /// The thread is writing it, but it was given up: the thread removes it.
    Unwanted,
    Ready(u64),
    Closed,
}

impl Preallocator {
    pub(crate) fn begin(disk: &Arc<dyn Disk>, folder: &Path) -> io::Result<Self> {
        let state = Mutex::new(State::None(None));
        let shared =
            Arc::new(Shared { disk: Arc::clone(disk), folder: folder.to_owned(), state, news: Condvar::new() });
        let thread = {
            let shared = Arc::clone(&shared);
            spawn("preallocate", move || shared.run())?
        };
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Preallocates the next segment unless that is done or under way. The last segment used `used` bytes; none uses more than `bytes_max`.
    pub(crate) fn ask(&self, used: u64, bytes_max: u64) {
        let mut state = self.shared.state();
        if let State::None(pause) = *state
            && pause.is_none_or(|until| until <= Instant::now())
        {
            *state = State::Asked((used * GROWTH).max(BYTES_MIN).min(bytes_max));
            self.shared.news.notify_all();
        }
    }

    pub(crate) fn is_ready(&self) -> bool {
        matches!(*self.shared.state(), State::Ready(_))
    }

    pub(crate) fn take(&self) -> Option<Spare> {
        let mut state = self.shared.state();
        let State::Ready(bytes) = *state else { return None };
        *state = State::None(None);
        Some(Spare { path: self.shared.path(), bytes })
    }

    /// Removes the preallocated file, because the disk is full. True if there was one and its space is free now.
    pub(crate) fn give_up(&self) -> bool {
        let mut state = self.shared.state();
        match *state {
            State::Making | State::Unwanted => {
                *state = State::Unwanted; // the thread that writes it removes it
                self.shared.news.notify_all();
                let waited = self.shared.news.wait_timeout_while(state, PATIENCE, |state| *state == State::Unwanted);
                return !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out();
            }
            State::Closed => return false,
            State::None(_) | State::Asked(_) | State::Ready(_) => {}
        }
        let had_some = matches!(*state, State::Ready(_));
        if had_some {
            self.shared.remove();
        }
        *state = State::None(Some(Instant::now() + PAUSE));
        had_some
    }
}

impl Drop for Preallocator {
    fn drop(&mut self) {
        *self.shared.state() = State::Closed;
        self.shared.news.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // a panic there has been printed; the next start removes what it left
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn path(&self) -> PathBuf {
        self.folder.join(NAME)
    }

    fn remove(&self) {
        let _ = remove_if_there(&*self.disk, &self.path()); // else the next start does
    }

    fn run(&self) {
        loop {
            let waited = self.news.wait_while(self.state(), |state| !matches!(state, State::Asked(_) | State::Closed));
            let mut state = waited.unwrap_or_else(PoisonError::into_inner);
            let State::Asked(bytes) = *state else { break };
            *state = State::Making;
            drop(state);
            let is_made = self.make(bytes).unwrap_or(false);
            let mut state = self.state();
            if is_made && *state == State::Making {
                *state = State::Ready(bytes);
                continue;
            }
            self.remove();
            if *state != State::Closed {
                *state = State::None(Some(Instant::now() + PAUSE));
                self.news.notify_all();
            }
        }
        self.remove();
    }

    /// True when the whole file was written and synced.
    fn make(&self, bytes: u64) -> io::Result<bool> {
        self.remove();
        let mut file = self.disk.create(&self.path())?;
        let zeros = vec![0; usize::try_from(STEP_BYTES.min(bytes)).unwrap_or(0)];
        let mut done = 0;
        while done < bytes {
            let free = self.disk.free_bytes(&self.folder);
            if free.is_some_and(|free| free / FREE_TIMES < bytes) || *self.state() != State::Making {
                return Ok(false);
            }
            let began = Instant::now();
            let step = (bytes - done).min(STEP_BYTES);
            write_all(&mut *file, zeros.get(..usize::try_from(step).unwrap_or(0)).unwrap_or(&zeros))?;
            file.sync()?;
            done += step;
            if done < bytes {
                let rest = began.elapsed() * REST;
                let waited = self.news.wait_timeout_while(self.state(), rest, |state| *state == State::Making);
                drop(waited); // what became of it is looked at above
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::RealDisk;

    #[test]
    fn what_is_being_made_is_gone_once_it_is_given_up() {
        let folder = std::env::temp_dir().join(format!("godwit-preallocate-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let disk: Arc<dyn Disk> = Arc::new(RealDisk);
        let preallocator = Preallocator::begin(&disk, &folder).unwrap();
        assert!(!preallocator.give_up(), "there is none");
        *preallocator.shared.state() = State::None(None); // as if the pause was over
        preallocator.ask(1 << 23, 1 << 23);
        let deadline = Instant::now() + Duration::from_secs(20);
        while !folder.join(NAME).exists() {
            assert!(Instant::now() < deadline, "nothing is made");
            std::thread::yield_now();
        }
        assert!(preallocator.give_up());
        assert!(!folder.join(NAME).exists());
        assert!(matches!(*preallocator.shared.state(), State::None(Some(_))));
        drop(preallocator);
        std::fs::remove_dir(&folder).unwrap();
    }
}
