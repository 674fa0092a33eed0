//! The cases, each with what must be recovered. Owns what is expected: nothing here asks the code that is tested.
use std::fs;
use std::path::Path;

use super::undamaged::{Base, FIRST, Frame, content_of, make};
use super::{Case, Edit, Vectors, find};
use crate::{SKIPPED, Stream};

const FILE: &str = "messages.arrows";
const ABOUT: &str = "Damaged open segments, and what a node recovers from each. Written by journal/src/decode/vectors, and read by \
    its test and by the pipelines' tests/pipelines/source/test_recovery_vectors.py.";
/// What stands in front of a frame that ends a stream.
const END_OF_STREAM: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];

/// What is lost, and which bytes are behind the last frame with a recovered row.
struct Expected {
    lost: Vec<(u64, u64)>,
    end: u64,
    tail_bytes: u64,
}

struct Cases {
    base: Base,
    found: Vec<Case>,
}

pub(super) fn write(folder: &Path) {
    let base = make();
    let (content, next) = (base.content.clone(), last(&base).next);
    let mut cases = Cases { base, found: Vec::new() };
    cases.add_frames();
    cases.add_rows();
    cases.add_ends();
    cases.add_heads();
    cases.add_bounds();
    let vectors = Vectors {
        about: ABOUT.to_owned(),
        file: FILE.to_owned(),
        stream: Stream::Messages.name().to_owned(),
        first: FIRST,
        next,
        cases: cases.found,
    };
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join(FILE), content).unwrap();
    let mut text = serde_json::to_string_pretty(&vectors).unwrap();
    text.push('\n');
    fs::write(folder.join("recovery.json"), text).unwrap();
}

fn last(base: &Base) -> Frame {
    base.frames[base.frames.len() - 1]
}

fn put(at: u64, bytes: &[u8]) -> Edit {
    Edit::Put { at, bytes: bytes.iter().map(|byte| format!("{byte:02x}")).collect() }
}

impl Cases {
    /// Without anything that is said otherwise, all rows are recovered and nothing is behind them.
    fn all(&self) -> Expected {
        Expected { lost: Vec::new(), end: last(&self.base).next, tail_bytes: 0 }
    }

    fn without(&self, frames: &[usize]) -> Expected {
        let lost = frames.iter().map(|index| (self.base.frames[*index].first, self.base.frames[*index].next));
        Expected { lost: lost.collect(), ..self.all() }
    }

    /// The rows up to a frame, and so many bytes behind it.
    fn up_to(&self, frame: usize, tail_bytes: u64) -> Expected {
        Expected { lost: Vec::new(), end: self.base.frames[frame].next, tail_bytes }
    }

    fn add(&mut self, name: &str, edits: Vec<Edit>, expected: Expected) {
        self.add_as(Case { name: name.to_owned(), edits, ..Case::default() }, expected);
    }

    fn add_as(&mut self, case: Case, expected: Expected) {
        let Expected { lost, end, tail_bytes } = expected;
        let is_lost = |offset: &u64| lost.iter().any(|(first, next)| (first..next).contains(&offset));
        let last_row = end.min(last(&self.base).next);
        let rows = super::extents((FIRST..last_row).filter(|offset| !is_lost(offset)));
        self.found.push(Case { rows, end, tail_bytes, ..case });
    }

