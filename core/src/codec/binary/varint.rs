//! Numbers of seven bits a byte, lowest first, in their shortest form only (binary.md, B2).

use crate::position::Position;

/// Appends `number`.
#[inline]
pub fn put(out: &mut Vec<u8>, mut number: u64) {
    while number > 127 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends a signed number, small in either direction.
#[inline]
pub fn put_signed(out: &mut Vec<u8>, number: i64) {
    put(out, (number << 1 ^ number >> 63) as u64);
}

/// Appends a length and the text.
#[inline]
pub fn put_string(out: &mut Vec<u8>, text: &str) {
    put(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// Appends epoch and sequence.
pub fn put_position(out: &mut Vec<u8>, at: Position) {
    put(out, at.epoch);
    put(out, at.sequence);
}

/// Reads values off the front of a frame; none: it is cut short or malformed there.
#[derive(Clone, Copy, Debug)]
pub struct Values<'a>(pub &'a [u8]);

impl<'a> Values<'a> {
    #[inline]
    pub fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(byte)
    }

    #[inline]
    pub fn varint(&mut self) -> Option<u64> {
        let mut number = 0u64;
        for place in 0..10 {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            // The tenth byte has one bit left; a last byte of nothing would be a longer form.
            if (place == 9 && byte > 1) || (place > 0 && byte == 0) {
                return None;
            }
            number |= bits << (7 * place);
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    /// A signed number.
    pub fn signed(&mut self) -> Option<i64> {
        let number = self.varint()?;
        Some((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// So many bytes as a varint says.
    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.varint()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    pub fn string(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    pub fn position(&mut self) -> Option<Position> {
        Some(Position { epoch: self.varint()?, sequence: self.varint()? })
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
