//! A journal on a real disk, from beginning to end and on to the next run.

use std::sync::Arc;

use crate::world::{EVERYTHING, Folder, content, message, settings, wait_until};
use godwit_core::journal::{KeptMessage, Last};
use godwit_core::position::Position;
use godwit_journal::disk::RealDisk;
use godwit_journal::{Journal, OpenError, PageLimits, Stream};

fn open(folder: &Folder, run: u64) -> (Journal, godwit_journal::Past) {
    Journal::open(&settings(folder, run), Arc::new(RealDisk), || {}).unwrap()
}

fn load(journal: &Journal) -> Vec<(String, u64, String)> {
    let mut all = Vec::new();
    let loaded = journal
        .reader()
        .load(EVERYTHING, 2, &mut |messages| {
            all.extend(messages.into_iter().map(|kept| {
                let content = String::from_utf8(kept.content().to_vec()).unwrap();
                (kept.subject.to_string(), kept.offset, content)
            }));
        })
        .unwrap();
    assert_eq!(loaded.messages, all.len() as u64);
    assert_eq!(loaded.damaged, 0);
    all
}

#[test]
fn what_was_synced_comes_back_in_order_in_the_next_run() {
    let folder = Folder::new();
    let (journal, past) = open(&folder, 0xa1);
    assert!(past.runs.is_empty() && past.follows.is_none() && past.said.is_empty(), "{past:?}");
    let mut expected = Vec::new();
    for arrival in 1..=1000 {
        let (subject, sequence) = (format!("/s/{}", arrival % 7), arrival / 7 + 1);
        expected.push((subject.clone(), arrival - 1, content(&subject, 5, sequence)));
        journal.queue().push_messages(&mut vec![message(&subject, 5, sequence, arrival)], false);
    }
    let mut last = message("/s/last", 5, 1, 1001);
    last.needs_disk = true;
    expected.push(("/s/last".into(), 1000, content("/s/last", 5, 1)));
    journal.queue().push_messages(&mut vec![last], false);
    wait_until("a row that needs the disk", || journal.progress().synced_arrival() == 1001);
    assert_eq!(load(&journal), expected, "read while it is open");
    assert!(journal.close(1001));

    let (journal, past) = open(&folder, 0xa2);
    assert_eq!(load(&journal), expected);
    let follows = past.follows.unwrap();
    assert_eq!((follows.run, follows.arrival, follows.is_clean), (0xa1, 1001, true));
    assert_eq!(past.runs.len(), 1);
    assert_eq!(past.runs[0].ended, Some(1001));
    assert!(past.said.is_empty(), "{past:?}");
    assert!(journal.reader().missing(Stream::Messages).is_empty());
    assert_eq!(journal.reader().span(Stream::Messages), (0, 1001));
    drop(journal);

    let (journal, past) = open(&folder, 0xa3);
    let follows = past.follows.unwrap();
    assert_eq!((follows.run, follows.arrival, follows.is_clean), (0xa2, 0, false), "it was not closed");
    assert!(journal.reader().missing(Stream::Messages).is_empty(), "the machine ran on: nothing was lost");
    assert_eq!(load(&journal), expected);
}

#[test]
fn one_journal_has_one_writer() {
    let folder = Folder::new();
    let (_journal, _) = open(&folder, 1);
    assert!(matches!(Journal::open(&settings(&folder, 2), Arc::new(RealDisk), || {}), Err(OpenError::Locked)));
}

