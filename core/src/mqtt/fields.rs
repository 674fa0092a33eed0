//! The data types of both standards (1.5), read strictly from the front of a packet's body.
use std::borrow::Cow;

use super::reason::Reason;
use crate::codes::Code;
use crate::command::Refusal;

/// Why a packet is refused: the reason code of the standard, and a sentence for the log and the reason string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub reason: Reason,
    pub text: Cow<'static, str>,
    /// The same on every other wire, for who looks at the node's refusals.
    pub code: Code,
}

impl Fault {
    pub const fn new(reason: Reason, text: &'static str) -> Self {
        Self { reason, text: Cow::Borrowed(text), code: Code::CommandMalformed }
    }

    /// What is well formed and refused all the same.
    pub const fn of(code: Code, reason: Reason, text: &'static str) -> Self {
        Self { reason, text: Cow::Borrowed(text), code }
    }

    /// The same of a refusal, in its words.
    pub fn refused(refusal: Refusal, reason: Reason) -> Self {
        Self { reason, text: Cow::Owned(refusal.reason), code: refusal.code }
    }

    pub const fn malformed(text: &'static str) -> Self {
        Self::new(Reason::MALFORMED, text)
    }

    pub const fn protocol(text: &'static str) -> Self {
        Self::new(Reason::PROTOCOL_ERROR, text)
    }
}

const SHORT: Fault = Fault::malformed("the packet ends too early");

/// What is left of a body.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], Fault> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(SHORT)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn byte(&mut self) -> Result<u8, Fault> {
        let (&byte, rest) = self.0.split_first().ok_or(SHORT)?;
        self.0 = rest;
        Ok(byte)
    }

    pub(super) fn two(&mut self) -> Result<u16, Fault> {
        let (&bytes, rest) = self.0.split_first_chunk().ok_or(SHORT)?;
        self.0 = rest;
        Ok(u16::from_be_bytes(bytes))
    }

    pub(super) fn four(&mut self) -> Result<u32, Fault> {
        let (&bytes, rest) = self.0.split_first_chunk().ok_or(SHORT)?;
        self.0 = rest;
        Ok(u32::from_be_bytes(bytes))
    }

    /// A variable byte integer in its shortest form [MQTT-1.5.5-1].
    pub(super) fn varint(&mut self) -> Result<u32, Fault> {
        match read_varint(self.0) {
            Varint::Whole { value, bytes, is_shortest: true } => {
                self.0 = self.0.get(bytes..).unwrap_or(&[]);
                Ok(value)
            }
            Varint::Whole { .. } | Varint::TooLong => Err(Fault::malformed("a length is not written as it should be")),
            Varint::Short => Err(SHORT),
        }
    }

    pub(super) fn binary(&mut self) -> Result<&'a [u8], Fault> {
        let count = self.two()?;
        self.take(usize::from(count))
    }

    /// A string: UTF-8 without surrogates [MQTT-1.5.4-1] and without U+0000 [MQTT-1.5.4-2].
    pub(super) fn string(&mut self) -> Result<&'a str, Fault> {
        let bytes = self.binary()?;
        let text = std::str::from_utf8(bytes).map_err(|_| Fault::malformed("a string is not UTF-8"))?;
        if bytes.contains(&0) { Err(Fault::malformed("a string holds U+0000")) } else { Ok(text) }
    }

    /// A packet identifier, which is never 0 [MQTT-2.2.1-3].
    pub(super) fn packet_id(&mut self) -> Result<u16, Fault> {
        match self.two()? {
            0 => Err(Fault::protocol("the packet identifier is 0")),
            id => Ok(id),
        }
    }

    /// Nothing may follow.
    pub(super) fn end(&self) -> Result<(), Fault> {
        if self.is_empty() { Ok(()) } else { Err(Fault::malformed("the packet is longer than what it holds")) }
    }
}

/// What the front of some bytes is as a variable byte integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Varint {
    Whole {
        value: u32,
        bytes: usize,
        is_shortest: bool,
    },
    Short,
    /// A fifth byte would follow.
    TooLong,
}

pub(super) fn read_varint(bytes: &[u8]) -> Varint {
    let mut value = 0;
    for (allowed, &byte) in bytes.iter().take(4).enumerate() {
        value |= u32::from(byte & 127) << (7 * allowed);
        if byte & 128 == 0 {
            return Varint::Whole { value, bytes: allowed + 1, is_shortest: byte != 0 || allowed == 0 };
        }
    }
    if bytes.len() < 4 { Varint::Short } else { Varint::TooLong }
}

/// Appends a variable byte integer; at most 268,435,455.
pub fn put_varint(out: &mut Vec<u8>, mut value: u32) {
    while value > 127 {
        out.push(value as u8 | 128);
        value >>= 7;
    }
    out.push(value as u8);
}

/// How many bytes `put_varint` writes.
pub(super) const fn varint_bytes(value: usize) -> usize {
    match value {
        0..=127 => 1,
        128..=16_383 => 2,
        16_384..=2_097_151 => 3,
        _ => 4,
    }
}
