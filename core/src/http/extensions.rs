//! What a WebSocket client offers in `Sec-WebSocket-Extensions` (RFC 6455, 9.1), and the one offer that is taken:
//! permessage-deflate (RFC 7692, 7.1). Invariant: what is answered is what the frames then are, and looking is linear in the
//! bytes that came.
use super::answer::{Refused, malformed};
use super::head::is_token;
use crate::websocket::{WINDOW_BITS_MAX, WINDOW_BITS_MIN};

/// What was agreed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Deflate {
    /// Of the window that the client inflates within.
    pub(super) window_bits: u8,
    /// The client asked for it by name, and is answered by name.
    is_named: bool,
}

impl Deflate {
    /// Appends the answer's field. No message depends on those before it, in either direction: one compressed frame is for all.
    pub(super) fn put(self, answer: &mut Vec<u8>) {
        answer.extend_from_slice(
            b"Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover; client_no_context_takeover",
        );
        if self.is_named {
            answer.extend_from_slice(format!("; server_max_window_bits={}", self.window_bits).as_bytes());
        }
        answer.extend_from_slice(b"\r\n");
    }
}

/// The first offer that can be met as it stands; none: the connection goes on without.
///
/// # Errors
/// A list that is none.
pub(super) fn choose(lines: &[&str]) -> Result<Option<Deflate>, Refused> {
    let mut chosen = None;
    for line in lines {
        let mut rest = line.as_bytes();
        while !rest.is_empty() {
            // A list may have empty elements (RFC 9110, 5.6.1.2).
            if let Some(behind) = skip_blanks(rest).strip_prefix(b",") {
                rest = behind;
                continue;
            }
            let (offer, behind) = read_offer(rest).ok_or_else(|| malformed("Sec-WebSocket-Extensions is no list"))?;
            chosen = chosen.or(offer);
            rest = behind;
        }
    }
    Ok(chosen)
}

/// `name *( ";" name [ "=" value ] )` up to the comma behind it, and whether it can be met.
fn read_offer(bytes: &[u8]) -> Option<(Option<Deflate>, &[u8])> {
    let (name, mut rest) = take_token(skip_blanks(bytes))?;
    let mut terms = Terms { is_possible: name == b"permessage-deflate", ..Terms::default() };
    loop {
        rest = skip_blanks(rest);
        match rest.split_first() {
            None => return Some((terms.meet(), rest)),
            Some((b',', behind)) => return Some((terms.meet(), behind)),
            Some((b';', behind)) => {
                let (name, behind) = take_token(skip_blanks(behind))?;
                rest = skip_blanks(behind);
                let value = match rest.strip_prefix(b"=") {
                    None => None,
                    Some(behind) => {
                        let (value, behind) = take_value(skip_blanks(behind))?;
                        rest = behind;
                        Some(value)
                    }
                };
                terms.take(name, value.as_deref());
            }
            Some(_) => return None,
        }
    }
}

/// What one offer asks for.
#[derive(Default)]
struct Terms {
    is_possible: bool,
    has_server_takeover: bool,
    has_client_takeover: bool,
    server_bits: Option<u8>,
    has_client_bits: bool,
}

impl Terms {
    /// A parameter that is not known, is repeated, or has a value that it cannot have declines the whole offer (RFC 7692, 7.1).
    fn take(&mut self, name: &[u8], value: Option<&[u8]>) {
        let is_fine = match (name, value) {
            (b"server_no_context_takeover", None) => !std::mem::replace(&mut self.has_server_takeover, true),
            (b"client_no_context_takeover", None) => !std::mem::replace(&mut self.has_client_takeover, true),
            (b"server_max_window_bits", Some(value)) => {
                let bits = read_bits(value);
                bits.is_some() && self.server_bits.replace(bits.unwrap_or(0)).is_none()
            }
            // Whatever the client can do, the largest window inflates it.
            (b"client_max_window_bits", value) => {
                value.is_none_or(|value| read_bits(value).is_some())
                    && !std::mem::replace(&mut self.has_client_bits, true)
            }
            _ => false,
        };
        self.is_possible &= is_fine;
    }

