//! Reading and sealing while something else happens: a segment is sealed or written again meanwhile, a file cannot be read, the manifest
//! is damaged.
use std::any::Any;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use crate::world::disk::{Faults, SimulatedDisk};
use crate::world::{Folder, message, quick, settings, wait_until};
use godwit_journal::disk::{Append, Disk, Overwrite, ReadAt, RealDisk};
use godwit_journal::{Journal, PageLimits, Retention, Stream};

#[derive(Debug, Default)]
struct Late {
    disk: RealDisk,
    is_armed: AtomicBool,
    of: Mutex<Option<ThreadId>>,
}

impl Disk for Late {
    fn create_folder(&self, f: &Path) -> io::Result<()> {
        self.disk.create_folder(f)
    }
    fn lock(&self, f: &Path) -> io::Result<Box<dyn Any + Send>> {
        self.disk.lock(f)
    }
    fn boot(&self) -> Option<String> {
        self.disk.boot()
    }
    fn list(&self, f: &Path) -> io::Result<Vec<String>> {
        self.disk.list(f)
    }
    fn create(&self, f: &Path) -> io::Result<Box<dyn Append>> {
        self.disk.create(f)
    }
    fn open(&self, f: &Path) -> io::Result<Box<dyn ReadAt>> {
        let mine = *self.of.lock().unwrap() == Some(std::thread::current().id());
        if mine && f.extension().is_some_and(|e| e == "arrows") && self.is_armed.swap(false, Ordering::SeqCst) {
            let end = Instant::now() + Duration::from_secs(30);
            while f.exists() && Instant::now() < end {
                std::thread::sleep(Duration::from_millis(5));
            }
            assert!(!f.exists(), "was not sealed");
        }
        self.disk.open(f)
    }
    fn open_over(&self, f: &Path) -> io::Result<Box<dyn Overwrite>> {
        self.disk.open_over(f)
    }
    fn free_bytes(&self, f: &Path) -> Option<u64> {
        self.disk.free_bytes(f)
    }
    fn rename(&self, a: &Path, b: &Path) -> io::Result<()> {
        self.disk.rename(a, b)
    }
    fn remove(&self, f: &Path) -> io::Result<()> {
        self.disk.remove(f)
    }
    fn sync_folder(&self, f: &Path) -> io::Result<()> {
        self.disk.sync_folder(f)
    }
}

const LIMITS: PageLimits = PageLimits { messages: 1_000, bytes: 1 << 20 };

#[test]
fn a_segment_that_is_sealed_while_a_page_is_read_is_in_the_page_or_in_the_next() {
    let folder = Folder::new();
    let disk = Arc::new(Late::default());
    let mut settings = settings(&folder, 1);
    settings.segment_age_ms_max = 400;
    let (journal, _) = Journal::open(&settings, Arc::clone(&disk) as Arc<dyn Disk>, || {}).unwrap();
    for arrival in 1..=5 {
        journal.queue().push_messages(&mut vec![message("/a", 1, arrival, arrival)], true);
    }
    wait_until("written", || journal.progress().journaled_arrival() == 5);
    *disk.of.lock().unwrap() = Some(std::thread::current().id());
    disk.is_armed.store(true, Ordering::SeqCst);
    let page = journal.reader().read_matching(0, LIMITS, &mut |_| true).unwrap();
    assert_eq!((page.messages.len(), page.is_last, page.is_behind), (5, true, false));
}

#[test]
fn rows_that_are_written_again_are_not_said_to_be_read() {
    let disk = SimulatedDisk::default();
    let mut settings = quick(1);
    settings.sync_interval_ms = 3_600_000;
    let (journal, _) = Journal::open(&settings, Arc::new(disk.clone()), || {}).unwrap();
    for arrival in 1..=5 {
        journal.queue().push_messages(&mut vec![message("/a", 1, arrival, arrival)], true);
    }
    wait_until("written", || journal.progress().journaled_arrival() == 5);
    let page = journal.reader().read_matching(0, LIMITS, &mut |_| true).unwrap();
    assert_eq!(page.messages.len(), 5);
    disk.set_faults(Faults { fails_syncs: true, ..Faults::default() });
    journal.queue().flush();
    wait_until("failing", || journal.progress().is_failing());
    let page = journal.reader().read_matching(0, LIMITS, &mut |_| true).unwrap();
    assert_eq!((page.messages.len(), page.is_behind), (0, true));
    disk.set_faults(Faults::default());
    journal.queue().flush();
    wait_until("written again", || {
        let page = journal.reader().read_matching(0, LIMITS, &mut |_| true).unwrap();
        (page.messages.len(), page.is_last, page.is_behind) == (5, true, false)
    });
}

