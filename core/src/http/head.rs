//! A request head: its lines, its target, and the few fields that mean something here, read in one pass.
//! Owns where the head ends and where its body will; anything doubtful is refused as soon as it is certain.

use super::answer::{Refused, malformed, refuse};
use super::host::{is_authority, split_target};
use crate::codes::Code;
use crate::limits::Limits;

/// More fields than a browser sends: for these no memory is allocated.
const FIELDS_USUAL: usize = 24;
/// Empty lines that may come before a request (RFC 9112, 2.2).
const EMPTY_LINES_MAX: usize = 4;

/// What a request wants done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Get,
    Head,
    Post,
    Delete,
    Options,
    /// Known to HTTP, taken nowhere here.
    Other,
}

/// Where the body ends (RFC 9112, 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    None,
    Length(usize),
    Chunked,
}

/// A request head that is whole. It borrows from the bytes that came.
#[derive(Clone, Debug)]
pub struct Head<'a> {
    pub head_bytes: usize,
    pub method: Method,
    /// Empty for `*`.
    pub path: &'a str,
    pub query: &'a str,
    pub framing: Framing,
    /// The connection ends with the answer: the client said so, or speaks HTTP/1.0.
    pub is_last: bool,
    /// The client waits for 100 before it sends the body.
    pub wants_continue: bool,
    pub(super) is_upgrade_asked: bool,
    pub(super) names_websocket: bool,
    pub authorization: Option<&'a str>,
    pub origin: Option<&'a str>,
    /// As the field says it, with a port perhaps; none: HTTP/1.0.
    pub host: Option<&'a str>,
    /// Every `X-Forwarded-For`, as they came; one that is not ASCII as nobody's address. Whose word it is, is not looked at here.
    pub forwarded: Vec<&'a str>,
    pub content_type: Option<&'a str>,
    pub content_encoding: Option<&'a str>,
    pub idempotency_key: Option<&'a str>,
    /// As it came: a browser sends what it was given as UTF-8.
    pub last_event_id: Option<&'a [u8]>,
    pub asks_method: bool,
    pub(super) has_expectation: bool,
    pub(super) websocket_version: Option<&'a str>,
    pub(super) websocket_key: Option<&'a str>,
    /// Each line of the list of subprotocols.
    pub(super) subprotocols: Vec<&'a str>,
    /// Each line of the list of extensions.
    pub(super) extensions: Vec<&'a str>,
}

/// Reads a request head from the front of `bytes`; none: it is not whole yet.
///
/// # Errors
/// Why it is refused, as soon as that is certain. The connection has to be closed: where the next request begins is not known.
pub fn read_head<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Option<Head<'a>>, Refused> {
    let begin = skip_empty_lines(bytes);
    let rest = bytes.get(begin..).unwrap_or(&[]);
    let end = find_end(rest)?;
    if end.unwrap_or(rest.len()) > limits.header_bytes_max {
        let has_line = rest.iter().take(limits.header_bytes_max).any(|&byte| byte == b'\n');
        return Err(refuse(if has_line { Code::HeaderTooBig } else { Code::TargetTooLong }, ""));
    }
    let Some(end) = end else { return Ok(None) };
    let head = rest.get(..end).unwrap_or(rest);
    let mut few = [httparse::EMPTY_HEADER; FIELDS_USUAL];
    let mut read = parse_head(head, &mut few[..FIELDS_USUAL.min(limits.headers_max)]);
    if read.as_ref().is_err_and(|refused| refused.code == Code::HeaderTooBig) && limits.headers_max > FIELDS_USUAL {
        read = parse_head(head, &mut vec![httparse::EMPTY_HEADER; limits.headers_max]);
    }
    read.map(|head| Some(Head { head_bytes: begin + end, ..head }))
}

fn skip_empty_lines(bytes: &[u8]) -> usize {
    let mut begin = 0;
    while begin < EMPTY_LINES_MAX * 2 && bytes.get(begin..begin + 2) == Some(b"\r\n") {
        begin += 2;
    }
    begin
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

/// RFC 9112, 3: method, one blank, target, one blank, version.
fn check_first_line(line: &[u8]) -> Result<(), Refused> {
    if line.iter().any(|&b| !(0x20..0x7f).contains(&b)) {
        return Err(malformed("the request line holds more than visible ASCII"));
    }
    let mut parts = line.split(|&b| b == b' ');
    let (method, target, version) = (parts.next(), parts.next(), parts.next());
    let Some(version) = version.filter(|_| target.is_some_and(|target| !target.is_empty())) else {
        return Err(malformed("the request line is not method, target and version"));
    };
    if parts.next().is_some() || !method.is_some_and(|method| !method.is_empty() && method.iter().all(is_token)) {
        return Err(malformed("the request line is not method, target and version"));
    }
    match version {
        b"HTTP/1.1" | b"HTTP/1.0" => Ok(()),
        [b'H', b'T', b'T', b'P', b'/', major, b'.', minor] if major.is_ascii_digit() && minor.is_ascii_digit() => {
            Err(refuse(Code::HttpUnsupported, ""))
        }
        _ => Err(malformed("the request line names no version")),
    }
}

/// RFC 9110, 5.6.2.
pub(super) fn is_token(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte)
}

