//! JSON at the speed of the wire: checks a text strictly and splits it into its members without building anything.
//! Owns what JSON Godwit accepts (RFC 8259, no lone surrogates, no number beyond a double, bounded depth); what the members
//! mean is the wires'. Invariant: work is linear in the bytes, memory constant, and no input panics.

mod merge;
mod write;

use std::borrow::Cow;

pub use merge::merge;
pub(crate) use write::{put_escaped, put_hex, put_number, put_string};

/// Depth that no configuration passes: one bit a level.
const DEPTH_MAX: usize = 1024;

/// Why a text is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonFault {
    /// Not JSON: what was expected.
    Malformed(&'static str),
    /// Nested deeper than the limit.
    TooDeep,
}

type Scan<T> = Result<T, JsonFault>;

const fn malformed<T>(what: &'static str) -> Scan<T> {
    Err(JsonFault::Malformed(what))
}

/// Checks that `text` is one JSON value with nothing but blanks around it.
///
/// # Errors
/// Says what is wrong.
pub fn check(text: &str, depth_max: usize) -> Scan<()> {
    let bytes = text.as_bytes();
    let end = skip_value(bytes, skip_blanks(bytes, 0), depth_max)?;
    if skip_blanks(bytes, end) == bytes.len() { Ok(()) } else { malformed("something follows the value") }
}

/// The members of an object, in order: key as written between its quotes, value as written. Values are checked as they pass.
#[derive(Clone, Debug)]
pub struct Members<'a> {
    text: &'a str,
    at: usize,
    depth_max: usize,
    place: Place,
}

/// The elements of an array, in order, as written.
#[derive(Clone, Debug)]
pub struct Elements<'a>(Members<'a>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Begin,
    Within,
    Done,
}

impl<'a> Members<'a> {
    /// `depth_max` counts the object itself.
    #[must_use]
    pub fn new(text: &'a str, depth_max: usize) -> Self {
        Self { text, at: 0, depth_max: depth_max.saturating_sub(1), place: Place::Begin }
    }

    fn step(&mut self, open: u8, close: u8) -> Scan<bool> {
        let bytes = self.text.as_bytes();
        let mut at = skip_blanks(bytes, self.at);
        if self.place == Place::Begin {
            at = skip_blanks(bytes, expect(bytes, at, open, "an object or array")?);
        }
        let byte = bytes.get(at).copied();
        if byte == Some(close) {
            self.at = skip_blanks(bytes, at + 1);
            self.place = Place::Done;
            return if self.at == bytes.len() { Ok(false) } else { malformed("something follows the value") };
        }
        if self.place == Place::Within {
            at = skip_blanks(bytes, expect(bytes, at, b',', "a comma or the end")?);
        }
        self.place = Place::Within;
        self.at = at;
        Ok(true)
    }

