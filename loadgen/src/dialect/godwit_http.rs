//! Godwit over HTTP: subscribers listen to Server-Sent Events, publishers post over a connection that they keep.
//! An event's content is found by its length from the event's end, where the server writes it.
use super::{Dialect, Heard, Outgoing, Place, Role, between, quote, write_content, write_decimal};

pub(super) struct GodwitHttp {
    host: String,
    content: Vec<u8>,
}

impl GodwitHttp {
    pub(super) fn new(host: &str, content: Vec<u8>) -> Self {
        Self { host: host.to_owned(), content }
    }

    fn write_head(&self, method: &str, path: &str, subject: Option<u32>, out: &mut Vec<u8>) {
        out.extend_from_slice(method.as_bytes());
        out.extend_from_slice(path.as_bytes());
        if let Some(subject) = subject {
            out.extend_from_slice(b"?subject=/bench/");
            write_decimal(u64::from(subject), out);
        }
        out.extend_from_slice(b" HTTP/1.1\r\nHost: ");
        out.extend_from_slice(self.host.as_bytes());
        out.extend_from_slice(b"\r\n");
    }

    fn read_event<'a>(&self, event: &'a [u8]) -> Heard<'a> {
        if event.starts_with(b":") {
            return Heard::Nothing;
        }
        if event.starts_with(b"id: ") || event.starts_with(b"data: ") {
            let end = event.len().saturating_sub(3);
            let start = end.saturating_sub(self.content.len());
            return match event.get(start..end).filter(|content| content.starts_with(br#"{"stamp":""#)) {
                Some(content) => Heard::Message { content, head: &event[..start] },
                None if event.windows(18).any(|part| part == b"event: subscribed\n") => joined(event),
                None => Heard::Fault(quote(event)),
            };
        }
        match between(event, b"event: ", b'\n') {
            Some(b"subscribed") => joined(event),
            Some(b"gap") => Heard::Gap(None),
            _ => Heard::Fault(quote(event)),
        }
    }
}

fn joined(event: &[u8]) -> Heard<'_> {
    Heard::Joined(read_place(event))
}

fn read_place(text: &[u8]) -> Option<Place> {
    let at = std::str::from_utf8(between(text, br#""at":""#, b'"')?).ok()?;
    let (epoch, sequence) = at.split_once('.')?;
    Some((epoch.parse().ok()?, sequence.parse().ok()?))
}

fn position_of(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

/// A whole answer: its length and its status line's digits.
fn read_answer(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let head = position_of(bytes, b"\r\n\r\n")? + 4;
    let status = bytes.get(9..12)?;
    let length = between(&bytes[..head], b"Content-Length: ", b'\r').and_then(|text| std::str::from_utf8(text).ok());
    let length: usize = length.and_then(|text| text.parse().ok()).unwrap_or(0);
    (bytes.len() >= head + length).then_some((head + length, status))
}

impl Dialect for GodwitHttp {
    fn greet(&self, role: Role, out: &mut Vec<u8>) {
        match role {
            Role::Subscriber(subject) => self.write_head("GET ", "/v1/stream", Some(subject), out),
            Role::Publisher(_) => self.write_head("GET ", "/", None, out),
        }
        out.extend_from_slice(b"\r\n");
    }

    fn join(&self, _subject: u32, _after: Option<Place>, _out: &mut Vec<u8>) {}

    fn publish(&self, message: Outgoing, out: &mut Vec<u8>) {
        self.write_head("POST ", "/v1/messages", Some(message.subject), out);
        out.extend_from_slice(b"Content-Type: application/json\r\nContent-Length: ");
        write_decimal(self.content.len() as u64, out);
        out.extend_from_slice(b"\r\n\r\n");
        write_content(&self.content, message, out);
    }

    fn next<'a>(&self, is_ready: bool, bytes: &'a [u8]) -> Option<(usize, Heard<'a>)> {
        if bytes.starts_with(b"HTTP/1.1 ") {
            let (length, status) = read_answer(bytes)?;
            let heard = match (is_ready, status) {
                (false, b"200") => Heard::Ready,
                (true, b"201") => Heard::Acked(1),
                _ => Heard::Fault(quote(bytes)),
            };
            return Some((length, heard));
        }
        let end = position_of(bytes, b"\n\n")? + 2;
        Some((end, self.read_event(bytes.get(..end)?)))
    }

    fn place(&self, head: &[u8]) -> Option<Place> {
        read_place(head)
    }

    fn is_snapshot(&self, head: &[u8]) -> bool {
        position_of(head, br#""snapshot":true"#).is_some()
    }

    fn acks(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_writes_is_understood() {
        let content = String::from_utf8(crate::content::blank(100)).unwrap();
        let event = format!(
            "id: 7.42\ndata: {{\"message\":\"/bench/1\",\"at\":\"7.42\",\"time\":1,\"content\":{content}}}\n\n"
        );
        let dialect = GodwitHttp::new("h", crate::content::blank(100));
        let Some((length, Heard::Message { content: got, head })) = dialect.next(true, event.as_bytes()) else {
            panic!()
        };
        assert_eq!((length, got, read_place(head)), (event.len(), content.as_bytes(), Some((7, 42))));
        let cases: [(&str, bool, Heard<'_>); 4] = [
            ("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n", false, Heard::Ready),
            ("HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}", true, Heard::Acked(1)),
            (
                "id: 7.0\nevent: subscribed\ndata: {\"ok\":\"subscribed\",\"at\":\"7.0\"}\n\n",
                true,
                Heard::Joined(Some((7, 0))),
            ),
            (":\n\n", true, Heard::Nothing),
        ];
        for (text, is_ready, heard) in cases {
            assert_eq!(dialect.next(is_ready, text.as_bytes()), Some((text.len(), heard)));
        }
    }
}
