//! Whether the machine has run on since the last run of the node: then what was written is there, synced or not, and only a power
//! cut could have taken it. Owns one small file. A run whose disk failed forgets it: the disk may have dropped what it had taken.
use std::path::Path;

use crate::disk::{Disk, put, read_range};

const NAME: &str = "boot";
const BYTES_MAX: usize = 256;

pub(crate) fn is_same(disk: &dyn Disk, directory: &Path) -> bool {
    let known = disk.open(&directory.join(NAME)).and_then(|file| read_range(&*file, 0, BYTES_MAX));
    known.is_ok_and(|known| disk.boot().is_some_and(|boot| boot.as_bytes() == known))
}

/// Without the file nothing is taken for granted, so that a failure here costs some offsets and nothing else.
pub(crate) fn remember(disk: &dyn Disk, directory: &Path) {
    forget(disk, directory);
    if let Some(boot) = disk.boot() {
        let _ = put(disk, &directory.join(NAME), boot.as_bytes()); // as said above
    }
}

pub(crate) fn forget(disk: &dyn Disk, directory: &Path) {
    let _ = disk.remove(&directory.join(NAME)); // a disk that refuses even this takes no rows either
}