    fn value(&mut self) -> Scan<&'a str> {
        let end = skip_value(self.text.as_bytes(), self.at, self.depth_max)?;
        let value = self.text.get(self.at..end);
        self.at = end;
        value.ok_or(JsonFault::Malformed("a value"))
    }

    fn member(&mut self) -> Scan<Option<(&'a str, &'a str)>> {
        if !self.step(b'{', b'}')? {
            return Ok(None);
        }
        let bytes = self.text.as_bytes();
        if bytes.get(self.at) != Some(&b'"') {
            return malformed("a key");
        }
        let end = skip_string(bytes, self.at)?;
        let key = self.text.get(self.at + 1..end - 1).unwrap_or("");
        self.at = skip_blanks(bytes, expect(bytes, skip_blanks(bytes, end), b':', "a colon")?);
        Ok(Some((key, self.value()?)))
    }

    fn settle<T>(&mut self, result: Scan<Option<T>>) -> Option<Scan<T>> {
        if result.is_err() {
            self.place = Place::Done;
        }
        result.transpose()
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = Scan<(&'a str, &'a str)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.place == Place::Done {
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
        if self.0.step(b'[', b']')? { self.0.value().map(Some) } else { Ok(None) }
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Scan<&'a str>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.place == Place::Done {
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

/// Blanks are rare on this wire, so the first byte decides almost always.
#[inline]
fn skip_blanks(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\r' | b'\t') = bytes.get(at) {
        at += 1;
    }
    at
}

#[inline]
fn expect(bytes: &[u8], at: usize, byte: u8, what: &'static str) -> Scan<usize> {
    if bytes.get(at) == Some(&byte) { Ok(at + 1) } else { malformed(what) }
}

/// The end of the value that begins at `at`. No recursion: an open container is one bit (1 an object) on a stack of bits.
fn skip_value(bytes: &[u8], mut at: usize, depth_max: usize) -> Scan<usize> {
    let mut stack = [0u64; DEPTH_MAX / 64];
    let mut depth = 0;
    let depth_max = depth_max.min(DEPTH_MAX);
    loop {
        let mut is_opened = false;
        match bytes.get(at) {
            Some(b'"') => at = skip_string(bytes, at)?,
            Some(b'-' | b'0'..=b'9') => at = skip_number(bytes, at)?,
            Some(b't') => at = skip_word(bytes, at, b"true")?,
            Some(b'f') => at = skip_word(bytes, at, b"false")?,
            Some(b'n') => at = skip_word(bytes, at, b"null")?,
            Some(open @ (b'{' | b'[')) => {
                if depth == depth_max {
                    return Err(JsonFault::TooDeep);
                }
                let bit = 1u64 << (depth % 64);
                let word = &mut stack[depth / 64];
                *word = if *open == b'{' { *word | bit } else { *word & !bit };
                depth += 1;
                at += 1;
                is_opened = true;
            }
            _ => return malformed("a value"),
        }
        loop {
            if depth == 0 {
                return Ok(at);
            }
            at = skip_blanks(bytes, at);
            let is_object = stack[(depth - 1) / 64] >> ((depth - 1) % 64) & 1 == 1;
            let byte = bytes.get(at).copied().unwrap_or(0);
            if byte == if is_object { b'}' } else { b']' } {
                depth -= 1;
                at += 1;
                is_opened = false;
                continue;
            }
            if !is_opened {
                at = skip_blanks(bytes, expect(bytes, at, b',', "a comma or the end")?);
            }
            if is_object {
                if bytes.get(at) != Some(&b'"') {
                    return malformed("a key");
                }
                at = skip_blanks(bytes, skip_string(bytes, at)?);
                at = skip_blanks(bytes, expect(bytes, at, b':', "a colon")?);
            }
            break;
        }
    }
}

fn skip_word(bytes: &[u8], at: usize, word: &[u8]) -> Scan<usize> {
    let end = at + word.len();
    if bytes.get(at..end) == Some(word) { Ok(end) } else { malformed("a value") }
}

/// The end of the string whose quote stands at `at`.
#[inline]
fn skip_string(bytes: &[u8], at: usize) -> Scan<usize> {
    let mut at = at + 1;
    loop {
        at += plain_bytes(bytes.get(at..).unwrap_or(&[]));
        match bytes.get(at) {
            Some(b'"') => return Ok(at + 1),
            Some(b'\\') => at = skip_escape(bytes, at)?,
            Some(_) => return malformed("no control character in a string"),
            None => return malformed("the end of a string"),
        }
    }
}

/// How many bytes come before the next quote, backslash or control character, eight at a time.
#[inline]
fn plain_bytes(bytes: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    let (words, _) = bytes.as_chunks::<8>();
    let mut at = 0;
    for word in words {
        let word = u64::from_le_bytes(*word);
        let quote = word ^ (ONES * b'"' as u64);
        let slash = word ^ (ONES * b'\\' as u64);
        // A borrow can mark a byte too many, only above the first true one; the first marked byte is always right.
        let found = ((quote.wrapping_sub(ONES) & !quote)
            | (slash.wrapping_sub(ONES) & !slash)
            | (word.wrapping_sub(ONES * 0x20) & !word))
            & HIGHS;
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    let tail = bytes.get(at..).unwrap_or(&[]);
    at + tail.iter().position(|&b| b == b'"' || b == b'\\' || b < 0x20).unwrap_or(tail.len())
}

fn skip_escape(bytes: &[u8], at: usize) -> Scan<usize> {
    match bytes.get(at + 1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(at + 2),
        Some(b'u') => match hex4(bytes, at + 2) {
            Some(0xd800..=0xdbff) => {
                let is_paired =
                    bytes.get(at + 6..at + 8) == Some(b"\\u") && matches!(hex4(bytes, at + 8), Some(0xdc00..=0xdfff));
                if is_paired { Ok(at + 12) } else { malformed("no lone surrogate") }
            }
            Some(0xdc00..=0xdfff) => malformed("no lone surrogate"),
            Some(_) => Ok(at + 6),
            None => malformed("four hexadecimal digits"),
        },
        _ => malformed("a known escape"),
    }
}

fn hex4(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.iter().try_fold(0, |unit, &b| Some(unit << 4 | (b as char).to_digit(16)?))
}

#[inline]
fn skip_digits(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b'0'..=b'9') = bytes.get(at) {
        at += 1;
    }
    at
}

fn skip_number(bytes: &[u8], begin: usize) -> Scan<usize> {
    let first = if bytes.get(begin) == Some(&b'-') { begin + 1 } else { begin };
    let mut at = skip_digits(bytes, first);
    if at == first || (at > first + 1 && bytes.get(first) == Some(&b'0')) {
        return malformed("a number");
    }
    // Beyond this many digits, or with an exponent, the number may not fit a double.
    let mut is_doubtful = at - first > 300;
    if bytes.get(at) == Some(&b'.') {
        let fraction = at + 1;
        at = skip_digits(bytes, fraction);
        if at == fraction {
            return malformed("digits after the point");
        }
    }
    if let Some(b'e' | b'E') = bytes.get(at) {
        let exponent = if let Some(b'+' | b'-') = bytes.get(at + 1) { at + 2 } else { at + 1 };
        at = skip_digits(bytes, exponent);
        if at == exponent {
            return malformed("digits of an exponent");
        }
        is_doubtful = true;
    }
    if is_doubtful {
        let text = bytes.get(begin..at).and_then(|digits| std::str::from_utf8(digits).ok());
        if !text.and_then(|text| text.parse::<f64>().ok()).is_some_and(f64::is_finite) {
            return malformed("a number that a double can hold");
        }
    }
    Ok(at)
}
