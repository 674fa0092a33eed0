//! Godwit's JSON wire. One command a frame; a publish that wants an acknowledgement carries an id.
//! The content of a message is found by its length from the frame's end, where the server writes it; elsewhere by its key.
use super::{Dialect, Heard, Outgoing, Place, Role, between, quote, write_content, write_decimal};
use crate::websocket;

pub(super) struct GodwitJson {
    host: String,
    content: Vec<u8>,
}

impl GodwitJson {
    pub(super) fn new(host: &str, content: Vec<u8>) -> Self {
        Self { host: host.to_owned(), content }
    }

    fn read_message<'a>(&self, payload: &'a [u8]) -> Heard<'a> {
        let end = payload.len() - 1;
        let start = end.saturating_sub(self.content.len());
        if let Some(content) = payload.get(start..end).filter(|content| content.starts_with(br#"{"stamp":""#)) {
            return Heard::Message { content, head: &payload[..start] };
        }
        let key = br#""content":"#;
        match payload.windows(key.len()).position(|window| window == key) {
            Some(place) => Heard::Message { content: &payload[place + key.len()..], head: &payload[..place] },
            None => Heard::Fault(quote(payload)),
        }
    }
}

fn read_reply(payload: &[u8]) -> Heard<'_> {
    match between(payload, br#""ok":""#, b'"') {
        Some(b"published") => Heard::Acked(1),
        Some(b"subscribed") => Heard::Joined(read_place(payload)),
        Some(_) => Heard::Nothing,
        None => Heard::Fault(quote(payload)),
    }
}

fn read_place(text: &[u8]) -> Option<Place> {
    let at = std::str::from_utf8(between(text, br#""at":""#, b'"')?).ok()?;
    let (epoch, sequence) = at.split_once('.')?;
    Some((epoch.parse().ok()?, sequence.parse().ok()?))
}

fn write_subject(subject: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(b"/bench/");
    write_decimal(u64::from(subject), out);
}

impl Dialect for GodwitJson {
    fn greet(&self, _role: Role, out: &mut Vec<u8>) {
        websocket::write_upgrade("/v1/live", &self.host, "godwit.v1.json", out);
    }

    fn join(&self, subject: u32, after: Option<Place>, out: &mut Vec<u8>) {
        websocket::write_frame(websocket::TEXT, out, |out| {
            out.extend_from_slice(br#"{"id":1,"subscribe":""#);
            write_subject(subject, out);
            if let Some((epoch, sequence)) = after {
                out.extend_from_slice(br#"","after":""#);
                write_decimal(epoch, out);
                out.push(b'.');
                write_decimal(sequence, out);
            }
            out.extend_from_slice(br#""}"#);
        });
    }

    fn publish(&self, message: Outgoing, out: &mut Vec<u8>) {
        websocket::write_frame(websocket::TEXT, out, |out| {
            if message.wants_ack {
                out.extend_from_slice(br#"{"id":"#);
                write_decimal(u64::from(message.number), out);
                out.extend_from_slice(br#","publish":""#);
            } else {
                out.extend_from_slice(br#"{"publish":""#);
            }
            write_subject(message.subject, out);
            out.extend_from_slice(br#"","content":"#);
            write_content(&self.content, message, out);
            out.push(b'}');
        });
    }

    fn next<'a>(&self, is_ready: bool, bytes: &'a [u8]) -> Option<(usize, Heard<'a>)> {
        if !is_ready {
            let (length, is_yes) = websocket::read_upgrade(bytes)?;
            return Some((length, if is_yes { Heard::Ready } else { Heard::Fault(quote(bytes)) }));
        }
        let (length, opcode, payload) = websocket::read_frame(bytes)?;
        let payload = bytes.get(payload)?;
        let heard = match opcode {
            websocket::TEXT if payload.starts_with(br#"{"message":"#) => self.read_message(payload),
            websocket::TEXT if payload.starts_with(br#"{"id":"#) => read_reply(payload),
            websocket::TEXT if payload.starts_with(br#"{"gap":"#) => {
                let missed = between(payload, br#""missed":"#, b'}').or(between(payload, br#""missed":"#, b','));
                Heard::Gap(missed.and_then(|text| std::str::from_utf8(text).ok()?.parse().ok()))
            }
            websocket::TEXT if payload.starts_with(br#"{"resume_token":"#) => Heard::Nothing,
            websocket::PING => {
                let mut pong = Vec::new();
                websocket::write_frame(websocket::PONG, &mut pong, |out| out.extend_from_slice(payload));
                Heard::Echo(pong)
            }
            websocket::CLOSE => Heard::Fault(format!("closed: {}", quote(payload.get(2..).unwrap_or(payload)))),
            _ => Heard::Fault(quote(payload)),
        };
        Some((length, heard))
    }

    fn place(&self, head: &[u8]) -> Option<Place> {
        read_place(head)
    }

    fn is_snapshot(&self, head: &[u8]) -> bool {
        let key = br#""snapshot":true"#;
        head.windows(key.len()).any(|window| window == key)
    }

    fn acks(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hear<'a>(frame: &'a mut Vec<u8>, payload: &str) -> Heard<'a> {
        frame.extend_from_slice(&[0x81, 126, (payload.len() >> 8) as u8, payload.len() as u8]);
        frame.extend_from_slice(payload.as_bytes());
        let dialect = GodwitJson::new("h", crate::content::blank(100));
        dialect.next(true, frame).unwrap().1
    }

    #[test]
    fn what_the_server_writes_is_understood() {
        let content = String::from_utf8(crate::content::blank(100)).unwrap();
        let message = format!(r#"{{"message":"/bench/1","at":"7.42","time":1,"content":{content}}}"#);
        let mut frame = Vec::new();
        match hear(&mut frame, &message) {
            Heard::Message { content: got, head } => {
                assert_eq!((got, read_place(head)), (content.as_bytes(), Some((7, 42))));
            }
            other => panic!("{other:?}"),
        }
        for (payload, heard) in [
            (r#"{"id":3,"ok":"published","at":"7.59"}"#, Heard::Acked(1)),
            (
                r#"{"id":1,"ok":"subscribed","subject":"/a","at":"7.0","outcome":"live","count":0}"#,
                Heard::Joined(Some((7, 0))),
            ),
            (r#"{"gap":"/a","after":"7.1","at":"7.9","reason":"overrun","missed":8}"#, Heard::Gap(Some(8))),
            (r#"{"gap":"/a","at":"7.9","reason":"epoch","missed":null}"#, Heard::Gap(None)),
        ] {
            assert_eq!(hear(&mut Vec::new(), payload), heard, "{payload}");
        }
        assert!(matches!(hear(&mut Vec::new(), r#"{"id":2,"error":4101,"name":"SubjectInvalid"}"#), Heard::Fault(_)));
    }
}
