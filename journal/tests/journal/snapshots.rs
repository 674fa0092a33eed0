//! What a node is given of snapshots from before its rows: down to the message that is no patch, across segments.
use std::sync::Arc;

use crate::world::{Folder, message, settings};
use godwit_core::journal::{KeptMessage, MessageRow};
use godwit_core::message::{LogId, Message};
use godwit_core::position::Position;
use godwit_journal::disk::RealDisk;
use godwit_journal::{Journal, Stream};

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
