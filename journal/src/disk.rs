//! The one seam to the disk, so that a test can put one there that is full, lies or dies. Owns no format.
mod real;

use std::any::Any;
use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};

pub use real::RealDisk;
use rustix::io::Errno;

/// What a journal asks of a disk. Every method may fail.
pub trait Disk: Debug + Send + Sync {
    /// Makes a folder and those above it; one that exists is well.
    fn create_folder(&self, folder: &Path) -> io::Result<()>;

    /// Holds the lock of a file until the answer is dropped; `WouldBlock` when somebody else does.
    fn lock(&self, file: &Path) -> io::Result<Box<dyn Any + Send>>;

    /// A name of the time since the machine was started; none where it has none.
    fn boot(&self) -> Option<String>;

    /// The names of the files in a folder, in no order.
    fn list(&self, folder: &Path) -> io::Result<Vec<String>>;

    /// A new file, to be written from its beginning; it must not exist.
    fn create(&self, file: &Path) -> io::Result<Box<dyn Append>>;

    fn open(&self, file: &Path) -> io::Result<Box<dyn ReadAt>>;

    /// An existing file, to be written over.
    fn open_over(&self, file: &Path) -> io::Result<Box<dyn Overwrite>>;

    /// How much the folder's disk still takes; none where it does not tell.
    fn free_bytes(&self, folder: &Path) -> Option<u64>;

    /// Puts a file in the place of another, at once.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    fn remove(&self, file: &Path) -> io::Result<()>;

    /// Makes sure that the folder's names outlast a power cut.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;
}

/// Whether an error says nothing about the file: the process or the machine has no descriptors or no memory now.
pub(crate) fn is_temporary(error: &io::Error) -> bool {
    let is_named = matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM));
    is_named || error.kind() == io::ErrorKind::OutOfMemory
}

/// A file that grows.
pub trait Append: Debug + Send {
    /// How many of the bytes it took; perhaps not all.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Makes sure that what was written outlasts a power cut. After it has failed once, nothing is known of what was written
    /// since it last succeeded, whatever it says later.
    fn sync(&mut self) -> io::Result<()>;
}

/// A file that is written over anywhere; it grows where that is behind its end.
pub trait Overwrite: Debug + Send {
    /// How many of the bytes it took; perhaps not all.
    fn write_at(&mut self, place: u64, bytes: &[u8]) -> io::Result<usize>;

    /// As of a file that grows. What was written since the last time gets to the disk in any order, sector by sector.
    fn sync(&mut self) -> io::Result<()>;
}

/// A file that is read anywhere.
pub trait ReadAt: Debug + Send + Sync {
    fn length(&self) -> io::Result<u64>;

    /// How many bytes were there at this place, at most as many as fit.
    fn read_at(&self, place: u64, into: &mut [u8]) -> io::Result<usize>;
}

/// Writes all of it, however often that takes.
pub fn write_all(file: &mut dyn Append, bytes: &[u8]) -> io::Result<()> {
    write_whole(bytes, &mut |_, rest| file.write(rest))
}

/// The same from a place on.
pub fn write_all_at(file: &mut dyn Overwrite, place: u64, bytes: &[u8]) -> io::Result<()> {
    write_whole(bytes, &mut |done, rest| file.write_at(place + done, rest))
}

fn write_whole(bytes: &[u8], write: &mut dyn FnMut(u64, &[u8]) -> io::Result<usize>) -> io::Result<()> {
    let mut done = 0;
    while let Some(rest) = bytes.get(done..).filter(|rest| !rest.is_empty()) {
        match write(done as u64, rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(taken) => done += taken,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// What a file is called while it is made. A start removes what ends like this.
pub(crate) fn background(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    name.into()
}

pub(crate) fn remove_if_there(disk: &dyn Disk, path: &Path) -> io::Result<()> {
    match disk.remove(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Puts a small file in its place, whole and on the disk; who wants its name to outlast a power cut syncs the folder. Where that fails,
/// nothing of it is left on a disk that may be full.
pub(crate) fn put(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let fresh = background(path);
    remove_if_there(disk, &fresh)?;
    let mut file = disk.create(&fresh)?;
    let written = write_all(&mut *file, bytes).and_then(|()| file.sync()).and_then(|()| disk.rename(&fresh, path));
    if written.is_err() {
        let _ = disk.remove(&fresh); // else the next try does
    }
    written
}

/// Reads as much as there is of a range.
pub fn read_range(file: &dyn ReadAt, place: u64, bytes: usize) -> io::Result<Vec<u8>> {
    let there = usize::try_from(file.length()?.saturating_sub(place)).unwrap_or(usize::MAX);
    let mut into = vec![0; bytes.min(there)];
    let mut filled = 0;
    while let Some(rest) = into.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read_at(place + filled as u64, rest) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    into.truncate(filled);
    Ok(into)
}
