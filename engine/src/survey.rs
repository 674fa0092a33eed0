//! All subjects as they were a moment ago, so that they can be searched and sorted without the node: taken in small portions
//! under its lock, with a pause between them, on the thread of whoever asks. Kept only while somebody asks.
//! Owns the pace and the rates, which are those between one survey and the next.
use crate::queue::lock;
use godwit_core::node::Node;
use godwit_core::report::SubjectRow;
use godwit_core::subject::Pattern;
use std::cmp::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Subjects taken under one acquisition: some 50 µs.
const PORTION: usize = 256;
/// How long the lock is left alone between two portions, at the least.
const PAUSE: Duration = Duration::from_micros(50);
/// Subjects of one survey; more are not seen, and the answer says so.
const SUBJECTS_MAX: usize = 1_000_000;
/// A survey is good for so long, and for so many times what it took.
const AGE_MIN: Duration = Duration::from_secs(2);
const AGE_FACTOR: u32 = 20;
/// A survey that nobody asked for is forgotten.
const IDLE_MAX: Duration = Duration::from_secs(60);
/// Rates follow a change within about this time.
const RATE_TIME_S: f64 = 5.0;

/// A subject, and how many messages a second it has had lately; none at its first sight.
#[derive(Clone, Debug)]
pub struct Surveyed {
    pub row: SubjectRow,
    pub rate_per_s: Option<f64>,
}

/// What rows are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    Subject,
    Rate,
    Messages,
    Bytes,
    Subscribers,
    Last,
}

impl Sort {
    /// The order of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "subject" => Self::Subject,
            "rate" => Self::Rate,
            "messages" => Self::Messages,
            "bytes" => Self::Bytes,
            "subscribers" => Self::Subscribers,
            "last" => Self::Last,
            _ => return None,
        })
    }
}

/// What is asked of a survey.
#[derive(Clone, Debug)]
pub struct Question {
    pub pattern: Option<Pattern>,
    /// Words that the subject's name must all hold; small letters stand for capitals too.
    pub search: String,
    pub sort: Sort,
    pub is_descending: bool,
    pub offset: usize,
    pub limit: usize,
}

/// A page of what was found.
#[derive(Clone, Debug)]
pub struct Found {
    pub rows: Vec<Surveyed>,
    /// How many subjects were found in all.
    pub total: usize,
    /// When the survey was finished (wall clock).
    pub taken_ms: u64,
    pub took: Duration,
    /// The node has more subjects than a survey takes.
    pub is_partial: bool,
}

#[derive(Debug)]
struct Survey {
    rows: Vec<Surveyed>,
    taken: Instant,
    taken_ms: u64,
    took: Duration,
    is_partial: bool,
}

/// The last survey, and who makes the next.
#[derive(Debug, Default)]
pub(crate) struct Surveys {
    last: Mutex<Option<(Arc<Survey>, Instant)>>,
    /// One makes a survey; who asks meanwhile is served from the last, or waits for the first.
    making: Mutex<()>,
}

impl Surveys {
    /// Answers from a survey that is recent enough; `wall_ms` tells the time.
    pub(crate) fn find(&self, node: &Mutex<Node>, question: &Question, wall_ms: impl Fn() -> u64) -> Found {
        self.recent(node, wall_ms).find(question)
    }

    /// Forgets a survey that nobody asked for lately.
    pub(crate) fn rest(&self) {
        let mut last = lock(&self.last);
        if last.as_ref().is_some_and(|(_, asked)| asked.elapsed() > IDLE_MAX) {
            *last = None;
        }
    }

    fn recent(&self, node: &Mutex<Node>, wall_ms: impl Fn() -> u64) -> Arc<Survey> {
        let known = self.last();
        if let Some(known) = known.as_ref().filter(|known| known.is_recent()) {
            return Arc::clone(known);
        }
        let Some(_making) = self.making.try_lock().ok().or_else(|| known.is_none().then(|| lock(&self.making))) else {
            return known.unwrap_or_else(|| Survey::take(node, None, &wall_ms));
        };
        // Somebody may have made it meanwhile.
        let known = self.last();
        if let Some(known) = known.as_ref().filter(|known| known.is_recent()) {
            return Arc::clone(known);
        }
        let made = Survey::take(node, known.as_deref(), &wall_ms);
        *lock(&self.last) = Some((Arc::clone(&made), Instant::now()));
        made
    }

    fn last(&self) -> Option<Arc<Survey>> {
        let mut last = lock(&self.last);
        let (survey, asked) = last.as_mut()?;
        *asked = Instant::now();
        Some(Arc::clone(survey))
    }
}

