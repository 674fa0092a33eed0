//! Requests as bytes: what is taken, what is refused and with which code, and what is not enough yet.
use super::*;
use crate::http::{Shape, read_head as read_whole_head};
use crate::limits::Limits;

/// The upgrade that a head on its own asks for.
fn read_head(bytes: &[u8], limits: &Limits) -> Result<Option<Upgrade>, Refused> {
    match read_whole_head(bytes, limits)? {
        Some(head) if is_upgrade(&head) => upgrade(&head, true).map(Some),
        Some(_) => Err(refuse(Code::PathUnknown, "")),
        None => Ok(None),
    }
}

const GOOD: &str = "GET /v1/live HTTP/1.1\r\nHost: a:8800\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n\
Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

fn status(head: &str) -> u16 {
    status_of(head.as_bytes())
}

fn status_of(head: &[u8]) -> u16 {
    match read_head(head, &Limits::default()) {
        Ok(Some(_)) => 101,
        Ok(None) => 0,
        Err(refused) => {
            let mut answer = Vec::new();
            Shape { is_last: true, ..Shape::default() }.put_refusal(&mut answer, 0, &[], &refused);
            let text = String::from_utf8(answer).unwrap_or_default();
            let (top, body) = text.split_once("\r\n\r\n").unwrap_or_default();
            let length = top.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap_or("");
            assert_eq!(length, body.len().to_string());
            assert!(top.contains("Connection: close"));
            assert!(serde_json::from_str::<serde_json::Value>(body).is_ok());
            top.get(9..12).and_then(|digits| digits.parse().ok()).unwrap_or(1)
        }
    }
}

/// GOOD with `from` replaced.
fn with(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    GOOD.replacen(from, to, 1)
}

fn plus(line: &str) -> String {
    with("\r\n\r\n", &format!("\r\n{line}\r\n\r\n"))
}

#[test]
fn a_good_head_is_answered_with_the_accept_of_the_rfc() {
    let Ok(Some(upgrade)) = read_head(format!("{GOOD}rest").as_bytes(), &Limits::default()) else { panic!() };
    let text = String::from_utf8(upgrade.answer).unwrap_or_default();
    assert!(text.contains("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"), "{text}");
    assert!(text.starts_with("HTTP/1.1 101 ") && text.ends_with("\r\n\r\n") && !text.contains("Protocol:"));
    assert_eq!((upgrade.wire, upgrade.token), (Wire::Json, None));
    let head =
        read_whole_head(format!("{GOOD}rest").as_bytes(), &Limits::default()).map(|head| head.map(|h| h.head_bytes));
    assert_eq!(head.ok().flatten(), Some(GOOD.len()));
}

#[test]
fn a_head_in_pieces_is_awaited() {
    for end in 0..GOOD.len() {
        assert_eq!(status(&GOOD[..end]), 0, "{end}");
    }
}

#[test]
fn the_first_known_subprotocol_is_chosen() {
    for (asked, wire) in [
        ("godwit.v1.binary", Some(Wire::Binary)),
        ("chat, godwit.v1.json,godwit.v1.binary", Some(Wire::Json)),
        ("chat\r\nSec-WebSocket-Protocol:godwit.v1.binary", Some(Wire::Binary)),
        ("chat", None),
        ("godwit.v2.json", None),
    ] {
        let head = plus(&format!("Sec-WebSocket-Protocol: {asked}"));
        match (read_head(head.as_bytes(), &Limits::default()), wire) {
            (Ok(Some(upgrade)), Some(wire)) => {
                assert_eq!(upgrade.wire, wire);
                let line = format!("Sec-WebSocket-Protocol: godwit.v1.{}\r\n", wire.name());
                assert!(String::from_utf8_lossy(&upgrade.answer).contains(&line));
            }
            (Err(refused), None) => assert_eq!(refused.code, Code::SubprotocolUnsupported),
            (other, _) => panic!("{asked}: {other:?}"),
        }
    }
}

#[test]
fn the_token_is_handed_on() {
    let read = |head: String| match read_head(head.as_bytes(), &Limits::default()) {
        Ok(Some(upgrade)) => upgrade.token,
        other => panic!("{other:?}"),
    };
    assert_eq!(read(plus("authorization: bearer abc")).as_deref(), Some("abc"));
    assert_eq!(read(with("/v1/live", "/v1/live?x=1&token=a%2Bb+c")).as_deref(), Some("a+b c"));
    assert_eq!(read(plus("Authorization: Basic abc")), None);
    let behind_a_proxy = plus("Authorization: Basic abc").replace("/v1/live", "/v1/live?token=t");
    assert_eq!(read(behind_a_proxy).as_deref(), Some("t"), "a proxy's credentials hide no token");
    for bad in ["?token=%", "?token=%0a", "?token=%ff", "?token=a&token=b", "?token=%zz"] {
        assert_eq!(status(&with("/v1/live", &format!("/v1/live{bad}"))), 400, "{bad}");
    }
}