    fn meet(&self) -> Option<Deflate> {
        let window_bits = self.server_bits.unwrap_or(WINDOW_BITS_MAX);
        // Of 256 bytes no window can be kept.
        (self.is_possible && window_bits >= WINDOW_BITS_MIN)
            .then_some(Deflate { window_bits, is_named: self.server_bits.is_some() })
    }
}

/// 8 to 15, without leading zeros.
fn read_bits(value: &[u8]) -> Option<u8> {
    match value {
        [digit @ b'8'..=b'9'] => Some(digit - b'0'),
        [b'1', digit @ b'0'..=b'5'] => Some(10 + digit - b'0'),
        _ => None,
    }
}

fn skip_blanks(bytes: &[u8]) -> &[u8] {
    bytes.trim_ascii_start()
}

fn take_token(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = bytes.iter().take_while(|byte| is_token(byte)).count();
    bytes.split_at_checked(length).filter(|_| length > 0)
}

/// A token, or a quoted string whose content is one.
fn take_value(bytes: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let Some(mut rest) = bytes.strip_prefix(b"\"") else {
        return take_token(bytes).map(|(value, rest)| (value.to_vec(), rest));
    };
    let mut value = Vec::new();
    loop {
        match rest {
            [b'"', behind @ ..] => return (!value.is_empty()).then_some((value, behind)),
            [b'\\', byte, behind @ ..] | [byte, behind @ ..] if is_token(byte) => {
                value.push(*byte);
                rest = behind;
            }
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(lines: &[&str]) -> Option<String> {
        let chosen = choose(lines).ok()??;
        let mut out = Vec::new();
        chosen.put(&mut out);
        let text = String::from_utf8(out).unwrap_or_default();
        Some(text.split_once("client_no_context_takeover")?.1.trim().to_owned())
    }

    #[test]
    fn the_first_offer_that_can_be_met_is_met_by_its_terms() {
        for (offer, rest) in [
            ("permessage-deflate", ""),
            ("permessage-deflate; client_max_window_bits", ""),
            ("permessage-deflate;client_max_window_bits=9;server_no_context_takeover", ""),
            ("permessage-deflate; client_no_context_takeover", ""),
            ("permessage-deflate; server_max_window_bits=10", "; server_max_window_bits=10"),
            ("permessage-deflate; server_max_window_bits=\"15\"", "; server_max_window_bits=15"),
            ("permessage-deflate; server_max_window_bits=8, permessage-deflate", ""),
            ("x-webkit-deflate-frame, , permessage-deflate ; server_max_window_bits = 9", "; server_max_window_bits=9"),
            ("permessage-bzip2; a=\"b\\c\", permessage-deflate", ""),
        ] {
            assert_eq!(answer(&[offer]).as_deref(), Some(rest), "{offer}");
        }
        assert_eq!(answer(&["x", "permessage-deflate"]).as_deref(), Some(""), "a list on two lines");
    }

    #[test]
    fn an_offer_that_cannot_be_met_is_declined_whole() {
        for offer in [
            "",
            "permessage-gzip",
            "permessage-deflate; level=9",
            "permessage-deflate; server_no_context_takeover=1",
            "permessage-deflate; client_no_context_takeover; client_no_context_takeover",
            "permessage-deflate; server_max_window_bits",
            "permessage-deflate; server_max_window_bits=8",
            "permessage-deflate; server_max_window_bits=16",
            "permessage-deflate; server_max_window_bits=09",
            "permessage-deflate; server_max_window_bits=10; server_max_window_bits=10",
            "permessage-deflate; client_max_window_bits=7",
            "permessage-deflate; client_max_window_bits; client_max_window_bits=10",
        ] {
            assert!(matches!(choose(&[offer]), Ok(None)), "{offer}");
        }
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for offer in [
            "permessage-deflate; a=\"",
            "permessage-deflate;",
            "=",
            "a b",
            "a;b=",
            "a;b=\"\"",
            "a;b=\"c d\"",
            "a;b=\"\\",
        ] {
            assert!(choose(&[offer]).is_err(), "{offer}");
        }
    }
}
