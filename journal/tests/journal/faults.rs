//! What a disk can do to a journal, one fault at a time: each is said, nothing acknowledged is lost, and what could not be kept is told.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::preallocate::{await_disk, preallocating, publish_into_preallocated};
use crate::world::disk::{Faults, SimulatedDisk};
use crate::world::{EVERYTHING, access_rows, content, message, quick, wait_until};
use godwit_core::codes::Code;
use godwit_core::command::Ack;
use godwit_core::journal::KeptMessage;
use godwit_core::message::{Batch, Draft, Kind};
use godwit_core::node::{Node, Outcome, Progress};
use godwit_core::position::Now;
use godwit_core::settings::{JournalSettings, Settings as NodeSettings};
use godwit_journal::{Journal, PageLimits, Past, Settings, Stream};

const EMFILE: i32 = 24;

fn open(disk: &SimulatedDisk, run: u64) -> (Journal, Past) {
    Journal::open(&quick(run), Arc::new(disk.clone()), || {}).unwrap()
}

fn publish(journal: &Journal, arrivals: std::ops::RangeInclusive<u64>) {
    let mut rows = arrivals.map(|arrival| message("/s", 1, arrival, arrival)).collect();
    journal.queue().push_messages(&mut rows, true);
}

fn await_synced(journal: &Journal, arrival: u64) {
    wait_until("the rows are on the disk", || journal.progress().synced_arrival() >= arrival);
}

fn load(journal: &Journal) -> Vec<KeptMessage> {
    let mut all = Vec::new();
    journal.reader().load(EVERYTHING, 2, &mut |messages| all.extend(messages)).unwrap();
    all
}

fn arrivals(journal: &Journal) -> Vec<u64> {
    load(journal).iter().map(|row| row.arrival).collect()
}

#[test]
fn rows_of_a_failed_sync_are_written_again_to_a_new_segment() {
    let disk = SimulatedDisk::default();
    let (journal, _) = open(&disk, 1);
    publish(&journal, 1..=10);
    await_synced(&journal, 10);
    disk.set_faults(Faults { fails_syncs: true, ..Faults::default() });
    publish(&journal, 11..=20);
    wait_until("the failure is said", || journal.progress().is_failing());
    assert!(journal.progress().reason().unwrap().contains("messages: input/output error"));
    assert_eq!(journal.progress().synced_arrival(), 10, "a failed sync promises nothing");
    let failed = disk.failed_syncs();
    wait_until("it is tried again", || disk.failed_syncs() > failed + 2);
    disk.set_faults(Faults::default());
    await_synced(&journal, 20);
    wait_until("the disk is well", || !journal.progress().is_failing());
    // Whatever the kernel says of the first file now, its rows are on the disk only by having been written anew.
    let after = disk.cut_power(0);
    drop(journal);
    let (journal, past) = open(&after, 2);
    assert_eq!(arrivals(&journal), (1..=20).collect::<Vec<_>>());
    assert_eq!(past.runs[0].missing, []);
}

#[test]
fn a_full_disk_is_said_and_its_rows_wait() {
    for room in [0, 1, 700, 3000, 9000] {
        let disk = SimulatedDisk::default();
        let (journal, _) = open(&disk, 1);
        publish(&journal, 1..=5);
        await_synced(&journal, 5);
        disk.set_faults(Faults { room: Some(room), ..Faults::default() });
        let mut last = 5;
        wait_until("the failure is said", || {
            last += 1;
            publish(&journal, last..=last);
            journal.progress().is_failing()
        });
        let synced = journal.progress().synced_arrival();
        let after = disk.cut_power(1);
        disk.set_faults(Faults::default());
        await_synced(&journal, last);
        assert_eq!(arrivals(&journal), (1..=last).collect::<Vec<_>>(), "room {room}");
        let (other, _) = open(&after, 2);
        assert!(arrivals(&other).len() as u64 >= synced, "room {room}");
    }
}

#[test]
fn what_could_not_be_sealed_leaves_nothing_on_a_disk_that_may_be_full() {
    let fails_syncs = Faults { fails_syncs: true, ..Faults::default() };
    let fails_writes = Faults { bytes_to_error: Some(100), ..Faults::default() };
    for faults in [fails_syncs, fails_writes] {
        let disk = SimulatedDisk::default();
        let (journal, _) = open(&disk, 1);
        publish(&journal, 1..=10);
        await_synced(&journal, 10);
        let disk = disk.kill();
        disk.set_faults(faults);
        let (journal, _) = open(&disk, 2);
        assert_eq!(disk.failed_syncs() > 0, faults.fails_syncs, "a start seals what the last run left");
        assert_eq!(arrivals(&journal), (1..=10).collect::<Vec<_>>());
        drop(journal); // it tries again, beside, as long as it lives
        assert_eq!(segments(&disk, ".arrow"), [] as [PathBuf; 0]);
        let is_half = |path: &PathBuf| path.to_string_lossy().ends_with(".new");
        assert_eq!(disk.names().into_iter().filter(is_half).collect::<Vec<_>>(), [] as [PathBuf; 0]);
    }
}

