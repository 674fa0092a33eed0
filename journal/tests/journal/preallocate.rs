//! Segments that overwrite zeros made ahead of them: they are read like others, whatever a power cut leaves of them, and what is made ahead takes
//! no disk from anybody who needs it.

use godwit_core::holder::Holder;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::world::disk::{Faults, SimulatedDisk};
use crate::world::{EVERYTHING, Folder, access_rows, message, quick, settings, wait_until};
use arrow_ipc::reader::StreamReader;
use godwit_journal::disk::{Disk, RealDisk, read_range};
use godwit_journal::{Journal, Settings, check};

const SPARE: &str = "/journal/messages/preallocated.new";

/// Longer than any test takes on a busy machine: nothing here may be synced by time.
const HOUR_MS: u64 = 3_600_000;

/// Settings that preallocate some hundred rows, and sync only on request.
pub(crate) fn preallocating(run: u64) -> Settings {
    Settings { segment_bytes_max: 200_000, sync_interval_ms: HOUR_MS, segment_age_ms_max: HOUR_MS, ..quick(run) }
}

/// A message that asks for the disk, and has it.
pub(crate) fn await_disk(journal: &Journal, arrival: u64) {
    let mut row = message("/s", 1, arrival, arrival);
    row.needs_disk = true;
    journal.queue().push_messages(&mut vec![row], false);
    wait_until("the row is on the disk", || journal.progress().synced_arrival() >= arrival);
}

/// Publishes behind `last` until rows overwrite preallocated zeros; returns the last arrival.
pub(crate) fn publish_into_preallocated(journal: &Journal, disk: &SimulatedDisk, mut last: u64) -> u64 {
    let before = disk.overwritten();
    wait_until("rows overwrite zeros", || {
        last += 1;
        await_disk(journal, last);
        disk.overwritten() > before
    });
    last
}

/// Publishes until the open segment has overwritten most of its zeros and the next is preallocated, then lets the disk be full; returns
/// the last arrival.
fn fill_up_to_preallocated(journal: &Journal, disk: &SimulatedDisk) -> u64 {
    let mut last = publish_into_preallocated(journal, disk, 0);
    let (mut segment, mut before_it) = (PathBuf::new(), last);
    wait_until("these rows and the next segment are preallocated", || {
        let before = disk.overwritten();
        last += 1;
        await_disk(journal, last);
        let names = disk.names();
        if segment != newest_open(&names) {
            (segment, before_it) = (newest_open(&names).to_owned(), last);
        }
        let is_in_preallocated = disk.overwritten() > before + 8; // past its zeros only the end mark is overwritten
        let made = disk.open(Path::new(SPARE)).and_then(|file| file.length());
        is_in_preallocated
            && last - before_it < 20
            && made.is_ok_and(|bytes| bytes == preallocating(1).segment_bytes_max)
    });
    disk.set_faults(Faults { room: Some(0), ..Faults::default() });
    last
}

fn open(disk: &SimulatedDisk, run: u64) -> Journal {
    Journal::open(&preallocating(run), Arc::new(disk.clone()), || {}).unwrap().0
}

fn arrivals(journal: &Journal) -> Vec<u64> {
    let mut all = Vec::new();
    journal.reader().load(EVERYTHING, 2, &mut |rows| all.extend(rows.iter().map(|row| row.arrival))).unwrap();
    all
}

fn newest_open(names: &[PathBuf]) -> &Path {
    let is_open =
        |path: &&PathBuf| path.starts_with("/journal/messages") && path.to_string_lossy().ends_with(".arrows");
    names.iter().rfind(is_open).unwrap()
}

