//! permessage-deflate against a node of values: who agreed to it gets the same compressed bytes as all others who did, who did not
//! gets none, and what comes compressed is inflated within bounds.

use crate::world::{Place, World, masked, open_settings};
use godwit_core::limits::Limits;
use godwit_core::settings::Settings;
use godwit_core::websocket::{Deflater, Inflater, text};
use serde_json::{Value, json};

const LONG: &str =
    "all work and no play makes a dull message; all work and no play makes a dull message; all work and no play";

fn world(is_pending: bool) -> World {
    let limits = Limits { message_bytes_max: 4096, ..Limits::default() };
    World::new(Settings { compresses: true, limits, ..open_settings() }, 1, is_pending)
}

fn head(offer: &str) -> String {
    format!(
        "GET /v1/live HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Extensions: {offer}\r\n\r\n"
    )
}

/// A client that offers this; the answer's field.
fn connect(world: &mut World, offer: &str) -> (Place, Option<String>) {
    let place = world.accept(0);
    let head = head(offer);
    world.bytes(place, head.as_bytes());
    world.turn(0);
    let answer = String::from_utf8(std::mem::take(&mut world.socket(place).taken)).expect("a head");
    assert!(answer.starts_with("HTTP/1.1 101"), "{answer}");
    (place, answer.split("\r\n").find_map(|line| line.strip_prefix("Sec-WebSocket-Extensions: ")).map(str::to_owned))
}

/// The frames that a socket took since the last look: whether each was compressed, and its payload as it was before.
fn frames(world: &mut World, place: Place) -> Vec<(bool, String)> {
    let taken = std::mem::take(&mut world.socket(place).taken);
    let (mut rest, mut found, mut inflater) = (taken.as_slice(), Vec::new(), Inflater::default());
    while let [first, second, ..] = *rest {
        let (start, length) = match second {
            126 => (4, usize::from(u16::from_be_bytes([rest[2], rest[3]]))),
            short => (2, usize::from(short)),
        };
        let mut payload = rest[start..start + length].to_vec();
        if first & 0x40 != 0 {
            let mut out = Vec::new();
            assert_eq!(inflater.inflate(&payload, true, 1 << 20, &mut out), Ok(()));
            payload = out;
        }
        found.push((first & 0x40 != 0, String::from_utf8_lossy(&payload).into_owned()));
        rest = &rest[start + length..];
    }
    found
}

fn squeezed(payload: &str) -> Vec<u8> {
    let mut frame = Vec::new();
    text(&mut frame, payload.len(), |out| out.extend_from_slice(payload.as_bytes()));
    Deflater::default().squeeze(15, &mut frame, 0);
    assert_eq!(frame[0], 0xc1, "compressed");
    let start = if frame[1] == 126 { 4 } else { 2 };
    let mut out = masked(&frame[start..]);
    out[0] = 0xc1;
    out
}

