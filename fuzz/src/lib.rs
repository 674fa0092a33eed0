//! What the fuzz targets do with their input: one function a parser, each asserting what must hold whatever comes.
//! The input is taken as it is, or (odd first byte) as changes to a sample that is legal, so that the depths of a parser are
//! reached by chance too. `cargo test -p godwit-fuzz` makes a bounded random pass, `make fuzz` one of a minute each (`FUZZ_SECONDS=7200
//! TARGET=frames` of two hours on one); `cargo bolero test -p godwit-fuzz frames --engine afl` is guided by coverage.

mod deflate;
#[allow(dead_code, clippy::unwrap_used, reason = "the journal's own tests use more of it")]
#[path = "../../journal/tests/journal/world/disk.rs"]
mod disk;
mod journal;
mod mqtt;
mod net;
mod session;

use std::borrow::Cow;

use godwit_core::address::proxy::{self, Header};
use godwit_core::codec::{self, Wire};
use godwit_core::command::Command;
use godwit_core::http::{self, Chunked, Way};
use godwit_core::json::{self, Members};
use godwit_core::limits::Limits;
use godwit_core::message::Kind;
use godwit_core::position::{Position, ResumeToken};
use godwit_core::subject::{Pattern, check_subject};
use godwit_core::websocket::{Reader, frame};

pub use deflate::{deflate, extensions};
pub use journal::journal;
pub use mqtt::{mqtt, mqtt_session};
pub use session::session;

const HEAD: &[u8] = b"GET /v1/live?token=a%20b HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: godwit.v1.json\r\n\r\n";
const POST: &[u8] = b"POST /v1/messages?subject=/a&retain=false HTTP/1.1\r\nHost: [::1]:80\r\nContent-Length: 2\r\n\
Content-Type: application/json; charset=utf-8\r\nIdempotency-Key: \"k\"\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n{}";
const STREAM: &[u8] = b"\r\nGET http://a/v1/stream?subject=/a%2Fb&after=7.42&subject=/c/**&since=a1f3.8812.17.0badcafe&last=3&limit=5&\
wait=2&after={\"/c\":\"7.1\"} HTTP/1.1\r\nhost: a\r\nLast-Event-ID: a1.2.3.0badcafe\r\nOrigin: https://a.example\r\n\r\n";
const JSON: [&[u8]; 4] = [
    br#"{"id":1,"publish":"/a/b","content":{"a":[1,2.5e3,"\u00e9\ud83d\ude00"],"b":null},"key":"k","retain":false}"#,
    br#"{"id":"x","subscribe":"/a/**","after":{"/a/b":"7.42"},"since":"a1f3.8812.1795250000123","conflate_ms":500}"#,
    br#"[{"connect":{"token":"t","client":"c"}},{"ping":true},{"publish":"/a","bytes":"AP+A"}]"#,
    br#"{"id":1,"watch":"/a/*"}"#,
];
const BINARY: [&[u8]; 4] = [
    b"\x43\x04\x0c\x09\x04/a/b\x01k\x02/r{\"x\": 1}",
    b"\x41\x02\x4e\x05/a/**\x01\x04/a/b\x07\x2a\x03a.1\x0a\xf4\x03",
    b"\x00\x02\x44\x05\x05\x42\x03\x02/a",
    b"\x40\x01\x03\x01t\x01c",
];

/// The input, or a sample changed by it: its second byte chooses, then each pair of bytes is a place and what comes there.
fn vary<'a>(input: &'a [u8], samples: &[&[u8]]) -> Cow<'a, [u8]> {
    let [first, choice, changes @ ..] = input else { return Cow::Borrowed(input) };
    if first % 2 == 0 || samples.is_empty() {
        return Cow::Borrowed(input.get(1..).unwrap_or(&[]));
    }
    let mut bytes = samples[usize::from(*choice) % samples.len()].to_vec();
    for (change, rest) in changes.as_chunks::<2>().0.iter().zip(1usize..) {
        let place = usize::from(change[0]) * rest % bytes.len();
        bytes[place] = change[1];
    }
    Cow::Owned(bytes)
}

