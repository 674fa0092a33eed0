//! A disk that does what disks do: it fills up, takes half of a write, fails to write, fails to sync and then claims that all is well, loses
//! what was not synced when the power goes: of what was written over, any sectors, in any order. Names outlast a power cut only once their
//! folder was synced.
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use godwit_journal::disk::{Append, Disk, Overwrite, ReadAt};

/// What a power cut leaves whole, or takes.
const SECTOR: usize = 512;

#[derive(Clone, Debug, Default)]
pub(crate) struct SimulatedDisk {
    state: Arc<Mutex<State>>,
    camera: Arc<Mutex<Camera>>,
}

/// Takes the disk as it is right before one of the operations on it.
#[derive(Default)]
struct Camera {
    operations: u64,
    at: Option<u64>,
    look: Option<Box<dyn Fn() -> u64 + Send>>,
    taken: Option<(State, u64)>,
}

impl std::fmt::Debug for Camera {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Camera({})", self.operations)
    }
}

#[derive(Clone, Debug, Default)]
struct State {
    names: BTreeMap<PathBuf, usize>,
    kept_names: BTreeMap<PathBuf, usize>,
    files: Vec<Content>,
    folders: BTreeSet<PathBuf>,
    locks: BTreeSet<PathBuf>,
    boot: u64,
    faults: Faults,
    written: u64,
    /// Bytes that took the place of others.
    overwritten: u64,
    failed_syncs: u64,
    failed_opens: u64,
}

#[derive(Clone, Debug, Default)]
struct Content {
    bytes: Vec<u8>,
    /// What outlasts a power cut.
    synced: Vec<u8>,
    /// A sync has failed: what was there then is believed to be clean, and is never written.
    is_forgotten: bool,
}

fn throw(chance: &mut u64) -> u64 {
    *chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *chance
}

impl Content {
    /// A power cut: nothing of what was not synced is left, or a part of what was added and any sectors of what was written over.
    fn lose(&mut self, chance: &mut u64) {
        let (thrown, was) = (throw(chance), self.synced.len());
        let mut left = std::mem::take(&mut self.synced);
        if thrown >> 62 > 1 {
            let kept = (thrown >> 33) as usize % (self.bytes.len() - was + 1);
            left.extend_from_slice(&self.bytes[was..was + kept]);
        }
        if thrown >> 61 & 1 == 1 {
            // The length was kept, and not what was written there.
            left.resize(self.bytes.len(), 0);
        }
        if thrown >> 60 & 1 == 1 {
            for at in (0..was).step_by(SECTOR).filter(|_| throw(chance) >> 63 == 1) {
                let sector = at..was.min(at + SECTOR);
                left[sector.clone()].copy_from_slice(&self.bytes[sector]);
            }
        }
        self.bytes.clone_from(&left);
        (self.synced, self.is_forgotten) = (left, false);
    }
}

/// What a disk says that cannot write where it should.
const EIO: i32 = 5;

/// What is wrong with it at present.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    /// Bytes that may still be written before it is full.
    pub(crate) room: Option<u64>,
    /// Every sync of a file fails.
    pub(crate) fails_syncs: bool,
    /// Nothing can be made, renamed or removed, nor written.
    pub(crate) is_read_only: bool,
    /// What every opening of a file says.
    pub(crate) open_errno: Option<i32>,
    /// A write takes at most so many bytes.
    pub(crate) bytes_a_write: Option<usize>,
    /// Bytes that may still be written before every write is an input/output error.
    pub(crate) bytes_to_error: Option<u64>,
}

impl SimulatedDisk {
    pub(crate) fn set_faults(&self, faults: Faults) {
        self.state().faults = faults;
    }

    pub(crate) fn failed_syncs(&self) -> u64 {
        self.state().failed_syncs
    }

    pub(crate) fn failed_opens(&self) -> u64 {
        self.state().failed_opens
    }

    /// Bytes that were overwritten: the segment was preallocated.
    pub(crate) fn overwritten(&self) -> u64 {
        self.state().overwritten
    }

    /// The disk as the next process finds it when this one is killed now.
    pub(crate) fn kill(&self) -> Self {
        Self::of(self.state().clone())
    }