    /// Whole frames that are no frames any more.
    fn add_frames(&mut self) {
        let frames = self.base.frames.clone();
        let noise = [0x13; 40];
        self.add("nothing is damaged", vec![], self.all());
        self.add("room behind the rows", vec![Edit::Room { count: 10_000 }], self.all());
        self.add("the prefix of a frame is overwritten", vec![put(frames[2].at, &noise[..8])], self.without(&[2]));
        self.add("the prefix of the first frame is overwritten", vec![put(frames[0].at, &noise)], self.without(&[0]));
        let both = vec![put(frames[2].at, &noise), put(frames[3].at, &noise)];
        self.add("two frames that follow each other are overwritten", both, self.without(&[2, 3]));
        let apart = vec![put(frames[1].at, &noise), put(frames[5].at, &noise)];
        self.add("two frames apart from each other are overwritten", apart, self.without(&[1, 5]));
        let across = Edit::Zero { at: frames[1].end - 100, end: frames[2].at + 100 };
        let lost = Expected { lost: vec![(frames[1].next - 7, frames[2].next)], ..self.all() };
        // The end of a body is its checksums: none of the frame's rows has one.
        self.add("zeros from one frame into the next", vec![across], lost);
        let end_of_stream = vec![put(frames[4].at, &END_OF_STREAM)];
        self.add("the mark of a stream's end in place of a frame", end_of_stream, self.without(&[4]));
        let too_long = vec![put(frames[4].at + 4, &[0xff, 0xff, 0xff, 0x7f])];
        self.add("a description longer than any is", too_long, self.without(&[4]));
        let negative = vec![put(frames[4].at + 4, &[0xff, 0xff, 0xff, 0xff])];
        self.add("a description of a negative length", negative, self.without(&[4]));
        let older = self.base.content[frames[2].at as usize..frames[2].end as usize].to_vec();
        assert_eq!(older.len() as u64, frames[3].end - frames[3].at, "they are of one size");
        self.add("an older frame in place of a later one", vec![put(frames[3].at, &older)], self.without(&[3]));
        let later = self.base.content[frames[3].at as usize..frames[3].end as usize].to_vec();
        self.add("a later frame in place of an older one", vec![put(frames[2].at, &later)], self.without(&[2]));
    }

    /// Rows of a frame that is whole.
    fn add_rows(&mut self) {
        for (which, frame, row) in [("first", 5, 0), ("fourth", 5, 3), ("last", 5, 11), ("only", 4, 0)] {
            let offset = self.base.frames[frame].first + row;
            let expected = || Expected { lost: vec![(offset, offset + 1)], ..self.all() };
            let (in_content, in_offset) = (expected(), expected());
            let content = self.change_content(offset);
            self.add(&format!("the {which} row of a frame has another content"), vec![content], in_content);
            let changed = self.change_offset(frame, offset);
            self.add(&format!("the {which} row of a frame has another offset"), vec![changed], in_offset);
        }
    }

    /// The end of what was written.
    fn add_ends(&mut self) {
        let frames = self.base.frames.clone();
        let (end, before) = (frames.len() - 1, frames.len() - 2);
        let size = self.written(frames[end].at, frames[end].end);
        // Half a frame, which ends in a byte that is not zero.
        let half = 1 + find(&self.base.content, frames[end].at + 300..frames[end].end, &[0x0c]) - frames[end].at;
        for power_cut in [false, true] {
            let case = |name: &str, edits| Case { name: name_of(name, power_cut), edits, power_cut, ..Case::default() };
            self.add_as(
                case("cut between two frames", vec![Edit::Cut { at: frames[before].end }]),
                self.up_to(before, 0),
            );
            let amid = vec![Edit::Cut { at: frames[end].at + half }];
            self.add_as(case("cut amid the last frame", amid), self.up_to(before, half));
            let room = vec![Edit::Cut { at: frames[end].at + half }, Edit::Room { count: 5_000 }];
            self.add_as(case("zeros behind half of the last frame", room), self.up_to(before, half));
            let prefix = vec![put(frames[end].at, &[0x13; 8])];
            self.add_as(case("the prefix of the last frame is overwritten", prefix), self.up_to(before, size));
            let noise = vec![put(frames[end].end, &[0x13; 90])];
            self.add_as(case("noise behind the last frame", noise), self.up_to(end, 90));
            let amid = vec![put(frames[2].at, &[0x13; 8])];
            self.add_as(case("a damaged frame with sound ones behind it", amid), self.without(&[2]));
        }
        let offset = frames[end].first + 2;
        let edit = self.change_content(offset);
        let lost = Expected { lost: vec![(offset, offset + 1)], ..self.all() };
        self.add("a row amid the last frame has another content", vec![edit.clone()], lost);
        let name = name_of("a row amid the last frame has another content", true);
        // Nothing says that the last batch was ever on the disk as a whole, so all of it is a torn tail.
        self.add_as(Case { name, edits: vec![edit], power_cut: true, ..Case::default() }, self.up_to(before, size));
        let edit = self.change_content(frames[end].next - 1);
        let cut = Expected { end: frames[end].next - 1, ..self.all() };
        self.add("the last row of the last frame has another content", vec![edit], cut);
    }

