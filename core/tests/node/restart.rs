//! A node that comes back from its journal, against a list of what was published: any number of runs, each ended in order or cut off
//! with its last rows lost. Whoever stood at or before what the journal holds is sent exactly the rest, told that a run ended
//! with nothing missed, and goes on; whoever saw more than the disk did is told that it cannot be known; no position comes twice.
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use godwit_core::codes::Code;
use godwit_core::command::{Ack, GapReason, Numbered};
use godwit_core::journal::{KeptMessage, MessageRow};
use godwit_core::message::Kind;
use godwit_core::node::{Found, MISSING_MAX, Node, Outcome, PastRun, PositionState, Progress, ScanBudget, ScanRange};
use godwit_core::position::{Position, ResumeToken};
use godwit_core::settings::{JournalSettings, PatternSettings};
use proptest::prelude::*;

use crate::support::{at_ms, cases, draft, new_node, pattern, position, publish};

const SUBJECTS: [&str; 3] = ["/a/1", "/a/2", "/b/1"];

/// What one run did.
#[derive(Clone, Debug)]
struct Run {
    /// Subject by subject, as they came.
    publishes: Vec<u8>,
    /// Rows that the disk lost at the end; none: it ended in order.
    lost: Option<usize>,
}

/// What the journal would hold.
#[derive(Default)]
struct Book {
    rows: Vec<KeptMessage>,
    runs: Vec<PastRun>,
    given: HashSet<(u8, Position)>,
    /// Everything that was ever published and kept, by subject, in order.
    kept: HashMap<u8, Vec<Position>>,
    /// Positions that only memory had.
    unkept: Vec<(u8, Position)>,
    /// Resume tokens that a pattern's subscriber was given, and how many kept messages it had been sent; none: more than were kept.
    resume_tokens: Vec<(ResumeToken, Option<usize>)>,
}

fn keep(row: &MessageRow, run: u64, offset: u64) -> KeptMessage {
    let message = &row.message;
    let mut kept = KeptMessage::new(run, offset, Arc::clone(&message.subject), message.at().unwrap());
    (kept.arrival, kept.time_ms, kept.kind, kept.is_retained) =
        (message.arrival, message.time_ms, message.kind, message.is_retained);
    (kept.is_patch, kept.is_removal) = (message.is_patch, message.is_removal);
    (kept.holder, kept.key) = (Arc::clone(&row.holder), row.key.clone());
    kept.numbered = row.numbered.clone();
    kept.carry(message.content(), "", &[])
}

fn begin(book: &Book, run: u64) -> Node {
    let mut node = new_node(|settings| {
        (settings.run, settings.epoch) = (run, 100 * run);
        settings.journal = Some(JournalSettings::default());
        settings.limits.log_messages_max = 6;
    });
    node.begin_restore(book.runs.clone());
    book.rows.iter().for_each(|row| node.restore(row.clone(), at_ms(0)));
    let restored = node.finish_restore(at_ms(0));
    assert_eq!((restored.rows, restored.rows_skipped, restored.missing_ranges), (book.rows.len() as u64, 0, 0));
    node
}

/// Publishes, writes down what the disk keeps, and notes what clients were shown.
fn live(book: &mut Book, node: &mut Node, number: u64, run: &Run) {
    let began = node.arrival();
    let mut rows = Vec::new();
    for &subject in &run.publishes {
        let Outcome::Published { at: Some(at), is_duplicate: false } =
            publish(node, SUBJECTS[usize::from(subject)], draft("{}"), at_ms(1))
        else {
            panic!()
        };
        assert!(book.given.insert((subject, at)), "{at} was given twice");
    }
    assert!(!node.take_rows(&mut rows), "nobody waits");
    assert_eq!(rows.len(), run.publishes.len());
    let kept = rows.len() - run.lost.unwrap_or(0).min(rows.len());
    let before: usize = book.kept.values().map(Vec::len).sum();
    for (index, row) in rows.iter().enumerate() {
        let subject = run.publishes[index];
        let at = row.message.at().unwrap();
        if index < kept {
            book.rows.push(keep(row, number, book.rows.len() as u64));
            book.kept.entry(subject).or_default().push(at);
        } else {
            book.unkept.push((subject, at));
        }
        book.resume_tokens.push((node.resume_token(row.message.arrival), (index < kept).then_some(before + index + 1)));
    }
    let last = rows.get(kept.wrapping_sub(1)).map_or(began, |row| row.message.arrival);
    if let Some(run) = book.runs.last_mut() {
        run.epoch_end = node.epoch();
    }
    book.runs.push(PastRun { run: number, epoch: node.epoch(), epoch_end: u64::MAX, began, last });
}

