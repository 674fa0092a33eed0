//! The HTTP/1.1 request head on the client port: strict parsing, the upgrade to WebSocket, refusals.
//! Owns what a head must be; who may come from where is the server's (`origin`, `token`). Invariant: a head that two parties
//! could read in two ways is refused, nothing of the request is echoed into a header, and after a refusal the connection closes.

mod answer;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::codes::Code;
use crate::limits::Limits;
use crate::wire::Wire;

pub use answer::{Refused, refuse};

/// More fields than a browser sends: for these no memory is allocated.
const FIELDS_USUAL: usize = 24;

/// What a request head asks for.
#[derive(Debug)]
pub struct Upgrade {
    /// Bytes of the head; what follows belongs to the WebSocket.
    pub head_bytes: usize,
    pub wire: Wire,
    /// A token from `Authorization: Bearer` or `token=`, to be judged as if `connect` had shown it.
    pub token: Option<String>,
    pub origin: Option<String>,
    /// The whole 101 answer.
    pub answer: Vec<u8>,
}

/// Reads a request head from the front of `bytes`; none: it is not whole yet.
///
/// # Errors
/// The whole answer to a head that is refused, as soon as that is certain.
pub fn read_head(bytes: &[u8], limits: &Limits) -> Result<Option<Upgrade>, Refused> {
    let end = find_end(bytes)?;
    if end.unwrap_or(bytes.len()) > limits.header_bytes_max {
        return Err(refuse(Code::HeaderTooBig, ""));
    }
    let Some(end) = end else { return Ok(None) };
    let head = bytes.get(..end).unwrap_or(bytes);
    let mut few = [httparse::EMPTY_HEADER; FIELDS_USUAL];
    match parse_head(head, &mut few[..FIELDS_USUAL.min(limits.headers_max)]) {
        Err(refused) if refused.code == Code::HeaderTooBig && limits.headers_max > FIELDS_USUAL => {
            parse_head(head, &mut vec![httparse::EMPTY_HEADER; limits.headers_max]).map(Some)
        }
        result => result.map(Some),
    }
}

/// Parses a head that is whole, into as many fields as there is room for.
fn parse_head<'a>(head: &'a [u8], fields: &mut [httparse::Header<'a>]) -> Result<Upgrade, Refused> {
    let mut request = httparse::Request::new(fields);
    match request.parse(head) {
        Ok(httparse::Status::Complete(used)) if used == head.len() => {}
        Ok(_) => return Err(malformed("the head ends too early")),
        Err(httparse::Error::TooManyHeaders) => return Err(refuse(Code::HeaderTooBig, "too many fields")),
        Err(httparse::Error::Version) => return Err(refuse(Code::HttpUnsupported, "")),
        Err(_) => return Err(malformed("the head does not parse")),
    }
    if request.version != Some(1) {
        return Err(refuse(Code::HttpUnsupported, ""));
    }
    let fields = Fields(request.headers);
    fields.check_framing()?;
    let (path, query) = split_target(request.path.unwrap_or(""))?;
    if path != "/v1/live" {
        return Err(refuse(Code::PathUnknown, ""));
    }
    if request.method != Some("GET") {
        return Err(answer::refuse_with(Code::MethodForbidden, "", "Allow: GET\r\n"));
    }
    upgrade(&fields, query, head.len())
}

fn malformed(reason: &str) -> Refused {
    refuse(Code::RequestMalformed, reason)
}

/// The end of the head, when it is there. Every line must end with CR LF and hold neither otherwise (a bare LF is a line's
/// end to some and not to others), and the first must end with a version, so that HTTP/0.9 does not wait for ever.
fn find_end(bytes: &[u8]) -> Result<Option<usize>, Refused> {
    let mut line = 0;
    while let Some(length) = bytes.get(line..).and_then(|rest| rest.iter().position(|&b| b == b'\n' || b == b'\r')) {
        let at = line + length;
        match bytes.get(at..at + 2) {
            Some(b"\r\n") => {}
            None if bytes.get(at) == Some(&b'\r') => return Ok(None),
            _ => return Err(malformed("a line does not end with CR LF")),
        }
        let text = bytes.get(line..at).unwrap_or(&[]);
        if line == 0 {
            check_first_line(text)?;
        }
        line = at + 2;
        if text.is_empty() {
            return Ok(Some(line));
        }
    }
    Ok(None)
}

fn check_first_line(line: &[u8]) -> Result<(), Refused> {
    if line.iter().any(|&b| !(0x20..0x7f).contains(&b)) {
        return Err(malformed("the request line holds more than visible ASCII"));
    }
    match line.rsplit(|&b| b == b' ').next() {
        Some(b"HTTP/1.1") => Ok(()),
        Some(version) if version.starts_with(b"HTTP/") => Err(refuse(Code::HttpUnsupported, "")),
        _ => Err(malformed("the request line names no version")),
    }
}

/// Splits an origin-form target into path and query.
fn split_target(target: &str) -> Result<(&str, &str), Refused> {
    if !target.starts_with('/') || target.contains('#') {
        return Err(malformed("the target is no path"));
    }
    Ok(target.split_once('?').unwrap_or((target, "")))
}