#[test]
fn what_finds_no_room_while_the_disk_fails_is_reported_as_missing() {
    let disk = SimulatedDisk::default();
    let small = Settings { messages_bytes_max: 20_000, ..quick(1) };
    let (journal, _) = Journal::open(&small, Arc::new(disk.clone()), || {}).unwrap();
    publish(&journal, 1..=5);
    await_synced(&journal, 5);
    disk.set_faults(Faults { is_read_only: true, ..Faults::default() });
    publish(&journal, 6..=6);
    wait_until("the failure is said", || journal.progress().is_failing());
    for arrival in 7..=1000 {
        publish(&journal, arrival..=arrival);
    }
    assert!(!journal.queue().holds_publishers(), "a disk that fails holds nobody");
    let lost = journal.progress().lost(Stream::Messages);
    // A row may still have found room that the writer had just made.
    assert!(lost > 0 && (7..=1000).contains(&journal.progress().lost_arrival()), "{lost}");
    assert!(journal.queue().bytes() < 50_000);
    disk.set_faults(Faults::default());
    wait_until("the disk is well", || !journal.progress().is_failing());
    publish(&journal, 1001..=1002);
    await_synced(&journal, 1002);
    let kept = arrivals(&journal);
    assert_eq!(kept.len() as u64, 1002 - lost);
    wait_until("all is written", || journal.queue().bytes() == 0);
    assert!(journal.close(1002));
    let (_, past) = open(&disk.cut_power(0), 2);
    let missing = &past.runs[0].missing;
    let is_reported = |arrival: u64| missing.iter().any(|(from, to)| (*from..=*to).contains(&arrival));
    assert!((1..=1002).all(|arrival| kept.contains(&arrival) || is_reported(arrival)), "{missing:?}");
    assert_eq!(past.runs[0].ended, Some(1002));
}

#[test]
fn rows_that_nobody_waits_for_are_dropped_and_counted_while_the_disk_fails() {
    let disk = SimulatedDisk::default();
    let small = Settings { rows_bytes_max: 10_000, ..quick(1) };
    let (journal, _) = Journal::open(&small, Arc::new(disk.clone()), || {}).unwrap();
    disk.set_faults(Faults { is_read_only: true, ..Faults::default() });
    wait_until("rows are dropped", || {
        journal.queue().push(access_rows(20));
        journal.progress().lost(Stream::Access) > 0
    });
    disk.set_faults(Faults::default());
    wait_until("the disk is well", || !journal.progress().is_failing());
    publish(&journal, 1..=1);
    await_synced(&journal, 1);
}

#[test]
fn a_journal_begins_on_a_disk_that_takes_nothing_and_says_so() {
    let full = Faults { room: Some(10), ..Faults::default() };
    let bad = Faults { bytes_to_error: Some(10), ..Faults::default() };
    for (faults, why) in [(full, "full"), (bad, "bad")] {
        let disk = SimulatedDisk::default();
        disk.set_faults(faults);
        let (journal, _) = open(&disk, 1);
        assert!(journal.progress().is_failing(), "{why}");
        publish(&journal, 1..=3);
        disk.set_faults(Faults::default());
        await_synced(&journal, 3);
        assert!(journal.close(3), "{why}");
        let (journal, past) = open(&disk, 2);
        assert_eq!(arrivals(&journal), [1, 2, 3], "{why}");
        assert_eq!(past.follows.map(|follows| (follows.run, follows.is_clean)), Some((1, true)), "{why}");
    }
}

/// A node whose rows this journal takes, as the engine has it.
struct Publisher<'a> {
    node: Node,
    journal: &'a Journal,
}

impl<'a> Publisher<'a> {
    fn new(journal: &'a Journal) -> Self {
        let journaling = Some(JournalSettings::default());
        let node = Node::new(&NodeSettings { run: 1, epoch: 1, journal: journaling, ..NodeSettings::default() });
        Self { node, journal }
    }

    fn hear(&mut self) -> Progress {
        let progress = self.journal.progress();
        let (synced, lost) = (progress.synced_arrival(), progress.lost_arrival());
        self.node.journaled(Progress { synced, lost, is_failing: progress.is_failing(), is_full: false });
        self.node.journal_progress().unwrap()
    }