/// A gap as it is told: after what, at what, and how many are missing.
type Missing = (Option<Position>, Position, Option<u64>);

/// Reads a subject from a place on, as a subscriber does; the messages it is sent, and the gaps it is told.
fn follow(node: &Node, subject: &str, after: Position) -> (Vec<Position>, Vec<Missing>) {
    let log = node.find(subject).unwrap();
    let (mut got, mut gaps) = (Vec::new(), Vec::new());
    let mut from = match node.place(log, after, at_ms(1)) {
        PositionState::Served { arrival, .. } => arrival,
        PositionState::Gap { missed, oldest, oldest_arrival, .. } => {
            gaps.push((Some(after), oldest, missed));
            oldest_arrival
        }
    };
    loop {
        let mut messages = Vec::new();
        let read = node.read(log, from, node.arrival(), &mut messages, 200);
        got.extend(messages.iter().map(|message| message.at().unwrap()));
        if let Some(range) = read.missing {
            assert!(messages.is_empty(), "a missing range is reported without messages");
            assert_eq!(range.reason, GapReason::Epoch);
            gaps.push((range.after, range.at, range.missed));
        }
        from = read.reached;
        if read.is_done {
            return (got, gaps);
        }
    }
}

fn check_subject(book: &Book, node: &Node, subject: u8) {
    let name = SUBJECTS[usize::from(subject)];
    let Some(log) = node.find(name) else {
        assert!(!book.kept.contains_key(&subject));
        return;
    };
    let all = &book.kept[&subject];
    let oldest = all.len() - all.len().min(6);
    for (index, at) in all.iter().enumerate() {
        let (got, gaps) = follow(node, name, *at);
        let first = oldest.max(index + 1);
        assert_eq!(got, all[first..], "after {at} of {all:?}");
        let mut gaps = gaps.into_iter();
        let mut stand = *at;
        if index + 1 < oldest {
            let (after, to, missed) = gaps.next().unwrap();
            assert_eq!((after, missed), (Some(*at), Some((oldest - index - 1) as u64)));
            stand = to;
        }
        // Between what is sent, every change of run is told, with nothing missed.
        for (after, to, missed) in gaps {
            assert_eq!(missed, Some(0), "{after:?} to {to}");
            assert!(after.unwrap().epoch < to.epoch && to.sequence == 0 && to.epoch > stand.epoch, "{stand} {to}");
            stand = to;
        }
        assert_eq!(stand.epoch, node.head(log).at.epoch);
    }
    for (_, at) in book.unkept.iter().filter(|(of, _)| *of == subject) {
        let place = node.place(log, *at, at_ms(1));
        assert!(matches!(place, PositionState::Gap { reason: GapReason::Epoch, missed: None, .. }), "{at}: {place:?}");
    }
}

fn check_resume_tokens(book: &Book, node: &Node) {
    let every = pattern("/**");
    for (resume_token, sent) in &book.resume_tokens {
        let Some(sent) = sent else {
            assert_eq!(node.place_resume_token(*resume_token, &every), Err(GapReason::Epoch), "{resume_token}");
            continue;
        };
        let mut from = node.place_resume_token(*resume_token, &every).unwrap();
        let mut found = Found::default();
        while from < node.arrival() {
            let budget = ScanBudget { entries_max: 7, bytes_max: 300, missing_max: MISSING_MAX };
            let scan = node.scan_pattern(&every, ScanRange { after: from, until: node.arrival(), budget }, &mut found);
            assert!(!scan.is_lost && scan.reached > from);
            from = scan.reached;
        }
        let Found { messages: got, missing } = found;
        let missed: u64 = missing.iter().map(|(_, _, range)| range.missed.unwrap()).sum();
        let total: usize = book.kept.values().map(Vec::len).sum();
        assert_eq!(got.len() as u64 + missed, (total - sent) as u64, "after {resume_token}");
        assert!(got.is_sorted_by_key(|message| message.arrival));
    }
}