#[test]
fn a_preallocated_open_segment_is_a_stream_that_ends_with_its_rows() {
    let disk = SimulatedDisk::default();
    let journal = open(&disk, 1);
    let last = publish_into_preallocated(&journal, &disk, 0);
    let names = disk.names();
    let file = disk.open(newest_open(&names)).unwrap();
    let bytes = read_range(&*file, 0, usize::MAX).unwrap();
    assert!(bytes.ends_with(&[0; 4096]), "zeros follow the rows");
    let stream = StreamReader::try_new(&bytes[..], None).unwrap();
    assert!(stream.map(|batch| batch.unwrap().num_rows() as u64).sum::<u64>() > 0);
    let checked = check(&disk, Path::new("/journal")).unwrap();
    let open_file = checked.iter().rfind(|of| of.stream.name() == "messages").unwrap();
    assert!(open_file.file.ends_with(".arrows") && open_file.next == last, "{open_file:?}");
    assert_eq!((open_file.damaged, open_file.torn_bytes), (0, 0));
    assert!(open_file.bytes < bytes.len() as u64 / 2, "zeros are not counted: {open_file:?}");
    let (journal, past) = Journal::open(&preallocating(2), Arc::new(disk.kill()), || {}).unwrap();
    assert!(past.said.is_empty(), "{past:?}");
    assert_eq!(arrivals(&journal), (1..=last).collect::<Vec<_>>());
}

#[test]
fn whatever_sectors_a_power_cut_takes_of_the_last_rows_those_before_stand_and_no_hole_is_left() {
    let disk = SimulatedDisk::default();
    let journal = open(&disk, 1);
    let synced = publish_into_preallocated(&journal, &disk, 0);
    let mut last = synced;
    for rows in [1, 30, 5] {
        let mut group = (last + 1..=last + rows).map(|arrival| message("/s", 1, arrival, arrival)).collect();
        last += rows;
        journal.queue().push_messages(&mut group, true);
        wait_until("they are written", || journal.progress().journaled_arrival() == last);
        let torn = cut_power_often(&disk, synced);
        assert!(torn > 20, "{rows} rows: {torn} of 200 cuts tore them");
    }
}

