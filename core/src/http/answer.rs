//! Answers to a request head: 101, or a refusal as application/problem+json (RFC 9457) with the code.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest, Sha1};

use crate::codes::Code;
use crate::json::{put_number, put_string};
use crate::wire::Wire;

/// RFC 6455, 1.3.
const ACCEPT_SALT: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// A request that is refused: the whole answer, after which the connection is closed.
#[derive(Debug)]
pub struct Refused {
    pub code: Code,
    pub answer: Vec<u8>,
}

/// Refuses with the code's status and sentence; `reason`, when not empty, says more.
#[must_use]
pub fn refuse(code: Code, reason: &str) -> Refused {
    refuse_with(code, reason, "")
}

/// Refuses with further header lines, each with its CR LF.
pub(super) fn refuse_with(code: Code, reason: &str, lines: &str) -> Refused {
    let status = if code.http_status() == 0 { 500 } else { code.http_status() };
    let mut body = b"{\"title\":".to_vec();
    put_string(&mut body, code.name());
    body.extend_from_slice(b",\"status\":");
    put_number(&mut body, u64::from(status));
    body.extend_from_slice(b",\"detail\":");
    put_string(&mut body, if reason.is_empty() { code.sentence() } else { reason });
    body.extend_from_slice(b",\"code\":");
    put_number(&mut body, u64::from(code.number()));
    body.extend_from_slice(if code.is_retryable() { b",\"retry\":true}" } else { b",\"retry\":false}" });
    let mut answer = b"HTTP/1.1 ".to_vec();
    put_number(&mut answer, u64::from(status));
    answer.push(b' ');
    answer.extend_from_slice(phrase(status).as_bytes());
    answer.extend_from_slice(b"\r\nContent-Type: application/problem+json\r\nConnection: close\r\nContent-Length: ");
    put_number(&mut answer, body.len() as u64);
    answer.extend_from_slice(b"\r\n");
    answer.extend_from_slice(lines.as_bytes());
    answer.extend_from_slice(b"\r\n");
    answer.extend_from_slice(&body);
    Refused { code, answer }
}

/// The 101 answer; a subprotocol is named only when one was asked for.
pub(super) fn switch(key: &str, chosen: Option<Wire>) -> Vec<u8> {
    let digest = Sha1::new().chain_update(key).chain_update(ACCEPT_SALT).finalize();
    let mut accept = [0; 28];
    let length = STANDARD.encode_slice(digest, &mut accept).unwrap_or(0);
    let mut answer = Vec::with_capacity(192);
    answer.extend_from_slice(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ",
    );
    answer.extend_from_slice(accept.get(..length).unwrap_or(&[]));
    answer.extend_from_slice(b"\r\n");
    if let Some(wire) = chosen {
        answer.extend_from_slice(b"Sec-WebSocket-Protocol: godwit.v1.");
        answer.extend_from_slice(wire.name().as_bytes());
        answer.extend_from_slice(b"\r\n");
    }
    answer.extend_from_slice(b"\r\n");
    answer
}

const fn phrase(status: u16) -> &'static str {
    match status {
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        413 => "Content Too Large",
        415 => "Unsupported Media Type",
        417 => "Expectation Failed",
        422 => "Unprocessable Content",
        426 => "Upgrade Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        _ => "Internal Server Error",
    }
}
