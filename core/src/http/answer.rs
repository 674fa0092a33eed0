//! Answers as bytes: status, the fields that go with it, a body; refusals as application/problem+json (RFC 9457) with the code.

use crate::codes::Code;
use crate::command::Refusal;
use crate::json::{put_number, put_string};

/// A request that is refused.
#[derive(Debug)]
pub struct Refused {
    pub code: Code,
    /// More than the code's sentence says; may be empty.
    pub reason: String,
    /// Further header lines, each with its CR LF.
    pub lines: &'static str,
    /// When the same may succeed (ms); 0: that is not known.
    pub after_ms: u32,
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self { code: refusal.code, reason: refusal.reason, lines: "", after_ms: refusal.after_ms }
    }
}

/// Refuses with the code's status and sentence; `reason`, when not empty, says more.
#[must_use]
pub fn refuse(code: Code, reason: &str) -> Refused {
    refuse_with(code, reason, "")
}

pub(super) fn refuse_with(code: Code, reason: &str, lines: &'static str) -> Refused {
    Refused { code, reason: reason.to_owned(), lines, after_ms: 0 }
}

pub(super) fn malformed(reason: &str) -> Refused {
    refuse(Code::RequestMalformed, reason)
}

/// Whether pages of the request's origin may read the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cors {
    /// No page asked.
    #[default]
    None,
    /// Any page may: nothing that a browser adds by itself is a credential here.
    Any,
    /// The origin with this place in the settings' list asked.
    Of(u16),
}

/// What an answer's form owes to its request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// HEAD: the fields of the answer without its body.
    pub is_head: bool,
    /// The connection closes behind it.
    pub is_last: bool,
    pub cors: Cors,
}

/// One answer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Answer<'a> {
    pub status: u16,
    /// The body's media type; empty: there is no body and no length.
    pub media: &'a str,
    /// Further header lines, each with its CR LF.
    pub lines: &'a str,
    pub body: &'a [u8],
}

impl Shape {
    /// Appends the whole answer.
    pub fn put(self, out: &mut Vec<u8>, wall_ms: u64, origins: &[String], answer: &Answer<'_>) {
        out.reserve(256 + answer.lines.len() + answer.body.len());
        put(out, "HTTP/1.1 ");
        put_number(out, u64::from(answer.status));
        out.push(b' ');
        put(out, phrase(answer.status));
        put(out, "\r\nDate: ");
        put_date(out, wall_ms / 1000);
        if !answer.media.is_empty() {
            put(out, "\r\nContent-Type: ");
            put(out, answer.media);
            if answer.media != STREAM_MEDIA {
                put(out, "\r\nContent-Length: ");
                put_number(out, answer.body.len() as u64);
            }
        }
        self.put_cors(out, origins);
        put(out, if self.is_last { "\r\nConnection: close\r\n" } else { "\r\n" });
        put(out, answer.lines);
        put(out, "\r\n");
        if !self.is_head {
            out.extend_from_slice(answer.body);
        }
    }

    fn put_cors(self, out: &mut Vec<u8>, origins: &[String]) {
        let origin = match self.cors {
            Cors::None => return,
            Cors::Any => "*",
            Cors::Of(index) => origins.get(usize::from(index)).map_or("", String::as_str),
        };
        put(out, "\r\nAccess-Control-Allow-Origin: ");
        put(out, origin);
        if self.cors != Cors::Any {
            put(out, "\r\nVary: Origin");
        }
        put(
            out,
            "\r\nAccess-Control-Expose-Headers: Godwit-Position, Godwit-Duplicate, Retry-After\r\nTiming-Allow-Origin: ",
        );
        put(out, origin);
    }

    /// Appends a refusal.
    pub fn put_refusal(self, out: &mut Vec<u8>, wall_ms: u64, origins: &[String], refused: &Refused) {
        let code = refused.code;
        let status = if code.http_status() == 0 { 500 } else { code.http_status() };
        let mut lines = refused.lines.to_owned();
        match status {
            401 => lines.push_str("WWW-Authenticate: Bearer\r\n"),
            429 | 503 if code.is_retryable() || refused.after_ms > 0 => {
                // RFC 9110, 10.2.3: whole seconds.
                lines.push_str(&format!("Retry-After: {}\r\n", refused.after_ms.div_ceil(1000).max(1)));
            }
            _ => {}
        }
        let body = problem(code, status, &refused.reason);
        let answer = Answer { status, media: "application/problem+json", lines: &lines, body: &body };
        self.put(out, wall_ms, origins, &answer);
    }
}

/// Server-Sent Events have no length: the stream ends with the connection.
pub(super) const STREAM_MEDIA: &str = "text/event-stream";

fn problem(code: Code, status: u16, reason: &str) -> Vec<u8> {
    let mut body = b"{\"title\":".to_vec();
    put_string(&mut body, code.name());
    body.extend_from_slice(b",\"status\":");
    put_number(&mut body, u64::from(status));
    body.extend_from_slice(b",\"detail\":");
    put_string(&mut body, if reason.is_empty() { code.sentence() } else { reason });
    body.extend_from_slice(b",\"code\":");
    put_number(&mut body, u64::from(code.number()));
    body.extend_from_slice(if code.is_retryable() { b",\"retry\":true}" } else { b",\"retry\":false}" });
    body
}

fn put(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

/// Appends an IMF-fixdate (RFC 9110, 5.6.7) of seconds since 1970.
fn put_date(out: &mut Vec<u8>, seconds: u64) {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Years that begin in March, in eras of 400: the leap day comes last.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = (shifted_month + 2) % 12;
    let year = era * 400 + year_of_era + u64::from(month < 2);
    put(out, DAYS[(days % 7) as usize]);
    put(out, ", ");
    put_pair(out, day);
    out.push(b' ');
    put(out, MONTHS[month as usize]);
    out.push(b' ');
    put_number(out, year);
    out.push(b' ');
    put_pair(out, second / 3600);
    out.push(b':');
    put_pair(out, second / 60 % 60);
    out.push(b':');
    put_pair(out, second % 60);
    put(out, " GMT");
}

fn put_pair(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(&[b'0' + (number / 10 % 10) as u8, b'0' + (number % 10) as u8]);
}

const fn phrase(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        204 => "No Content",
        304 => "Not Modified",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        417 => "Expectation Failed",
        422 => "Unprocessable Content",
        426 => "Upgrade Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        _ => "Internal Server Error",
    }
}

#[cfg(test)]
mod tests {
    use super::put_date;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let cases = [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_399, "Mon, 28 Feb 2000 23:59:59 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (1_795_250_000, "Sat, 21 Nov 2026 08:33:20 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
        ];
        for (seconds, text) in cases {
            let mut out = Vec::new();
            put_date(&mut out, seconds);
            assert_eq!(String::from_utf8_lossy(&out), text);
        }
    }
}
