//! How long rows stay where: an open segment that is old is sealed, sealed ones past a bound go, oldest first, and nothing that is within it
//! goes with them; whenever that ends, no offset is given twice.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::world::disk::SimulatedDisk;
use crate::world::{EVERYTHING, access_rows, message_at, quick, wait_until};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_ipc::reader::FileReader;
use godwit_journal::disk::{Disk, read_range};
use godwit_journal::{FileName, Journal, Manifest, Retention, Settings, Stream};

const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 60 * MINUTE_MS;
/// Rows that make a segment large enough to be sealed.
const LARGE: u64 = 40;

/// Large segments are sealed, and kept as long as these bounds say.
fn bounded(run: u64, bounds: &[(Stream, Retention)]) -> Settings {
    let retention = bounds.iter().map(|(stream, bounds)| (stream.name().to_owned(), *bounds)).collect();
    Settings { segment_bytes_max: 6_000, retention, ..quick(run) }
}

fn age(age_ms_max: u64) -> Retention {
    Retention { age_ms_max, ..Retention::default() }
}

fn bytes(bytes_max: u64) -> Retention {
    Retention { bytes_max, ..Retention::default() }
}

fn open(disk: &SimulatedDisk, run: u64) -> Journal {
    Journal::open(&bounded(run, &[]), Arc::new(disk.clone()), || {}).unwrap().0
}

/// The bounds hold at once, and not only when it is time to look.
fn bound(journal: &Journal, bounds: &[(Stream, Retention)]) {
    journal.set_retention(&bounded(0, bounds));
}

/// Messages, each so old, that are written together. Every offset is one less than the arrival.
fn publish(journal: &Journal, arrivals: RangeInclusive<u64>, age_ms: impl Fn(u64) -> u64) {
    let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
    let last = *arrivals.end();
    let mut rows = arrivals.map(|at| message_at("/s", 1, at, at, now_ms - age_ms(at))).collect();
    journal.queue().push_messages(&mut rows, true);
    wait_until("the rows are on the disk", || journal.progress().synced_arrival() >= last);
}

/// One sealed segment of messages for each of these ages.
fn publish_sealed(journal: &Journal, disk: &SimulatedDisk, ages_ms: &[u64]) {
    for (number, age_ms) in (0..).zip(ages_ms) {
        publish(journal, number * LARGE + 1..=(number + 1) * LARGE, |_| *age_ms);
        await_sealed(disk, Stream::Messages, number * LARGE, (number + 1) * LARGE);
    }
}

fn folder(stream: Stream) -> PathBuf {
    Path::new("/journal").join(stream.name())
}

fn await_sealed(disk: &SimulatedDisk, stream: Stream, first: u64, next: u64) {
    let (sealed, open) = (FileName::Sealed { first, next }, FileName::Open { first });
    let has = |name: FileName| disk.names().contains(&folder(stream).join(name.text()));
    wait_until("the segment is sealed", || has(sealed) && !has(open));
}

/// The segments' files of a stream.
fn files(disk: &SimulatedDisk, stream: Stream) -> Vec<FileName> {
    let names = disk.list(&folder(stream)).unwrap();
    let mut files: Vec<_> = names.iter().filter_map(|name| FileName::parse(name)).collect();
    files.sort();
    files
}

fn sealed(disk: &SimulatedDisk, stream: Stream) -> Vec<(u64, u64)> {
    let span = |name| if let FileName::Sealed { first, next } = name { Some((first, next)) } else { None };
    files(disk, stream).into_iter().filter_map(span).collect()
}

fn manifest(disk: &SimulatedDisk, stream: Stream) -> Manifest {
    let file = disk.open(&folder(stream).join("manifest.json")).unwrap();
    serde_json::from_slice(&read_range(&*file, 0, usize::MAX).unwrap()).unwrap()
}

/// Where the stream's manifest says that it begins and what it says is sealed; these are the files, too.
fn listed(disk: &SimulatedDisk, stream: Stream) -> (u64, Vec<(u64, u64)>) {
    let listed = manifest(disk, stream);
    let spans: Vec<_> = listed.segments.iter().map(|sealed| (sealed.first, sealed.next)).collect();
    assert_eq!(spans, sealed(disk, stream), "{stream:?}");
    (listed.first, spans)
}

fn load(journal: &Journal) -> Vec<(u64, u64)> {
    let mut rows = Vec::new();
    journal
        .reader()
        .load(EVERYTHING, 1, &mut |kept| rows.extend(kept.iter().map(|row| (row.offset, row.arrival))))
        .unwrap();
    rows
}

