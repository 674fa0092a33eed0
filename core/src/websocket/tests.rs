//! Frames as bytes: masks, lengths, fragments, control frames, and every way to break RFC 6455.
use super::*;

const MASK: Mask = [0xa5, 0x5a, 0x3c, 0xc3];

/// What a reader makes of bytes that come in pieces of `step`: events as text, and the code it ended with.
fn read_all(bytes: &[u8], step: usize, limits: &Limits) -> (Vec<String>, Option<Code>) {
    let mut reader = Reader::default();
    let mut events = Vec::new();
    for piece in bytes.chunks(step) {
        let mut piece = piece.to_vec();
        let mut input = piece.as_mut_slice();
        loop {
            match reader.read(&mut input, limits) {
                Ok(Some(event)) => events.push(format!("{event:?}")),
                Ok(None) => break,
                Err(code) => return (events, Some(code)),
            }
        }
        assert!(input.is_empty());
        assert!(reader.held_bytes() <= 4 * bytes.len() + 512);
    }
    (events, None)
}

fn whole(bytes: &[u8]) -> (Vec<String>, Option<Code>) {
    let limits = Limits::default();
    let all = read_all(bytes, usize::MAX, &limits);
    for step in [1, 2, 3, 7] {
        assert_eq!(read_all(bytes, step, &limits), all, "in pieces of {step}");
    }
    all
}

fn raw(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    frame(&mut out, first & 15, MASK, payload);
    out[0] = first;
    out
}

fn shown(payload: &[u8], is_text: bool) -> String {
    format!("{:?}", Event::Message { payload, is_text })
}

#[test]
fn messages_of_every_size_come_out_as_they_went_in() {
    for length in [0, 1, 125, 126, 127, 65_535, 65_536, 70_001] {
        let payload = vec![b'x'; length];
        assert_eq!(whole(&raw(0x81, &payload)), (vec![shown(&payload, true)], None), "{length}");
        assert_eq!(whole(&raw(0x82, &payload)), (vec![shown(&payload, false)], None), "{length}");
    }
}

#[test]
fn control_frames_are_handed_out_between_fragments() {
    let bytes = [raw(0x01, b"ab"), raw(0x89, b"p"), raw(0x00, b""), raw(0x8a, b"q"), raw(0x80, b"c"), raw(0x82, b"d")];
    let expected =
        vec![format!("{:?}", Event::Ping(b"p")), format!("{:?}", Event::Pong), shown(b"abc", true), shown(b"d", false)];
    assert_eq!(whole(&bytes.concat()), (expected, None));
}

#[test]
fn nothing_is_held_between_messages() {
    let mut reader = Reader::default();
    let limits = Limits::default();
    let bytes = [raw(0x01, b"ab"), raw(0x80, b"c")].concat();
    for byte in &bytes {
        let mut piece = [*byte];
        let mut input = piece.as_mut_slice();
        while let Ok(Some(_)) = reader.read(&mut input, &limits) {}
    }
    assert_eq!(reader.held_bytes(), 0);
    assert_eq!(size_of::<Reader>(), size_of::<usize>());
}

#[test]
fn a_broken_frame_earns_its_code() {
    let unmasked = vec![0x81, 2, b'h', b'i'];
    let broken = Some(Code::ProtocolBroken);
    let cases: Vec<(Vec<u8>, Option<Code>)> = vec![
        (unmasked, broken),
        (raw(0xc1, b"x"), broken),
        (raw(0xa1, b"x"), broken),
        (raw(0x91, b"x"), broken),
        (raw(0x83, b"x"), broken),
        (raw(0x8b, b"x"), broken),
        (raw(0x8f, b""), broken),
        (raw(0x09, b"x"), broken),
        (raw(0x89, &[0; 126]), broken),
        (raw(0x80, b"x"), broken),
        ([raw(0x01, b"x"), raw(0x81, b"y")].concat(), broken),
        (raw(0x88, b"x"), broken),
        (vec![0x82, 0xfe, 0, 125, 0, 0, 0, 0], broken),
        (vec![0x82, 0xff, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0], broken),
        (vec![0x82, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0], broken),
        (vec![0x82, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], Some(Code::MessageTooBig)),
        (vec![0x82, 0xff, 0, 0, 0, 0, 0, 0x10, 0, 1], Some(Code::MessageTooBig)),
        (raw(0x81, b"\xff"), Some(Code::TextInvalid)),
        (raw(0x81, b"\xe2\x82"), Some(Code::TextInvalid)),
        (raw(0x01, b"a\xe2("), Some(Code::TextInvalid)),
        (raw(0x88, b"\x03\xe8\xff"), Some(Code::TextInvalid)),
        ([raw(0x01, b"\xe2\x82"), raw(0x80, b"\xac")].concat(), None),
        ([raw(0x01, b"\xe2\x82"), raw(0x80, b"")].concat(), Some(Code::TextInvalid)),
    ];
    for (bytes, code) in cases {
        assert_eq!(whole(&bytes).1, code, "{bytes:x?}");
    }
}

