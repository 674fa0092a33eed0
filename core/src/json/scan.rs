//! The scanner: steps over one value at a time and faults at the first byte that cannot be JSON.
//! No recursion: an open container is one bit (1 an object) on a stack of bits. Faults are one byte, so that results stay in
//! registers; on the wire's hot path half of the time went into moving larger ones.

use super::keys::Keys;

/// Depth that no configuration passes: one bit a level.
const DEPTH_MAX: usize = 1024;

/// Why a text is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonFault {
    /// Nested deeper than the limit.
    TooDeep,
    Value,
    Container,
    Key,
    Colon,
    Comma,
    End,
    StringEnd,
    Control,
    Escape,
    Surrogate,
    Number,
    Range,
    Repeated,
}

impl JsonFault {
    /// What was expected, or found in its place.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::TooDeep => "nested too deep",
            Self::Value => "a value was expected",
            Self::Container => "an object or array was expected",
            Self::Key => "a key was expected",
            Self::Colon => "a colon was expected",
            Self::Comma => "a comma or the end was expected",
            Self::End => "something follows the value",
            Self::StringEnd => "a string does not end",
            Self::Control => "a string holds a control character",
            Self::Escape => "an escape is not known",
            Self::Surrogate => "a surrogate stands alone",
            Self::Number => "a number is not complete",
            Self::Range => "a number is beyond what a double can hold",
            Self::Repeated => "a key stands twice in an object",
        }
    }
}

pub(super) type Scan<T> = Result<T, JsonFault>;

/// A place in a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scanner<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
}