    fn of(mut state: State) -> Self {
        state.locks.clear();
        state.faults = Faults::default();
        Self { state: Arc::new(Mutex::new(state)), camera: Arc::default() }
    }

    /// Right before this operation on it (the first is 0) it is to be kept as it is then, with what `look` says.
    pub(crate) fn keep_at(&self, operation: u64, look: impl Fn() -> u64 + Send + 'static) {
        let mut camera = self.camera.lock().unwrap();
        camera.at = Some(operation);
        camera.look = Some(Box::new(look));
    }

    /// What was kept, as the next process finds it after a kill, and what was said then.
    pub(crate) fn kept(&self) -> Option<(Self, u64)> {
        self.camera.lock().unwrap().taken.take().map(|(state, seen)| (Self::of(state), seen))
    }

    pub(crate) fn operations(&self) -> u64 {
        self.camera.lock().unwrap().operations
    }

    /// An operation begins.
    fn count(&self) {
        let mut camera = self.camera.lock().unwrap();
        if camera.at == Some(camera.operations) {
            // Asked first: what is promised from now on may not be on the disk that is kept.
            let seen = camera.look.as_ref().map_or(0, |look| look());
            camera.taken = Some((self.state().clone(), seen));
        }
        camera.operations += 1;
    }

    /// The same after a power cut: of what was not synced a part is there or not, as `chance` has it.
    pub(crate) fn cut_power(&self, chance: u64) -> Self {
        let after = self.kill();
        {
            let mut state = after.state();
            state.boot += 1;
            state.names = state.kept_names.clone();
            let mut chance = chance | 1;
            for content in &mut state.files {
                content.lose(&mut chance);
            }
        }
        after
    }

    /// Changes one bit of a file; the place counts through it and begins again at its end.
    pub(crate) fn flip(&self, name: &Path, place: usize, bit: u8) {
        let mut state = self.state();
        let number = state.names[name];
        let bytes = &mut state.files[number].bytes;
        let place = place % bytes.len();
        bytes[place] ^= 1 << (bit % 8);
    }

    pub(crate) fn names(&self) -> Vec<PathBuf> {
        self.state().names.keys().cloned().collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn change_names<T>(&self, change: impl FnOnce(&mut State) -> io::Result<T>) -> io::Result<T> {
        self.count();
        let mut state = self.state();
        if state.faults.is_read_only {
            return Err(io::ErrorKind::ReadOnlyFilesystem.into());
        }
        change(&mut state)
    }

    fn file(&self, path: &Path) -> io::Result<File> {
        let mut state = self.state();
        if let Some(errno) = state.faults.open_errno {
            state.failed_opens += 1;
            return Err(io::Error::from_raw_os_error(errno));
        }
        drop(state);
        let number = *self.state().names.get(path).ok_or(io::ErrorKind::NotFound)?;
        Ok(File { disk: self.clone(), number })
    }
}

impl Disk for SimulatedDisk {
    fn create_folder(&self, folder: &Path) -> io::Result<()> {
        self.state().folders.insert(folder.to_owned());
        Ok(())
    }

    fn lock(&self, file: &Path) -> io::Result<Box<dyn Any + Send>> {
        if !self.state().locks.insert(file.to_owned()) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(Box::new(Lock { disk: self.clone(), file: file.to_owned() }))
    }

    fn boot(&self) -> Option<String> {
        Some(self.state().boot.to_string())
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<String>> {
        let state = self.state();
        let inside = state.names.keys().filter(|path| path.parent() == Some(folder));
        Ok(inside.filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned())).collect())
    }

