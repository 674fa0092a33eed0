//! What a client asks and what it is told, free of any wire: commands, replies and pushes.
//! The wires turn bytes into commands and replies and pushes into bytes; the session says what each means.
use std::borrow::Cow;

use crate::codes::Code;
use crate::message::Kind;
use crate::position::{Position, ResumeToken};

/// A command's id, the client's own, echoed in the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Id {
    None,
    Number(i64),
    /// An integer that `Number` cannot hold, as it was written.
    Digits(Box<str>),
    Text(Box<str>),
}

/// Why a command was not carried out: a code and a sentence for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub code: Code,
    pub reason: String,
    /// When the same may succeed (ms); 0: that is not known.
    pub after_ms: u32,
}

impl Refusal {
    pub fn new(code: Code, reason: impl Into<String>) -> Self {
        Self { code, reason: reason.into(), after_ms: 0 }
    }
}

impl From<Code> for Refusal {
    fn from(code: Code) -> Self {
        Self::new(code, code.sentence())
    }
}

/// One request of a client. Names are not yet checked: the session parses them as subjects or patterns.
#[derive(Debug, PartialEq)]
pub enum Command<'a> {
    Connect(Connect<'a>),
    Subscribe(Subscribe<'a>),
    Unsubscribe { selector: Cow<'a, str> },
    Publish(Publish<'a>),
    Ping,
    Watch { pattern: Cow<'a, str> },
    Unwatch { pattern: Cow<'a, str> },
}

/// `connect` with all its options.
#[derive(Debug, Default, PartialEq)]
pub struct Connect<'a> {
    pub token: Option<Cow<'a, str>>,
    pub client: Option<Cow<'a, str>>,
    /// The longest frame that the client takes; none: the default.
    pub frame_bytes_max: Option<u32>,
    /// Under which its publishes are numbered, and the first number that it has not used.
    pub publisher: Option<Cow<'a, str>>,
    pub number: Option<u64>,
}

/// `subscribe` with all its options.
#[derive(Debug, PartialEq)]
pub struct Subscribe<'a> {
    pub selector: Cow<'a, str>,
    /// Everything after this position (a subject's).
    pub after: Option<Position>,
    /// Everything after these positions, subject by subject (a pattern's).
    pub after_each: Vec<(Cow<'a, str>, Position)>,
    /// Everything after this resume token (a pattern's). The text may be another run's or nonsense: then a gap, not an error.
    pub since: Option<ResumeToken>,
    pub last: Option<u32>,
    /// False: live only, no snapshot first.
    pub wants_snapshot: bool,
    /// After a gap continue from the oldest kept message instead of the snapshot.
    pub gap_from_oldest: bool,
    /// 0: every message.
    pub conflate_ms: u32,
}

/// How far a publish must have come before it is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ack {
    Cached,
    Replicated,
    Disk,
}

impl Ack {
    pub fn name(self) -> &'static str {
        match self {
            Self::Cached => "cached",
            Self::Replicated => "replicated",
            Self::Disk => "disk",
        }
    }
}

/// Where a publish stands among those of its publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbered {
    pub number: u64,
    /// All numbers below it are settled: none of them is sent again. 0: unknown.
    pub floor: u64,
    /// It was sent before, and has no answer.
    pub is_again: bool,
}

/// `publish` with all its options.
#[derive(Debug, PartialEq)]
pub struct Publish<'a> {
    pub subject: Cow<'a, str>,
    pub kind: Kind,
    pub content: Cow<'a, [u8]>,
    /// As `message::fields` holds them.
    pub fields: Vec<u8>,
    /// None: the default, true but for a subject that a `reply_to` named.
    pub retain: Option<bool>,
    /// Its JSON object is a patch: its members are merged into the subject's state. None: as the subject's pattern says.
    pub merge: Option<bool>,
    /// It removes the subject's snapshot, and has no content.
    pub is_removal: bool,
    pub is_guaranteed: bool,
    pub key: Option<Cow<'a, str>>,
    /// None: it is not numbered.
    pub numbered: Option<Numbered>,
    /// Over HTTP, where no `connect` names it: the publisher that numbered it.
    pub publisher: Option<Cow<'a, str>>,
    pub reply_to: Option<Cow<'a, str>>,
    pub ack: Ack,
}

/// How a subscription began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Snapshot,
    Recovered,
    History,
    Live,
    /// It could not be resumed where the client stood: a gap says so.
    Resync,
}

impl Outcome {
    pub fn name(self) -> &'static str {
        match self {
            Self::Snapshot => "snapshot",
            Self::Recovered => "recovered",
            Self::History => "history",
            Self::Live => "live",
            Self::Resync => "resync",
        }
    }
}

