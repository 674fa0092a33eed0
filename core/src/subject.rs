//! Names and patterns: parse, check, match. Owns what a legal subject is; who listens is the directory's.
//!
//! A subject is one or more segments, each after a slash, which may be empty; `*` (any one segment) and `**` (any rest, also none) are wildcards
//! when they are a whole segment, `**` only last. `/$…` is the server's own: no leading wildcard matches it.
use std::cmp::Ordering;

use crate::codes::Code;
use crate::command::Refusal;
use crate::limits::SUBJECT_BYTES_MAX;

const ANY: &str = "*";
const REST: &str = "**";

/// A checked set of subjects: a name with wildcards, or a plain name, which holds just itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pattern {
    text: Box<str>,
}

/// What a client names in a subscription: one subject, or a pattern with at least one wildcard.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Selector {
    Subject(Box<str>),
    Pattern(Pattern),
}

impl Selector {
    /// Parses and checks `text` as a subject or a pattern.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let pattern = Pattern::parse(text)?;
        Ok(if pattern.has_wildcard() { Self::Pattern(pattern) } else { Self::Subject(pattern.text) })
    }

    pub fn text(&self) -> &str {
        match self {
            Self::Subject(text) => text,
            Self::Pattern(pattern) => pattern.text(),
        }
    }
}

impl Pattern {
    /// Parses and checks `text`; a plain subject is a pattern too.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        check_name(text).map_err(|reason| refuse(Code::PatternInvalid, text, reason))?;
        let mut rest = segments(text);
        while let Some(segment) = rest.next() {
            if segment == REST && rest.next().is_some() {
                return Err(refuse(
                    Code::PatternInvalid,
                    text,
                    "has ** before its last segment, where only * is allowed",
                ));
            }
        }
        Ok(Self { text: text.into() })
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn has_wildcard(&self) -> bool {
        segments(&self.text).any(is_wildcard)
    }

    /// The text up to the first wildcard segment: every subject it holds begins with it, or is it without the last slash.
    pub fn prefix(&self) -> &str {
        let mut end = 0;
        for segment in segments(&self.text) {
            if is_wildcard(segment) {
                return self.text.get(..=end).unwrap_or("");
            }
            end += 1 + segment.len();
        }
        &self.text
    }

    /// Whether it holds `subject`. Allocates nothing.
    pub fn matches(&self, subject: &str) -> bool {
        if is_own(subject) && leads_with_wildcard(&self.text) {
            return false;
        }
        let mut names = segments(subject);
        for wanted in segments(&self.text) {
            if wanted == REST {
                return true;
            }
            match names.next() {
                Some(name) if wanted == ANY || wanted == name => {}
                _ => return false,
            }
        }
        names.next().is_none()
    }

    /// Whether some subject is held by both.
    pub fn overlaps(&self, other: &Self) -> bool {
        if is_own(&self.text) && leads_with_wildcard(&other.text)
            || is_own(&other.text) && leads_with_wildcard(&self.text)
        {
            return false;
        }
        let (mut mine, mut theirs) = (segments(&self.text), segments(&other.text));
        loop {
            match (mine.next(), theirs.next()) {
                (Some(REST), _) | (_, Some(REST)) | (None, None) => return true,
                (Some(a), Some(b)) if a == b || a == ANY || b == ANY => {}
                _ => return false,
            }
        }
    }

    /// Whether it holds every subject that `other` holds.
    pub fn covers(&self, other: &Self) -> bool {
        if is_own(&other.text) && leads_with_wildcard(&self.text) {
            return false;
        }
        // A subject has a first segment, so that a leading `**` holds what `*` and then `**` hold.
        if &*other.text == "/**" {
            return &*self.text == "/**" || &*self.text == "/*/**";
        }
        let (mut mine, mut theirs) = (segments(&self.text), segments(&other.text));
        loop {
            match (mine.next(), theirs.next()) {
                (Some(REST), _) | (None, None) => return true,
                (Some(ANY), Some(b)) if b != REST => {}
                (Some(a), Some(b)) if a == b => {}
                _ => return false,
            }
        }
    }

    /// Which of two patterns that hold one subject says more about it: at the first segment where they differ, a name says
    /// more than `*`, and `*`, or that nothing follows, more than `**`. Greater is more specific.
    pub fn compare_specificity(&self, other: &Self) -> Ordering {
        let (mut mine, mut theirs) = (segments(&self.text), segments(&other.text));
        loop {
            let (a, b) = (mine.next(), theirs.next());
            let order = weigh(a).cmp(&weigh(b));
            if order != Ordering::Equal || a.is_none() && b.is_none() {
                return order;
            }
        }
    }
}

