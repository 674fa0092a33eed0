//! A journal as a fuzz target: bent bytes in its segments, index and manifests, as a disk may leave them. Whatever they are, the journal
//! opens, serves no row that it did not write, takes rows, and finds those again when it is opened next.
#![allow(clippy::expect_used, reason = "what is expected is what the target asserts")]
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use godwit_core::holder::Holder;
use godwit_core::journal::{KeptMessage, MessageRow};
use godwit_core::message::LogId;
use godwit_core::position::Position;
use godwit_journal::disk::Disk;
use godwit_journal::{Budget, Journal, Settings, check};

use crate::disk::SimulatedDisk;

macro_rules! sample {
    ($name:literal) => {
        ($name, include_bytes!(concat!("../../journal/tests/sample/", $name)).as_slice())
    };
}

const FOLDER: &str = "/journal";
/// What the journal itself wrote: rows 0 to 19 of run a1 sealed, 20 to 29 of run a2 open.
const FILES: [(&str, &[u8]); 7] = [
    sample!("messages/00000000000000000000-00000000000000000020.arrow"),
    sample!("messages/00000000000000000000-00000000000000000020.index"),
    sample!("messages/00000000000000000020.arrows"),
    sample!("messages/manifest.json"),
    sample!("runs/00000000000000000000-00000000000000000002.arrow"),
    sample!("runs/00000000000000000002.arrows"),
    sample!("runs/manifest.json"),
];
const RUN: u64 = 0xa3;

/// The first byte chooses the file that is bent, the rest says how.
pub fn journal(input: &[u8]) {
    let Some((choice, changes)) = input.split_first() else { return };
    let bent = usize::from(*choice) % FILES.len();
    let disk = SimulatedDisk::default();
    for (number, (name, bytes)) in FILES.iter().enumerate() {
        let bytes = if number == bent { super::vary(changes, &[bytes]) } else { (*bytes).into() };
        put(&disk, &Path::new(FOLDER).join(name), &bytes).expect("a disk without faults takes it");
    }
    check(&disk, Path::new(FOLDER)).expect("any bytes can be looked at");
    let held = open_and_load(&disk, RUN, true);
    for (offset, told) in &held {
        assert_eq!(written().get(offset), Some(told), "a row that was never written is served");
    }
    let again = open_and_load(&disk, RUN + 1, false);
    let fresh: Vec<&String> =
        again.iter().filter(|(offset, _)| !held.contains_key(offset)).map(|(_, told)| told).collect();
    assert!(held.iter().all(|row| again.get(row.0) == Some(row.1)), "rows that were served are gone");
    assert!(fresh.len() == 1 && fresh[0].contains("/fresh"), "{fresh:?}");
}

fn put(disk: &SimulatedDisk, path: &Path, mut bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().map(PathBuf::from).unwrap_or_default();
    disk.create_folder(&folder)?;
    let mut file = disk.create(path)?;
    while !bytes.is_empty() {
        bytes = &bytes[file.write(bytes)?..];
    }
    file.sync()?;
    disk.sync_folder(&folder)
}

/// The rows of the files as they are, by offset.
fn written() -> &'static BTreeMap<u64, String> {
    static WRITTEN: OnceLock<BTreeMap<u64, String>> = OnceLock::new();
    WRITTEN.get_or_init(|| {
        let disk = SimulatedDisk::default();
        for (name, bytes) in &FILES {
            put(&disk, &Path::new(FOLDER).join(name), bytes).expect("a disk without faults takes it");
        }
        let rows = open_and_load(&disk, RUN, false);
        assert_eq!(rows.len(), 30);
        rows
    })
}

/// Every message that a run finds, by offset; it may then add one of its own.
fn open_and_load(disk: &SimulatedDisk, run: u64, adds: bool) -> BTreeMap<u64, String> {
    let settings = Settings {
        directory: FOLDER.into(),
        node: "n1".into(),
        run,
        epoch: run,
        write_interval_ms: 0,
        ..Settings::default()
    };
    let (journal, past) =
        Journal::open(&settings, Arc::new(disk.clone()), || {}).expect("a journal opens on any bytes");
    let mut rows = BTreeMap::new();
    let all = Budget { messages: u64::MAX, bytes: u64::MAX, oldest_ms: 0 };
    let take = &mut |messages: Vec<KeptMessage>| {
        rows.extend(messages.iter().map(|message| (message.offset, format!("{message:?}"))));
    };
    journal.reader().load(all, 1, take).expect("a disk that can be read");
    let mut snapshots = Vec::new();
    let forgot = journal.reader().load_snapshots(u64::MAX, &|_| false, &mut |message, _| snapshots.push(message));
    forgot.expect("a disk that can be read");
    for message in snapshots {
        assert_eq!(rows.get(&message.offset), Some(&format!("{message:?}")), "a snapshot is one of the rows");
    }
    let last = past.follows.map_or(0, |follows| follows.arrival);
    if adds {
        journal.queue().push_messages(&mut vec![fresh(last + 1)], true);
    }
    assert!(journal.close(last + u64::from(adds)), "all of it is on the disk");
    rows
}

fn fresh(arrival: u64) -> MessageRow {
    let mut kept = KeptMessage::new(0, 0, "/fresh".into(), Position { epoch: RUN, sequence: 1 });
    kept.arrival = arrival;
    let message = Arc::new(kept.carry(b"1", "", &[]).into_message(LogId { slot: 0, generation: 0 }));
    MessageRow {
        message,
        holder: Holder::new("", "basic", "p"),
        key: None,
        numbered: None,
        is_mqtt: false,
        needs_disk: false,
    }
}
