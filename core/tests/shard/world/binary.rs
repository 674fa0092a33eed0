//! The binary wire as a client reads it: frames to the same JSON values that the JSON wire has, so that one model judges both.
//! A number that was never announced fails the test.
use std::collections::HashMap;

use serde_json::{Map, Value, json};

/// What a connection has been told of numbers: subject, epoch, base time, pattern.
#[derive(Debug, Default)]
pub(crate) struct Numbers(HashMap<u64, (String, u64, u64, String)>);

struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().expect("a byte");
        self.0 = rest;
        *first
    }

    fn varint(&mut self) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let byte = self.byte();
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return value;
            }
        }
        unreachable!()
    }

    fn signed(&mut self) -> i64 {
        let value = self.varint();
        (value >> 1) as i64 ^ -((value & 1) as i64)
    }

    fn string(&mut self) -> String {
        let length = self.varint() as usize;
        let (text, rest) = self.0.split_at(length);
        self.0 = rest;
        String::from_utf8(text.to_vec()).expect("UTF-8")
    }

    fn position(&mut self) -> Value {
        let (epoch, sequence) = (self.varint(), self.varint());
        json!(format!("{epoch}.{sequence}"))
    }
}

impl Numbers {
    /// One frame; none for an announcement.
    pub(crate) fn read(&mut self, frame: &[u8]) -> Option<Value> {
        let mut bytes = Bytes(frame);
        let first = bytes.byte();
        if first & 0x80 != 0 {
            return Some(self.message(first, bytes));
        }
        let mut found = Map::new();
        match first {
            0x01 => {
                let number = bytes.varint();
                let (epoch, base) = (bytes.varint(), bytes.varint());
                self.0.insert(number, (bytes.string(), epoch, base, bytes.string()));
                return None;
            }
            0x02 => gap(&mut found, bytes),
            0x09 => {
                found.insert("epochs".to_owned(), json!(bytes.string()));
                let order: Vec<String> = (0..bytes.varint()).map(|_| bytes.varint().to_string()).collect();
                found.insert("order".to_owned(), json!(order));
                match bytes.string() {
                    pattern if pattern.is_empty() => {}
                    pattern => drop(found.insert("pattern".into(), json!(pattern))),
                }
            }
            0x03 => {
                found.insert("count".into(), json!(bytes.varint()));
                found.insert("dropped".into(), json!(bytes.string()));
            }
            0x04 => {
                found.insert("resume_token".into(), json!(bytes.string()));
                found.insert("pattern".into(), json!(bytes.string()));
            }
            0x05 => {
                found.insert("subscribers".into(), json!(bytes.byte() == 1));
                found.insert("interest".into(), json!(bytes.string()));
            }
            0x0a => {
                found.insert("complete".into(), json!(bytes.byte() == 1));
                found.insert("interest_state".into(), json!(bytes.string()));
            }
            0x20..=0x26 => reply(first, &mut found, bytes),
            0x2f => panic!("an error: {:?}", String::from_utf8_lossy(bytes.0)),
            other => panic!("frame type {other:02x}"),
        }
        Some(Value::Object(found))
    }

    fn message(&self, flags: u8, mut bytes: Bytes<'_>) -> Value {
        let number = bytes.varint();
        let (subject, epoch, base, pattern) =
            self.0.get(&number).unwrap_or_else(|| panic!("number {number} unannounced"));
        let mut found = Map::new();
        found.insert("message".into(), json!(subject));
        let sequence = if flags & 0x08 == 0 { bytes.varint() } else { 0 };
        if flags & 0x08 == 0 {
            found.insert("at".into(), json!(format!("{epoch}.{sequence}")));
        }
        found.insert("time".into(), json!((*base as i64 + bytes.signed()) as u64));
        if flags & 0x10 != 0 {
            let distance = bytes.varint();
            let after =
                if distance == 0 { bytes.position() } else { json!(format!("{epoch}.{}", sequence - distance)) };
            found.insert("after".into(), after);
        }
        if flags & 0x20 != 0 {
            found.insert("conflated".into(), json!(bytes.varint()));
        }
        if flags & 0x40 != 0 {
            found.insert("reply_to".into(), json!(bytes.string()));
        }
        if flags & 0x04 != 0 {
            found.insert("snapshot".into(), json!(true));
        }
        if !pattern.is_empty() {
            found.insert("pattern".into(), json!(pattern));
        }
        assert_eq!(flags & 3, 0, "the model publishes JSON");
        found.insert("content".into(), serde_json::from_slice(bytes.0).expect("JSON"));
        Value::Object(found)
    }
}

fn gap(found: &mut Map<String, Value>, mut bytes: Bytes<'_>) {
    let flags = bytes.byte();
    let reason = ["expired", "overrun", "epoch", "ahead", "unknown", "too_large"][usize::from(bytes.byte())];
    found.insert("reason".into(), json!(reason));
    found.insert("gap".into(), json!(bytes.string()));
    for (flag, name) in [(1, "after"), (2, "at")] {
        if flags & flag != 0 {
            found.insert(name.into(), bytes.position());
        }
    }
    found.insert("missed".into(), if flags & 4 != 0 { json!(bytes.varint()) } else { Value::Null });
}

fn reply(kind: u8, found: &mut Map<String, Value>, mut bytes: Bytes<'_>) {
    found.insert("id".into(), json!(bytes.varint()));
    let ok = ["connected", "subscribed", "unsubscribed", "published", "pong", "watching", "unwatched"];
    found.insert("ok".into(), json!(ok[usize::from(kind - 0x20)]));
    if kind == 0x21 {
        let (flags, outcome) = (bytes.byte(), bytes.byte());
        let outcome = ["snapshot", "recovered", "history", "live", "resync"][usize::from(outcome)];
        found.insert("outcome".into(), json!(outcome));
        found.insert("subject".into(), json!(bytes.string()));
        if flags & 1 != 0 {
            found.insert("at".into(), bytes.position());
        }
        if flags & 2 != 0 {
            found.insert("count".into(), json!(bytes.varint()));
        }
    }
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn put_string(out: &mut Vec<u8>, text: &str) {
    put_varint(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// A `subscribe` as the JSON wire has it, in binary.
pub(crate) fn subscribe(command: &Value) -> Vec<u8> {
    let mut flags = 0;
    let mut rest = Vec::new();
    if let Some(after) = command["after"].as_str() {
        flags |= 0x01;
        after.split('.').for_each(|number| put_varint(&mut rest, number.parse().expect("a number")));
    }
    if let Some(after) = command["after"].as_object() {
        flags |= 0x02;
        put_varint(&mut rest, after.len() as u64);
        for (subject, at) in after {
            put_string(&mut rest, subject);
            at.as_str()
                .expect("a position")
                .split('.')
                .for_each(|n| put_varint(&mut rest, n.parse().expect("a number")));
        }
    }
    if let Some(since) = command["since"].as_str() {
        flags |= 0x04;
        put_string(&mut rest, since);
    }
    if let Some(last) = command["last"].as_u64() {
        flags |= 0x08;
        put_varint(&mut rest, last);
    }
    if command["on_gap"] == "oldest" {
        flags |= 0x20;
    }
    if let Some(conflate_ms) = command["conflate_ms"].as_u64() {
        flags |= 0x40;
        put_varint(&mut rest, conflate_ms);
    }
    let mut out = vec![0x41, 1, flags];
    put_string(&mut out, command["subscribe"].as_str().expect("a selector"));
    out.extend_from_slice(&rest);
    out
}