/// Frames: any bytes, in pieces as the input says and whole, give the same events and bounded memory.
pub fn frames(input: &[u8]) {
    let mut sample = Vec::new();
    for (opcode, payload) in [(1, "text é".as_bytes()), (9, b"p"), (2, &[0; 130]), (8, b"\x03\xe8bye")] {
        frame(&mut sample, opcode, [1, 2, 3, 4], payload);
    }
    let fragments = [b"\x01\x81\0\0\0\0a".as_slice(), b"\x89\x80\0\0\0\0", b"\x80\x82\0\0\0\0\xc3\xa9"].concat();
    let bytes = vary(input, &[&sample, &fragments]);
    let step = input.first().map_or(1, |&first| usize::from(first / 2) + 1);
    assert_eq!(read_frames(&bytes, step), read_frames(&bytes, usize::MAX));
}

fn read_frames(bytes: &[u8], step: usize) -> Vec<String> {
    let limits = Limits { message_bytes_max: 1024, ..Limits::default() };
    let (mut reader, mut events) = (Reader::default(), Vec::new());
    for piece in bytes.chunks(step) {
        let mut piece = piece.to_vec();
        let mut input = piece.as_mut_slice();
        loop {
            match reader.read(&mut input, &limits) {
                Ok(Some(event)) => events.push(format!("{event:?}")),
                Ok(None) => break,
                Err(code) => {
                    events.push(format!("{code:?}"));
                    return events;
                }
            }
        }
        assert!(input.is_empty() && reader.held_bytes() < 8 * 1024);
    }
    events
}

/// Request heads: bytes after the head are not taken, an upgrade is answered with what HTTP allows, and a query that is read
/// keeps its bounds.
pub fn head(input: &[u8]) {
    let bytes = vary(input, &[HEAD, POST, STREAM]);
    let limits = Limits { positions_per_subscribe_max: 8, subscriptions_per_connection_max: 8, ..Limits::default() };
    let Ok(Some(head)) = http::read_head(&bytes, &limits) else { return };
    assert!(head.head_bytes <= bytes.len());
    if let Ok(upgrade) = http::upgrade(&head, true) {
        assert!(upgrade.answer.starts_with(b"HTTP/1.1 101 ") && upgrade.answer.ends_with(b"\r\n\r\n"));
    }
    for way in [Way::Consume, Way::Stream] {
        if let Ok(listen) = http::read_listen(&head, way, &limits) {
            assert!((1..=8).contains(&listen.subscribes.len()) && (1..=1000).contains(&listen.limit));
            assert!(listen.wait_ms <= limits.poll_ms_max && listen.subscribes.iter().all(|s| s.after_each.len() <= 8));
        }
    }
    let _ = (http::read_produce(&head, b"{}", &limits), http::read_removal(&head), http::find_token(&head));
}

/// Chunked bodies: in pieces and whole they give the same, and memory follows the bytes.
pub fn chunks(input: &[u8]) {
    let bytes = vary(input, &[b"5;a=\"b\"\r\nhello\r\n0a\r\n0123456789\r\n0\r\nTrailer: a\r\n\r\nGET", b"0\r\n\r\n"]);
    let step = input.first().map_or(1, |&first| usize::from(first / 2) + 1);
    let whole = read_chunks(&bytes, usize::MAX);
    assert_eq!(read_chunks(&bytes, step), whole);
    assert!(whole.is_none_or(|(body, _)| body.len() <= bytes.len()));
}

/// The body and the bytes it took; none: refused.
fn read_chunks(bytes: &[u8], step: usize) -> Option<(Vec<u8>, usize)> {
    let limits = Limits { message_bytes_max: 1024, ..Limits::default() };
    let (mut chunked, mut body, mut used) = (Chunked::default(), Vec::new(), 0);
    for piece in bytes.chunks(step) {
        let mut input = piece;
        let is_whole = chunked.read(&mut input, &mut body, &limits).ok()?;
        used += piece.len() - input.len();
        assert!(body.len() <= 1024);
        if is_whole {
            break;
        }
    }
    Some((body, used))
}

