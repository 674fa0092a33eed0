//! The upgrade to WebSocket (RFC 6455, 4.2).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest, Sha1};

use super::answer::{Refused, malformed, refuse, refuse_with};
use super::extensions::{self, Deflate};
use super::head::{Framing, Head, Method};
use super::query::find_token;
use crate::codec::Wire;
use crate::codes::Code;
use crate::mqtt::{Version, Writer};

/// RFC 6455, 1.3.
const ACCEPT_SALT: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// What 426 has to say (RFC 9110, 15.5.22; RFC 6455, 4.2.2).
const VERSION_LINES: &str = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n";

/// A request that becomes a WebSocket.
#[derive(Debug)]
pub struct Upgrade {
    pub wire: Wire,
    /// A token from `Authorization: Bearer` or `token=`, to be judged as if `connect` had shown it.
    pub token: Option<String>,
    /// Of the window within which messages are deflated; 0: they are not.
    pub window_bits: u8,
    /// The whole 101 answer.
    pub answer: Vec<u8>,
}

/// Whether a request asks for a path where only WebSocket is spoken.
#[must_use]
pub fn is_upgrade(head: &Head<'_>) -> bool {
    matches!(head.path, "/v1/live" | "/mqtt") && head.method != Method::Options
}

/// Whether a request asks for MQTT over WebSocket.
#[must_use]
pub fn is_mqtt_upgrade(head: &Head<'_>) -> bool {
    is_upgrade(head) && head.path == "/mqtt"
}

/// The upgrade that a head asks for; with `compresses` permessage-deflate is agreed to where it is offered.
///
/// # Errors
/// Why it is refused. The connection has to be closed: frames may follow.
pub fn upgrade(head: &Head<'_>, compresses: bool) -> Result<Upgrade, Refused> {
    if head.method != Method::Get {
        return Err(refuse_with(Code::MethodForbidden, "", "Allow: GET, OPTIONS\r\n"));
    }
    match head.framing {
        Framing::None => {}
        Framing::Length(_) => return Err(refuse(Code::BodyTooBig, "no body is taken here")),
        Framing::Chunked => return Err(malformed("no body is taken here")),
    }
    if head.has_expectation {
        return Err(refuse(Code::ExpectationFailed, ""));
    }
    if !head.asks_for_websocket() || head.is_last {
        return Err(malformed("this path wants an upgrade to WebSocket"));
    }
    if head.websocket_version != Some("13") {
        return Err(refuse_with(Code::VersionUnsupported, "", VERSION_LINES));
    }
    let key = head.websocket_key.unwrap_or("");
    if key.len() != 24 || STANDARD.decode_slice(key, &mut [0; 18]) != Ok(16) {
        return Err(malformed("Sec-WebSocket-Key is missing or bad"));
    }
    if head.path == "/mqtt" {
        return upgrade_mqtt(head, key);
    }
    let chosen = choose_wire(head)?;
    let deflate = extensions::choose(&head.extensions)?.filter(|_| compresses);
    Ok(Upgrade {
        wire: chosen.unwrap_or(Wire::Json),
        token: find_token(head)?,
        window_bits: deflate.map_or(0, |deflate| deflate.window_bits),
        answer: switch(key, chosen, deflate),
    })
}

/// MQTT over WebSocket names its subprotocol [MQTT-6.0.0-3]; who comes is said by its CONNECT.
fn upgrade_mqtt(head: &Head<'_>, key: &str) -> Result<Upgrade, Refused> {
    if !head.subprotocols.iter().flat_map(|list| list.split(',')).any(|name| name.trim() == "mqtt") {
        return Err(refuse(Code::SubprotocolUnsupported, "this path speaks mqtt"));
    }
    let wire = Wire::Mqtt(Writer { version: Version::V3, is_websocket: true });
    Ok(Upgrade { wire, token: None, window_bits: 0, answer: switch(key, Some(wire), None) })
}

/// The first subprotocol of the list that is spoken here; none where none is asked for.
fn choose_wire(head: &Head<'_>) -> Result<Option<Wire>, Refused> {
    let mut is_asked = false;
    for name in head.subprotocols.iter().flat_map(|list| list.split(',')).map(str::trim) {
        match name {
            "" => continue,
            "godwit.v1.json" => return Ok(Some(Wire::Json)),
            "godwit.v1.binary" => return Ok(Some(Wire::Binary)),
            _ => is_asked = true,
        }
    }
    if is_asked { Err(refuse(Code::SubprotocolUnsupported, "")) } else { Ok(None) }
}

/// The 101 answer; a subprotocol is named only when one was asked for.
fn switch(key: &str, chosen: Option<Wire>, deflate: Option<Deflate>) -> Vec<u8> {
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
        answer.extend_from_slice(b"Sec-WebSocket-Protocol: ");
        answer.extend_from_slice(if wire.is_mqtt() { b"mqtt" } else { b"godwit.v1." });
        answer.extend_from_slice(if wire.is_mqtt() { b"" } else { wire.name().as_bytes() });
        answer.extend_from_slice(b"\r\n");
    }
    if let Some(deflate) = deflate {
        deflate.put(&mut answer);
    }
    answer.extend_from_slice(b"\r\n");
    answer
}

#[cfg(test)]
#[path = "upgrade_tests.rs"]
mod tests;