fn offset_and_arrival(arrivals: RangeInclusive<u64>) -> Vec<(u64, u64)> {
    arrivals.map(|arrival| (arrival - 1, arrival)).collect()
}

#[test]
fn sealed_segments_whose_newest_row_is_too_old_go_oldest_first_and_an_open_one_stays() {
    let disk = SimulatedDisk::default();
    let journal = open(&disk, 1);
    journal.queue().push(access_rows(LARGE as usize)); // of 1970
    await_sealed(&disk, Stream::Access, 0, LARGE);
    publish_sealed(&journal, &disk, &[3 * HOUR_MS, 2 * HOUR_MS]);
    publish(&journal, 81..=120, |arrival| if arrival == 100 { 10 * MINUTE_MS } else { 3 * HOUR_MS });
    publish(&journal, 121..=160, |_| 3 * HOUR_MS); // behind one that stays
    publish(&journal, 161..=161, |_| 5 * HOUR_MS); // in the open segment
    await_sealed(&disk, Stream::Messages, 120, 160);
    bound(&journal, &[(Stream::Messages, age(HOUR_MS))]);
    let stay = [
        FileName::Sealed { first: 80, next: 120 },
        FileName::Sealed { first: 120, next: 160 },
        FileName::Open { first: 160 },
        FileName::Index { first: 80, next: 120 },
        FileName::Index { first: 120, next: 160 },
    ];
    wait_until("two are gone, with their indexes", || files(&disk, Stream::Messages) == stay);
    assert_eq!(journal.reader().span(Stream::Messages), (80, 161));
    assert_eq!(load(&journal), offset_and_arrival(81..=161));
    drop(journal);
    assert_eq!(files(&disk, Stream::Messages), stay);
    assert_eq!(listed(&disk, Stream::Messages), (80, vec![(80, 120), (120, 160)]));
    assert_eq!(listed(&disk, Stream::Access), (0, vec![(0, LARGE)]));
}

#[test]
fn sealed_segments_past_their_bytes_go_oldest_first_until_the_rest_is_within_them() {
    let disk = SimulatedDisk::default();
    let journal = open(&disk, 1);
    publish_sealed(&journal, &disk, &[0; 4]);
    publish(&journal, 161..=161, |_| 0);
    let sizes: Vec<u64> = manifest(&disk, Stream::Messages).segments.iter().map(|sealed| sealed.bytes).collect();
    let length = |(first, next)| disk.open(&folder(Stream::Messages).join(FileName::Sealed { first, next }.text()));
    let lengths = sealed(&disk, Stream::Messages).into_iter().map(|span| length(span).unwrap().length().unwrap());
    assert_eq!(sizes, lengths.collect::<Vec<_>>());
    // Exactly as much as is allowed stays; one byte more does not.
    let both = sizes[2] + sizes[3];
    for (bytes_max, first) in [(both, 80), (both - 1, 120), (1, 160)] {
        bound(&journal, &[(Stream::Messages, bytes(bytes_max))]);
        wait_until("they are gone", || journal.reader().first(Stream::Messages) >= first);
        assert_eq!(load(&journal), offset_and_arrival(first + 1..=161), "at most {bytes_max} bytes");
    }
    drop(journal);
    assert_eq!(listed(&disk, Stream::Messages), (160, vec![]));
    assert_eq!(files(&disk, Stream::Messages), [FileName::Open { first: 160 }]);
}

#[test]
fn bounds_that_change_hold_from_then_on_for_their_stream_alone() {
    let disk = SimulatedDisk::default();
    let journal = open(&disk, 1);
    journal.queue().push(access_rows(LARGE as usize));
    await_sealed(&disk, Stream::Access, 0, LARGE);
    publish_sealed(&journal, &disk, &[4 * HOUR_MS, 3 * HOUR_MS, 2 * HOUR_MS]);
    let begins = |first: u64| wait_until("what is too old is gone", || sealed(&disk, Stream::Messages)[0].0 == first);
    bound(&journal, &[(Stream::Messages, age(HOUR_MS * 7 / 2))]);
    begins(40);
    bound(&journal, &[(Stream::Messages, age(5 * HOUR_MS))]);
    bound(&journal, &[(Stream::Access, age(HOUR_MS))]);
    wait_until("the other stream's is gone", || files(&disk, Stream::Access).is_empty());
    assert_eq!(sealed(&disk, Stream::Messages), [(40, 80), (80, 120)], "a wider bound, or none, lets nothing go");
    bound(&journal, &[(Stream::Messages, Retention { age_ms_max: HOUR_MS * 5 / 2, bytes_max: 1 << 30 })]);
    begins(80);
    drop(journal);
    assert_eq!(listed(&disk, Stream::Messages), (80, vec![(80, 120)]));
    assert_eq!(listed(&disk, Stream::Access), (LARGE, vec![]));
}