    fn publish(&mut self, ack: Ack) -> Outcome {
        self.hear();
        let (mut batch, mut outcomes, mut rows) = (Batch::default(), Vec::new(), Vec::new());
        let mut draft = Draft::new(Kind::Text, b"text", "", godwit_core::holder::Holder::new("", "basic", "p"), 1);
        draft.ack = ack;
        batch.push("/s", draft);
        self.node.append(&mut batch, &mut outcomes, Now { mono_ms: 1, wall_ms: 1_795_250_000_000 });
        let is_urgent = self.node.take_rows(&mut rows);
        self.journal.queue().push_messages(&mut rows, is_urgent);
        outcomes[0]
    }

    /// Publishes what asks for the disk: the arrival that it has on it, none where that was not to be known, or why it is refused.
    fn ask_disk(&mut self) -> Result<Option<u64>, Code> {
        match self.publish(Ack::Disk) {
            Outcome::Refused(code) => Err(code),
            Outcome::Awaits { arrival, .. } => {
                wait_until("the promise is kept or broken", || self.hear().settles(arrival));
                Ok(Some(arrival).filter(|arrival| self.hear().holds(*arrival)))
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn promises_of_a_disk_that_has_errors_are_refused_none_that_was_kept_is_lost_and_it_goes_on_after_them() {
    for good in [0, 1, 700, 3000, 9000] {
        let disk = SimulatedDisk::default();
        let (journal, _) = open(&disk, 1);
        let mut publisher = Publisher::new(&journal);
        let mut kept: Vec<u64> = (1..=5).map(|_| publisher.ask_disk().unwrap().unwrap()).collect();
        disk.set_faults(Faults { bytes_to_error: Some(good), ..Faults::default() });
        let mut refused = None;
        wait_until("a promise is refused", || {
            match publisher.ask_disk() {
                Ok(arrival) => kept.extend(arrival),
                Err(code) => refused = Some(code),
            }
            refused.is_some()
        });
        assert_eq!(refused, Some(Code::DiskFailing), "{good} bytes");
        let reason = journal.progress().reason().unwrap();
        assert!(reason.starts_with("messages: ") && reason.contains("os error 5"), "{reason}");
        assert_eq!(journal.progress().synced_arrival(), *kept.last().unwrap(), "a failed write promises nothing");
        let head = publisher.node.arrival();
        for _ in 0..10 {
            assert!(matches!(publisher.publish(Ack::Cached), Outcome::Published { .. }), "the rest goes on");
            assert_eq!(publisher.ask_disk(), Err(Code::DiskFailing));
        }
        assert_eq!(publisher.node.arrival(), head + 10, "what is refused is not numbered");
        for chance in 0..10 {
            let (other, _) = open(&disk.cut_power(chance), 2);
            let found = arrivals(&other);
            assert!(kept.iter().all(|arrival| found.contains(arrival)), "{good} bytes: {kept:?}, and found {found:?}");
        }
        disk.set_faults(Faults::default());
        wait_until("the disk is well", || !journal.progress().is_failing());
        let last = publisher.ask_disk().unwrap().unwrap();
        assert_eq!(last, head + 11);
        assert_eq!((journal.progress().lost(Stream::Messages), journal.progress().reason()), (0, None));
        assert!(journal.close(last));
        let (journal, past) = open(&disk.cut_power(0), 2);
        assert_eq!(arrivals(&journal), (1..=last).collect::<Vec<_>>(), "{good} bytes");
        assert_eq!((&past.runs[0].missing[..], past.runs[0].ended), (&[][..], Some(last)));
    }
}

#[test]
fn a_journal_that_ends_while_the_disk_fails_counts_the_rows_that_are_not_on_it() {
    let disk = SimulatedDisk::default();
    let (journal, _) = open(&disk, 1);
    publish(&journal, 1..=5);
    await_synced(&journal, 5);
    disk.set_faults(Faults { is_read_only: true, ..Faults::default() });
    publish(&journal, 6..=8);
    let progress = journal.progress().clone();
    assert!(!journal.close(8));
    assert_eq!((progress.lost(Stream::Messages), progress.lost(Stream::Access)), (3, 0));
    let (journal, past) = open(&disk.cut_power(0), 2);
    assert_eq!(arrivals(&journal), [1, 2, 3, 4, 5]);
    assert!(!past.follows.unwrap().is_clean);
}

fn segments(disk: &SimulatedDisk, ending: &str) -> Vec<PathBuf> {
    let is_meant = |path: &PathBuf| path.starts_with("/journal/messages") && path.to_string_lossy().ends_with(ending);
    disk.names().into_iter().filter(is_meant).collect()
}

/// Flips bits all over a file, one at a time: every row that is served is what it was, and all but the bent batch's are.
fn flip_bits(disk: &SimulatedDisk, path: &Path, rows: u64, batch_rows: u64) {
    for number in 0..150usize {
        let bent = disk.kill();
        bent.flip(path, number * 7919, number as u8);
        let (journal, past) = open(&bent, 2);
        let served = load(&journal);
        for row in &served {
            assert_eq!(row.content(), content("/s", 1, row.arrival).as_bytes(), "flip {number}: a bent row was served");
            assert_eq!((row.sequence, &*row.subject, row.epoch), (row.arrival, "/s", 1), "flip {number}");
        }
        assert!(served.windows(2).all(|two| two[0].arrival < two[1].arrival), "flip {number}");
        let missing = rows - served.len() as u64;
        assert!(missing <= batch_rows, "flip {number}: {missing} rows went with one bit: {past:?}");
        assert!(missing == 0 || journal.progress().damaged() > 0 || !past.said.is_empty(), "flip {number}: not said");
    }
}

#[test]
fn a_flipped_bit_in_an_open_segment_is_found_and_never_served() {
    let disk = SimulatedDisk::default();
    let (journal, _) = open(&disk, 1);
    for arrival in 1..=40 {
        publish(&journal, arrival..=arrival);
        await_synced(&journal, arrival);
    }
    let [path] = &segments(&disk, ".arrows")[..] else { panic!("one segment is open") };
    let header_rows = 40; // a bent schema makes the file unreadable
    flip_bits(&disk, path, 40, header_rows);
}

#[test]
fn a_flipped_bit_in_a_segment_with_room_ahead_is_found_and_never_served() {
    let disk = SimulatedDisk::default();
    let (journal, _) = Journal::open(&preallocating(1), Arc::new(disk.clone()), || {}).unwrap();
    let mut rows = publish_into_preallocated(&journal, &disk, 0);
    for _ in 0..20 {
        rows += 1;
        await_disk(&journal, rows);
    }
    let path = segments(&disk, ".arrows").pop().unwrap();
    flip_bits(&disk, &path, rows, rows);
}

#[test]
fn a_flipped_bit_in_a_sealed_segment_is_found_and_never_served() {
    let disk = SimulatedDisk::default();
    let (journal, _) = open(&disk, 1);
    publish(&journal, 1..=200);
    assert!(journal.close(200));
    let [path] = &segments(&disk, ".arrow")[..] else { panic!("one segment is sealed") };
    flip_bits(&disk, path, 200, 200);
}

#[test]
fn damage_that_is_read_again_is_counted_once() {
    let disk = SimulatedDisk::default();
    let (journal, _) = open(&disk, 1);
    publish(&journal, 1..=200);
    assert!(journal.close(200));
    let [path] = &segments(&disk, ".arrow")[..] else { panic!("one segment is sealed") };
    let bent = disk.kill();
    bent.flip(path, 20_000, 1);
    let (journal, _) = open(&bent, 2);
    let read =
        || journal.reader().read_matching(0, PageLimits { messages: 1000, bytes: 1 << 20 }, &mut |_| true).unwrap();
    let (rows, damaged) = (read().messages.len() as u64, journal.progress().damaged());
    assert!(damaged > 0 && rows + damaged == 200, "{rows} rows, {damaged} damaged");
    read();
    assert_eq!(journal.progress().damaged(), damaged);
}

#[test]
fn what_cannot_be_sealed_is_said_until_it_is() {
    let disk = SimulatedDisk::default();
    let notified = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&notified);
    let notify = move || {
        counted.fetch_add(1, Ordering::SeqCst);
    };
    let small = Settings { segment_bytes_max: 2_000, ..quick(1) };
    let (journal, _) = Journal::open(&small, Arc::new(disk.clone()), notify).unwrap();
    disk.set_faults(Faults { open_errno: Some(EMFILE), ..Faults::default() });
    publish(&journal, 1..=20);
    wait_until("it is said", || journal.progress().sealing_reason().is_some());
    let reason = journal.progress().sealing_reason().unwrap();
    assert!(reason.contains("a segment of messages cannot be sealed"), "{reason}");
    let before = notified.load(Ordering::SeqCst);
    disk.set_faults(Faults::default());
    wait_until("it is sealed", || journal.progress().sealing_reason().is_none());
    wait_until("somebody is notified", || notified.load(Ordering::SeqCst) > before);
    assert!(journal.close(20));
}