impl Scanner<'_> {
    /// The byte here; 0, which is none of JSON's, at the end.
    #[inline(always)]
    pub(super) fn peek(&self) -> u8 {
        self.bytes.get(self.at).copied().unwrap_or(0)
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// Blanks are rare on this wire, so the first byte decides almost always.
    #[inline(always)]
    pub(super) fn blanks(&mut self) {
        while let b' ' | b'\n' | b'\r' | b'\t' = self.peek() {
            self.at += 1;
        }
    }

    #[inline(always)]
    pub(super) fn expect(&mut self, byte: u8, fault: JsonFault) -> Scan<()> {
        if self.peek() != byte {
            return Err(fault);
        }
        self.at += 1;
        Ok(())
    }

    /// Steps over a key, its colon and the blanks around them; the key belongs to the object at `depth`.
    #[inline(always)]
    fn key(&mut self, keys: &mut Keys, depth: usize) -> Scan<()> {
        if self.peek() != b'"' {
            return Err(JsonFault::Key);
        }
        let begin = self.at + 1;
        self.string()?;
        keys.add(depth, begin, self.at - 1);
        self.blanks();
        self.expect(b':', JsonFault::Colon)?;
        self.blanks();
        Ok(())
    }

    /// Steps over the value here.
    #[inline]
    pub(super) fn value(&mut self, depth_max: usize) -> Scan<()> {
        match self.peek() {
            b'{' | b'[' => self.container(depth_max.min(DEPTH_MAX)),
            _ => self.scalar(),
        }
    }

    #[inline(always)]
    fn scalar(&mut self) -> Scan<()> {
        match self.peek() {
            b'"' => self.string(),
            b'-' | b'0'..=b'9' => self.number(),
            b't' => self.word(b"true"),
            b'f' => self.word(b"false"),
            b'n' => self.word(b"null"),
            _ => Err(JsonFault::Value),
        }
    }

    fn container(&mut self, depth_max: usize) -> Scan<()> {
        let mut stack = [0u64; DEPTH_MAX / 64];
        let mut keys = Keys::default();
        let mut depth = 0;
        let mut is_object;
        loop {
            // Here stands a value.
            let open = self.peek();
            if open == b'{' || open == b'[' {
                if depth == depth_max {
                    return Err(JsonFault::TooDeep);
                }
                is_object = open == b'{';
                let bit = 1u64 << (depth % 64);
                let word = &mut stack[depth / 64];
                *word = if is_object { *word | bit } else { *word & !bit };
                depth += 1;
                self.at += 1;
                self.blanks();
                if self.peek() != if is_object { b'}' } else { b']' } {
                    if is_object {
                        self.key(&mut keys, depth)?;
                    }
                    continue;
                }
            } else {
                self.scalar()?;
                is_object = stack[(depth - 1) / 64] >> ((depth - 1) % 64) & 1 == 1;
                self.blanks();
            }
            // Here a value has ended, within a container.
            while self.peek() == if is_object { b'}' } else { b']' } {
                self.at += 1;
                if is_object && keys.close(self.bytes, depth) {
                    return Err(JsonFault::Repeated);
                }
                depth -= 1;
                if depth == 0 {
                    return Ok(());
                }
                is_object = stack[(depth - 1) / 64] >> ((depth - 1) % 64) & 1 == 1;
                self.blanks();
            }
            self.expect(b',', JsonFault::Comma)?;
            self.blanks();
            if is_object {
                self.key(&mut keys, depth)?;
            }
        }
    }

    fn word(&mut self, word: &[u8]) -> Scan<()> {
        let end = self.at + word.len();
        if self.bytes.get(self.at..end) != Some(word) {
            return Err(JsonFault::Value);
        }
        self.at = end;
        Ok(())
    }

    /// Steps over the string whose quote stands here.
    #[inline(always)]
    pub(super) fn string(&mut self) -> Scan<()> {
        self.at += 1;
        loop {
            self.at += plain_bytes(self.bytes, self.at);
            match self.peek() {
                b'"' => {
                    self.at += 1;
                    return Ok(());
                }
                b'\\' => self.escape()?,
                _ if self.is_at_end() => return Err(JsonFault::StringEnd),
                _ => return Err(JsonFault::Control),
            }
        }
    }

    #[cold]
    fn escape(&mut self) -> Scan<()> {
        let hex = |at| hex4(self.bytes, at);
        self.at += match self.bytes.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => 2,
            Some(b'u') => match hex(self.at + 2) {
                Some(0xd800..=0xdbff) => {
                    let is_escape = self.bytes.get(self.at + 6..self.at + 8) == Some(b"\\u");
                    if !is_escape || !matches!(hex(self.at + 8), Some(0xdc00..=0xdfff)) {
                        return Err(JsonFault::Surrogate);
                    }
                    12
                }
                Some(0xdc00..=0xdfff) => return Err(JsonFault::Surrogate),
                Some(_) => 6,
                None => return Err(JsonFault::Escape),
            },
            _ => return Err(JsonFault::Escape),
        };
        Ok(())
    }

    /// Steps over digits; at least one.
    #[inline(always)]
    fn digits(&mut self) -> Scan<()> {
        let begin = self.at;
        while self.peek().is_ascii_digit() {
            self.at += 1;
        }
        if self.at > begin { Ok(()) } else { Err(JsonFault::Number) }
    }

    #[inline(always)]
    fn number(&mut self) -> Scan<()> {
        let begin = self.at;
        if self.peek() == b'-' {
            self.at += 1;
        }
        let first = self.at;
        self.digits()?;
        if self.at > first + 1 && self.bytes.get(first) == Some(&b'0') {
            return Err(JsonFault::Number);
        }
        // Beyond this many digits, or with an exponent, the number may not fit a double.
        let mut is_doubtful = self.at - first > 300;
        if self.peek() == b'.' {
            self.at += 1;
            self.digits()?;
        }
        if let b'e' | b'E' = self.peek() {
            self.at += 1;
            if let b'+' | b'-' = self.peek() {
                self.at += 1;
            }
            self.digits()?;
            is_doubtful = true;
        }
        if is_doubtful { self.check_range(begin) } else { Ok(()) }
    }

    #[cold]
    fn check_range(&self, begin: usize) -> Scan<()> {
        let text = self.bytes.get(begin..self.at).and_then(|digits| std::str::from_utf8(digits).ok());
        let is_finite = text.and_then(|text| text.parse::<f64>().ok()).is_some_and(f64::is_finite);
        if is_finite { Ok(()) } else { Err(JsonFault::Range) }
    }
}

pub(super) fn hex4(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.iter().try_fold(0, |unit, &b| Some(unit << 4 | (b as char).to_digit(16)?))
}

/// How many bytes from `at` on come before the next quote, backslash or control character, eight at a time.
#[inline(always)]
pub(super) fn plain_bytes(bytes: &[u8], at: usize) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    let rest = bytes.get(at..).unwrap_or(&[]);
    let mut passed = 0;
    while let Some(word) = rest.get(passed..).and_then(|tail| tail.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*word);
        let quote = word ^ (ONES * b'"' as u64);
        let slash = word ^ (ONES * b'\\' as u64);
        // A borrow can mark a byte too many, only above the first true one; the first marked byte is always right.
        let found = ((quote.wrapping_sub(ONES) & !quote)
            | (slash.wrapping_sub(ONES) & !slash)
            | (word.wrapping_sub(ONES * 0x20) & !word))
            & HIGHS;
        if found != 0 {
            return passed + found.trailing_zeros() as usize / 8;
        }
        passed += 8;
    }
    let tail = rest.get(passed..).unwrap_or(&[]);
    passed + tail.iter().position(|&b| b == b'"' || b == b'\\' || b < 0x20).unwrap_or(tail.len())
}