fn runs() -> impl Strategy<Value = Vec<Run>> {
    let run = (prop::collection::vec(0..3_u8, 0..12), prop::option::of(0..4_usize))
        .prop_map(|(publishes, lost)| Run { publishes, lost });
    prop::collection::vec(run, 1..5)
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn who_comes_back_after_restarts_is_sent_the_rest_and_told_the_truth(runs in runs()) {
        let mut book = Book::default();
        for (index, run) in runs.iter().enumerate() {
            let number = index as u64 + 1;
            let mut node = begin(&book, number);
            (0..3).for_each(|subject| check_subject(&book, &node, subject));
            check_resume_tokens(&book, &node);
            live(&mut book, &mut node, number, run);
        }
    }
}

#[test]
fn an_empty_place_of_a_known_run_means_what_it_follows() {
    let mut book = Book::default();
    let mut node = begin(&book, 1);
    live(&mut book, &mut node, 1, &Run { publishes: vec![0, 0, 0], lost: None });
    let mut node = begin(&book, 2);
    live(&mut book, &mut node, 2, &Run { publishes: vec![1], lost: None });
    let mut node = begin(&book, 3);
    let reads = |node: &Node, at| follow(node, SUBJECTS[0], at);
    assert_eq!(reads(&node, position(100, 0)).0, [position(100, 1), position(100, 2), position(100, 3)]);
    let (got, gaps) = reads(&node, position(200, 0));
    assert_eq!((got, gaps), (vec![], vec![(Some(position(200, 0)), position(300, 0), Some(0))]));
    assert_eq!(reads(&node, position(300, 0)), (vec![], vec![]));
    // A subject of the second run, and a client that had seen it empty in the first.
    assert_eq!(follow(&node, SUBJECTS[1], position(100, 0)).0, [position(200, 1)]);
    publish(&mut node, SUBJECTS[0], draft("{}"), at_ms(2));
    let (got, gaps) = reads(&node, position(100, 3));
    assert_eq!((got, gaps.len()), (vec![position(300, 1)], 2));
    let log = node.find(SUBJECTS[0]).unwrap();
    let mut messages = Vec::new();
    node.read(log, 7, node.arrival(), &mut messages, 1 << 20);
    assert_eq!(messages.last().unwrap().after(), Some(position(100, 3)), "the first of a run says what it follows");
}

#[test]
fn what_a_run_lost_behind_its_last_message_cannot_be_known() {
    let mut book = Book::default();
    let mut node = begin(&book, 1);
    live(&mut book, &mut node, 1, &Run { publishes: vec![0, 0, 1, 0], lost: None });
    let mut node = new_node(|settings| {
        (settings.run, settings.epoch) = (2, 200);
        settings.journal = Some(JournalSettings::default());
    });
    node.begin_restore(book.runs.clone());
    let lost = book.rows[2].arrival; // after this the first subject has one more, the second none
    node.restore_missing(1, lost + 1);
    book.rows[..3].iter().for_each(|row| node.restore(row.clone(), at_ms(0)));
    let mut later = book.rows[3].clone();
    (later.sequence, later.arrival) = (4, lost + 2);
    node.restore(later, at_ms(0));
    node.finish_restore(at_ms(0));
    let followed = |subject: usize, at| follow(&node, SUBJECTS[subject], at);
    assert_eq!(followed(1, position(100, 0)).0, [position(100, 1)]);
    let torn = (Some(position(100, 1)), position(200, 0), None);
    assert_eq!(followed(1, position(100, 0)).1, [torn]);
    assert_eq!(followed(1, position(100, 1)), (vec![], vec![torn]));
    assert_eq!(followed(1, position(200, 0)), (vec![], vec![]));
    // Its sequence tells what the first lost.
    let (got, gaps) = followed(0, position(100, 4));
    assert_eq!((got, gaps), (vec![], vec![(Some(position(100, 4)), position(200, 0), Some(0))]));
}