#[test]
fn a_journal_of_a_later_version_is_refused_and_left_as_it_is() {
    let folder = Folder::new();
    let (journal, _) = open(&folder, 1);
    journal.queue().push_messages(&mut vec![message("/s/1", 5, 1, 1)], false);
    assert!(journal.close(1));
    let path = folder.path().join("journal/messages/manifest.json");
    let later = std::fs::read_to_string(&path).unwrap().replace("\"format\":2", "\"format\":1");
    std::fs::write(&path, &later).unwrap();
    let refused = Journal::open(&settings(&folder, 2), Arc::new(RealDisk), || {}).unwrap_err().to_string();
    assert!(refused.ends_with("manifest.json has format 1: this version reads only format 2"), "{refused}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), later);
}

#[test]
fn a_place_is_found_and_read_on_from_across_segments_and_runs() {
    let folder = Folder::new();
    let mut arrival = 0;
    for run in 1..=3 {
        let (journal, _) = open(&folder, run);
        for sequence in 1..=100 {
            for subject in ["/a", "/b"] {
                arrival += 1;
                journal.queue().push_messages(&mut vec![message(subject, run, sequence, arrival)], false);
            }
        }
        assert!(journal.close(arrival));
    }
    let (journal, _) = open(&folder, 4);
    let reader = journal.reader();
    let from = reader.find_after("/a", Position { epoch: 1, sequence: 98 }).unwrap().unwrap();
    let page = reader.read_subject("/a", from, PageLimits { messages: 5, bytes: 1 << 20 }).unwrap();
    let got: Vec<_> = page.messages.iter().map(|kept| (kept.epoch, kept.sequence)).collect();
    assert_eq!(got, [(1, 99), (1, 100), (2, 1), (2, 2), (2, 3)]);
    assert!(!page.is_last);
    let rest = reader.read_subject("/a", page.next, PageLimits { messages: 1000, bytes: 1 << 20 }).unwrap();
    assert_eq!((rest.messages.len(), rest.is_last), (97 + 100, true));
    assert_eq!(rest.messages[0].sequence, 4);

    assert_eq!(reader.find_after("/a", Position { epoch: 2, sequence: 0 }).unwrap(), Some(200));
    assert_eq!(reader.find_after("/a", Position { epoch: 2, sequence: 101 }).unwrap(), None);
    assert_eq!(reader.find_after("/a", Position { epoch: 9, sequence: 1 }).unwrap(), None);
    assert_eq!(reader.find_after("/c", Position { epoch: 2, sequence: 1 }).unwrap(), None);

    let from = reader.find_later(390).unwrap().offset;
    let page =
        reader.read_matching(from, PageLimits { messages: 4, bytes: 1 << 20 }, &mut |subject| subject == "/b").unwrap();
    let got: Vec<_> = page.messages.iter().map(|kept| (kept.run, kept.arrival)).collect();
    assert_eq!(got, [(2, 392), (2, 394), (2, 396), (2, 398)]);
    assert_eq!((reader.first_arrival(), reader.last_arrival_of(2)), (1, Some(400)));

    let end = reader.span(Stream::Messages).1;
    let snapshots = || {
        let mut found = Vec::new();
        let mut note = |kept: KeptMessage, newest| found.push((kept.subject.to_string(), kept.at(), newest));
        reader.load_snapshots(end, &|subject| subject == "/b", &mut note).unwrap();
        found
    };
    let last = Position { epoch: 3, sequence: 100 };
    let expected = [("/a".to_owned(), last, Some(last))];
    assert_eq!(snapshots(), expected);
    // Without an index, or with one that is bent, the segment itself is read.
    for index in find_indexes(&folder) {
        let bytes = std::fs::read(&index).unwrap();
        std::fs::write(index, &bytes[..bytes.len() - 1]).unwrap();
    }
    assert_eq!(snapshots(), expected);
    remove_indexes(&folder);
    assert_eq!(snapshots(), expected);
}

/// Three runs that are sealed and one that is not; each offset is one less than the arrival.
fn write_runs(folder: &Folder) -> (Journal, Vec<(&'static str, u64)>) {
    let mut all = Vec::new();
    for run in 1.. {
        let (journal, _) = open(folder, run);
        for sequence in 1..=20 {
            for subject in ["/a", "/b", "/rare"] {
                if subject != "/rare" || run % 2 == 1 && sequence <= 3 {
                    let arrival = all.len() as u64 + 1;
                    journal.queue().push_messages(&mut vec![message(subject, run, sequence, arrival)], false);
                    all.push((subject, arrival));
                }
            }
        }
        let arrival = all.len() as u64;
        if run == 4 {
            wait_until("all is written", || journal.progress().journaled_arrival() >= arrival);
            return (journal, all);
        }
        assert!(journal.close(arrival));
    }
    unreachable!()
}

#[test]
fn the_last_of_a_subject_are_found_wherever_they_are() {
    let folder = Folder::new();
    let (journal, all) = write_runs(&folder);
    let end = all.len() as u64;
    let check = || {
        for (subject, count) in
            ["/a", "/rare", "/none"].into_iter().flat_map(|name| [1, 3, 4, 25, 99].map(|n| (name, n)))
        {
            for (after, until) in [(0, u64::MAX), (0, 100), (30, 100), (44, 45), (end, u64::MAX)] {
                let within = |(of, at): &&(&str, u64)| *of == subject && *at > after && *at <= until;
                let expected = all.iter().rev().filter(within).take(count).last().map(|(_, at)| at - 1);
                let found = journal.reader().find_last(subject, Last { count: count as u64, after, until }).unwrap();
                assert_eq!(found, expected, "{count} of {subject} from {after} to {until}");
            }
        }
    };
    check();
    check(); // now it is known which segments have which
    remove_indexes(&folder);
    check();
}

fn find_indexes(folder: &Folder) -> Vec<std::path::PathBuf> {
    let files = std::fs::read_dir(folder.path().join("journal/messages")).unwrap();
    let is_index = |path: &std::path::PathBuf| path.extension().is_some_and(|ending| ending == "index");
    let indexes: Vec<_> = files.map(|file| file.unwrap().path()).filter(is_index).collect();
    assert!(!indexes.is_empty());
    indexes
}

/// Without its index a segment itself is read.
fn remove_indexes(folder: &Folder) {
    find_indexes(folder).iter().for_each(|index| std::fs::remove_file(index).unwrap());
}

/// The files that `cargo run --example sample` wrote once: what this version reads, later ones must.
#[test]
fn the_files_of_an_earlier_version_are_read() {
    let folder = Folder::new();
    let (from, to) =
        (std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sample"), folder.path().join("journal"));
    for stream in Stream::ALL.into_iter().filter(|stream| *stream != Stream::Feedback) {
        std::fs::create_dir_all(to.join(stream.name())).unwrap();
        for file in std::fs::read_dir(from.join(stream.name())).unwrap().flatten() {
            std::fs::copy(file.path(), to.join(stream.name()).join(file.file_name())).unwrap();
        }
    }
    let (journal, past) = open(&folder, 0xa3);
    let mut all = Vec::new();
    journal.reader().load(EVERYTHING, 2, &mut |messages| all.extend(messages)).unwrap();
    assert_eq!(all.iter().map(|kept| kept.arrival).collect::<Vec<_>>(), (1..=30).collect::<Vec<_>>());
    let (odd, even) = (&all[4], &all[5]);
    assert_eq!((odd.content(), odd.key.as_deref(), odd.is_mqtt), (&b"{\"number\":5}"[..], Some(&b"key-5"[..]), false));
    assert_eq!((odd.numbered.as_ref(), even.numbered.as_ref()), (None, Some(&("0123456789abcdef".into(), 6))));
    assert_eq!((even.expiry_s, even.is_mqtt, even.is_retained, &*even.holder.identity), (60, true, true, "alice"));
    assert_eq!((&*even.holder.tenant, even.epoch, even.sequence, even.run), ("acme", 5, 6, 0xa1));
    assert_eq!(past.runs.iter().map(|run| (run.run, run.ended)).collect::<Vec<_>>(), [(0xa1, Some(20)), (0xa2, None)]);
    assert_eq!(past.follows.map(|follows| (follows.run, follows.arrival)), Some((0xa2, 30)));
}
