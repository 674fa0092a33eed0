//! Properties of every parser: no input panics it, pieces give what the whole gives, and what is written reads back.
//! JSON is held against serde_json, which is another's reading of the same standard.

use std::collections::BTreeMap;

use godwit_core::codec::varint::{self, Values};
use godwit_core::codec::{self, Wire};
use godwit_core::codes::Code;
use godwit_core::command::{Command, MessageView, Push};
use godwit_core::http::{read_head, upgrade};
use godwit_core::json::{self, Elements, Members, Nulls};
use godwit_core::limits::Limits;
use godwit_core::message::Kind;
use godwit_core::position::Position;
use godwit_core::websocket::{Event, Reader, frame};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::Value;

const CODEC: &str = include_str!("../../../protocol/vectors/codec.json");
const HEAD: &str = "GET /v1/live?token=a%20b HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: godwit.v1.json\r\n\r\n";

/// Everything read from bytes that come in pieces: events as they print, then the code of the end.
fn read_frames(bytes: &[u8], pieces: impl Iterator<Item = usize>) -> (Vec<String>, Option<Code>) {
    let limits = Limits { message_bytes_max: 4096, ..Limits::default() };
    let (mut reader, mut events) = (Reader::default(), Vec::new());
    let mut all = bytes.to_vec();
    let mut rest = all.as_mut_slice();
    let mut pieces = pieces.chain(std::iter::repeat(usize::MAX));
    while !rest.is_empty() {
        let length = pieces.next().unwrap_or(usize::MAX).clamp(1, rest.len());
        let (mut piece, later) = rest.split_at_mut(length);
        rest = later;
        loop {
            match reader.read(&mut piece, &limits) {
                Ok(Some(event)) => events.push(format!("{event:?}")),
                Ok(None) => break,
                Err(code) => return (events, Some(code)),
            }
        }
        assert!(reader.held_bytes() < 3 * 4096);
    }
    (events, None)
}

/// Frames as clients send them, some of them wrong, with a few bytes changed afterwards.
fn frames() -> impl Strategy<Value = Vec<u8>> {
    let one = (0u8..16, any::<bool>(), vec(any::<u8>(), 0..300), any::<bool>());
    let changes = vec((any::<prop::sample::Index>(), any::<u8>()), 0..3);
    (vec(one, 1..8), changes).prop_map(|(frames, changes)| {
        let mut bytes = Vec::new();
        for (opcode, is_final, payload, is_text) in frames {
            let begin = bytes.len();
            let payload = if is_text { "é".repeat(payload.len() / 2).into_bytes() } else { payload };
            // Mostly what is legal, or little would come through.
            let opcode = if opcode > 10 { 1 + opcode % 2 } else { opcode };
            frame(&mut bytes, opcode, [1, 2, 3, 4], &payload);
            bytes[begin] &= if is_final { 0xff } else { 0x7f };
        }
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        bytes
    })
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<i32>().prop_map(|eighths| Value::from(f64::from(eighths) / 8.0)),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        let key = "[a-c\"\\\\é\u{1}]{0,3}";
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::from),
            btree_map(key, inner, 0..6).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn json_object() -> impl Strategy<Value = BTreeMap<String, Value>> {
    // More fields than a linear search is used for, now and then.
    btree_map("[a-f\"\\\\é]{0,2}", json_value(), 0..40)
}

/// JSON with blanks and a change or two, so that most of it is nearly right.
fn nearly_json() -> impl Strategy<Value = String> {
    let changes = vec((any::<prop::sample::Index>(), "[ \\[\\]{},:\"\\\\0-9eE.+tfnu\u{1}é-]"), 0..3);
    (json_value(), any::<bool>(), changes).prop_map(|(value, is_pretty, changes)| {
        let text = if is_pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
        let mut letters: Vec<char> = text.unwrap_or_default().chars().collect();
        for (place, letter) in changes {
            let place = place.index(letters.len());
            letters.splice(place..=place, letter.chars());
        }
        letters.into_iter().collect()
    })
}