struct Fields<'a>(&'a [httparse::Header<'a>]);

impl<'a> Fields<'a> {
    fn all(&self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        self.0.iter().filter(move |field| field.name.eq_ignore_ascii_case(name)).map(|field| field.value)
    }

    /// The value of a field that may come once at most, in visible ASCII.
    fn one(&self, name: &str) -> Result<Option<&'a str>, Refused> {
        let mut values = self.all(name);
        let Some(value) = values.next() else { return Ok(None) };
        if values.next().is_some() {
            return Err(malformed("a field that must be single is repeated"));
        }
        ascii(value).map(Some)
    }

    /// The tokens of a field that is a list, over all its lines.
    fn tokens(&self, name: &str) -> impl Iterator<Item = Result<&'a str, Refused>> {
        self.all(name).flat_map(|value| {
            let (text, fault) = match ascii(value) {
                Ok(text) => (text, None),
                Err(refused) => ("", Some(Err(refused))),
            };
            text.split(',').map(str::trim).filter(|token| !token.is_empty()).map(Ok).chain(fault)
        })
    }

    fn has_token(&self, name: &str, token: &str) -> Result<bool, Refused> {
        for found in self.tokens(name) {
            if found?.eq_ignore_ascii_case(token) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// No body, no doubt about where the request ends, and one good Host.
    fn check_framing(&self) -> Result<(), Refused> {
        if self.0.iter().any(|field| field.name.is_empty()) {
            return Err(malformed("a field has no name"));
        }
        if self.all("Transfer-Encoding").next().is_some() {
            return Err(malformed("no Transfer-Encoding is taken here"));
        }
        match self.one("Content-Length")? {
            None | Some("0") => {}
            Some(length) if !length.is_empty() && length.bytes().all(|b| b.is_ascii_digit()) => {
                return Err(refuse(Code::BodyTooBig, "no body is taken here"));
            }
            Some(_) => return Err(malformed("Content-Length is no number")),
        }
        if self.all("Expect").next().is_some() {
            return Err(refuse(Code::ExpectationFailed, ""));
        }
        let is_host = |host: &str| {
            !host.is_empty() && host.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~:[]%!$&'()*+;=".contains(&b))
        };
        match self.one("Host")? {
            Some(host) if is_host(host) => Ok(()),
            _ => Err(malformed("Host is missing or bad")),
        }
    }
}

fn ascii(value: &[u8]) -> Result<&str, Refused> {
    let text = std::str::from_utf8(value).ok().filter(|text| text.is_ascii());
    text.map(|text| text.trim_matches([' ', '\t'])).ok_or_else(|| malformed("a field holds more than ASCII"))
}

/// RFC 6455, 4.2.1.
fn upgrade(fields: &Fields<'_>, query: &str, head_bytes: usize) -> Result<Upgrade, Refused> {
    if !fields.has_token("Upgrade", "websocket")? || !fields.has_token("Connection", "upgrade")? {
        return Err(malformed("this path wants an upgrade to WebSocket"));
    }
    if fields.one("Sec-WebSocket-Version")? != Some("13") {
        return Err(answer::refuse_with(Code::VersionUnsupported, "", "Sec-WebSocket-Version: 13\r\n"));
    }
    let key = fields.one("Sec-WebSocket-Key")?.unwrap_or("");
    if key.len() != 24 || STANDARD.decode_slice(key, &mut [0; 18]) != Ok(16) {
        return Err(malformed("Sec-WebSocket-Key is missing or bad"));
    }
    let chosen = choose_wire(fields)?;
    Ok(Upgrade {
        head_bytes,
        wire: chosen.unwrap_or(Wire::Json),
        token: find_token(fields, query)?,
        origin: fields.one("Origin")?.map(str::to_owned),
        answer: answer::switch(key, chosen),
    })
}

/// The first subprotocol of the list that is spoken here; none where none is asked for.
fn choose_wire(fields: &Fields<'_>) -> Result<Option<Wire>, Refused> {
    let mut is_asked = false;
    for name in fields.tokens("Sec-WebSocket-Protocol") {
        is_asked = true;
        match name? {
            "godwit.v1.json" => return Ok(Some(Wire::Json)),
            "godwit.v1.binary" => return Ok(Some(Wire::Binary)),
            _ => {}
        }
    }
    if is_asked { Err(refuse(Code::SubprotocolUnsupported, "")) } else { Ok(None) }
}

fn find_token(fields: &Fields<'_>, query: &str) -> Result<Option<String>, Refused> {
    if let Some(value) = fields.one("Authorization")? {
        let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
        return Ok(scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().to_owned()));
    }
    let mut found = None;
    for pair in query.split('&') {
        if let Some(raw) = pair.strip_prefix("token=") {
            if found.is_some() {
                return Err(malformed("token= is repeated"));
            }
            found = Some(percent_decode(raw).ok_or_else(|| malformed("token= does not decode"))?);
        }
    }
    Ok(found)
}

/// Decodes `%XX` and `+` of a query; none when a percent sign stands alone or the result is not UTF-8 or holds controls.
fn percent_decode(raw: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(raw.len());
    let mut rest = raw.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let (pair, tail) = rest.split_at_checked(2)?;
                rest = tail;
                let digit = |b: u8| (b as char).to_digit(16);
                (digit(pair[0])? << 4 | digit(pair[1])?) as u8
            }
            other => other,
        });
    }
    String::from_utf8(bytes).ok().filter(|text| !text.contains(char::is_control))
}

#[cfg(test)]
mod tests;
