//! A life of the journal that ends at any of its operations on the disk, by a kill or a power cut that loses what was not synced: what was promised
//! by then comes back, nothing twice, and no offset is given twice. `CUTS=5000` takes so many moments.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::world::disk::{Faults, SimulatedDisk};
use crate::world::{EVERYTHING, content, message, quick, wait_until};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_ipc::reader::StreamReader;
use godwit_core::journal::KeptMessage;
use godwit_journal::disk::{Disk, read_range};
use godwit_journal::{Journal, Settings, check as check_files};

const CUTS: u64 = 200;
const ROWS: u64 = 60;

/// Segments of some twenty rows.
fn settings(run: u64) -> Settings {
    Settings { segment_bytes_max: 6_000, ..quick(run) }
}

fn open(disk: &SimulatedDisk, run: u64) -> Journal {
    Journal::open(&settings(run), Arc::new(disk.clone()), || {}).unwrap().0
}

fn load(journal: &Journal) -> Vec<KeptMessage> {
    let mut rows = Vec::new();
    journal.reader().load(EVERYTHING, 1, &mut |messages| rows.extend(messages)).unwrap();
    rows
}

/// Rows in groups of one to seven, each waited for, over several segments, and an end in order. Every other group asks for the disk, so that
/// its segment is preallocated.
fn live(disk: &SimulatedDisk, run: u64, first: u64, promised: &Arc<AtomicU64>) {
    let journal = open(disk, run);
    let (mut next, last) = (first, first + ROWS);
    while next < last {
        let group = next..last.min(next + 1 + next % 7);
        next = group.end;
        let needs_disk = next.is_multiple_of(2);
        let mut rows: Vec<_> = group.map(|arrival| message("/s", run, arrival, arrival)).collect();
        rows.iter_mut().for_each(|row| row.needs_disk = needs_disk);
        journal.queue().push_messages(&mut rows, true);
        wait_until("the group is on the disk", || {
            let synced = journal.progress().synced_arrival();
            promised.fetch_max(synced, Ordering::SeqCst);
            synced + 1 >= next
        });
    }
    journal.close(next - 1);
}

/// What a reader from outside sees of open segments at any moment: never half a batch of what overwrites preallocated zeros, and `check` finds no damage.
fn look_from_outside(disk: &SimulatedDisk, what: &str) -> u64 {
    let mut seen = 0;
    for name in disk.names().iter().filter(|name| name.starts_with("/journal/messages")) {
        if name.extension().is_none_or(|ending| ending != "arrows") {
            continue;
        }
        let bytes = read_range(&*disk.open(name).unwrap(), 0, usize::MAX).unwrap();
        let Ok(stream) = StreamReader::try_new(&bytes[..], None) else { continue };
        for batch in stream.map_while(Result::ok) {
            let number = |name: &str, row| batch[name].as_primitive::<Int64Type>().value(row) as u64;
            let contents = batch["content"].as_binary::<i32>();
            for row in 0..batch.num_rows() {
                let expected = content("/s", number("epoch", row), number("sequence", row));
                assert_eq!(contents.value(row), expected.as_bytes(), "{what}");
                seen += 1;
            }
        }
    }
    for checked in check_files(disk, Path::new("/journal")).unwrap() {
        assert!(checked.is_whole(), "{what}: {checked:?}");
    }
    seen
}

/// Every row that came back, against what was promised and what was ever seen at an offset.
fn check(rows: &[KeptMessage], promised: u64, seen: &mut BTreeMap<u64, (u64, u64)>, what: &str) -> u64 {
    let mut last_offset = None;
    for (number, row) in (1..).zip(rows) {
        assert_eq!(row.arrival, number, "{what}: rows come in order, each once");
        assert_eq!(row.content(), content("/s", row.epoch, row.sequence).as_bytes(), "{what}");
        assert!(last_offset < Some(row.offset), "{what}: offsets rise");
        last_offset = Some(row.offset);
        let known = *seen.entry(row.offset).or_insert((row.epoch, row.arrival));
        assert_eq!(known, (row.epoch, row.arrival), "{what}: offset {} was given twice", row.offset);
    }
    assert!(rows.len() as u64 >= promised, "{what}: {promised} rows were promised, {} came back", rows.len());
    rows.len() as u64
}

#[test]
fn a_life_may_end_at_any_operation_on_the_disk() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let mut chance = number("TEST_SEED").unwrap_or_else(|| RandomState::new().hash_one(0));
    println!("TEST_SEED={chance}");
    let whole = SimulatedDisk::default();
    live(&whole, 1, 1, &Arc::default());
    let operations = whole.operations();
    assert!(operations > 80, "a life has many operations: {operations}");
    let (mut lost_something, mut overwritten, mut seen_outside) = (0, 0, 0);
    for cut in 0..number("CUTS").unwrap_or(CUTS) {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (at, disk, promised) = ((chance >> 33) % operations, SimulatedDisk::default(), Arc::new(AtomicU64::new(0)));
        let what = format!("cut {cut}, before operation {at}");
        let look = Arc::clone(&promised);
        disk.keep_at(at, move || look.load(Ordering::SeqCst));
        // Half of them end amid a write.
        disk.set_faults(Faults { bytes_a_write: (cut % 2 == 1).then_some(1_024), ..Faults::default() });
        live(&disk, 1, 1, &promised);
        overwritten += disk.overwritten();
        let Some((kept, promised)) = disk.kept() else { continue };
        seen_outside += look_from_outside(&kept, &what);
        let after = if chance.is_multiple_of(3) { kept } else { kept.cut_power(chance) };
        let mut seen = BTreeMap::new();
        let (journal, past) = Journal::open(&settings(2), Arc::new(after.clone()), || {}).unwrap();
        assert_eq!(journal.progress().damaged(), 0, "{what}: what was never whole is not damaged: {:?}", past.said);
        let rows = load(&journal);
        let held = check(&rows, promised, &mut seen, &what);
        lost_something += u64::from(held < ROWS);
        drop(journal);
        // It goes on: another life on top of what is left, ended by another cut, loses nothing of either.
        live(&after, 3, held + 1, &Arc::default());
        let journal = open(&after.cut_power(chance ^ 1), 4);
        let rows = load(&journal);
        let last = check(&rows, held + ROWS, &mut seen, &what);
        assert_eq!(last, held + ROWS, "{what}");
    }
    assert!(seen_outside > 0, "a reader from outside saw nothing at all");
    assert!(overwritten > 0, "no run wrote to a preallocated segment");
    assert!(lost_something > 0, "no cut took anything: the disk does not lie");
}