/// The answer to one command.
#[derive(Debug, PartialEq)]
pub enum Reply<'a> {
    Connected {
        session: &'a str,
        node: &'a str,
        time_ms: u64,
        ping_interval_ms: u64,
        /// The client named a publisher, but `publishers_max` is reached.
        lacks_publisher: bool,
    },
    Subscribed {
        selector: &'a str,
        at: Option<Position>,
        outcome: Outcome,
        count: Option<u64>,
    },
    Unsubscribed {
        selector: &'a str,
    },
    /// `at` is none for a standard message; `reached` is the level where it is less than was asked for.
    Published {
        at: Option<Position>,
        is_duplicate: bool,
        reached: Option<Ack>,
    },
    Pong {
        time_ms: u64,
    },
    Watching {
        pattern: &'a str,
    },
    Unwatched {
        pattern: &'a str,
    },
    Error {
        code: Code,
        reason: &'a str,
    },
}

/// Why messages are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GapReason {
    /// They grew too old for the log while the client was away.
    Expired,
    /// The log moved past a slow consumer, or past its count or bytes.
    Overrun,
    /// Another run numbers the subject now.
    Epoch,
    /// The client stands ahead of the log.
    Ahead,
    /// The node cannot know what was missed.
    Unknown,
    /// The frame would be longer than the client takes.
    TooLarge,
}

impl GapReason {
    /// In the order of their numbers.
    pub const ALL: [Self; 6] = [Self::Expired, Self::Overrun, Self::Epoch, Self::Ahead, Self::Unknown, Self::TooLarge];

    pub fn name(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Overrun => "overrun",
            Self::Epoch => "epoch",
            Self::Ahead => "ahead",
            Self::Unknown => "unknown",
            Self::TooLarge => "too_large",
        }
    }
}

/// A message as a wire shows it.
#[derive(Clone, Copy, Debug)]
pub struct MessageView<'a> {
    /// Binary wire: the announced number of (stream, subject), and the announced base time.
    pub number: u32,
    pub base_time_ms: u64,
    pub subject: &'a str,
    /// None: a standard message.
    pub at: Option<Position>,
    /// Written only when it is not `at`'s sequence − 1 in the same epoch.
    pub after: Option<Position>,
    pub time_ms: u64,
    pub kind: Kind,
    pub content: &'a [u8],
    /// As `message::fields` holds them.
    pub fields: &'a [u8],
    pub reply_to: Option<&'a str>,
    /// How many messages became this one; 0 when it is one published message.
    pub conflated: u32,
    /// The pattern, on a wildcard subscription.
    pub pattern: Option<&'a str>,
    pub is_snapshot: bool,
    /// It is a patch: its members go into the state that the client has. Otherwise it replaces that.
    pub is_patch: bool,
    /// The subject's snapshot was removed; the content is empty.
    pub is_removal: bool,
}

/// What the server tells unasked.
#[derive(Debug)]
pub enum Push<'a> {
    Message(MessageView<'a>),
    Gap {
        subject: &'a str,
        after: Option<Position>,
        at: Position,
        reason: GapReason,
        missed: Option<u64>,
        pattern: Option<&'a str>,
    },
    /// A gap of a whole pattern: its resume token could not be served, or its index is gone. Or of a part of it, whose messages no journal keeps.
    PatternGap {
        part: &'a str,
        pattern: &'a str,
        reason: GapReason,
    },
    /// The order of a subject's epochs, before the first message of an earlier one than the present.
    Epochs {
        subject: &'a str,
        epochs: &'a [u64],
        pattern: Option<&'a str>,
    },
    Dropped {
        selector: &'a str,
        count: u64,
    },
    ResumeToken {
        resume_token: ResumeToken,
        pattern: &'a str,
    },
    Interest {
        selector: &'a str,
        has_subscribers: bool,
    },
    /// The state of a watch begins here, or is complete.
    InterestState {
        pattern: &'a str,
        is_complete: bool,
    },
    TokenExpiring {
        in_ms: u64,
    },
    Draining {
        reconnect_after_ms: u64,
    },
    /// A subscription or watch that the server ended: rights changed, or it could not go on.
    Ended {
        selector: &'a str,
        code: Code,
        reason: &'a str,
    },
    /// Binary wire only; nothing on JSON: `number` stands for `subject` (of `pattern`'s stream) from here on.
    Announce {
        number: u32,
        subject: &'a str,
        epoch: u64,
        base_time_ms: u64,
        pattern: Option<&'a str>,
    },
}