#[test]
fn a_stream_that_has_no_bound_is_kept_for_ever() {
    let disk = SimulatedDisk::default();
    let journal = open(&disk, 1);
    journal.queue().push(access_rows(LARGE as usize)); // of 1970
    await_sealed(&disk, Stream::Access, 0, LARGE);
    publish_sealed(&journal, &disk, &[30 * 365 * 24 * HOUR_MS; 2]);
    // Not named, and named without a bound.
    let others = [(Stream::Access, Retention::default()), (Stream::Stats, bytes(1)), (Stream::Latency, age(1))];
    bound(&journal, &others);
    drop(journal); // the bounds were looked at by then
    assert_eq!(listed(&disk, Stream::Messages), (0, vec![(0, 40), (40, 80)]));
    assert_eq!(listed(&disk, Stream::Access), (0, vec![(0, LARGE)]));
    let journal = open(&disk, 2);
    assert_eq!(load(&journal), offset_and_arrival(1..=80));
    bound(&journal, &[(Stream::Access, age(1)), (Stream::Messages, age(1))]);
    drop(journal);
    assert_eq!(listed(&disk, Stream::Messages), (80, vec![]), "nothing but the bound had kept them");
    assert_eq!(listed(&disk, Stream::Access), (LARGE, vec![]));
}

#[test]
fn a_journal_of_which_nothing_was_kept_goes_on_behind_what_it_had() {
    for how in ["closed", "killed", "cut off"] {
        let disk = SimulatedDisk::default();
        let journal = open(&disk, 1);
        publish_sealed(&journal, &disk, &[0; 2]);
        bound(&journal, &[(Stream::Messages, bytes(1))]);
        wait_until("all are gone", || files(&disk, Stream::Messages).is_empty());
        let after = match how {
            "killed" => disk.kill(),
            "cut off" => disk.cut_power(1),
            _ => {
                assert!(journal.close(2 * LARGE));
                disk.clone()
            }
        };
        let journal = open(&after, 2);
        assert_eq!((journal.reader().span(Stream::Messages), load(&journal)), ((80, 80), vec![]), "{how}");
        publish(&journal, 81..=82, |_| 0);
        assert_eq!(load(&journal), offset_and_arrival(81..=82), "{how}");
        assert!(journal.close(82));
        let journal = open(&after, 3);
        assert_eq!(load(&journal), offset_and_arrival(81..=82), "{how}");
        assert_eq!(listed(&after, Stream::Messages), (80, vec![(80, 82)]), "{how}");
    }
}

#[test]
fn letting_segments_go_may_end_at_any_operation_on_the_disk() {
    let before = SimulatedDisk::default();
    let journal = open(&before, 1);
    publish_sealed(&journal, &before, &[3 * HOUR_MS, 3 * HOUR_MS, 0]);
    publish(&journal, 121..=125, |_| 0);
    assert!(journal.close(125));
    let retain = |disk: &SimulatedDisk| {
        let journal = open(disk, 2);
        bound(&journal, &[(Stream::Messages, age(HOUR_MS))]);
        drop(journal);
        assert_eq!(listed(disk, Stream::Messages), (80, vec![(80, 120), (120, 125)]));
    };
    let whole = before.kill();
    retain(&whole);
    let mut begins = std::collections::BTreeSet::new();
    for at in 0..whole.operations() {
        for chance in [None, Some(at), Some(at ^ 0xf00d)] {
            let what = format!("before operation {at}, {chance:?}");
            let disk = before.kill();
            disk.keep_at(at, || 0);
            retain(&disk);
            let Some((kept, _)) = disk.kept() else { continue };
            let after = chance.map_or_else(|| kept.kill(), |chance| kept.cut_power(chance));
            let (journal, past) = Journal::open(&bounded(3, &[]), Arc::new(after.clone()), || {}).unwrap();
            let rows = load(&journal);
            let first = rows[0].1;
            assert!([1, 41, 81].contains(&first), "{what}: segments go whole, the oldest first: {first}");
            begins.insert(first);
            assert_eq!(rows, offset_and_arrival(first..=125), "{what}: {:?}", past.said);
            assert_eq!(journal.reader().first(Stream::Messages) + 1, first, "{what}");
            assert_eq!(
                (journal.reader().missing(Stream::Messages), journal.progress().damaged()),
                (vec![], 0),
                "{what}"
            );
            publish(&journal, 126..=126, |_| 0);
            assert_eq!(load(&journal).last(), Some(&(125, 126)), "{what}");
            bound(&journal, &[(Stream::Messages, age(HOUR_MS))]);
            drop(journal);
            assert_eq!(listed(&after, Stream::Messages).0, 80, "{what}: what came back goes again");
        }
    }
    assert!(begins.contains(&1) && begins.contains(&81), "no end was before it and one after it: {begins:?}");
}

