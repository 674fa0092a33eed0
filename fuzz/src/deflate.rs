//! permessage-deflate as a fuzz target: offers, bombs, broken streams, and that what was compressed comes out again.
use godwit_core::codes::Code;
use godwit_core::http;
use godwit_core::limits::Limits;
use godwit_core::websocket::{Deflater, Inflater, Reader, WINDOW_BITS_MAX, WINDOW_BITS_MIN, text};

const BYTES_MAX: usize = 4096;

/// A list of extensions in an upgrade: what is answered names nothing that was not offered.
pub fn extensions(input: &[u8]) {
    let lists: [&[u8]; 3] = [
        b"permessage-deflate; server_max_window_bits=10; client_max_window_bits, x-webkit",
        b"permessage-deflate;client_no_context_takeover ; server_no_context_takeover,permessage-deflate",
        b"x; a=\"b\\c\", , permessage-deflate; server_max_window_bits=\"15\"",
    ];
    let list = super::vary(input, &lists);
    let head = [
        b"GET /v1/live HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
          Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Extensions: ",
        list.as_ref(),
        b"\r\n\r\n",
    ];
    let bytes = head.concat();
    let Ok(Some(head)) = http::read_head(&bytes, &Limits::default()) else { return };
    let Ok(upgrade) = http::upgrade(&head, true) else { return };
    let bits = usize::from(upgrade.window_bits);
    assert!(bits == 0 || (usize::from(WINDOW_BITS_MIN)..=usize::from(WINDOW_BITS_MAX)).contains(&bits));
    let answer = String::from_utf8_lossy(&upgrade.answer);
    assert_eq!(answer.contains("permessage-deflate"), bits > 0);
    assert!(bits == 0 || list.windows(18).any(|name| name == b"permessage-deflate"));
}

/// Bytes that were never compressed inflate within the limit or not at all; what is compressed inflates to what it was.
pub fn deflate(input: &[u8]) {
    let (mut inflater, mut out) = (Inflater::default(), Vec::new());
    for payload in [input, &[&[0xed, 0xc1, 0x01, 0x01], input].concat(), &input.repeat(3)] {
        match inflater.inflate(payload, false, BYTES_MAX, &mut out) {
            Ok(()) => assert!(out.len() <= BYTES_MAX),
            Err(code) => assert!(matches!(code, Code::MessageTooBig | Code::ProtocolBroken)),
        }
    }
    let plain = String::from_utf8_lossy(input).repeat(4);
    let bits = WINDOW_BITS_MIN + input.first().map_or(0, |first| first % 7);
    let mut frame = Vec::new();
    text(&mut frame, plain.len(), |out| out.extend_from_slice(plain.as_bytes()));
    let before = frame.clone();
    Deflater::default().squeeze(bits, &mut frame, 0);
    assert!(frame.len() <= before.len());
    if frame[0] & 0x40 == 0 {
        assert_eq!(frame, before);
        return;
    }
    let header_bytes = match frame[1] {
        126 => 4,
        127 => 10,
        _ => 2,
    };
    assert_eq!(inflater.inflate(&frame[header_bytes..], true, plain.len(), &mut out), Ok(()));
    assert_eq!(out, plain.as_bytes());
    assert_eq!(inflater.inflate(&frame[header_bytes..], true, plain.len() - 1, &mut out), Err(Code::MessageTooBig));
    let mut reader = Reader::default();
    assert!(reader.read(&mut frame.as_mut_slice(), &Limits::default()).is_err(), "nobody agreed to that");
}