#[test]
fn a_manifest_that_is_made_anew_does_not_claim_what_was_let_go() {
    for is_damaged in [false, true] {
        let folder = Folder::new();
        let mut arrival = 0;
        for run in 1..=3 {
            let (journal, _) = Journal::open(&settings(&folder, run), Arc::new(RealDisk), || {}).unwrap();
            for sequence in 1..=100 {
                arrival += 1;
                journal.queue().push_messages(&mut vec![message("/a", run, sequence, arrival)], false);
            }
            assert!(journal.close(arrival));
        }
        let (journal, _) = Journal::open(&settings(&folder, 4), Arc::new(RealDisk), || {}).unwrap();
        assert!(journal.reader().find_later(50).unwrap().is_whole);
        let mut bound = settings(&folder, 4);
        bound.retention.insert("messages".into(), Retention { age_ms_max: 0, bytes_max: 20_000 });
        journal.set_retention(&bound);
        wait_until("let go", || journal.reader().first(Stream::Messages) > 0);
        assert!(!journal.reader().find_later(50).unwrap().is_whole);
        assert!(journal.close(arrival));
        if is_damaged {
            std::fs::write(folder.path().join("journal/messages/manifest.json"), "{").unwrap();
        }
        let (journal, _) = Journal::open(&settings(&folder, 5), Arc::new(RealDisk), || {}).unwrap();
        let found = journal.reader().find_later(50).unwrap();
        assert!(!found.is_whole, "damaged: {is_damaged}");
    }
}

#[derive(Debug)]
struct BadSector {
    disk: RealDisk,
    bad: Mutex<Option<PathBuf>>,
}
#[derive(Debug)]
struct BadFile(Box<dyn ReadAt>);
impl ReadAt for BadFile {
    fn length(&self) -> io::Result<u64> {
        self.0.length()
    }
    fn read_at(&self, _: u64, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::from_raw_os_error(5))
    }
}
impl Disk for BadSector {
    fn create_folder(&self, f: &Path) -> io::Result<()> {
        self.disk.create_folder(f)
    }
    fn lock(&self, f: &Path) -> io::Result<Box<dyn Any + Send>> {
        self.disk.lock(f)
    }
    fn boot(&self) -> Option<String> {
        self.disk.boot()
    }
    fn list(&self, f: &Path) -> io::Result<Vec<String>> {
        self.disk.list(f)
    }
    fn create(&self, f: &Path) -> io::Result<Box<dyn Append>> {
        self.disk.create(f)
    }
    fn open(&self, f: &Path) -> io::Result<Box<dyn ReadAt>> {
        let is_messages =
            f.parent().is_some_and(|p| p.ends_with("messages")) && f.extension().is_some_and(|e| e == "arrows");
        let file = self.disk.open(f)?;
        if !is_messages {
            return Ok(file);
        }
        let mut bad = self.bad.lock().unwrap();
        if bad.get_or_insert_with(|| f.to_owned()) == f { Ok(Box::new(BadFile(file))) } else { Ok(file) }
    }
    fn open_over(&self, f: &Path) -> io::Result<Box<dyn Overwrite>> {
        self.disk.open_over(f)
    }
    fn free_bytes(&self, f: &Path) -> Option<u64> {
        self.disk.free_bytes(f)
    }
    fn rename(&self, a: &Path, b: &Path) -> io::Result<()> {
        self.disk.rename(a, b)
    }
    fn remove(&self, f: &Path) -> io::Result<()> {
        self.disk.remove(f)
    }
    fn sync_folder(&self, f: &Path) -> io::Result<()> {
        self.disk.sync_folder(f)
    }
}

#[test]
fn one_file_that_cannot_be_read_does_not_end_sealing() {
    let folder = Folder::new();
    let disk = Arc::new(BadSector { disk: RealDisk, bad: Mutex::default() });
    let mut settings = settings(&folder, 1);
    settings.segment_bytes_max = 1;
    let (journal, _) = Journal::open(&settings, Arc::clone(&disk) as Arc<dyn Disk>, || {}).unwrap();
    for arrival in 1..=8 {
        journal.queue().push_messages(&mut vec![message("/a", 1, arrival, arrival)], true);
        wait_until("written", || journal.progress().journaled_arrival() == arrival);
    }
    let names = |ending: &str| {
        std::fs::read_dir(folder.path().join("journal/messages"))
            .unwrap()
            .filter(|e| e.as_ref().unwrap().path().extension().is_some_and(|x| x == ending))
            .count()
    };
    wait_until("all others are sealed", || names("arrow") > 5 && names("arrows") <= 2);
}