/// The arrivals in a sealed file, as others read it.
fn read_sealed(disk: &SimulatedDisk, first: u64, next: u64) -> Vec<i64> {
    let file = disk.open(&folder(Stream::Messages).join(FileName::Sealed { first, next }.text())).unwrap();
    let bytes = read_range(&*file, 0, usize::MAX).unwrap();
    let batches = FileReader::try_new(std::io::Cursor::new(bytes), None).unwrap();
    let arrivals = |batch: arrow_array::RecordBatch| batch["arrival"].as_primitive::<Int64Type>().values().to_vec();
    batches.flat_map(|batch| arrivals(batch.unwrap())).collect()
}

#[test]
fn a_segment_that_is_old_enough_is_sealed_though_nothing_comes_and_the_next_begins_behind_it() {
    let disk = SimulatedDisk::default();
    let aging = Settings { segment_age_ms_max: 100, ..quick(1) };
    let (journal, _) = Journal::open(&aging, Arc::new(disk.clone()), || {}).unwrap();
    for (first, next) in [(0, 10), (10, 11), (11, 14)] {
        publish(&journal, first + 1..=next, |_| 0);
        await_sealed(&disk, Stream::Messages, first, next);
        assert_eq!(read_sealed(&disk, first, next), (first as i64 + 1..=next as i64).collect::<Vec<_>>());
        assert_eq!(load(&journal), offset_and_arrival(1..=next), "while it is open");
    }
    journal.queue().push(access_rows(3));
    await_sealed(&disk, Stream::Access, 0, 3);
    let spans = vec![(0, 10), (10, 11), (11, 14)];
    assert_eq!(listed(&disk, Stream::Messages), (0, spans.clone()), "nothing is sealed that has no rows");
    assert!(journal.close(14));
    assert_eq!(listed(&disk, Stream::Messages), (0, spans));
}

#[test]
fn a_segment_that_is_neither_large_nor_old_stays_open() {
    let disk = SimulatedDisk::default();
    let aging = Settings { segment_age_ms_max: 24 * HOUR_MS, ..quick(1) };
    let (journal, _) = Journal::open(&aging, Arc::new(disk.clone()), || {}).unwrap();
    for arrival in 1..=20 {
        publish(&journal, arrival..=arrival, |_| 5 * HOUR_MS);
    }
    drop(journal); // whatever was to be sealed is
    assert_eq!(files(&disk, Stream::Messages), [FileName::Open { first: 0 }]);
}

#[test]
fn a_time_that_is_yet_to_come_keeps_no_segment_longer_than_the_next() {
    let disk = SimulatedDisk::default();
    let journal = open(&disk, 1);
    let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
    let ahead = now_ms + 1000 * HOUR_MS;
    for (number, time_ms) in [ahead, now_ms - 4 * HOUR_MS, ahead, ahead, now_ms, ahead].into_iter().enumerate() {
        let first = number as u64 * LARGE;
        let mut rows = (first + 1..=first + LARGE).map(|at| message_at("/s", 1, at, at, time_ms)).collect();
        journal.queue().push_messages(&mut rows, true);
        await_sealed(&disk, Stream::Messages, first, first + LARGE);
    }
    bound(&journal, &[(Stream::Messages, age(HOUR_MS))]);
    wait_until("what is too old is gone", || sealed(&disk, Stream::Messages)[0].0 == 2 * LARGE);
    drop(journal);
    assert_eq!(listed(&disk, Stream::Messages).1.len(), 4, "nothing says that these are old");
}
