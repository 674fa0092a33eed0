//! The disk of this machine.
use std::any::Any;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::Path;

use super::{Append, Disk, Overwrite, ReadAt};

/// Files as the operating system has them.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn create_folder(&self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)
    }

    fn lock(&self, file: &Path) -> io::Result<Box<dyn Any + Send>> {
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(file)?;
        match file.try_lock() {
            Ok(()) => Ok(Box::new(file)),
            Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn boot(&self) -> Option<String> {
        fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<String>> {
        fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    }

    fn create(&self, file: &Path) -> io::Result<Box<dyn Append>> {
        Ok(Box::new(OpenOptions::new().append(true).create_new(true).open(file)?))
    }

    fn open(&self, file: &Path) -> io::Result<Box<dyn ReadAt>> {
        Ok(Box::new(File::open(file)?))
    }

    fn open_over(&self, file: &Path) -> io::Result<Box<dyn Overwrite>> {
        Ok(Box::new(OpenOptions::new().write(true).open(file)?))
    }

    fn free_bytes(&self, folder: &Path) -> Option<u64> {
        let stat = rustix::fs::statvfs(folder).ok()?;
        stat.f_bavail.checked_mul(stat.f_frsize)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, file: &Path) -> io::Result<()> {
        fs::remove_file(file)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        File::open(folder)?.sync_all()
    }
}

impl Append for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Write::write(self, bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

impl Overwrite for File {
    fn write_at(&mut self, place: u64, bytes: &[u8]) -> io::Result<usize> {
        std::os::unix::fs::FileExt::write_at(self, bytes, place)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

impl ReadAt for File {
    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, place: u64, into: &mut [u8]) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(self, into, place)
    }
}
