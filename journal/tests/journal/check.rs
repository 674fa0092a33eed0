//! What `check` tells of files that somebody destroyed: each is told, by its name, and what is as it should be is not.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::world::disk::SimulatedDisk;
use crate::world::{Folder, message, quick, settings, wait_until};
use godwit_journal::disk::{Disk, RealDisk};
use godwit_journal::{Checked, Journal, SKIPPED, Settings, Stream, check};

const ROWS: u64 = 150;

/// A journal that was closed, of several sealed segments of messages.
fn make() -> (Folder, Vec<PathBuf>) {
    let folder = Folder::new();
    let small = Settings { segment_bytes_max: 6_000, ..settings(&folder, 1) };
    let (journal, _) = Journal::open(&small, Arc::new(RealDisk), || {}).unwrap();
    for arrival in 1..=ROWS {
        let mut row = message("/s", 1, arrival, arrival);
        row.needs_disk = true;
        journal.queue().push_messages(&mut vec![row], true);
        wait_until("it is on the disk", || journal.progress().synced_arrival() == arrival);
    }
    assert!(journal.close(ROWS));
    let sealed = segments(&folder);
    assert!(sealed.len() > 3, "{sealed:?}");
    (folder, sealed)
}

fn messages(folder: &Folder) -> PathBuf {
    folder.path().join("journal/messages")
}

fn segments(folder: &Folder) -> Vec<PathBuf> {
    let paths = fs::read_dir(messages(folder)).unwrap().map(|entry| entry.unwrap().path());
    let mut sealed: Vec<_> = paths.filter(|path| path.extension().is_some_and(|ending| ending == "arrow")).collect();
    sealed.sort();
    sealed
}

fn look(folder: &Folder) -> Vec<Checked> {
    check(&RealDisk, &folder.path().join("journal")).unwrap()
}

