//! Lines on a disk that does some of what it is asked for.
use super::LinesFile;
use godwit_journal::disk::{Append, Disk, Overwrite, ReadAt, RealDisk};
use std::any::Any;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn the_end_of_what_has_no_line_is_nothing_to_write() {
    let path = std::env::temp_dir().join(format!("godwit-lines-ends-{}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    let mut file = LinesFile::new(Arc::new(RealDisk), &path.join("notes"), 4);
    file.append([("a", Some("1"))].into_iter(), &mut |_| true).unwrap();
    assert!(file.may_have("a") && !file.may_have("b"));
    file.append([("a", None), ("b", None)].into_iter(), &mut |_| true).unwrap();
    assert!(!file.may_have("a") && !file.may_have("b"));
    std::fs::remove_dir_all(path).unwrap();
}

/// A real disk that does not make sure of a folder's names, for so many times.
#[derive(Debug)]
struct Forgetful {
    disk: RealDisk,
    failures: AtomicUsize,
}

impl Disk for Forgetful {
    fn create_folder(&self, folder: &Path) -> io::Result<()> {
        self.disk.create_folder(folder)
    }

    fn lock(&self, file: &Path) -> io::Result<Box<dyn Any + Send>> {
        self.disk.lock(file)
    }

    fn boot(&self) -> Option<String> {
        self.disk.boot()
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<String>> {
        self.disk.list(folder)
    }

    fn create(&self, file: &Path) -> io::Result<Box<dyn Append>> {
        self.disk.create(file)
    }

    fn open(&self, file: &Path) -> io::Result<Box<dyn ReadAt>> {
        self.disk.open(file)
    }

    fn open_over(&self, file: &Path) -> io::Result<Box<dyn Overwrite>> {
        self.disk.open_over(file)
    }

    fn free_bytes(&self, folder: &Path) -> Option<u64> {
        self.disk.free_bytes(folder)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove(&self, file: &Path) -> io::Result<()> {
        self.disk.remove(file)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        let take = |left: usize| left.checked_sub(1);
        if self.failures.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
            return Err(io::ErrorKind::Other.into());
        }
        self.disk.sync_folder(folder)
    }
}

#[test]
fn no_line_is_appended_to_a_file_whose_place_is_not_sure() {
    let path = std::env::temp_dir().join(format!("godwit-lines-{}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    let disk = Arc::new(Forgetful { disk: RealDisk, failures: AtomicUsize::new(2) });
    let mut file = LinesFile::new(Arc::clone(&disk) as Arc<dyn Disk>, &path.join("notes"), 4);
    let found = file.find().unwrap();
    file.begin(found, |_, _| true).unwrap();
    let mut append = |text: &str| file.append([("a", Some(text))].into_iter(), &mut |_| true);
    assert!(append("1").is_err(), "the folder may not have the file");
    append("2").unwrap();
    assert_eq!(disk.failures.load(Ordering::Relaxed), 0, "it was made sure of again before");
    let mut texts = Vec::new();
    let found = file.find().unwrap();
    file.begin(found, |_, text| {
        texts.push(text.to_owned());
        true
    })
    .unwrap();
    assert_eq!(texts, ["2"]);
    std::fs::remove_dir_all(path).unwrap();
}
