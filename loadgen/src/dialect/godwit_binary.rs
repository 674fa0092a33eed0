//! Godwit's binary wire (protocol/binary.md). The content of a message is what ends its frame, so announcements need not be
//! kept: a connection of a load has one subscription.
use super::{Dialect, Heard, Outgoing, Place, Role, quote, write_content, write_decimal};
use crate::websocket;

const ANNOUNCE: u8 = 0x01;
const GAP: u8 = 0x02;
const RESUME_TOKEN: u8 = 0x04;
const CONNECTED: u8 = 0x20;
const SUBSCRIBED: u8 = 0x21;
const PUBLISHED: u8 = 0x23;
const SUBSCRIBE: u8 = 0x41;
const PUBLISH: u8 = 0x43;
const SNAPSHOT_FLAG: u8 = 0x04;
const STANDARD_FLAG: u8 = 0x08;
const LESS_FLAG: u8 = 0x04;
const ACK_DISK: u8 = 0x08;

pub(super) struct GodwitBinary {
    host: String,
    content: Vec<u8>,
    /// The options of every publish.
    options: u8,
}

impl GodwitBinary {
    pub(super) fn new(host: &str, content: Vec<u8>) -> Self {
        Self { host: host.to_owned(), content, options: 0 }
    }

    /// Publishes are acknowledged from the disk; one that is acknowledged with less is a fault.
    pub(super) fn with_disk(host: &str, content: Vec<u8>) -> Self {
        Self { options: ACK_DISK, ..Self::new(host, content) }
    }
}

fn write_varint(mut value: u64, out: &mut Vec<u8>) {
    while value > 127 {
        out.push(value as u8 | 128);
        value >>= 7;
    }
    out.push(value as u8);
}

fn read_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for place in 0..10 {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 127) << (7 * place);
        if byte & 128 == 0 {
            return Some(value);
        }
    }
    None
}

fn skip_string(bytes: &mut &[u8]) -> Option<()> {
    let length = read_varint(bytes)? as usize;
    *bytes = bytes.get(length..)?;
    Some(())
}

/// `/bench/N` with its length before it, which is below 128.
fn write_subject(subject: u32, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(b"\0/bench/");
    write_decimal(u64::from(subject), out);
    out[start] = (out.len() - start - 1) as u8;
}

/// id · flags · outcome · selector · [epoch, sequence]
fn read_subscribed(mut bytes: &[u8]) -> Option<Place> {
    read_varint(&mut bytes)?;
    let (flags, rest) = bytes.split_first()?;
    bytes = rest.get(1..)?;
    skip_string(&mut bytes)?;
    if flags & 1 == 0 {
        return None;
    }
    Some((read_varint(&mut bytes)?, read_varint(&mut bytes)?))
}

/// flags · reason · subject · [after] · [at] · [missed]
fn read_missed(bytes: &[u8]) -> Option<u64> {
    let (flags, mut bytes) = (*bytes.first()?, bytes.get(2..)?);
    skip_string(&mut bytes)?;
    for flag in [1, 2] {
        if flags & flag != 0 {
            read_varint(&mut bytes)?;
            read_varint(&mut bytes)?;
        }
    }
    if flags & 4 != 0 { read_varint(&mut bytes) } else { None }
}

/// id · flags: the level that was asked for was not reached.
fn is_less(mut bytes: &[u8]) -> bool {
    read_varint(&mut bytes).is_some() && bytes.first().is_some_and(|flags| flags & LESS_FLAG != 0)
}

impl Dialect for GodwitBinary {
    fn greet(&self, _role: Role, out: &mut Vec<u8>) {
        websocket::write_upgrade("/v1/live", &self.host, "godwit.v1.binary", out);
    }

    fn join(&self, subject: u32, after: Option<Place>, out: &mut Vec<u8>) {
        websocket::write_frame(websocket::BINARY, out, |out| {
            out.extend_from_slice(&[SUBSCRIBE, 1, u8::from(after.is_some())]);
            write_subject(subject, out);
            if let Some((epoch, sequence)) = after {
                write_varint(epoch, out);
                write_varint(sequence, out);
            }
        });
    }