#[test]
fn a_foreign_upgrade_is_refused_with_the_status_it_earns() {
    let cases = [
        (with("Version: 13", "Version: 8"), 426),
        (with("Sec-WebSocket-Version: 13\r\n", ""), 426),
        (with("Upgrade: websocket\r\n", ""), 400),
        (with("Upgrade: websocket", "Upgrade: h2c"), 400),
        (with("keep-alive, Upgrade", "keep-alive"), 400),
        (with("dGhlIHNhbXBsZSBub25jZQ==", "dGhlIHNhbXBsZSBub25jZQ"), 400),
        (with("dGhlIHNhbXBsZSBub25jZQ==", "dGhlIHNhbXBsZSBub25jZSE="), 400),
        (plus("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="), 400),
        (with("GET", "POST"), 405),
        (with("/v1/live", "/v1/other"), 404),
        (with("/v1/live", "/..%2fv1/live"), 404),
        (with("/v1/live", "/v1/live%00"), 404),
        (with("/v1/live", "*"), 400),
        (with("/v1/live", "/v1/live#x"), 400),
        (with("/v1/live", "http://a/v1/live"), 101),
        (plus("Sec-WebSocket-Extensions: permessage-deflate; x=\"unclosed"), 400),
        (plus("Expect: 100-continue"), 417),
    ];
    for (head, expected) in cases {
        assert_eq!(status(&head), expected, "{head}");
    }
}

#[test]
fn a_head_that_can_be_read_in_two_ways_is_refused() {
    let cases = [
        (plus("Content-Length: 0"), 101),
        (plus("Content-Length: 5"), 413),
        (plus("Content-Length: 0\r\nContent-Length: 0"), 400),
        (plus("Content-Length: -1"), 400),
        (plus("Content-Length: +0"), 400),
        (plus("Content-Length: "), 400),
        (plus("Transfer-Encoding: chunked"), 400),
        (plus("Transfer-Encoding: xchunked"), 400),
        (plus("Content-Length: 0\r\nTransfer-Encoding: chunked"), 400),
        (with("Host: a:8800\r\n", ""), 400),
        (with("Host: a:8800", "Host: a\r\nHost: b"), 400),
        (with("Host: a:8800", "Host: a b"), 400),
        (with("Host: a:8800", "Host: a/b"), 400),
        (with("Host: a:8800", "Host:"), 400),
        (with("Host: ", "Host : "), 400),
        (with("Host: ", " Host: "), 400),
        (plus("X: a\r\n folded"), 400),
        (plus("X: a\0b"), 400),
        (plus(": nameless"), 400),
        (with("\r\nUpgrade", "\nUpgrade"), 400),
        (plus("X: a\rb"), 400),
        (with("HTTP/1.1", "HTTP/1.2"), 505),
        (with("HTTP/1.1", "HTTP/1.0"), 400),
        (with("HTTP/1.1", "HTTQ/1.1"), 400),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".into(), 505),
        ("GET /v1/live\r\n".into(), 400),
        ("\r\n\r\n\r\n\r\n\r\n\r\n".into(), 400),
        (with("GET ", "G\u{e9}T "), 400),
    ];
    for (head, expected) in cases {
        assert_eq!(status(&head), expected, "{head:?}");
    }
    assert_eq!(status_of(b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03\n"), 400);
}

#[test]
fn a_head_beyond_its_limits_is_refused_before_it_is_whole() {
    assert_eq!(status(&plus(&format!("X: {}", "a".repeat(100_000)))), 431);
    assert_eq!(status(&format!("GET /{}", "a".repeat(100_000))), 414);
    assert_eq!(status(&plus("A: 1\r\n".repeat(200).trim_end())), 431);
    assert_eq!(status(&plus(&format!("Sec-WebSocket-Protocol: {}", " ".repeat(65_536)))), 431);
    assert_eq!(status_of(plus("Sec-WebSocket-Protocol: a").replace('a', "\u{e9}").as_bytes()), 400);
}