/// Those of messages that are not whole.
fn bad(folder: &Folder) -> Vec<Checked> {
    look(folder).into_iter().filter(|of| !of.is_whole()).collect()
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

#[test]
fn a_sealed_segment_that_was_destroyed_is_reported() {
    let (folder, sealed) = make();
    assert_eq!(bad(&folder), []);
    let (path, whole) = (&sealed[1], fs::read(&sealed[1]).unwrap());
    let rows = look(&folder).into_iter().find(|of| of.file == name(path)).unwrap().rows;
    let footer_bent = |place: usize| {
        let mut bytes = whole.clone();
        bytes[place] ^= 0x40;
        bytes
    };
    // What is left of it, and of its rows.
    let ways = [
        ("of no length", Vec::new(), 0),
        ("half of it", whole[..whole.len() / 2].to_vec(), 0),
        ("zeros", vec![0; whole.len()], 0),
        ("without its end", whole[..whole.len() - 10].to_vec(), rows),
        ("with something behind it", [&whole[..], b"12345678"].concat(), rows),
        ("a bent mark in front", footer_bent(2), rows),
        ("a bent mark behind", footer_bent(whole.len() - 2), rows),
        ("a bent length of the footer", footer_bent(whole.len() - 8), rows),
    ];
    let manifest = messages(&folder).join("manifest.json");
    let said = fs::read(&manifest).unwrap();
    for (what, bytes, left) in ways {
        fs::write(path, bytes).unwrap();
        for has_manifest in [true, false] {
            if !has_manifest {
                fs::remove_file(&manifest).unwrap();
            }
            let found = bad(&folder);
            let [of] = &found[..] else { panic!("{what}, manifest {has_manifest}: {found:?}") };
            assert_eq!((&of.file, of.rows, of.is_bent), (&name(path), left, true), "{what}");
            assert_eq!(of.lost, if has_manifest { rows - left } else { 0 }, "{what}");
        }
        fs::write(&manifest, &said).unwrap();
    }
    // Another's rows, in a file that is whole.
    fs::copy(&sealed[2], path).unwrap();
    let found = bad(&folder);
    assert_eq!(found.iter().map(|of| (&of.file, of.lost)).collect::<Vec<_>>(), [(&name(path), rows)]);
}

#[test]
fn damage_to_what_readers_of_a_sealed_segment_use_is_found() {
    let (folder, sealed) = make();
    let (path, whole) = (&sealed[1], fs::read(&sealed[1]).unwrap());
    let length = i32::from_le_bytes(whole[whole.len() - 10..whole.len() - 6].try_into().unwrap()) as usize;
    let footer = whole.len() - 10 - length;
    // Where its one batch is.
    let block = 24;
    let place = (footer..whole.len() - block).find(|place| {
        let number = |at: usize| i64::from_le_bytes(whole[at..at + 8].try_into().unwrap());
        let (offset, head, body) = (number(*place), number(place + 8) & 0xffff_ffff, number(place + 16));
        offset > 0
            && offset < 1 << 20
            && head > 0
            && head < 1 << 20
            && body > 0
            && offset + head + body + 8 == footer as i64
    });
    let place = place.expect("the footer names the batch");
    for byte in [0, 1, 8, 9, 16, 17] {
        let mut bytes = whole.clone();
        bytes[place + byte] ^= 1;
        fs::write(path, bytes).unwrap();
        let found = bad(&folder);
        assert_eq!(found.iter().map(|of| (&of.file, of.is_bent)).collect::<Vec<_>>(), [(&name(path), true)], "{byte}");
    }
}

#[test]
fn a_segment_that_is_gone_is_told_with_and_without_the_manifest() {
    let (folder, sealed) = make();
    fs::remove_file(&sealed[1]).unwrap();
    let found = bad(&folder);
    assert_eq!(
        found.iter().map(|of| (&of.file, of.is_missing, of.is_gap)).collect::<Vec<_>>(),
        [(&name(&sealed[1]), true, false)]
    );
    fs::remove_file(messages(&folder).join("manifest.json")).unwrap();
    let found = bad(&folder);
    assert_eq!(
        found.iter().map(|of| (&of.file, of.is_missing, of.is_gap)).collect::<Vec<_>>(),
        [(&name(&sealed[1]), false, true)]
    );
    // Of the oldest nobody knows that they are gone: retention lets them go.
    fs::remove_file(&sealed[0]).unwrap();
    assert_eq!(bad(&folder), []);
}

#[test]
fn offsets_between_two_segments_of_the_manifest_are_found() {
    let (folder, sealed) = make();
    let path = messages(&folder).join("manifest.json");
    let mut manifest: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    manifest["segments"].as_array_mut().unwrap().remove(1);
    fs::write(&path, manifest.to_string()).unwrap();
    assert_eq!(bad(&folder), [], "the file is there");
    fs::remove_file(&sealed[1]).unwrap();
    let found = bad(&folder);
    assert_eq!(found.iter().map(|of| (&of.file, of.is_gap)).collect::<Vec<_>>(), [(&name(&sealed[1]), true)]);
}

/// Ten rows that the run leaves in an open segment.
fn leave_open(folder: &Folder, run: u64) {
    let (journal, _) = Journal::open(&settings(folder, run), Arc::new(RealDisk), || {}).unwrap();
    let mut rows = (1..=10).map(|sequence| message("/s", run, sequence, run * 10 + sequence)).collect();
    journal.queue().push_messages(&mut rows, true);
    wait_until("they are on the disk", || journal.progress().synced_arrival() == run * 10 + 10);
}

#[test]
fn an_open_segment_of_which_nothing_can_be_read_leaves_a_missing_range() {
    let (folder, other) = (Folder::new(), Folder::new());
    for run in 1..=2 {
        leave_open(&other, run);
    }
    leave_open(&folder, 1);
    let name = |first: u64| format!("{first:020}.arrows");
    let open = messages(&folder).join(name(0));
    fs::write(&open, vec![0; fs::metadata(&open).unwrap().len() as usize]).unwrap();
    fs::copy(messages(&other).join(name(10)), messages(&folder).join(name(10))).unwrap();
    let (journal, past) = Journal::open(&settings(&folder, 3), Arc::new(RealDisk), || {}).unwrap();
    assert!(past.said.iter().any(|said| said.contains("those up to offset 10 are gone")), "{:?}", past.said);
    assert_eq!(journal.reader().missing(Stream::Messages), [(0, 10)]);
    assert_eq!(journal.reader().span(Stream::Messages), (0, 20));
    assert!(!open.exists());
}

#[test]
fn rows_that_were_left_out_at_sealing_and_offsets_that_were_skipped_are_no_damage() {
    let (mut left_out, mut skipped) = (0, 0);
    for (cut, removes_manifest) in (0..12).flat_map(|cut| [(cut, true), (cut, false)]) {
        let disk = SimulatedDisk::default();
        let (journal, _) = Journal::open(&quick(1), Arc::new(disk.clone()), || {}).unwrap();
        for arrival in 1..=60 {
            journal.queue().push_messages(&mut vec![message("/s", 1, arrival, arrival)], true);
            wait_until("it is on the disk", || journal.progress().synced_arrival() >= arrival);
        }
        // Half of them have a bent bit, which the next start finds as it seals; the others lost the power.
        let after = if cut % 2 == 0 { disk.kill() } else { disk.cut_power(cut) };
        let is_open =
            |path: &&PathBuf| path.starts_with("/journal/messages") && path.to_string_lossy().ends_with(".arrows");
        if let Some(open) = after.names().iter().find(is_open).filter(|_| cut % 2 == 0) {
            after.flip(open, 9_000 + cut as usize * 997, 3);
        }
        drop(journal);
        for run in 2..4 {
            let (journal, _) = Journal::open(&quick(run), Arc::new(after.clone()), || {}).unwrap();
            journal.queue().push_messages(&mut vec![message("/s", run, 1, 60 + run)], true);
            left_out += journal.progress().damaged();
            assert!(journal.close(60 + run));
        }
        if removes_manifest {
            after.remove(Path::new("/journal/messages/manifest.json")).unwrap();
        }
        let found = check(&after, Path::new("/journal")).unwrap();
        assert!(found.iter().any(|of| of.stream == Stream::Messages && of.rows > 0), "{found:?}");
        for of in found {
            assert!(of.is_whole(), "cut {cut}, manifest removed {removes_manifest}: {of:?}");
            skipped += u64::from(of.next - of.first > SKIPPED);
        }
    }
    assert!(left_out > 0 && skipped > 0, "{left_out} rows were left out, offsets were skipped {skipped} times");
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let (folder, sealed) = make();
    fs::remove_file(&sealed[1]).unwrap();
    fs::create_dir(&sealed[1]).unwrap();
    let error = check(&RealDisk, &folder.path().join("journal")).unwrap_err().to_string();
    assert!(error.contains(&name(&sealed[1])), "{error}");
}