/// Two hundred power cuts, each of which leaves what was synced, nothing missing and nothing damaged; how many tore something.
fn cut_power_often(disk: &SimulatedDisk, synced: u64) -> u64 {
    let mut torn = 0;
    for chance in 0..200_u64 {
        let cut = disk.cut_power(chance.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let (next, past) = Journal::open(&preallocating(2), Arc::new(cut), || {}).unwrap();
        let came_back = arrivals(&next);
        assert_eq!(came_back, (1..=came_back.len() as u64).collect::<Vec<_>>(), "cut {chance}");
        assert!(came_back.len() as u64 >= synced, "cut {chance}: what was on the disk is gone");
        let damaged = next.progress().damaged();
        assert_eq!(damaged, 0, "cut {chance}: what never was on the disk is not damaged: {past:?}");
        torn += u64::from(!past.said.is_empty());
    }
    torn
}

#[test]
fn rows_past_the_zeros_wait_for_the_last_that_overwrote_them() {
    let disk = SimulatedDisk::default();
    let larger = Settings { segment_bytes_max: 4 << 20, ..preallocating(1) };
    let (journal, _) = Journal::open(&larger, Arc::new(disk.clone()), || {}).unwrap();
    let synced = publish_into_preallocated(&journal, &disk, 0);
    disk.set_faults(Faults { room: Some(3 << 20), ..Faults::default() }); // too little to preallocate more
    let mut last = synced;
    wait_until("rows are past the zeros", || {
        let before = disk.overwritten();
        last += 1;
        let mut row = message("/s", 1, last, last);
        row.holder = Holder::new("", "basic", &"p".repeat(20_000));
        journal.queue().push_messages(&mut vec![row], true);
        wait_until("they are written", || journal.progress().journaled_arrival() == last);
        disk.overwritten() == before + 8 // the mark alone, behind which the rest was there already
    });
    assert!(cut_power_often(&disk, synced) > 20);
}

#[test]
fn damage_in_the_zeros_loses_no_row() {
    let disk = SimulatedDisk::default();
    let journal = open(&disk, 1);
    let last = publish_into_preallocated(&journal, &disk, 0);
    let names = disk.names();
    let bytes = disk.open(newest_open(&names)).unwrap().length().unwrap();
    for place in [4096, 1000, 8, 1] {
        let bent = disk.kill();
        bent.flip(newest_open(&names), (bytes - place) as usize, 3);
        let (journal, past) = Journal::open(&preallocating(2), Arc::new(bent), || {}).unwrap();
        assert_eq!(arrivals(&journal), (1..=last).collect::<Vec<_>>());
        assert!(past.said.iter().any(|said| said.contains("torn tail")), "{past:?}");
    }
}

#[test]
fn a_full_disk_takes_what_fits_and_nothing_is_preallocated() {
    let disk = SimulatedDisk::default();
    let journal = open(&disk, 1);
    let mut last = fill_up_to_preallocated(&journal, &disk);
    for _ in 0..50 {
        last += 1;
        await_disk(&journal, last);
    }
    assert!(!journal.progress().is_failing(), "they overwrite what is theirs");
    // Another stream needs what is free: what was made ahead goes, and nobody is told of a failure.
    journal.queue().push(access_rows(200));
    wait_until("the preallocated file is given up", || {
        journal.queue().flush();
        assert!(!journal.progress().is_failing());
        !disk.names().contains(&PathBuf::from(SPARE))
    });
    wait_until("that was used too", || {
        journal.queue().push(access_rows(200));
        journal.queue().flush();
        journal.progress().is_failing()
    });
    assert!(!disk.names().contains(&PathBuf::from(SPARE)));
    disk.set_faults(Faults::default());
    wait_until("the disk is well", || !journal.progress().is_failing());
    await_disk(&journal, last + 1);
    assert_eq!(arrivals(&journal), (1..=last + 1).collect::<Vec<_>>());
}

#[test]
fn a_run_ends_in_order_on_a_disk_that_only_what_was_made_ahead_fills() {
    let disk = SimulatedDisk::default();
    let journal = open(&disk, 1);
    let last = fill_up_to_preallocated(&journal, &disk);
    journal.queue().push(access_rows(200));
    assert!(journal.close(last), "the last rows have the space of the preallocated file");
    assert!(!disk.names().contains(&PathBuf::from(SPARE)));
}

#[test]
fn a_disk_with_little_to_spare_is_left_alone() {
    let disk = SimulatedDisk::default();
    disk.set_faults(Faults { room: Some(700_000), ..Faults::default() });
    let journal = open(&disk, 1);
    for arrival in 1..=60 {
        await_disk(&journal, arrival);
        assert!(!disk.names().contains(&PathBuf::from(SPARE)) || disk.overwritten() == 0);
    }
    assert_eq!(disk.overwritten(), 0, "segments grow as they did");
    assert!(!journal.progress().is_failing());
}

#[test]
fn a_real_disk_gets_preallocated_files_and_they_are_removed_with_the_journal() {
    let folder = Folder::new();
    let (journal, _) = Journal::open(&settings(&folder, 1), Arc::new(RealDisk), || {}).unwrap();
    let messages = folder.path().join("journal/messages");
    let mut last = 0;
    let is_preallocated = || {
        let files = RealDisk.list(&messages).unwrap();
        let open = files.iter().filter(|name| name.ends_with(".arrows"));
        open.map(|name| messages.join(name).metadata().map_or(0, |file| file.len())).any(|bytes| bytes == 1 << 20)
    };
    wait_until("a segment is preallocated", || {
        last += 1;
        await_disk(&journal, last);
        is_preallocated()
    });
    let mut rows = 0;
    for name in RealDisk.list(&messages).unwrap().iter().filter(|name| name.ends_with(".arrows")) {
        let Ok(file) = std::fs::File::open(messages.join(name)) else { continue };
        rows += StreamReader::try_new(file, None).unwrap().map(|batch| batch.unwrap().num_rows() as u64).sum::<u64>();
    }
    assert!(rows > 0 && rows <= last);
    assert!(journal.close(last));
    let left = RealDisk.list(&messages).unwrap();
    assert!(left.iter().all(|name| !name.ends_with(".new") && !name.ends_with(".arrows")), "{left:?}");
}