/// Checks that `text` is a subject for clients: legal, without wildcards, and not the server's own.
pub fn check_subject(text: &str) -> Result<(), Refusal> {
    check_name(text).map_err(|reason| refuse(Code::SubjectInvalid, text, reason))?;
    check_concrete(text)?;
    if is_own(text) {
        return Err(refuse(Code::SubjectInvalid, text, "begins with /$, which is the server's own"));
    }
    Ok(())
}

/// Checks that `text` is a subject to publish on: one of dispatch is, too, and rights decide who may (protocol.md, 1.8).
pub fn check_publish_subject(text: &str) -> Result<(), Refusal> {
    if !is_dispatch(text) {
        return check_subject(text);
    }
    check_name(text).map_err(|reason| refuse(Code::SubjectInvalid, text, reason))?;
    check_concrete(text)
}

/// Whether a segment of a legal name is empty, as a level of an MQTT topic may be: only MQTT creates such subjects (protocol.md, 1.9).
pub fn has_empty_segment(text: &str) -> bool {
    text.ends_with('/') || text.as_bytes().windows(2).any(|pair| pair == b"//")
}

/// Why a subject that does not exist is not created.
pub(crate) fn refuse_empty_segment(text: &str) -> Refusal {
    refuse(Code::SubjectInvalid, text, "has an empty segment: only MQTT creates such a subject, and it does not exist")
}

fn check_concrete(text: &str) -> Result<(), Refusal> {
    if text.as_bytes().contains(&b'*') && segments(text).any(is_wildcard) {
        return Err(refuse(Code::SubjectInvalid, text, "has a wildcard segment, which only a pattern may have"));
    }
    Ok(())
}

/// Whether a subject or pattern is one of the server's own.
pub fn is_own(text: &str) -> bool {
    text.starts_with("/$")
}

/// Whether a subject or pattern is one of dispatch: only a token of dispatch may publish there.
pub fn is_dispatch(text: &str) -> bool {
    owner_depth(text).is_some()
}

/// Whether a subject or pattern of dispatch names its owner, the tenant and for an inbox its receiver, without a wildcard.
pub fn names_owner(text: &str) -> bool {
    let mut names = segments(text).skip(1);
    owner_depth(text).is_some_and(|depth| {
        (0..depth).all(|_| names.next().is_some_and(|name| !is_wildcard(name) && !name.is_empty()))
    })
}

/// How many segments after the first say to whom a subject of dispatch belongs.
fn owner_depth(text: &str) -> Option<usize> {
    // Nearly every subject is somebody's own, and each publish asks: a look at two bytes answers for those.
    if !is_own(text) {
        return None;
    }
    match segments(text).next() {
        Some("$inbox") => Some(2),
        Some("$dispatch") => Some(1),
        _ => None,
    }
}

/// The segments of a legal name, in order.
pub(crate) fn segments(text: &str) -> std::str::Split<'_, char> {
    text.get(1..).unwrap_or("").split('/')
}

pub(crate) fn is_wildcard(segment: &str) -> bool {
    segment == ANY || segment == REST
}

fn leads_with_wildcard(text: &str) -> bool {
    segments(text).next().is_some_and(is_wildcard)
}

fn weigh(segment: Option<&str>) -> u8 {
    match segment {
        Some(REST) => 0,
        Some(ANY) | None => 1,
        Some(_) => 2,
    }
}

fn check_name(text: &str) -> Result<(), &'static str> {
    if !text.starts_with('/') {
        return Err("does not begin with a slash");
    }
    if text == "/" {
        return Err("has no segment");
    }
    if text.len() > SUBJECT_BYTES_MAX {
        return Err("is too long");
    }
    if has_control(text) {
        return Err("has a control character");
    }
    Ok(())
}

/// Asked of each publish: characters are decoded only where one is not printable ASCII.
fn has_control(text: &str) -> bool {
    !text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) && text.chars().any(char::is_control)
}

/// A filter with a level that is a wildcard here and a name there.
pub(crate) fn refuse_levels(filter: &str) -> Refusal {
    refuse(Code::PatternInvalid, filter, "has a level that is a wildcard of this node's subjects")
}

fn refuse(code: Code, text: &str, reason: &str) -> Refusal {
    // What a client sent is shown escaped and cut, so that it can forge no log line.
    let shown: String = text.chars().take(80).flat_map(char::escape_default).collect();
    Refusal::new(code, format!("{shown} {reason}"))
}
