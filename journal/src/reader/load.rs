//! What a node begins with after a restart: the newest messages of the journal, oldest of them first, decoded and verified on several threads
//! and handed over in order. And, for subjects that are only further back, the message that made their snapshot.
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use arrow_schema::SchemaRef;
use godwit_core::journal::KeptMessage;
use godwit_core::position::Position;

use super::{Reader, Source};
use crate::Stream;
use crate::decode::batch::{decode, find_damage};
use crate::decode::frames::{Frame, Frames, Next};
use crate::decode::kept::Messages;
use crate::decode::scan::{Head, read_head};
use crate::disk::ReadAt;
use crate::index::{Builder, Index};

/// Batches that each thread may be ahead.
const AHEAD: usize = 4;
/// Subjects remembered while their snapshot is looked for further back.
const NEWEST_MAX: usize = 1 << 20;

/// How much is wanted at most; whole segments are taken, so that it may be more by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    pub messages: u64,
    pub bytes: u64,
    /// Nothing that was accepted before; 0: however old.
    pub oldest_ms: u64,
}

/// What was handed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    pub messages: u64,
    /// Rows that did not fit their checksum, and were not.
    pub damaged: u64,
    /// Everything from this offset on was looked at.
    pub first: u64,
}

/// One batch to be read.
struct Job {
    file: Arc<dyn ReadAt>,
    limit: u64,
    /// Those of its file that count.
    offsets: Range<u64>,
    schema: SchemaRef,
    frame: Frame,
}

/// A batch's worth.
struct Part {
    messages: Vec<KeptMessage>,
    damaged: u64,
}

impl Reader {
    /// Hands over the newest messages within the budget, in the order in which they were accepted, some thousand at a time.
    pub fn load(&self, budget: Budget, threads: usize, each: &mut dyn FnMut(Vec<KeptMessage>)) -> io::Result<Loaded> {
        let sources = self.choose(budget);
        let mut loaded =
            Loaded { first: sources.first().map_or(self.span(Stream::Messages).1, |s| s.first), ..Loaded::default() };
        let mut jobs = Vec::new();
        let mut due = 0;
        for source in &sources {
            due += source.rows;
            self.list_jobs(source, &mut jobs)?;
        }
        let threads = threads.clamp(1, jobs.len().max(1));
        let mut expected = 0;
        std::thread::scope(|scope| {
            let jobs = &jobs;
            let ways: Vec<Receiver<io::Result<Part>>> = (0..threads)
                .map(|thread| {
                    let (out, way) = sync_channel(AHEAD);
                    scope.spawn(move || run_jobs(jobs.iter().skip(thread).step_by(threads), &out));
                    way
                })
                .collect();
            for number in 0..jobs.len() {
                let Some(Ok(part)) = ways.get(number % threads).map(Receiver::recv) else { break };
                let mut part = part?;
                part.messages.retain(|message| {
                    let is_next = message.offset >= expected;
                    expected = expected.max(message.offset + 1);
                    is_next
                });
                loaded.messages += part.messages.len() as u64;
                loaded.damaged += part.damaged;
                each(part.messages);
            }
            Ok::<(), io::Error>(())
        })?;
        // A batch that tells of fewer rows than it had is told by the manifest; of open segments nobody knows.
        loaded.damaged = loaded.damaged.max(due.saturating_sub(loaded.messages));
        self.progress.add_damaged(loaded.damaged);
        Ok(loaded)
    }

    /// The newest files whose rows are within the budget, oldest first.
    fn choose(&self, budget: Budget) -> Vec<Source> {
        let (mut messages, mut bytes) = (0, 0);
        let mut chosen = Vec::new();
        for source in self.sources(Stream::Messages).into_iter().rev() {
            let is_old = source.newest_ms.is_some_and(|newest_ms| newest_ms < budget.oldest_ms);
            if is_old || messages >= budget.messages || bytes >= budget.bytes {
                break;
            }
            messages += source.rows;
            bytes += if source.is_sealed { self.length_of(&source) } else { source.bytes };
            chosen.push(source);
        }
        chosen.reverse();
        chosen
    }

    fn length_of(&self, source: &Source) -> u64 {
        self.disk.open(&source.path).and_then(|file| file.length()).unwrap_or(0)
    }

    fn list_jobs(&self, source: &Source, jobs: &mut Vec<Job>) -> io::Result<()> {
        let Some((file, limit)) = self.open(source)? else { return Ok(()) };
        let file: Arc<dyn ReadAt> = Arc::from(file);
        let mut frames = Frames::new(&*file, limit)?;
        let Head { schema, mut at, is_bent } = read_head(&mut frames, source.stream)?;
        self.progress.add_damaged(u64::from(is_bent));
        while at < frames.limit() {
            let (Next::Frame(frame) | Next::Behind(frame)) = frames.find_next(at)? else { break };
            at = frame.end();
            if !frame.is_schema {
                let (file, schema) = (Arc::clone(&file), SchemaRef::clone(&schema));
                jobs.push(Job { file, limit, schema, frame, offsets: source.first..source.next });
            }
        }
        Ok(())
    }

