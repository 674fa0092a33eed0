//! The client's side of WebSocket, as much as a load needs: the upgrade, whole frames in, masked frames out.
//! Servers do not fragment what they push here; a fragment is a fault, not something to put together.
use std::ops::Range;

/// One mask for all frames: a server has to unmask it whatever it is, and nobody listens on loopback.
pub(crate) const MASK: [u8; 4] = [0x5a, 0xc3, 0x17, 0x9e];

pub(crate) const TEXT: u8 = 1;
pub(crate) const BINARY: u8 = 2;
pub(crate) const CLOSE: u8 = 8;
pub(crate) const PING: u8 = 9;
pub(crate) const PONG: u8 = 10;

/// Asks for the upgrade; `protocol` may be empty.
pub(crate) fn write_upgrade(path: &str, host: &str, protocol: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"GET ");
    out.extend_from_slice(path.as_bytes());
    out.extend_from_slice(b" HTTP/1.1\r\nHost: ");
    out.extend_from_slice(host.as_bytes());
    out.extend_from_slice(
        b"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: Z29kd2l0IHN3YXJtIGtleQ==\r\n",
    );
    if !protocol.is_empty() {
        out.extend_from_slice(b"Sec-WebSocket-Protocol: ");
        out.extend_from_slice(protocol.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
}

/// The bytes of the answer to the upgrade once it is whole, and whether it said yes.
pub(crate) fn read_upgrade(bytes: &[u8]) -> Option<(usize, bool)> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    Some((end, bytes.starts_with(b"HTTP/1.1 101")))
}

/// One whole frame at the start of `bytes`: its length, its opcode, where its payload lies.
/// The opcode is 255 for what a server must not send to this client: fragments, masks, reserved bits.
pub(crate) fn read_frame(bytes: &[u8]) -> Option<(usize, u8, Range<usize>)> {
    let (&first, &second) = (bytes.first()?, bytes.get(1)?);
    let (head, length) = match second & 127 {
        126 => (4, usize::from(u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?))),
        127 => (10, u64::from_be_bytes(bytes.get(2..10)?.try_into().ok()?) as usize),
        short => (2, usize::from(short)),
    };
    let end = head + length;
    if bytes.len() < end {
        return None;
    }
    let is_plain = first & 0xf0 == 0x80 && second & 128 == 0;
    Some((end, if is_plain { first & 15 } else { 255 }, head..end))
}

/// Appends a masked frame whose payload `fill` appends.
pub(crate) fn write_frame(opcode: u8, out: &mut Vec<u8>, fill: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.resize(start + 8, 0);
    fill(out);
    let length = out.len() - start - 8;
    if length < 126 {
        // The header is two bytes shorter than the room left for it.
        out.copy_within(start + 8.., start + 6);
        out.truncate(start + 6 + length);
        write_head(out, start, opcode, length as u8);
        mask(out, start + 6);
    } else if length < 65_536 {
        write_head(out, start, opcode, 126);
        if let Some(place) = out.get_mut(start + 2..start + 4) {
            place.copy_from_slice(&(length as u16).to_be_bytes());
        }
        mask(out, start + 8);
    } else {
        out.splice(start + 4..start + 4, [0; 6]);
        write_head(out, start, opcode, 127);
        if let Some(place) = out.get_mut(start + 2..start + 10) {
            place.copy_from_slice(&(length as u64).to_be_bytes());
        }
        mask(out, start + 14);
    }
}

fn write_head(out: &mut [u8], start: usize, opcode: u8, length: u8) {
    if let Some(place) = out.get_mut(start..start + 2) {
        place.copy_from_slice(&[0x80 | opcode, 0x80 | length]);
    }
}

/// Writes the mask before `payload` and applies it.
fn mask(out: &mut [u8], payload: usize) {
    if let Some(place) = out.get_mut(payload - 4..payload) {
        place.copy_from_slice(&MASK);
    }
    let Some(body) = out.get_mut(payload..) else { return };
    let mut words = body.chunks_exact_mut(4);
    for word in &mut words {
        for (byte, key) in word.iter_mut().zip(MASK) {
            *byte ^= key;
        }
    }
    for (byte, key) in words.into_remainder().iter_mut().zip(MASK) {
        *byte ^= key;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_masked_frame_of_any_length_is_what_the_standard_says() {
        for length in [0usize, 1, 125, 126, 65_535, 65_536, 70_001] {
            let payload: Vec<u8> = (0..length).map(|n| n as u8).collect();
            let mut out = b"before".to_vec();
            write_frame(TEXT, &mut out, |out| out.extend_from_slice(&payload));
            let frame = &out[6..];
            assert_eq!(frame[0], 0x81);
            let head = match frame[1] & 127 {
                126 => 4,
                127 => 10,
                _ => 2,
            };
            assert_eq!(frame.len(), head + 4 + length);
            let unmasked: Vec<u8> =
                frame[head + 4..].iter().enumerate().map(|(n, b)| b ^ frame[head + n % 4]).collect();
            assert_eq!(unmasked, payload);
            let mut plain = frame.to_vec();
            plain[1] &= 127;
            plain.drain(head..head + 4);
            plain[head..].copy_from_slice(&payload);
            assert_eq!(read_frame(&plain), Some((plain.len(), TEXT, head..plain.len())));
            assert_eq!(read_frame(&plain[..plain.len() - 1]), None);
        }
    }

    #[test]
    fn a_fragment_or_a_masked_frame_from_the_server_is_a_fault() {
        assert_eq!(read_frame(&[0x01, 0]).map(|f| f.1), Some(255));
        assert_eq!(read_frame(&[0x81, 0x80]).map(|f| f.1), Some(255));
    }

    #[test]
    fn the_upgrade_is_answered_when_its_head_is_whole() {
        assert_eq!(read_upgrade(b"HTTP/1.1 101 Switching Protocols\r\n\r"), None);
        assert_eq!(read_upgrade(b"HTTP/1.1 101 Switching Protocols\r\n\r\nX"), Some((36, true)));
        assert_eq!(read_upgrade(b"HTTP/1.1 403 Forbidden\r\n\r\n"), Some((26, false)));
    }
}