impl Survey {
    fn take(node: &Mutex<Node>, before: Option<&Self>, wall_ms: &impl Fn() -> u64) -> Arc<Self> {
        let began = Instant::now();
        let mut rows = Vec::with_capacity(before.map_or(0, |before| before.rows.len()));
        let mut from = String::new();
        let is_partial = loop {
            let (found, next) = lock(node).subjects(&from, PORTION, None);
            rows.extend(found.into_iter().map(|row| Surveyed { row, rate_per_s: None }));
            match next {
                None => break false,
                Some(_) if rows.len() >= SUBJECTS_MAX => break true,
                Some(next) => from = next,
            }
            std::thread::sleep(PAUSE);
        };
        let taken = Instant::now();
        if let Some(before) = before {
            set_rates(&mut rows, &before.rows, taken.duration_since(before.taken).as_secs_f64());
        }
        Arc::new(Self { rows, taken, taken_ms: wall_ms(), took: taken - began, is_partial })
    }

    fn is_recent(&self) -> bool {
        self.taken.elapsed() < AGE_MIN.max(self.took * AGE_FACTOR)
    }

    fn find(&self, question: &Question) -> Found {
        let words: Vec<&str> = question.search.split_whitespace().collect();
        let is_wanted = |found: &Surveyed| {
            let name = &*found.row.subject;
            question.pattern.as_ref().is_none_or(|pattern| pattern.matches(name))
                && words.iter().all(|word| holds(name, word))
        };
        let mut chosen: Vec<&Surveyed> = self.rows.iter().filter(|found| is_wanted(found)).collect();
        let total = chosen.len();
        let compare = |a: &&Surveyed, b: &&Surveyed| {
            let order = compare(question.sort, a, b);
            let order = if question.is_descending { order.reverse() } else { order };
            order.then_with(|| a.row.subject.cmp(&b.row.subject))
        };
        let end = question.offset.saturating_add(question.limit).min(total);
        // Already in the order of names; otherwise only what comes before the page's end is sorted.
        if question.sort != Sort::Subject || question.is_descending {
            if end > 0 && end < total {
                chosen.select_nth_unstable_by(end - 1, compare);
            }
            if let Some(first) = chosen.get_mut(..end) {
                first.sort_unstable_by(compare);
            }
        }
        let page = chosen.get(question.offset.min(end)..end).unwrap_or_default();
        Found {
            rows: page.iter().map(|found| (*found).clone()).collect(),
            total,
            taken_ms: self.taken_ms,
            took: self.took,
            is_partial: self.is_partial,
        }
    }
}

fn compare(sort: Sort, a: &Surveyed, b: &Surveyed) -> Ordering {
    match sort {
        Sort::Subject => a.row.subject.cmp(&b.row.subject),
        Sort::Rate => a.rate_per_s.unwrap_or(0.0).total_cmp(&b.rate_per_s.unwrap_or(0.0)),
        Sort::Messages => a.row.messages.cmp(&b.row.messages),
        Sort::Bytes => a.row.bytes.cmp(&b.row.bytes),
        Sort::Subscribers => a.row.subscribers.cmp(&b.row.subscribers),
        Sort::Last => a.row.last_ms.cmp(&b.row.last_ms),
    }
}

/// Both lists are in the order of names: one walk along both. A subject that began anew counts from its beginning.
fn set_rates(rows: &mut [Surveyed], before: &[Surveyed], elapsed_s: f64) {
    let mut old = before.iter().peekable();
    let weight = 1.0 - (-elapsed_s / RATE_TIME_S).exp();
    for found in rows {
        while old.peek().is_some_and(|old| old.row.subject < found.row.subject) {
            old.next();
        }
        let same = old.peek().filter(|old| old.row.subject == found.row.subject);
        let known = same.filter(|old| old.row.at.epoch == found.row.at.epoch);
        let since = known.map_or(0, |old| old.row.at.sequence);
        let rate = found.row.at.sequence.saturating_sub(since) as f64 / elapsed_s.max(0.001);
        let smooth = known.and_then(|old| old.rate_per_s).map(|last| last + weight * (rate - last));
        found.rate_per_s = Some(smooth.unwrap_or(rate));
    }
}

/// Whether the name holds the word; a word in small letters is found in capitals too.
fn holds(name: &str, word: &str) -> bool {
    if word.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return name.contains(word);
    }
    let (name, word) = (name.as_bytes(), word.as_bytes());
    name.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word))
}
