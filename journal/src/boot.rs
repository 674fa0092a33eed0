//! Whether the machine has run on since the last run of the node: then what was written is there, synced or not, and only a power
//! cut could have taken it. Owns one small file. A run whose disk failed forgets it: the disk may have dropped what it had taken.
use std::path::Path;

use crate::beside::seal::remove_if_there;
use crate::disk::{Disk, read_range, write_all};

const NAME: &str = "boot";
const FRESH: &str = "boot.new";
const BYTES_MAX: usize = 256;

pub(crate) fn is_same(disk: &dyn Disk, directory: &Path) -> bool {
    let known = disk.open(&directory.join(NAME)).and_then(|file| read_range(&*file, 0, BYTES_MAX));
    known.is_ok_and(|known| disk.boot().is_some_and(|boot| boot.as_bytes() == known))
}

/// Without the file nothing is taken for granted, so that a failure here costs some offsets and nothing else.
pub(crate) fn remember(disk: &dyn Disk, directory: &Path) {
    forget(disk, directory);
    let _ = try_remember(disk, directory); // as said above
}

fn try_remember(disk: &dyn Disk, directory: &Path) -> std::io::Result<()> {
    let Some(boot) = disk.boot() else { return Ok(()) };
    let fresh = directory.join(FRESH);
    remove_if_there(disk, &fresh)?;
    let mut file = disk.create(&fresh)?;
    write_all(&mut *file, boot.as_bytes())?;
    file.sync()?;
    disk.rename(&fresh, &directory.join(NAME))
}

pub(crate) fn forget(disk: &dyn Disk, directory: &Path) {
    let _ = disk.remove(&directory.join(NAME)); // a disk that refuses even this takes no rows either
}