/// Payloads of the vectors' commands, with some bytes changed.
fn nearly_commands(key: &'static str) -> impl Strategy<Value = Vec<u8>> {
    let file: Value = serde_json::from_str(CODEC).unwrap_or_default();
    let payloads: Vec<Vec<u8>> = file["cases"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|case| case[key].as_str())
        .map(|text| if key == "json" { text.as_bytes().to_vec() } else { unhex(text) })
        .filter(|payload| !payload.is_empty() && payload.len() < 1000)
        .collect();
    let changes = vec((any::<prop::sample::Index>(), any::<u8>(), any::<bool>()), 0..4);
    (prop::sample::select(payloads), changes).prop_map(|(mut payload, changes)| {
        for (place, byte, is_cut) in changes {
            let place = place.index(payload.len());
            payload[place] = byte;
            if is_cut && byte < 16 {
                payload.truncate(place + 1);
            }
        }
        payload
    })
}

fn unhex(text: &str) -> Vec<u8> {
    let digit = |byte: u8| (byte as char).to_digit(16).unwrap_or(0) as u8;
    text.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

fn drain_commands(wire: Wire, payload: &[u8]) {
    let limits = Limits { commands_in_flight_max: 8, ..Limits::default() };
    if let Ok(mut commands) = codec::commands(wire, payload, &limits) {
        let mut count = 0;
        while let Some((_, command)) = commands.next() {
            count += 1;
            if let Ok(Command::Publish(publish)) = command
                && publish.kind != Kind::Bytes
            {
                let content = std::str::from_utf8(&publish.content);
                assert!(content.is_ok());
                assert!(publish.kind != Kind::Json || content.is_ok_and(|text| json::check(text, 128).is_ok()));
            }
        }
        assert!(count <= 8);
    }
}

/// Members of all objects that a value holds.
fn count_keys(value: &Value) -> usize {
    match value {
        Value::Object(fields) => fields.len() + fields.values().map(count_keys).sum::<usize>(),
        Value::Array(elements) => elements.iter().map(count_keys).sum(),
        _ => 0,
    }
}

/// Colons outside of strings: in JSON as many as members, those that stand twice counted twice.
fn count_colons(text: &str) -> usize {
    let (mut count, mut is_within, mut is_escaped) = (0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_within => is_escaped = true,
            b'"' => is_within = !is_within,
            b':' if !is_within => count += 1,
            _ => {}
        }
    }
    count
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn frames_in_pieces_are_the_frames_of_the_whole(bytes in frames(), pieces in vec(1usize..40, 0..60)) {
        let whole = read_frames(&bytes, std::iter::empty());
        prop_assert_eq!(&read_frames(&bytes, pieces.into_iter()), &whole);
        prop_assert_eq!(&read_frames(&bytes, std::iter::repeat(1)), &whole);
    }

    #[test]
    fn any_bytes_are_frames_or_an_error(bytes in vec(any::<u8>(), 0..200)) {
        let whole = read_frames(&bytes, std::iter::empty());
        prop_assert_eq!(read_frames(&bytes, std::iter::repeat(1)), whole);
    }

    #[test]
    fn a_masked_message_comes_out_as_it_went_in(payload in vec(any::<u8>(), 0..2000), mask in any::<[u8; 4]>(), step in 1usize..99) {
        let mut bytes = Vec::new();
        frame(&mut bytes, 2, mask, &payload);
        let expected = format!("{:?}", Event::Message { payload: &payload, is_text: false });
        prop_assert_eq!(read_frames(&bytes, std::iter::repeat(step)), (vec![expected], None));
    }

    #[test]
    fn no_head_panics(bytes in vec(any::<u8>(), 0..300), place in 0..HEAD.len(), byte in any::<u8>()) {
        let limits = Limits::default();
        let _ = read_head(&bytes, &limits);
        let mut head = HEAD.as_bytes().to_vec();
        head[place] = byte;
        let whole = read_head(&head, &limits);
        for end in 0..head.len() {
            // What is refused early is refused whole; what is accepted whole was never refused.
            if read_head(&head[..end], &limits).is_err() {
                prop_assert!(whole.is_err());
            }
        }
        if let Ok(Some(found)) = whole {
            prop_assert_eq!(found.head_bytes, head.len());
            let Ok(upgrade) = upgrade(&found, true) else { return Ok(()) };
            prop_assert!(upgrade.answer.starts_with(b"HTTP/1.1 101 ") && upgrade.answer.ends_with(b"\r\n\r\n"));
        }
    }

    #[test]
    fn json_is_what_serde_says_it_is(text in prop_oneof![nearly_json(), "[ \\[\\]{},:\"\\\\0-9eE.+a-u-]{0,40}"]) {
        let theirs = serde_json::from_str::<Value>(&text);
        let is_unique = theirs.as_ref().is_ok_and(|value| count_keys(value) == count_colons(&text));
        prop_assert_eq!(json::check(&text, 100).is_ok(), is_unique, "{}", text);
        if theirs.is_ok() && !is_unique {
            return Ok(()); // serde takes the last of keys that are the same
        }
        let members: Result<Vec<_>, _> = Members::new(&text, 100).collect();
        let elements: Result<Vec<_>, _> = Elements::new(&text, 100).collect();
        prop_assert_eq!(members.is_ok(), theirs.as_ref().is_ok_and(Value::is_object));
        prop_assert_eq!(elements.is_ok(), theirs.as_ref().is_ok_and(Value::is_array));
        if let (Ok(members), Ok(Value::Object(theirs))) = (members, theirs) {
            let ours = members.into_iter().filter_map(|(key, value)| {
                Some((json::unescape(key).into_owned(), serde_json::from_str::<Value>(value).ok()?))
            });
            prop_assert_eq!(ours.collect::<serde_json::Map<_, _>>(), theirs);
        }
    }

    #[test]
    fn a_key_stands_once_in_its_object(count in 2usize..60, first in 0usize..60, second in 0usize..60, is_escaped in any::<bool>(), depth in 0usize..4) {
        let (first, second) = (first % count, second % count);
        let name = |n: usize| if n == second && is_escaped { format!("\\u006b{first}") } else if n == second { format!("k{first}") } else { format!("k{n}") };
        let members: Vec<String> = (0..count).map(|n| format!(r#""{}":{{"k0":[{{"k1":1}},{{"k1":2}}]}}"#, name(n))).collect();
        let mut text = format!("{{{}}}", members.join(","));
        for _ in 0..depth {
            text = format!(r#"[{{"k0":{text},"k1":{{"k0":0}}}}]"#);
        }
        let expected = if first == second { Ok(()) } else { Err(json::JsonFault::Repeated) };
        prop_assert_eq!(json::check(&text, 100), expected, "{}", text);
    }

    #[test]
    fn a_merge_is_the_union_of_the_latest_fields(old in json_object(), new in json_object(), is_pretty in any::<bool>()) {
        let write = |map: &BTreeMap<String, Value>| {
            if is_pretty { serde_json::to_vec_pretty(map) } else { serde_json::to_vec(map) }.unwrap_or_default()
        };
        let latest = write(&new);
        let (old_again, new_again) = (old.clone(), latest.clone());
        let merged = json::merge(&write(&old), &latest, Nulls::Keep).unwrap_or(latest);
        let union: BTreeMap<String, Value> = old.into_iter().chain(new).collect();
        let found: BTreeMap<String, Value> = serde_json::from_slice(&merged).unwrap_or_default();
        prop_assert_eq!(&found, &union);
        let whole = json::merge(&write(&old_again), &new_again, Nulls::Remove).unwrap_or(new_again);
        let found: BTreeMap<String, Value> = serde_json::from_slice(&whole).unwrap_or_default();
        let whole: BTreeMap<String, Value> = union.into_iter().filter(|(_, value)| !value.is_null()).collect();
        prop_assert_eq!(found, whole);
    }

    #[test]
    fn merging_any_bytes_panics_on_none(old in vec(any::<u8>(), 0..40), new in nearly_json()) {
        let _ = json::merge(&old, new.as_bytes(), Nulls::Keep);
        if let Some(merged) = json::merge(new.as_bytes(), new.as_bytes(), Nulls::Remove) {
            prop_assert!(serde_json::from_slice::<Value>(&merged).is_ok());
        }
    }

    #[test]
    fn no_payload_panics(payload in vec(any::<u8>(), 0..120), text in nearly_commands("json"), frame in nearly_commands("binary")) {
        drain_commands(Wire::Json, &payload);
        drain_commands(Wire::Binary, &payload);
        drain_commands(Wire::Json, &text);
        drain_commands(Wire::Binary, &frame);
        drain_commands(Wire::Binary, &[&[0, frame.len() as u8 & 0x7f], frame.as_slice()].concat());
    }

    #[test]
    fn a_text_message_reads_back_from_json(subject in ".{0,40}", text in any::<String>(), epoch in any::<u64>(), sequence in 1u64..) {
        let view = MessageView {
            number: 1, base_time_ms: 0, subject: &subject, at: Some(Position { epoch, sequence }), after: None,
            time_ms: epoch, kind: Kind::Text, content: text.as_bytes(), fields: &[], reply_to: None, conflated: 0, pattern: None,
            is_snapshot: false,
            is_patch: false,
            is_removal: false,
        };
        let mut out = Vec::new();
        codec::push(Wire::Json, &mut out, &Push::Message(view));
        let header = match out[1] { 127 => 10, 126 => 4, _ => 2 };
        let read: Value = serde_json::from_slice(&out[header..]).unwrap_or_default();
        prop_assert_eq!(read["message"].as_str(), Some(subject.as_str()));
        prop_assert_eq!(read["text"].as_str(), Some(text.as_str()));
        prop_assert_eq!(read["time"].as_u64(), Some(epoch));
        let position = format!("{epoch}.{sequence}");
        prop_assert_eq!(read["at"].as_str(), Some(position.as_str()));
    }

    #[test]
    fn a_publish_reads_back_from_json(subject in any::<String>(), content in json_value(), key in ".{1,40}", retain in any::<Option<bool>>()) {
        let mut object = serde_json::json!({"id": 1, "publish": subject, "content": content, "key": key});
        if let Some(retain) = retain {
            object["retain"] = retain.into();
        }
        let text = object.to_string();
        let mut commands = codec::commands(Wire::Json, text.as_bytes(), &Limits::default());
        let Ok(Some((_, Ok(Command::Publish(publish))))) = commands.as_mut().map(codec::Commands::next) else {
            panic!("{text}");
        };
        prop_assert_eq!(publish.subject, subject);
        prop_assert_eq!(publish.key.as_deref(), Some(key.as_str()));
        prop_assert_eq!(publish.retain, retain);
        let written = content.to_string();
        prop_assert_eq!(publish.content.as_ref(), written.as_bytes());
    }

    #[test]
    fn numbers_read_back(number in any::<u64>(), shift in 0u32..64, signed in any::<i64>(), tail in vec(any::<u8>(), 0..3)) {
        let (number, signed) = (number >> shift, signed >> shift);
        let mut out = Vec::new();
        varint::put(&mut out, number);
        varint::put_signed(&mut out, signed);
        let length = out.len();
        out.extend(&tail);
        let mut values = Values(&out);
        prop_assert_eq!((values.varint(), values.signed(), values.0), (Some(number), Some(signed), tail.as_slice()));
        prop_assert!(length <= 20);
        // No other run of bytes is the same number.
        let mut values = Values(&tail);
        if let Some(number) = values.varint() {
            let mut again = Vec::new();
            varint::put(&mut again, number);
            prop_assert_eq!(&tail[..tail.len() - values.0.len()], again.as_slice());
        }
    }
}