#[test]
fn one_compressed_frame_is_for_all_who_agreed_and_nobody_else() {
    for is_pending in [false, true] {
        let mut world = world(is_pending);
        let plain = world.connect(0);
        let (one, agreed) = connect(&mut world, "permessage-deflate; client_max_window_bits");
        let terms = "permessage-deflate; server_no_context_takeover; client_no_context_takeover";
        assert_eq!(agreed.as_deref(), Some(terms));
        let (other, _) = connect(&mut world, "permessage-deflate");
        let (small, agreed) = connect(&mut world, "permessage-deflate; server_max_window_bits=9");
        assert_eq!(agreed, Some(format!("{terms}; server_max_window_bits=9")));
        for place in [plain, one, other, small] {
            world.say(place, r#"{"subscribe":"/a"}"#);
        }
        world.turn_all();
        for place in [plain, one, other, small] {
            assert!(frames(&mut world, place).iter().all(|(is_compressed, _)| !is_compressed), "answers are small");
        }
        world.say(plain, &format!("{{\"publish\":\"/a\",\"content\":\"{LONG}\"}}"));
        world.turn_all();
        let taken = world.socket(one).taken.clone();
        assert_eq!(taken, world.socket(other).taken, "the same bytes");
        let whole = frames(&mut world, plain);
        assert!(!whole[0].0 && whole[0].1.contains(LONG));
        for place in [one, other, small] {
            assert_eq!(frames(&mut world, place), [(true, whole[0].1.clone())]);
        }
        world.say(plain, r#"{"publish":"/a","content":1}"#);
        world.turn_all();
        assert!(!frames(&mut world, one)[0].0, "what would not get shorter stays as it is");
    }
}

#[test]
fn who_listens_alone_gets_compressed_frames_too_but_none_that_are_made_for_it() {
    let mut world = world(false);
    let publisher = world.connect(0);
    let (alone, _) = connect(&mut world, "permessage-deflate");
    world.ask(publisher, &format!("{{\"publish\":\"/a\",\"content\":\"{LONG}\"}}"));
    world.say(alone, r#"{"id":1,"subscribe":"/a"}"#);
    world.turn_all();
    let joined = frames(&mut world, alone);
    assert!(joined.len() == 2 && joined.iter().all(|(is_compressed, _)| !is_compressed), "{joined:?}");
    world.ask(publisher, &format!("{{\"publish\":\"/a\",\"content\":\"{LONG}\"}}"));
    assert!(frames(&mut world, alone)[0].0);
}

#[test]
fn a_compressed_command_is_a_command_and_a_bomb_is_refused_within_the_limit() {
    let mut world = world(false);
    let (place, _) = connect(&mut world, "permessage-deflate");
    world.bytes(place, &squeezed(&format!("{{\"id\":1,\"publish\":\"/a\",\"content\":\"{LONG}\"}}")));
    world.turn_all();
    let answers = frames(&mut world, place);
    assert!(answers[0].1.contains("\"published\""), "{answers:?}");
    let hostile: [(Vec<u8>, u16); 4] = [
        (squeezed(&" ".repeat(1_000_000)), 1009),
        ([&[0xc1, 0x83, 0, 0, 0, 0][..], &[0xff; 3]].concat(), 1002),
        ([&[0x01, 0x81, 0, 0, 0, 0, b'a'][..], &[0xc0, 0x80, 0, 0, 0, 0]].concat(), 1002),
        ([&[0xc9, 0x80][..], &[0; 4]].concat(), 1002),
    ];
    for (bytes, code) in hostile {
        let (place, _) = connect(&mut world, "permessage-deflate");
        world.bytes(place, &bytes);
        world.turn_all();
        assert_eq!(world.heard(place), [json!({"close": code})]);
        assert!(world.socket(place).is_finished, "where its next frame begins is not known: nothing is awaited");
    }
    let plain = world.connect(0);
    world.bytes(plain, &squeezed(LONG));
    world.turn_all();
    assert_eq!(world.heard(plain), [json!({"close": 1002})], "nobody agreed to that");
}

#[test]
fn a_node_that_does_not_compress_answers_no_offer() {
    let mut world = World::new(open_settings(), 1, false);
    let (place, agreed) = connect(&mut world, "permessage-deflate");
    assert_eq!(agreed, None);
    let heard: Vec<Value> = world.ask(place, r#"{"id":1,"ping":true}"#);
    assert_eq!(heard[0]["ok"], "pong");
}

/// What `protocol/vectors/deflate.json` calls `name`.
fn vectors(name: &str) -> Vec<Value> {
    let file: Value = serde_json::from_str(include_str!("../../../protocol/vectors/deflate.json")).expect("JSON");
    let cases = file[name].as_array().cloned().unwrap_or_default();
    assert!(cases.len() > 10, "{name}");
    cases
}

#[test]
fn an_offer_is_answered_as_the_contract_says() {
    for case in vectors("offers") {
        let offer = case["offer"].as_str().expect("an offer");
        if case["answer"].is_string() || case["answer"].is_null() {
            assert_eq!(connect(&mut world(false), offer).1.as_deref(), case["answer"].as_str(), "{offer}");
            continue;
        }
        let (mut world, status) = (world(false), case["answer"].as_u64().expect("a status"));
        let place = world.accept(0);
        let head = head(offer);
        world.bytes(place, head.as_bytes());
        world.turn(0);
        let answer = String::from_utf8_lossy(&world.socket(place).taken).into_owned();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{offer}: {answer}");
    }
}

#[test]
fn a_message_inflates_to_what_the_contract_says_or_closes() {
    let mut inflater = Inflater::default();
    for case in vectors("cases") {
        let raw = case["deflated"].as_str().expect("hex").as_bytes();
        let digits = raw.chunks(2).map(|pair| std::str::from_utf8(pair).expect("hex"));
        let payload: Vec<u8> = digits.map(|pair| u8::from_str_radix(pair, 16).expect("hex")).collect();
        let mut out = Vec::new();
        match inflater.inflate(&payload, true, 4096, &mut out) {
            Ok(()) => assert_eq!(Some(&*String::from_utf8_lossy(&out)), case["becomes"].as_str(), "{}", case["name"]),
            Err(code) => assert_eq!(Some(u64::from(code as u16)), case["close"].as_u64(), "{}", case["name"]),
        }
    }
}
