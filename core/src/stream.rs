//! A stream: what one kind of subscription listens to (selector × shape × wire), encoded once for all its cursors.
//! Owns the cursors' seats, the window and the numbers that the binary wire calls subjects by. With a single cursor there
//! is no window: frames are encoded for the turn, and what is not taken waits in the log.
use std::collections::HashMap;
use std::sync::Arc;

use crate::codec::Wire;
use crate::conflation::Conflation;
use crate::message::LogId;
use crate::node::Owner;
use crate::subject::Pattern;
use crate::window::Window;

/// Subjects one pattern stream numbers before it begins anew.
const NUMBERS_MAX: usize = 65_536;

/// What a stream is of.
#[derive(Clone, Debug)]
pub enum Source {
    Subject(LogId),
    Pattern(Arc<Pattern>),
}

/// What the frames of a stream are, whatever it is of: how often they come, and as which bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    pub wire: Wire,
    /// 0: every message.
    pub conflate_ms: u32,
    /// Of the window within which frames are deflated; 0: they are not.
    pub window_bits: u8,
    /// In place of a longer frame its readers get a gap; 0: they take any.
    pub frame_bytes_max: u32,
}

impl From<Wire> for Variant {
    /// Every message, as the wire has it.
    fn from(wire: Wire) -> Self {
        Self { wire, conflate_ms: 0, window_bits: 0, frame_bytes_max: 0 }
    }
}

/// The binary wire's name for a subject within a stream.
#[derive(Clone, Debug)]
pub struct Number {
    pub number: u32,
    pub subject: Arc<str>,
    pub epoch: u64,
    pub base_time_ms: u64,
    /// Counts its announcements: another base time is another version.
    pub version: u16,
    /// The window's segment in which it was last announced.
    pub segment: u64,
}

#[derive(Debug)]
pub struct Stream {
    pub name: Arc<str>,
    pub source: Source,
    pub wire: Wire,
    /// 0: every message.
    pub conflate_ms: u32,
    /// Of the window within which frames are deflated; 0: they are not.
    pub window_bits: u8,
    /// In place of a longer frame its readers get a gap; 0: they take any.
    pub frame_bytes_max: u32,
    pub cursors: Vec<u32>,
    /// Who was the first to ask for it.
    pub opener: Owner,
    /// How many of them its subject's log was last told of.
    pub counted: u32,
    pub window: Option<Box<Window>>,
    /// What the window was last seen to have allocated.
    pub window_bytes: usize,
    pub conflation: Option<Box<Conflation>>,
    pub numbers: Numbers,
    /// What a slow consumer missed is merged when it is caught up.
    pub conflates_slow: bool,
    /// Standard messages appended so far, modulo 2³².
    pub standard: u32,
    /// Batching: frames wait this long for company, or until this many bytes wait. 0: they do not.
    pub batch_ms: u32,
    pub batch_bytes_max: u32,
    /// Since when frames wait, and from which byte place on.
    pub held: Option<(u64, u64)>,
    pub is_dirty: bool,
    /// The arrival that the last resume token named.
    pub marked: u64,
    /// When that was (monotonic ms).
    pub marked_ms: u64,
    /// Since when nobody listens (monotonic ms); it lingers a little.
    pub empty_since_ms: Option<u64>,
    /// When something was last appended (monotonic ms).
    pub used_ms: u64,
    /// When the first of what is to be sent was accepted (monotonic µs, modulo 2³²), and the turn in which it came.
    pub fresh_us: u32,
    pub fresh_turn: u32,
}

impl Stream {
    pub fn new(name: Arc<str>, source: Source, variant: Variant) -> Self {
        let Variant { wire, conflate_ms, window_bits, frame_bytes_max } = variant;
        Self {
            name,
            source,
            wire,
            conflate_ms,
            window_bits,
            frame_bytes_max,
            cursors: Vec::new(),
            opener: Owner::default(),
            counted: 0,
            window: None,
            window_bytes: 0,
            conflation: (conflate_ms > 0).then(Box::default),
            numbers: Numbers::default(),
            conflates_slow: false,
            standard: 0,
            batch_ms: 0,
            batch_bytes_max: 0,
            held: None,
            is_dirty: false,
            marked: 0,
            marked_ms: 0,
            empty_since_ms: None,
            used_ms: 0,
            fresh_us: 0,
            fresh_turn: 0,
        }
    }

    /// The pattern's text on a wildcard stream.
    pub fn pattern(&self) -> Option<&str> {
        matches!(self.source, Source::Pattern(_)).then_some(&*self.name)
    }

    pub fn variant(&self) -> Variant {
        let Self { wire, conflate_ms, window_bits, frame_bytes_max, .. } = *self;
        Variant { wire, conflate_ms, window_bits, frame_bytes_max }
    }

    /// Seats a cursor; returns its seat.
    pub fn seat(&mut self, cursor: u32) -> u32 {
        if self.cursors.is_empty() {
            self.cursors.reserve_exact(1);
        }
        self.cursors.push(cursor);
        self.empty_since_ms = None;
        (self.cursors.len() - 1) as u32
    }

    /// Frees a seat; returns the cursor that took it over, if one did.
    pub fn unseat(&mut self, seat: u32) -> Option<u32> {
        if (seat as usize) < self.cursors.len() {
            self.cursors.swap_remove(seat as usize);
        }
        self.cursors.get(seat as usize).copied()
    }

    /// The number of a subject, made at first use with the next free number.
    pub fn number(&mut self, subject: &Arc<str>, log: LogId, epoch: u64, time_ms: u64, next: &mut u32) -> &mut Number {
        let numbers = self.numbers.0.get_or_insert_default();
        if numbers.len() >= NUMBERS_MAX && !numbers.contains_key(&log) {
            numbers.clear();
        }
        numbers.entry(log).or_insert_with(|| {
            *next += 1;
            Number { number: *next, subject: Arc::clone(subject), epoch, base_time_ms: time_ms, version: 1, segment: 0 }
        })
    }
}

/// The numbers of a stream's subjects; nothing on the JSON wire.
#[derive(Debug, Default)]
#[allow(clippy::box_collection, reason = "a stream without numbers pays 8 bytes, not 48")]
pub struct Numbers(Option<Box<HashMap<LogId, Number>>>);

impl Numbers {
    pub fn get(&self, log: &LogId) -> Option<&Number> {
        self.0.as_ref()?.get(log)
    }

    pub fn get_mut(&mut self, log: &LogId) -> Option<&mut Number> {
        self.0.as_mut()?.get_mut(log)
    }

    pub fn values(&self) -> impl Iterator<Item = &Number> {
        self.0.iter().flat_map(|numbers| numbers.values())
    }

    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut Number> {
        self.0.iter_mut().flat_map(|numbers| numbers.values_mut())
    }
}
