//! MQTT 3.1.1 over TCP: subscriptions at QoS 0 or 1, whose messages are then acknowledged; publishes at QoS 0, or at QoS 1 where
//! acknowledgements are wanted or subscribers are to get it.
use super::{Dialect, Heard, Outgoing, Place, Role, write_content, write_decimal};

pub(super) struct Mqtt {
    content: Vec<u8>,
    /// Of the subscriptions.
    qos: u8,
}

impl Mqtt {
    pub(super) fn new(content: Vec<u8>, qos: u8) -> Self {
        Self { content, qos }
    }
}

/// A packet of one type byte, its length as MQTT writes it, and what `fill` appends.
fn write_packet(first: u8, out: &mut Vec<u8>, fill: impl FnOnce(&mut Vec<u8>)) {
    let mut body = Vec::with_capacity(256);
    fill(&mut body);
    out.push(first);
    let mut length = body.len();
    loop {
        let more = if length > 127 { 128 } else { 0 };
        out.push((length & 127) as u8 | more);
        length >>= 7;
        if length == 0 {
            break;
        }
    }
    out.extend_from_slice(&body);
}

fn write_topic(subject: u32, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(b"\0\0bench/");
    write_decimal(u64::from(subject), out);
    let length = (out.len() - start - 2) as u16;
    out[start..start + 2].copy_from_slice(&length.to_be_bytes());
}

/// One whole packet: its length, its first byte, its body.
fn read_packet(bytes: &[u8]) -> Option<(usize, u8, &[u8])> {
    let (mut length, mut place) = (0usize, 1);
    loop {
        let byte = *bytes.get(place)?;
        length |= usize::from(byte & 127) << (7 * (place - 1));
        place += 1;
        if byte & 128 == 0 || place > 4 {
            break;
        }
    }
    Some((place + length, *bytes.first()?, bytes.get(place..place + length)?))
}

impl Dialect for Mqtt {
    fn greet(&self, _role: Role, out: &mut Vec<u8>) {
        // Clean session, no keep-alive, no client id: the server names it.
        write_packet(0x10, out, |out| out.extend_from_slice(b"\0\x04MQTT\x04\x02\0\0\0\0"));
    }

    fn join(&self, subject: u32, _after: Option<Place>, out: &mut Vec<u8>) {
        write_packet(0x82, out, |out| {
            out.extend_from_slice(&[0, 1]);
            write_topic(subject, out);
            out.push(self.qos);
        });
    }

    fn publish(&self, message: Outgoing, out: &mut Vec<u8>) {
        let has_id = message.wants_ack || self.qos > 0;
        write_packet(if has_id { 0x32 } else { 0x30 }, out, |out| {
            write_topic(message.subject, out);
            if has_id {
                out.extend_from_slice(&((message.number % 65_535) as u16 + 1).to_be_bytes());
            }
            write_content(&self.content, message, out);
        });
    }

    fn next<'a>(&self, _is_ready: bool, bytes: &'a [u8]) -> Option<(usize, Heard<'a>)> {
        let (length, first, body) = read_packet(bytes)?;
        let heard = match first >> 4 {
            2 if body.get(1) == Some(&0) => Heard::Ready,
            9 if body.get(2) == Some(&self.qos) => Heard::Joined(None),
            4 => Heard::Acked(1),
            3 => {
                let topic = 2 + usize::from(u16::from_be_bytes([*body.first()?, *body.get(1)?]));
                let id_bytes = if first & 6 == 0 { 0 } else { 2 };
                let (head, content) = body.get(topic..)?.split_at_checked(id_bytes)?;
                Heard::Message { content, head }
            }
            _ => Heard::Fault(format!("MQTT packet {first:#x} {body:x?}")),
        };
        Some((length, heard))
    }

    fn acknowledge(&self, head: &[u8], out: &mut Vec<u8>) {
        if let [high, low] = head {
            out.extend_from_slice(&[0x40, 2, *high, *low]);
        }
    }

    fn acks(&self) -> bool {
        true
    }
}