#[test]
fn what_damage_took_behind_a_subjects_last_message_cannot_be_known() {
    let mut book = Book::default();
    let mut node = begin(&book, 1);
    live(&mut book, &mut node, 1, &Run { publishes: vec![1, 0, 1, 0], lost: None });
    let mut node = new_node(|settings| {
        (settings.run, settings.epoch) = (2, 200);
        settings.journal = Some(JournalSettings::default());
    });
    node.begin_restore(book.runs.clone());
    // The third row is damaged: of which subject it was nobody knows.
    [0, 1, 3].iter().for_each(|row| node.restore(book.rows[*row].clone(), at_ms(0)));
    node.finish_restore(at_ms(0));
    let torn = (Some(position(100, 1)), position(200, 0), None);
    assert_eq!(follow(&node, SUBJECTS[1], position(100, 0)), (vec![position(100, 1)], vec![torn]));
    let whole = (Some(position(100, 2)), position(200, 0), Some(0));
    assert_eq!(follow(&node, SUBJECTS[0], position(100, 0)), (vec![position(100, 1), position(100, 2)], vec![whole]));
}

#[test]
fn keys_and_snapshots_come_back() {
    let mut book = Book::default();
    let mut node = begin(&book, 1);
    let keyed = |content: &str| {
        let mut draft = draft(content);
        draft.key = Some(b"k1".as_slice().into());
        draft.merge = Some(true);
        draft
    };
    publish(&mut node, "/a/1", draft(r#"{"x":1,"y":1}"#), at_ms(1));
    publish(&mut node, "/a/1", keyed(r#"{"y":2}"#), at_ms(1));
    let mut rows = Vec::new();
    node.take_rows(&mut rows);
    book.rows.extend(rows.iter().enumerate().map(|(offset, row)| keep(row, 1, offset as u64)));
    book.runs.push(PastRun { run: 1, epoch: node.epoch(), epoch_end: u64::MAX, began: 1, last: node.arrival() });
    let mut node = begin(&book, 2);
    let snapshot = node.snapshot(node.find("/a/1").unwrap(), at_ms(1)).unwrap();
    assert_eq!((snapshot.content(), snapshot.kind()), (&br#"{"x":1,"y":2}"#[..], Kind::Json));
    assert_eq!(snapshot.at, position(200, 0));
    let again = publish(&mut node, "/a/1", keyed(r#"{"y":2}"#), at_ms(2));
    assert_eq!(again, Outcome::Published { at: Some(position(100, 2)), is_duplicate: true });
    let mut asked = keyed(r#"{"y":2}"#);
    asked.ack = Ack::Disk;
    let again = publish(&mut node, "/a/1", asked, at_ms(2));
    assert_eq!(again, Outcome::Published { at: Some(position(100, 2)), is_duplicate: true }, "it is on the disk");
}

#[test]
fn numbers_of_publishers_come_back() {
    let mut book = Book::default();
    let mut node = begin(&book, 1);
    let numbered = |number: u64, is_again: bool| {
        let mut draft = draft("1");
        draft.numbered = Some(("0123456789abcdef".into(), Numbered { number, floor: 1, is_again }));
        draft
    };
    for number in [2, 4, 5] {
        publish(&mut node, "/a/1", numbered(number, false), at_ms(1));
    }
    let mut rows = Vec::new();
    node.take_rows(&mut rows);
    book.rows.extend(rows.iter().enumerate().map(|(offset, row)| keep(row, 1, offset as u64)));
    book.runs.push(PastRun { run: 1, epoch: node.epoch(), epoch_end: u64::MAX, began: 1, last: node.arrival() });
    let mut node = begin(&book, 2);
    let again = publish(&mut node, "/a/1", numbered(2, true), at_ms(2));
    assert_eq!(again, Outcome::Published { at: Some(position(100, 1)), is_duplicate: true });
    for number in [1, 3] {
        let unknown = publish(&mut node, "/a/1", numbered(number, true), at_ms(2));
        assert_eq!(unknown, Outcome::Refused(Code::RepeatUnknown), "{number} may have been in a row that is gone");
    }
    let lost = publish(&mut node, "/a/1", numbered(6, true), at_ms(2));
    assert!(matches!(lost, Outcome::Published { is_duplicate: false, .. }), "its message was lost, or never came");
}

#[test]
fn a_promise_of_the_disk_is_kept_refused_or_said_to_be_broken() {
    let mut node = begin(&Book::default(), 1);
    let disk = || {
        let mut draft = draft("{}");
        (draft.ack, draft.key) = (Ack::Disk, Some(b"k1".as_slice().into()));
        draft
    };
    let at = Some(position(100, 1));
    let Outcome::Awaits { arrival, .. } = publish(&mut node, "/a/1", disk(), at_ms(1)) else { panic!() };
    let (_, is_urgent) = node.has_rows();
    assert!(is_urgent);
    assert_eq!(publish(&mut node, "/a/1", disk(), at_ms(1)), Outcome::Awaits { at, is_duplicate: true, arrival });
    node.await_disk(3, arrival);
    assert_eq!(node.journaled(Progress { synced: arrival - 1, ..Progress::default() }), 1 << 3);
    assert_eq!(node.journaled(Progress { synced: arrival, ..Progress::default() }), 1 << 3);
    assert_eq!(node.journaled(Progress { synced: arrival, ..Progress::default() }), 0, "nobody waits any more");
    assert_eq!(publish(&mut node, "/a/1", disk(), at_ms(1)), Outcome::Published { at, is_duplicate: true });
    node.journaled(Progress { is_failing: true, ..Progress::default() });
    let head = node.arrival();
    let mut fresh = disk();
    fresh.key = None;
    let refused = publish(&mut node, "/a/1", fresh, at_ms(1));
    assert_eq!((refused, node.arrival()), (Outcome::Refused(godwit_core::codes::Code::DiskFailing), head));
    assert!(matches!(publish(&mut node, "/a/1", draft("{}"), at_ms(1)), Outcome::Published { .. }), "the rest goes on");
}

#[test]
fn what_is_seen_only_from_the_disk_is_seen_in_order_and_late() {
    let mut node = new_node(|settings| {
        settings.journal = Some(JournalSettings::default());
        settings.patterns = vec![PatternSettings {
            pattern: "/slow/**".to_owned(),
            visible: Some("journaled".to_owned()),
            ..PatternSettings::default()
        }];
    });
    let is_at = |outcome, at| assert_eq!(outcome, Outcome::Published { at: Some(at), is_duplicate: false });
    is_at(publish(&mut node, "/slow/1", draft("1"), at_ms(1)), position(7, 1));
    is_at(publish(&mut node, "/slow/1", draft("2"), at_ms(1)), position(7, 2));
    is_at(publish(&mut node, "/a/1", draft("3"), at_ms(1)), position(7, 1));
    assert_eq!(node.arrival(), 0, "what comes behind waits too");
    let log = node.find("/slow/1").unwrap();
    assert!(node.snapshot(log, at_ms(1)).is_none() && node.head(log).at == position(7, 0));
    for _ in 0..8 {
        node.sweep(at_ms(900_000));
    }
    node.journaled(Progress { synced: 1, ..Progress::default() });
    assert_eq!((node.arrival(), node.head(log).at), (1, position(7, 1)));
    node.journaled(Progress { synced: 3, ..Progress::default() });
    assert_eq!((node.arrival(), node.head(log).at), (3, position(7, 2)));
    node.journaled(Progress { is_failing: true, ..Progress::default() });
    is_at(publish(&mut node, "/slow/1", draft("4"), at_ms(1)), position(7, 3));
    assert_eq!(node.arrival(), 4, "a disk that fails holds nobody");
}