    /// What stands in front of the frames.
    fn add_heads(&mut self) {
        let frames = self.base.frames.clone();
        self.add("the description of the columns is overwritten", vec![put(16, &[0x13; 180])], self.all());
        self.add("the beginning is overwritten", vec![put(0, &[0x13; 40])], self.all());
        let whole = vec![Edit::Zero { at: 0, end: frames[0].at }];
        self.add("zeros in place of the beginning", whole, self.all());
        for (at, what) in
            [(0, "nothing is there"), (100, "cut amid the beginning"), (frames[0].at, "a beginning alone")]
        {
            let tail_bytes = if at == 100 { self.written(0, at) } else { 0 };
            let none = Expected { lost: Vec::new(), end: FIRST, tail_bytes };
            self.add(what, vec![Edit::Cut { at }], none);
        }
        let names = Stream::Messages.fields().iter().map(|field| field.name);
        for name in names {
            let terminated = [name.as_bytes(), &[0]].concat();
            let at = find(&self.base.content, 0..frames[0].at, &terminated);
            let first = name.as_bytes()[0];
            self.add(&format!("the column {name} has another name"), vec![put(at, &[first ^ 1])], self.all());
            self.add(
                &format!("the column {name} has a name that is no text"),
                vec![put(at, &[first | 0x80])],
                self.all(),
            );
        }
    }

    /// The file that follows it.
    fn add_bounds(&mut self) {
        let next = last(&self.base).next;
        let case =
            |name: &str, following| Case { name: name.to_owned(), following: Some(following), ..Case::default() };
        self.add_as(case("another file follows", next), self.all());
        let within = Expected { end: next - 3, ..self.all() };
        self.add_as(case("the next file begins within the last frame", next - 3), within);
        let earlier = self.base.frames[4].first;
        let (end, frames) = (earlier, &self.base.frames);
        let tail_bytes = self.written(frames[3].end, frames[frames.len() - 1].end);
        let expected = Expected { end, tail_bytes, ..self.all() };
        self.add_as(case("the next file begins frames before the end", earlier), expected);
        self.add_as(case("rows before the next file are not there", next + 20), self.all());
        self.add_as(case("a node left offsets out after a power cut", next + SKIPPED), self.all());
    }

    /// How many bytes of a range there are up to the last one that is not zero.
    fn written(&self, at: u64, end: u64) -> u64 {
        let range = &self.base.content[at as usize..end as usize];
        range.iter().rposition(|byte| *byte != 0).map_or(0, |last| last as u64 + 1)
    }

    fn change_content(&self, offset: u64) -> Edit {
        let content = &self.base.content;
        put(find(content, 0..content.len() as u64, content_of(offset).as_bytes()), b"C")
    }

    fn change_offset(&self, frame: usize, offset: u64) -> Edit {
        let Frame { at, end, first, next } = self.base.frames[frame];
        let column: Vec<u8> = (first..next).flat_map(u64::to_le_bytes).collect();
        let length = &self.base.content[at as usize + 4..at as usize + 8];
        let body = at + 8 + u64::from(u32::from_le_bytes(length.try_into().unwrap()));
        let place = find(&self.base.content, body..end, &column) + 8 * (offset - first);
        put(place + 5, &[0x10])
    }
}

fn name_of(what: &str, power_cut: bool) -> String {
    if power_cut { format!("{what}, after a power cut") } else { what.to_owned() }
}
