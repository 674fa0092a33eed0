//! JSON at the speed of the wire: checks a text strictly and splits it into its members without building anything.
//! Owns what JSON Godwit accepts (RFC 8259, no lone surrogates, no number beyond a double, no key twice in an object, bounded
//! depth); what the members mean is the wires'. Invariant: work is linear in the bytes, memory in the keys, and no input panics.

mod keys;
mod merge;
mod scan;
mod write;

use std::borrow::Cow;

pub use merge::{Nulls, merge};
pub use scan::JsonFault;
use scan::{Scan, Scanner, hex4};
pub(crate) use write::{put_escaped, put_hex, put_number, put_string};

/// Checks that `text` is one JSON value with nothing but blanks around it.
///
/// # Errors
/// Says what is wrong.
pub fn check(text: &str, depth_max: usize) -> Result<(), JsonFault> {
    let mut scanner = Scanner { bytes: text.as_bytes(), at: 0 };
    scanner.blanks();
    scanner.value(depth_max)?;
    scanner.blanks();
    if scanner.is_at_end() { Ok(()) } else { Err(JsonFault::End) }
}

/// The members of an object, in order: key as written between its quotes, value as written. Values are checked as they pass.
#[derive(Clone, Debug)]
pub struct Members<'a> {
    text: &'a str,
    at: usize,
    depth_max: usize,
    state: ReadState,
}

/// The elements of an array, in order, as written.
#[derive(Clone, Debug)]
pub struct Elements<'a>(Members<'a>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReadState {
    Begin,
    Within,
    Done,
}

impl<'a> Members<'a> {
    /// `depth_max` counts the object itself.
    #[must_use]
    pub fn new(text: &'a str, depth_max: usize) -> Self {
        Self { text, at: 0, depth_max: depth_max.saturating_sub(1), state: ReadState::Begin }
    }

    /// Steps to the next member's key or element; false at the end.
    #[inline]
    fn step(&mut self, scanner: &mut Scanner<'_>, open: u8, close: u8) -> Scan<bool> {
        scanner.blanks();
        if self.state == ReadState::Begin {
            scanner.expect(open, JsonFault::Container)?;
            scanner.blanks();
        }
        if scanner.peek() == close {
            scanner.at += 1;
            scanner.blanks();
            self.state = ReadState::Done;
            return if scanner.is_at_end() { Ok(false) } else { Err(JsonFault::End) };
        }
        if self.state == ReadState::Within {
            scanner.expect(b',', JsonFault::Comma)?;
            scanner.blanks();
        }
        self.state = ReadState::Within;
        Ok(true)
    }

    /// Steps over the value; returns it.
    #[inline]
    fn value(&mut self, mut scanner: Scanner<'_>) -> Scan<&'a str> {
        let begin = scanner.at;
        scanner.value(self.depth_max)?;
        self.at = scanner.at;
        self.text.get(begin..self.at).ok_or(JsonFault::Value)
    }

    fn member(&mut self) -> Scan<Option<(&'a str, &'a str)>> {
        let mut scanner = Scanner { bytes: self.text.as_bytes(), at: self.at };
        if !self.step(&mut scanner, b'{', b'}')? {
            return Ok(None);
        }
        if scanner.peek() != b'"' {
            return Err(JsonFault::Key);
        }
        let begin = scanner.at + 1;
        scanner.string()?;
        let key = self.text.get(begin..scanner.at - 1).unwrap_or("");
        scanner.blanks();
        scanner.expect(b':', JsonFault::Colon)?;
        scanner.blanks();
        Ok(Some((key, self.value(scanner)?)))
    }

    fn settle<T>(&mut self, result: Scan<Option<T>>) -> Option<Scan<T>> {
        if result.is_err() {
            self.state = ReadState::Done;
        }
        result.transpose()
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = Scan<(&'a str, &'a str)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.state == ReadState::Done {
            return None;
        }
        let result = self.member();
        self.settle(result)
    }
}

impl<'a> Elements<'a> {
    /// `depth_max` counts the array itself.
    #[must_use]
    pub fn new(text: &'a str, depth_max: usize) -> Self {
        Self(Members::new(text, depth_max))
    }

    fn element(&mut self) -> Scan<Option<&'a str>> {
        let mut scanner = Scanner { bytes: self.0.text.as_bytes(), at: self.0.at };
        if self.0.step(&mut scanner, b'[', b']')? { self.0.value(scanner).map(Some) } else { Ok(None) }
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Scan<&'a str>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.state == ReadState::Done {
            return None;
        }
        let result = self.element();
        self.0.settle(result)
    }
}

/// The text of a checked JSON string (quotes included), without its escapes; none when `raw` is no string.
#[must_use]
pub fn string(raw: &str) -> Option<Cow<'_, str>> {
    raw.strip_prefix('"')?.strip_suffix('"').map(unescape)
}

/// Resolves the escapes of what stands between the quotes of a checked string.
#[must_use]
pub fn unescape(raw: &str) -> Cow<'_, str> {
    if !raw.as_bytes().contains(&b'\\') {
        return Cow::Borrowed(raw);
    }
    let mut text = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((before, after)) = rest.split_once('\\') {
        text.push_str(before);
        let (letter, tail) = after.split_at_checked(1).unwrap_or((after, ""));
        rest = tail;
        match letter {
            "n" => text.push('\n'),
            "t" => text.push('\t'),
            "r" => text.push('\r'),
            "b" => text.push('\u{8}'),
            "f" => text.push('\u{c}'),
            "u" => {
                let mut unit = hex4(rest.as_bytes(), 0).unwrap_or(0xfffd);
                rest = rest.get(4..).unwrap_or("");
                if (0xd800..0xdc00).contains(&unit) {
                    let low = hex4(rest.as_bytes(), 2).unwrap_or(0);
                    rest = rest.get(6..).unwrap_or("");
                    unit = 0x1_0000 + ((unit - 0xd800) << 10) + (low.wrapping_sub(0xdc00) & 0x3ff);
                }
                text.push(char::from_u32(unit).unwrap_or('\u{fffd}'));
            }
            other => text.push_str(other),
        }
    }
    text.push_str(rest);
    Cow::Owned(text)
}