/// Parses a head that is whole, into as many fields as there is room for.
fn parse_head<'a>(bytes: &'a [u8], fields: &mut [httparse::Header<'a>]) -> Result<Head<'a>, Refused> {
    let mut request = httparse::Request::new(fields);
    match request.parse(bytes) {
        Ok(httparse::Status::Complete(used)) if used == bytes.len() => {}
        Ok(_) => return Err(malformed("the head ends too early")),
        Err(httparse::Error::TooManyHeaders) => return Err(refuse(Code::HeaderTooBig, "too many fields")),
        Err(_) => return Err(malformed("the head does not parse")),
    }
    let method = match request.method.unwrap_or("") {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "POST" => Method::Post,
        "DELETE" => Method::Delete,
        "OPTIONS" => Method::Options,
        "PUT" | "PATCH" | "TRACE" | "CONNECT" | "QUERY" => Method::Other,
        _ => return Err(refuse(Code::MethodUnknown, "")),
    };
    let target = request.path.unwrap_or("");
    let (path, query) = split_target(target, request.method.unwrap_or(""))?;
    let is_old = request.version == Some(0);
    let mut head = Head { method, path, query, ..Head::empty() };
    let mut seen = Seen::default();
    for field in request.headers.iter() {
        head.take_field(field.name, field.value, &mut seen)?;
    }
    head.settle(&seen, is_old)?;
    Ok(head)
}

/// What several fields say together.
#[derive(Default)]
struct Seen<'a> {
    host: Option<&'a str>,
    length: Option<&'a str>,
    /// A list may stand on several lines (RFC 9110, 5.3): each of them.
    codings: Vec<&'a str>,
    expects: bool,
    /// Something other than 100-continue.
    expects_more: bool,
    closes: bool,
}

impl<'a> Head<'a> {
    /// Whether the client wants a WebSocket, at whatever path.
    #[must_use]
    pub fn asks_for_websocket(&self) -> bool {
        self.is_upgrade_asked && self.names_websocket
    }

    fn empty() -> Self {
        Self {
            head_bytes: 0,
            method: Method::Get,
            path: "",
            query: "",
            framing: Framing::None,
            is_last: false,
            wants_continue: false,
            is_upgrade_asked: false,
            names_websocket: false,
            authorization: None,
            origin: None,
            host: None,
            forwarded: Vec::new(),
            content_type: None,
            content_encoding: None,
            idempotency_key: None,
            last_event_id: None,
            asks_method: false,
            has_expectation: false,
            websocket_version: None,
            websocket_key: None,
            subprotocols: Vec::new(),
            extensions: Vec::new(),
        }
    }

    fn take_field(&mut self, name: &str, value: &'a [u8], seen: &mut Seen<'a>) -> Result<(), Refused> {
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        let slot = match name.len() {
            0 => return Err(malformed("a field has no name")),
            4 if is("Host") => &mut seen.host,
            6 if is("Origin") => &mut self.origin,
            12 if is("Content-Type") => &mut self.content_type,
            13 if is("Authorization") => &mut self.authorization,
            13 if is("Last-Event-ID") => {
                return if self.last_event_id.replace(value).is_some() { Err(repeated()) } else { Ok(()) };
            }
            14 if is("Content-Length") => &mut seen.length,
            15 if is("X-Forwarded-For") => {
                // Proxies add to the end, in a field of their own as well.
                self.forwarded.push(ascii(value).unwrap_or_default());
                return Ok(());
            }
            15 if is("Idempotency-Key") => &mut self.idempotency_key,
            17 if is("Sec-WebSocket-Key") => &mut self.websocket_key,
            21 if is("Sec-WebSocket-Version") => &mut self.websocket_version,
            29 if is("Access-Control-Request-Method") => {
                self.asks_method = true;
                return Ok(());
            }
            _ => return self.take_list(name, value, seen),
        };
        if slot.replace(ascii(value)?).is_some() { Err(repeated()) } else { Ok(()) }
    }