    /// Of every subject that is in segments before `offset` and that `is_known` does not know, the newest messages there that made its
    /// snapshot, down to the last that is no patch, and the position of its last there, where that is remembered. Newest first. Returns the last
    /// positions of those of which no message there made a snapshot.
    pub fn load_snapshots(
        &self,
        offset: u64,
        is_known: &dyn Fn(&str) -> bool,
        each: &mut dyn FnMut(KeptMessage, Option<Position>),
    ) -> io::Result<HashMap<String, Position>> {
        let mut search = Snapshots::default();
        for source in self.sources(Stream::Messages).into_iter().rev() {
            if source.next > offset {
                continue;
            }
            let index = match self.index_of(&source) {
                Some(index) => index,
                None => self.make_index(&source)?,
            };
            let wanted = search.choose(&index, is_known);
            if wanted.is_empty() {
                continue;
            }
            let mut states: BTreeMap<&str, Vec<KeptMessage>> = BTreeMap::new();
            let _ = self.read_source(&source, 0, u64::MAX, &mut |batch| {
                let Some(mut messages) = Messages::new(&batch) else { return ControlFlow::Continue(()) };
                for row in 0..batch.num_rows() {
                    let Some((subject, _)) = wanted.get_key_value(messages.subject(row)) else { continue };
                    let message = messages.message(row);
                    if message.is_retained {
                        let state = states.entry(subject).or_default();
                        if !message.is_patch {
                            state.clear();
                        }
                        state.push(message);
                    }
                }
                ControlFlow::Continue(())
            })?;
            for (subject, state) in states {
                if state.first().is_some_and(|first| !first.is_patch) {
                    search.found.insert(subject.to_owned());
                }
                let newest = wanted.get(subject).copied().flatten();
                state.into_iter().rev().for_each(|message| each(message, newest));
            }
        }
        Ok(search.newest)
    }

    /// The subjects whose snapshots rows of a sealed segment changed, in no order, and its last arrival.
    pub(crate) fn list_retained(&self, first: u64) -> io::Result<(Vec<String>, u64)> {
        let sources = self.sources(Stream::Messages);
        let Some(source) = sources.iter().find(|source| source.first == first && source.is_sealed) else {
            return Ok((Vec::new(), 0));
        };
        let index = match self.index_of(source) {
            Some(index) => index,
            None => self.make_index(source)?,
        };
        let retained = index.entries().filter(|entry| entry.retained_offset.is_some());
        let mut subjects: Vec<String> = retained.map(|entry| entry.subject).collect();
        subjects.dedup();
        Ok((subjects, source.arrivals.map_or(0, |(_, last)| last)))
    }

    /// What the index of a segment would hold that has none, or none that can be read.
    fn make_index(&self, source: &Source) -> io::Result<Index> {
        let mut index = Builder::default();
        let _ = self.read_source(source, 0, u64::MAX, &mut |batch| {
            index.add(&batch);
            ControlFlow::Continue(())
        })?;
        Index::decode(index.encode()?).ok_or_else(|| io::Error::other("an index that cannot be read"))
    }
}

/// The search for snapshots, from the newest segment on.
#[derive(Default)]
struct Snapshots {
    found: HashSet<String>,
    /// The last positions of subjects whose snapshot is further back.
    newest: HashMap<String, Position>,
    /// There were more.
    is_full: bool,
}

impl Snapshots {
    /// The subjects of which one segment has wanted messages, with their last positions.
    fn choose(&mut self, index: &Index, is_known: &dyn Fn(&str) -> bool) -> HashMap<String, Option<Position>> {
        let mut wanted = HashMap::new();
        for entry in index.entries() {
            if self.found.contains(&entry.subject) || wanted.contains_key(&entry.subject) || is_known(&entry.subject) {
                continue;
            }
            // Epochs of a subject lie side by side, the newest last.
            let epochs = index.find(&entry.subject);
            let Some(last) = epochs.last() else { continue };
            let here = Position { epoch: last.epoch, sequence: last.last_sequence };
            let newest = self.newest.get(&entry.subject).copied().or_else(|| (!self.is_full).then_some(here));
            if epochs.iter().any(|entry| entry.retained_offset.is_some()) {
                self.newest.remove(&entry.subject);
                wanted.insert(entry.subject, newest);
            } else if self.newest.len() < NEWEST_MAX {
                self.newest.entry(entry.subject).or_insert(here);
            } else {
                self.is_full = true;
            }
        }
        wanted
    }
}

fn run_jobs<'a>(jobs: impl Iterator<Item = &'a Job>, out: &SyncSender<io::Result<Part>>) {
    for job in jobs {
        if out.send(job.read()).is_err() {
            return;
        }
    }
}

impl Job {
    fn read(&self) -> io::Result<Part> {
        let mut part = Part { messages: Vec::new(), damaged: 0 };
        let mut frames = Frames::new(&*self.file, self.limit)?;
        let batch = frames.read(&self.frame)?.and_then(|bytes| decode(&self.schema, &bytes, &self.frame));
        let Some(batch) = batch else {
            part.damaged = 1;
            return Ok(part);
        };
        let damage = find_damage(&batch);
        let Some(mut messages) = Messages::new(&batch) else { return Ok(part) };
        part.messages.reserve(batch.num_rows());
        for row in 0..batch.num_rows() {
            if damage.as_ref().is_some_and(|good| !good.value(row)) {
                part.damaged += 1;
            } else if self.offsets.contains(&messages.offset(row)) {
                part.messages.push(messages.message(row));
            }
        }
        Ok(part)
    }
}