/// JSON: what is accepted splits into members that are accepted, and merges with itself.
pub fn json(input: &[u8]) {
    let bytes = vary(input, &JSON);
    let Ok(text) = std::str::from_utf8(&bytes) else { return };
    let is_accepted = json::check(text, 64).is_ok();
    for (key, value) in Members::new(text, 64).map_while(Result::ok) {
        let _ = json::unescape(key);
        assert!(json::check(value, 64).is_ok());
    }
    if let Some(merged) = json::merge(JSON[0], &bytes, json::Nulls::Remove) {
        assert!(!is_accepted || std::str::from_utf8(&merged).is_ok_and(|merged| json::check(merged, 65).is_ok()));
    }
}

/// Commands of the JSON wire.
pub fn json_commands(input: &[u8]) {
    commands(Wire::Json, &vary(input, &JSON));
}

/// Commands of the binary wire.
pub fn binary_commands(input: &[u8]) {
    commands(Wire::Binary, &vary(input, &BINARY));
}

fn commands(wire: Wire, payload: &[u8]) {
    let limits = Limits { commands_in_flight_max: 8, ..Limits::default() };
    let Ok(mut commands) = codec::commands(wire, payload, &limits) else { return };
    let mut count = 0;
    while let Some((_, command)) = commands.next() {
        count += 1;
        if let Ok(Command::Publish(publish)) = command
            && publish.kind == Kind::Json
        {
            let content = std::str::from_utf8(&publish.content);
            assert!(content.is_ok_and(|content| json::check(content, 128).is_ok()));
        }
    }
    assert!(count <= 8);
}

/// What a proxy says about a connection: a header takes no more bytes than there are, and what is whole stays so.
pub fn proxy(input: &[u8]) {
    let version_2 = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\x7f\0\0\x01\x7f\0\0\x01\x30\x39\0\x50";
    let bytes =
        vary(input, &[b"PROXY TCP4 127.0.0.1 127.0.0.1 12345 80\r\nGET /", b"PROXY TCP6 ::1 ::1 1 2\r\n", version_2]);
    if let Header::Whole { bytes: used, address } = proxy::read(&bytes) {
        assert!(used <= bytes.len());
        assert_eq!(proxy::read(&bytes[..used]), Header::Whole { bytes: used, address });
    }
}

/// Names: a pattern without a wildcard is its own only match; matching, covering and overlapping end for any two.
pub fn names(input: &[u8]) {
    let bytes = vary(input, &[b"/a/*/c\0/a/b/c", b"/a/**\0/$a/b", b"/*\0/**"]);
    let Ok(text) = std::str::from_utf8(&bytes) else { return };
    let (one, other) = text.split_once('\0').unwrap_or((text, "/a/b"));
    let (Ok(one), Ok(other)) = (Pattern::parse(one), Pattern::parse(other)) else { return };
    assert_eq!(one.overlaps(&other), other.overlaps(&one));
    assert!(!one.covers(&other) || one.overlaps(&other));
    if check_subject(other.text()).is_ok() {
        assert_eq!(one.matches(other.text()), one.covers(&other));
    }
}

/// Positions and resume tokens: what parses is written the same way.
pub fn places(input: &[u8]) {
    let bytes = vary(input, &[b"7.42", b"a1f3.8812.1795250000123"]);
    let Ok(text) = std::str::from_utf8(&bytes) else { return };
    if let Some(position) = Position::parse(text) {
        assert_eq!(position.to_string(), text);
    }
    if let Some(resume_token) = ResumeToken::parse(text) {
        assert_eq!(ResumeToken::parse(&resume_token.to_string()), Some(resume_token));
    }
}