    fn publish(&self, message: Outgoing, out: &mut Vec<u8>) {
        websocket::write_frame(websocket::BINARY, out, |out| {
            out.push(PUBLISH);
            write_varint(if message.wants_ack { u64::from(message.number) + 1 } else { 0 }, out);
            out.extend_from_slice(&[0, self.options]);
            write_subject(message.subject, out);
            write_content(&self.content, message, out);
        });
    }

    fn next<'a>(&self, is_ready: bool, bytes: &'a [u8]) -> Option<(usize, Heard<'a>)> {
        if !is_ready {
            let (length, is_yes) = websocket::read_upgrade(bytes)?;
            return Some((length, if is_yes { Heard::Ready } else { Heard::Fault(quote(bytes)) }));
        }
        let (length, opcode, payload) = websocket::read_frame(bytes)?;
        let payload = bytes.get(payload)?;
        let heard = match (opcode, payload) {
            (websocket::BINARY, [first, ..]) if first & 0x80 != 0 => {
                let (head, content) = payload.split_at(payload.len().saturating_sub(self.content.len()));
                Heard::Message { content, head }
            }
            (websocket::BINARY, [PUBLISHED, rest @ ..]) if !is_less(rest) => Heard::Acked(1),
            (websocket::BINARY, [SUBSCRIBED, rest @ ..]) => Heard::Joined(read_subscribed(rest)),
            (websocket::BINARY, [GAP, rest @ ..]) => Heard::Gap(read_missed(rest)),
            (websocket::BINARY, [ANNOUNCE | RESUME_TOKEN | CONNECTED, ..]) => Heard::Nothing,
            (websocket::PING, _) => {
                let mut pong = Vec::new();
                websocket::write_frame(websocket::PONG, &mut pong, |out| out.extend_from_slice(payload));
                Heard::Echo(pong)
            }
            _ => Heard::Fault(quote(payload)),
        };
        Some((length, heard))
    }

    fn place(&self, head: &[u8]) -> Option<Place> {
        let (&first, mut rest) = head.split_first()?;
        read_varint(&mut rest)?;
        if first & STANDARD_FLAG != 0 { None } else { Some((0, read_varint(&mut rest)?)) }
    }

    fn is_snapshot(&self, head: &[u8]) -> bool {
        head.first().is_some_and(|first| first & SNAPSHOT_FLAG != 0)
    }

    fn acks(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_ends_in_its_content_and_says_its_sequence() {
        let content = crate::content::blank(100);
        let dialect = GodwitBinary::new("h", content.clone());
        let mut payload = vec![0x80, 5, 59, 0xf6, 1];
        payload.extend_from_slice(&content);
        let mut frame = vec![0x82, payload.len() as u8];
        frame.extend_from_slice(&payload);
        match dialect.next(true, &frame) {
            Some((length, Heard::Message { content: got, head })) => {
                assert_eq!((length, got, dialect.place(head)), (frame.len(), &content[..], Some((0, 59))));
                assert!(!dialect.is_snapshot(head));
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_answer_that_the_disk_did_not_give_is_a_fault() {
        let dialect = GodwitBinary::with_disk("h", crate::content::blank(100));
        assert_eq!(dialect.next(true, &[0x82, 5, PUBLISHED, 1, 1, 7, 1]), Some((7, Heard::Acked(1))));
        assert!(matches!(dialect.next(true, &[0x82, 5, PUBLISHED, 1, 5, 7, 1]), Some((7, Heard::Fault(_)))));
    }

    #[test]
    fn replies_and_gaps_are_read() {
        assert_eq!(read_subscribed(&[1, 1, 3, 2, b'/', b'a', 7, 0x80, 1]), Some((7, 128)));
        assert_eq!(read_subscribed(&[1, 0, 3, 2, b'/', b'a']), None);
        assert_eq!(read_missed(&[7, 1, 2, b'/', b'a', 7, 1, 7, 9, 8]), Some(8));
        assert_eq!(read_missed(&[2, 1, 2, b'/', b'a', 7, 9]), None);
    }
}
