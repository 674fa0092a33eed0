//! What a node is given of snapshots from before its rows: down to the message that is no patch, across segments.
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::world::disk::{Faults, SimulatedDisk};
use crate::world::{Folder, message, quick, settings, wait_until};
use godwit_core::journal::{KeptMessage, MessageRow};
use godwit_core::message::{LogId, Message};
use godwit_core::position::Position;
use godwit_journal::disk::RealDisk;
use godwit_journal::{FileName, Journal, Keep, Retention, Settings, Stream};

const EIO: i32 = 5;
const ENOMEM: i32 = 12;
const ENFILE: i32 = 23;
const EMFILE: i32 = 24;

fn patch(subject: &str, epoch: u64, sequence: u64, arrival: u64) -> MessageRow {
    let row = message(subject, epoch, sequence, arrival);
    let mut kept = KeptMessage::new(0, 0, subject.into(), Position { epoch, sequence });
    (kept.arrival, kept.time_ms, kept.kind) = (arrival, row.message.time_ms, row.message.kind);
    (kept.is_retained, kept.is_patch) = (true, true);
    let message: Message = kept.carry(b"{}", "", &[]).into_message(LogId { slot: 0, generation: 0 });
    MessageRow { message: Arc::new(message), ..row }
}

#[test]
fn patches_come_with_what_they_were_merged_into() {
    let folder = Folder::new();
    let mut arrival = 0;
    for run in 1..=3 {
        let (journal, _) = Journal::open(&settings(&folder, run), Arc::new(RealDisk), || {}).unwrap();
        for sequence in 1..=3 {
            arrival += 1;
            let is_whole = run == 1 && sequence < 3;
            let row = if is_whole { message } else { patch }("/a", run, sequence, arrival);
            journal.queue().push_messages(&mut vec![row], false);
        }
        assert!(journal.close(arrival));
    }
    let (journal, _) = Journal::open(&settings(&folder, 4), Arc::new(RealDisk), || {}).unwrap();
    let reader = journal.reader();
    let end = reader.span(Stream::Messages).1;
    let mut found = Vec::new();
    let mut note = |kept: KeptMessage, _| found.push((kept.epoch, kept.sequence));
    reader.load_snapshots(end, &|_| false, &mut note).unwrap();
    assert_eq!(found, [(3, 3), (3, 2), (3, 1), (2, 3), (2, 2), (2, 1), (1, 3), (1, 2)]);
}

/// Whether a segment that retention takes has its snapshots kept first, where its files could not be opened for a while.
fn is_kept_after(errno: i32) -> bool {
    let disk = SimulatedDisk::default();
    let kept: Arc<Mutex<Vec<String>>> = Arc::default();
    let keep = {
        let kept = Arc::clone(&kept);
        Keep(Arc::new(move |subjects: &[String], _| -> io::Result<()> {
            kept.lock().unwrap().extend_from_slice(subjects);
            Ok(())
        }))
    };
    let settings = Settings { segment_bytes_max: 6_000, ..quick(1) };
    let (journal, _) = Journal::open_keeping(&settings, Arc::new(disk.clone()), || {}, Some(keep)).unwrap();
    journal.queue().push_messages(&mut (1..=40).map(|at| message("/s", 1, at, at)).collect(), true);
    let folder = Path::new("/journal").join(Stream::Messages.name());
    let sealed = folder.join(FileName::Sealed { first: 0, next: 40 }.text());
    let open = folder.join(FileName::Open { first: 0 }.text());
    wait_until("it is sealed", || disk.names().contains(&sealed) && !disk.names().contains(&open));
    disk.set_faults(Faults { open_errno: Some(errno), ..Faults::default() });
    let retention = [(Stream::Messages.name().to_owned(), Retention { age_ms_max: 1, ..Retention::default() })];
    let bounded = Settings { retention: retention.into(), ..settings };
    journal.set_retention(&bounded);
    wait_until("it was tried", || disk.failed_opens() > 1);
    disk.set_faults(Faults::default());
    journal.set_retention(&bounded);
    wait_until("it is gone", || !disk.names().contains(&sealed));
    let kept = kept.lock().unwrap();
    *kept == ["/s"]
}

#[test]
fn a_segment_stays_while_nothing_can_be_opened_to_keep_its_snapshots() {
    for errno in [EMFILE, ENFILE, ENOMEM] {
        assert!(is_kept_after(errno), "errno {errno}");
    }
    assert!(!is_kept_after(EIO), "what the disk cannot read delays no retention");
}
