//! Names and patterns: parse, check, match. Owns what a legal subject is; who listens is the directory's.
use crate::command::Refusal;

/// A checked pattern: at least one `*` or `**` segment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pattern {
    text: Box<str>,
}

/// What a client names in a subscription: one subject, or a pattern.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Selector {
    Subject(Box<str>),
    Pattern(Pattern),
}

impl Selector {
    /// Parses and checks `text` as a subject or a pattern.
    pub fn parse(_text: &str) -> Result<Self, Refusal> {
        unreachable!("the log engineer writes this")
    }
}
