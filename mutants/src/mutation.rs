//! Which frame is tampered with, and how. Owns the count of frames of the whole node, so that one in so many is exactly that.
//! What it says of a frame is read from its first bytes: a message, a gap, or something else.

use std::sync::atomic::{AtomicU64, Ordering};

/// What is done to a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutation {
    None,
    /// The message never leaves.
    Lose,
    /// It leaves twice.
    Repeat,
    /// It leaves after the next one of its subject.
    Reorder,
    /// The gap never leaves.
    HideGap,
}

impl Mutation {
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        Ok(match text {
            "none" => Self::None,
            "lose" => Self::Lose,
            "repeat" => Self::Repeat,
            "reorder" => Self::Reorder,
            "hide-gap" => Self::HideGap,
            _ => return Err(format!("--mutation {text}: none, lose, repeat, reorder or hide-gap")),
        })
    }
}

/// What a frame's payload is, as far as a mutant cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind<'a> {
    /// A message and what names its subject on this connection.
    Message(&'a [u8]),
    Gap,
    Other,
}

/// Reads a frame's kind from its payload, on either wire.
pub(crate) fn kind(payload: &[u8]) -> Kind<'_> {
    const MESSAGE: &[u8] = br#"{"message":""#;
    if let Some(rest) = payload.strip_prefix(MESSAGE) {
        // `"at"` or `"pattern"` follows the subject; no subject has a quotation sign that is not escaped.
        let end = rest.windows(2).position(|two| two == b"\",").unwrap_or(rest.len());
        return Kind::Message(&rest[..end]);
    }
    if payload.starts_with(br#"{"gap":"#) {
        return Kind::Gap;
    }
    match payload.first() {
        Some(0x02) => Kind::Gap,
        Some(flags) if *flags >= 0x80 => {
            let end = payload[1..].iter().position(|byte| byte & 0x80 == 0).map_or(payload.len(), |last| last + 2);
            Kind::Message(&payload[1..end])
        }
        _ => Kind::Other,
    }
}

/// Decides for all connections.
pub(crate) struct Mutant {
    mutation: Mutation,
    each: u64,
    seen: AtomicU64,
}

impl Mutant {
    pub(crate) fn new(mutation: Mutation, each: u64) -> Self {
        Self { mutation, each: each.max(1), seen: AtomicU64::new(0) }
    }

    /// What is to be done to this frame.
    pub(crate) fn judge(&self, kind: Kind<'_>) -> Mutation {
        let concerns = match kind {
            Kind::Message(_) => matches!(self.mutation, Mutation::Lose | Mutation::Repeat | Mutation::Reorder),
            Kind::Gap => self.mutation == Mutation::HideGap,
            Kind::Other => false,
        };
        if !concerns {
            return Mutation::None;
        }
        let seen = self.seen.fetch_add(1, Ordering::Relaxed) + 1;
        if seen.is_multiple_of(self.each) { self.mutation } else { Mutation::None }
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, Mutant, Mutation, kind};

    #[test]
    fn kinds_are_read_on_both_wires() {
        assert_eq!(kind(br#"{"message":"/a/b","at":"7.1","content":{}}"#), Kind::Message(b"/a/b"));
        assert_eq!(kind(br#"{"gap":"/a","at":"7.1"}"#), Kind::Gap);
        assert_eq!(kind(br#"{"resume_token":"a"}"#), Kind::Other);
        assert_eq!(kind(&[0x80, 0x85, 0x01, 0x3b]), Kind::Message(&[0x85, 0x01]));
        assert_eq!(kind(&[0x02, 0x00]), Kind::Gap);
        assert_eq!(kind(&[]), Kind::Other);
    }

    #[test]
    fn one_in_so_many_is_exactly_that() {
        let mutant = Mutant::new(Mutation::Lose, 3);
        let done: Vec<_> = (0..9).map(|_| mutant.judge(Kind::Message(b"/a")) == Mutation::Lose).collect();
        assert_eq!(done, [false, false, true, false, false, true, false, false, true]);
        assert_eq!(mutant.judge(Kind::Gap), Mutation::None);
    }
}