    /// Fields that are lists, and so may come on several lines (RFC 9110, 5.3); others mean nothing here.
    fn take_list(&mut self, name: &str, value: &'a [u8], seen: &mut Seen<'a>) -> Result<(), Refused> {
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        match name.len() {
            6 if is("Expect") => {
                for expected in elements(ascii(value)?) {
                    seen.expects = true;
                    seen.expects_more |= !expected.eq_ignore_ascii_case("100-continue");
                }
            }
            7 if is("Upgrade") => self.names_websocket |= has_token(ascii(value)?, "websocket"),
            10 if is("Connection") => {
                let text = ascii(value)?;
                seen.closes |= has_token(text, "close");
                self.is_upgrade_asked |= has_token(text, "upgrade");
            }
            16 if is("Content-Encoding") => {
                let codings = ascii(value)?;
                if elements(codings).any(|coding| !coding.eq_ignore_ascii_case("identity")) {
                    self.content_encoding = Some(codings);
                }
            }
            17 if is("Transfer-Encoding") => seen.codings.push(ascii(value)?),
            22 if is("Sec-WebSocket-Protocol") => self.subprotocols.push(ascii(value)?),
            24 if is("Sec-WebSocket-Extensions") => self.extensions.push(ascii(value)?),
            _ => {}
        }
        Ok(())
    }

    /// What the fields say together: one good Host, no doubt about where the body ends, an expectation that can be met.
    fn settle(&mut self, seen: &Seen<'a>, is_old: bool) -> Result<(), Refused> {
        self.is_last = seen.closes || is_old;
        match seen.host {
            Some(host) if is_authority(host) => self.host = Some(host),
            None if is_old => {}
            _ => return Err(malformed("Host is missing or bad")),
        }
        self.framing = match (seen.codings.as_slice(), seen.length) {
            ([], Some(length)) => read_length(length)?,
            ([], None) => Framing::None,
            (_, Some(_)) => return Err(malformed("Content-Length beside Transfer-Encoding")),
            _ if is_old => return Err(malformed("Transfer-Encoding in HTTP/1.0")),
            ([codings], None) => read_codings(codings)?,
            (lines, None) => read_codings(&lines.join(","))?,
        };
        self.has_expectation = seen.expects;
        if seen.expects_more {
            return Err(refuse(Code::ExpectationFailed, ""));
        }
        self.wants_continue = seen.expects && !is_old && self.framing != Framing::None;
        Ok(())
    }
}

/// RFC 9112, 6.1: `chunked` last and once; another coding before it is one that is not spoken here.
fn read_codings(codings: &str) -> Result<Framing, Refused> {
    if codings.eq_ignore_ascii_case("chunked") {
        return Ok(Framing::Chunked);
    }
    let (before, last) = codings.rsplit_once(',').unwrap_or(("", codings));
    let is_known = |coding: &str| coding.trim_matches([' ', '\t']).eq_ignore_ascii_case("chunked");
    let is_named = |coding: &str| {
        let coding = coding.trim_matches([' ', '\t']);
        !coding.is_empty() && coding.bytes().all(|byte| is_token(&byte))
    };
    if is_known(last) && !before.split(',').any(is_known) && before.split(',').all(is_named) {
        return Err(refuse(Code::CodingUnsupported, ""));
    }
    Err(malformed("Transfer-Encoding is not chunked"))
}

/// RFC 9112, 6.2: decimal digits, and nothing else.
fn read_length(length: &str) -> Result<Framing, Refused> {
    if length.is_empty() || !length.bytes().all(|b| b.is_ascii_digit()) {
        return Err(malformed("Content-Length is no number"));
    }
    Ok(match length.parse() {
        Ok(0) => Framing::None,
        Ok(length) => Framing::Length(length),
        Err(_) => Framing::Length(usize::MAX),
    })
}

fn repeated() -> Refused {
    malformed("a field that must be single is repeated")
}

fn has_token(list: &str, token: &str) -> bool {
    elements(list).any(|found| found.eq_ignore_ascii_case(token))
}

/// The elements of a list, of which empty ones do not count (RFC 9110, 5.6.1.2).
fn elements(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(|element| element.trim_matches([' ', '\t'])).filter(|element| !element.is_empty())
}

fn ascii(value: &[u8]) -> Result<&str, Refused> {
    let text = std::str::from_utf8(value).ok().filter(|text| text.is_ascii());
    text.map(|text| text.trim_matches([' ', '\t'])).ok_or_else(|| malformed("a field holds more than ASCII"))
}