    fn create(&self, file: &Path) -> io::Result<Box<dyn Append>> {
        let number = self.change_names(|state| {
            if state.names.contains_key(file) {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            state.files.push(Content::default());
            let number = state.files.len() - 1;
            state.names.insert(file.to_owned(), number);
            Ok(number)
        })?;
        Ok(Box::new(File { disk: self.clone(), number }))
    }

    fn open(&self, file: &Path) -> io::Result<Box<dyn ReadAt>> {
        Ok(Box::new(self.file(file)?))
    }

    fn open_over(&self, file: &Path) -> io::Result<Box<dyn Overwrite>> {
        Ok(Box::new(self.file(file)?))
    }

    fn free_bytes(&self, _: &Path) -> Option<u64> {
        self.state().faults.room
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.change_names(|state| {
            let number = state.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
            state.names.insert(to.to_owned(), number);
            Ok(())
        })
    }

    fn remove(&self, file: &Path) -> io::Result<()> {
        self.change_names(|state| {
            let number = state.names.remove(file).ok_or(io::ErrorKind::NotFound)?;
            let bytes = state.files[number].bytes.len() as u64;
            state.faults.room = state.faults.room.map(|room| room + bytes);
            Ok(())
        })
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.count();
        let mut state = self.state();
        if state.faults.fails_syncs {
            return Err(io::Error::other("input/output error"));
        }
        let is_outside = |path: &PathBuf| path.parent() != Some(folder);
        let inside: Vec<_> =
            state.names.iter().filter(|(path, _)| !is_outside(path)).map(|(p, n)| (p.clone(), *n)).collect();
        state.kept_names.retain(|path, _| is_outside(path));
        state.kept_names.extend(inside);
        Ok(())
    }
}

struct Lock {
    disk: SimulatedDisk,
    file: PathBuf,
}

impl Drop for Lock {
    fn drop(&mut self) {
        self.disk.state().locks.remove(&self.file);
    }
}

#[derive(Debug)]
struct File {
    disk: SimulatedDisk,
    number: usize,
}

impl File {
    /// A full disk takes what is written over what is there, and nothing behind it.
    fn put(&self, place: Option<u64>, bytes: &[u8]) -> io::Result<usize> {
        self.disk.count();
        let mut state = self.disk.state();
        if state.faults.is_read_only {
            return Err(io::ErrorKind::ReadOnlyFilesystem.into());
        }
        if state.faults.bytes_to_error == Some(0) {
            return Err(io::Error::from_raw_os_error(EIO));
        }
        let length = state.files[self.number].bytes.len();
        let place = place.map_or(length, |place| place as usize);
        let there = length.saturating_sub(place) as u64;
        let room = usize::try_from(state.faults.room.unwrap_or(u64::MAX).saturating_add(there)).unwrap_or(usize::MAX);
        let good = state.faults.bytes_to_error.map_or(usize::MAX, |bytes| bytes as usize);
        let count = bytes.len().min(room).min(good).min(state.faults.bytes_a_write.unwrap_or(usize::MAX));
        if count == 0 && !bytes.is_empty() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        if let Some(room) = &mut state.faults.room {
            *room -= (count as u64).saturating_sub(there);
        }
        if let Some(good) = &mut state.faults.bytes_to_error {
            *good -= count as u64;
        }
        state.written += count as u64;
        state.overwritten += (count as u64).min(there);
        let content = &mut state.files[self.number].bytes;
        content.resize(length.max(place + count), 0);
        content[place..place + count].copy_from_slice(&bytes[..count]);
        Ok(count)
    }

    fn sync_file(&self) -> io::Result<()> {
        self.disk.count();
        let mut state = self.disk.state();
        let fails = state.faults.fails_syncs;
        let content = &mut state.files[self.number];
        if fails {
            content.is_forgotten = true;
            state.failed_syncs += 1;
            return Err(io::Error::other("input/output error"));
        }
        if !content.is_forgotten {
            content.synced.clone_from(&content.bytes);
        }
        Ok(())
    }
}

impl Append for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.put(None, bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_file()
    }
}

impl Overwrite for File {
    fn write_at(&mut self, place: u64, bytes: &[u8]) -> io::Result<usize> {
        self.put(Some(place), bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_file()
    }
}

impl ReadAt for File {
    fn length(&self) -> io::Result<u64> {
        Ok(self.disk.state().files[self.number].bytes.len() as u64)
    }

    fn read_at(&self, place: u64, into: &mut [u8]) -> io::Result<usize> {
        let state = self.disk.state();
        let bytes = &state.files[self.number].bytes;
        let there = bytes.get(usize::try_from(place).unwrap_or(usize::MAX)..).unwrap_or(&[]);
        let count = there.len().min(into.len());
        into[..count].copy_from_slice(&there[..count]);
        Ok(count)
    }
}