#[test]
fn invalid_text_fails_before_its_frame_is_whole() {
    let mut bytes = raw(0x81, &[b"ab\xff".as_slice(), &[b'c'; 100]].concat());
    bytes.truncate(12);
    assert_eq!(whole(&bytes), (vec![], Some(Code::TextInvalid)));
}

#[test]
fn close_codes_are_those_that_may_be_sent() {
    for code in 0..=5001u16 {
        let is_legal = matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999);
        let (events, end) = read_all(&raw(0x88, &code.to_be_bytes()), usize::MAX, &Limits::default());
        assert_eq!(end.is_none(), is_legal, "{code}");
        assert_eq!(events.len(), usize::from(is_legal));
    }
    assert_eq!(whole(&raw(0x88, b"")), (vec![format!("{:?}", Event::Close { code: NO_CODE, reason: "" })], None));
}

#[test]
fn a_message_is_bounded_over_all_its_fragments() {
    let limits = Limits { message_bytes_max: 1024, ..Limits::default() };
    let half = vec![b'x'; 600];
    let (events, end) = read_all(&[raw(0x01, &half), raw(0x00, &half)].concat(), 64, &limits);
    assert_eq!((events.len(), end), (0, Some(Code::MessageTooBig)));
    let pings = [raw(0x01, &half), raw(0x00, &[b'x'; 424]), raw(0x89, &[0; 125]), raw(0x80, b"")].concat();
    assert_eq!(read_all(&pings, 64, &limits).0.len(), 2);
    let mut tiny = raw(0x01, b"");
    tiny.extend(raw(0x00, b"").repeat(20_000));
    assert_eq!(whole(&tiny), (vec![], Some(Code::MessageTooBig)));
}

#[test]
fn server_frames_have_the_shortest_header_whatever_was_guessed() {
    for length in [0, 125, 126, 65_535, 65_536] {
        for guess in [0, 126, 65_536] {
            let mut out = b"before".to_vec();
            binary(&mut out, guess, |out| out.resize(out.len() + length, 7));
            let mut masked = Vec::new();
            frame(&mut masked, 2, [0; 4], &vec![7; length]);
            let header = masked.len() - length - 4;
            masked.drain(header..header + 4);
            masked[1] &= 0x7f;
            assert_eq!(&out[6..], &masked, "{length} guessed {guess}");
        }
    }
}

#[test]
fn a_close_reason_always_fits() {
    let mut out = Vec::new();
    close(&mut out, 4001, &"\u{20ac}".repeat(100));
    assert_eq!(out[..4], [0x88, 125, 0x0f, 0xa1]);
    assert!(std::str::from_utf8(&out[4..]).is_ok());
    out.clear();
    close(&mut out, NO_CODE, "x");
    assert_eq!(out, [0x88, 0]);
    for code in Code::all() {
        let reason = close_reason(code, code.sentence(), Some(u64::MAX));
        assert!(reason.len() <= 123, "{reason}");
        assert!(serde_json::from_str::<serde_json::Value>(&reason).is_ok(), "{reason}");
    }
    // What needs escapes may be cut shorter than it had to be.
    for (said, least) in [("a sentence that goes on and on ", 115), ("\u{1f30d}", 115), ("\"", 0), ("\u{0}", 0)] {
        let said = said.repeat(30);
        for length in said.char_indices().map(|(end, _)| end) {
            let reason = close_reason(Code::ConnectsTooMany, &said[..length], Some(30_000));
            let shown: serde_json::Value = serde_json::from_str(&reason).unwrap();
            let shown = shown["reason"].as_str().unwrap_or_default();
            let is_cut =
                shown.strip_suffix('\u{2026}').is_some_and(|begin| said.starts_with(begin)) || shown.is_empty();
            assert!(reason.len() <= 123 && (shown == &said[..length] || is_cut && reason.len() >= least), "{reason}");
        }
    }
    assert_eq!(
        close_reason(Code::Draining, "stop", Some(1200)),
        r#"{"name":"Draining","reconnect_after_ms":1200,"reason":"stop"}"#
    );
}
