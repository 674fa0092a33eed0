//! Commands of both wires as bytes: what they mean, and which code what is malformed gets.
use super::*;
use crate::command::Publish;
use crate::message::Kind;
use crate::position::Position;

fn parse(text: &str) -> Vec<(Id, Result<String, Code>)> {
    let limits = Limits { commands_in_flight_max: 3, content_depth_max: 4, ..Limits::default() };
    let mut commands = match commands(Wire::Json, text.as_bytes(), &limits) {
        Ok(commands) => commands,
        Err(refusal) => return vec![(Id::None, Err(refusal.code))],
    };
    let mut found = Vec::new();
    while let Some((id, command)) = commands.next() {
        found.push((id, command.map(|command| format!("{command:?}")).map_err(|refusal| refusal.code)));
    }
    found
}

#[test]
fn a_publish_borrows_its_content_as_written() {
    let text = r#" {"id":4 , "publish":"/a/b","content":{"x": [1, 2.50]},"retain":false} "#;
    let Ok(mut commands) = commands(Wire::Json, text.as_bytes(), &Limits::default()) else { panic!() };
    let Some((Id::Number(4), Ok(Command::Publish(publish)))) = commands.next() else { panic!() };
    assert_eq!(publish.content.as_ref(), br#"{"x": [1, 2.50]}"#);
    assert!(matches!(publish.content, std::borrow::Cow::Borrowed(_)));
    assert_eq!((publish.kind, publish.retain, publish.is_guaranteed), (Kind::Json, Some(false), true));
    assert!(commands.next().is_none());
}

#[test]
fn what_is_no_command_gets_its_code_and_its_id() {
    let cases = [
        ("", Id::None, Code::CommandMalformed),
        ("x", Id::None, Code::CommandMalformed),
        ("5", Id::None, Code::CommandMalformed),
        ("\u{feff}{\"ping\":true}", Id::None, Code::CommandMalformed),
        (r#"{"ping":true}{"ping":true}"#, Id::None, Code::CommandMalformed),
        (r#"{"id":1}"#, Id::Number(1), Code::CommandMalformed),
        (r#"{"id":1,"ping":true,"id":2}"#, Id::Number(2), Code::CommandMalformed),
        (r#"{"id":1,"ping":true,"\u0070ing":true}"#, Id::Number(1), Code::CommandMalformed),
        (r#"{"id":1,"ping":true,"watch":"/a"}"#, Id::Number(1), Code::CommandMalformed),
        (r#"{"id":1.5,"ping":true}"#, Id::None, Code::CommandMalformed),
        (r#"{"id":null,"ping":true}"#, Id::None, Code::CommandMalformed),
        (r#"{"id":1,"pong":true}"#, Id::Number(1), Code::CommandUnknown),
        (r#"{"id":"a","ping":false}"#, Id::Text("a".into()), Code::FieldInvalid),
        (r#"{"id":1,"ping":true,"x":1}"#, Id::Number(1), Code::FieldUnknown),
        (r#"{"id":1,"ping":true,"retain":true}"#, Id::Number(1), Code::FieldUnknown),
        (r#"{"id":1,"publish":"/a"}"#, Id::Number(1), Code::ContentInvalid),
        (r#"{"id":1,"publish":"/a","text":"a","content":1}"#, Id::Number(1), Code::ContentInvalid),
        (r#"{"id":1,"publish":"/a","bytes":"*"}"#, Id::Number(1), Code::ContentInvalid),
        (r#"{"id":1,"publish":7,"text":"a"}"#, Id::Number(1), Code::FieldInvalid),
        (r#"{"id":1,"publish":"/a","text":7}"#, Id::Number(1), Code::FieldInvalid),
        (r#"{"id":1,"publish":"/a","text":"","retain":"yes"}"#, Id::Number(1), Code::FieldInvalid),
        (r#"{"id":1,"publish":"/a","text":"","ack":"soon"}"#, Id::Number(1), Code::FieldInvalid),
        (r#"{"id":1,"publish":"/a","text":"","key":""}"#, Id::Number(1), Code::KeyInvalid),
        (r#"{"id":1,"publish":"/a","content":[[[[[]]]]]}"#, Id::Number(1), Code::ContentTooDeep),
        (r#"{"id":1,"publish":"/a","content":"\ud800"}"#, Id::Number(1), Code::CommandMalformed),
        (r#"{"id":1,"publish":"/a","content":1e999999}"#, Id::Number(1), Code::CommandMalformed),
        (r#"{"id":1,"subscribe":"/a","after":"7"}"#, Id::Number(1), Code::PositionInvalid),
        (r#"{"id":1,"subscribe":"/a","after":{"/a":7}}"#, Id::Number(1), Code::PositionInvalid),
        (r#"{"id":1,"subscribe":"/a","last":-1}"#, Id::Number(1), Code::FieldInvalid),
        (r#"{"id":1,"subscribe":"/a","conflate_ms":99}"#, Id::Number(1), Code::FieldInvalid),
        (r#"{"id":1,"connect":"x"}"#, Id::Number(1), Code::FieldInvalid),
        (r#"{"id":1,"connect":{"token":"a","token":"b"}}"#, Id::Number(1), Code::CommandMalformed),
        (r#"{"id":1,"connect":{"user":"a"}}"#, Id::Number(1), Code::FieldUnknown),
        (r#"[{"ping":true},{"ping":true},{"ping":true},{"ping":true}]"#, Id::None, Code::CommandsTooMany),
        (r#"[{"ping":true},{"ping":tru}]"#, Id::None, Code::CommandMalformed),
    ];
    for (text, id, code) in cases {
        assert_eq!(parse(text), vec![(id, Err(code))], "{text}");
    }
    assert_eq!(parse(&"[".repeat(100_000)), vec![(Id::None, Err(Code::ContentTooDeep))]);
    let deep = format!(r#"{{"publish":"/a","content":{}"#, "[".repeat(100_000));
    assert_eq!(parse(&deep), vec![(Id::None, Err(Code::ContentTooDeep))]);
}

#[test]
fn an_array_is_handled_in_order_and_may_be_empty() {
    assert_eq!(parse("[ ]"), vec![]);
    let found = parse(r#"[{"id":1,"ping":true}, 5 ,{"id":9223372036854775808,"ping":true}]"#);
    assert_eq!(found[0], (Id::Number(1), Ok("Ping".into())));
    assert_eq!(found[1], (Id::None, Err(Code::CommandMalformed)));
    assert_eq!(found[2], (Id::Digits("9223372036854775808".into()), Ok("Ping".into())));
}

#[test]
fn silence_is_the_answer_to_success_without_an_id() {
    for wire in [Wire::Json, Wire::Binary] {
        let mut out = Vec::new();
        let at = Some(Position { epoch: 1, sequence: 2 });
        reply(wire, &mut out, &Id::None, &Reply::Published { at, is_duplicate: false, reached: None });
        assert!(out.is_empty());
        reply(wire, &mut out, &Id::None, &Reply::Error { code: Code::FieldInvalid, reason: "x" });
        assert!(!out.is_empty());
    }
}

#[test]
fn a_binary_publish_is_read_and_a_malformed_one_refused() {
    let frame = [0x43, 5, 0x04, 0x09, 2, b'/', b'a', 1, b'k', b'{', b'}'];
    let limits = Limits::default();
    let read = |frame: &[u8]| {
        let Ok(mut commands) = commands(Wire::Binary, frame, &limits) else { panic!() };
        let Some((id, command)) = commands.next() else { panic!() };
        assert!(commands.next().is_none());
        (id, command.map(|command| format!("{command:?}")).map_err(|refusal| refusal.code))
    };
    let expected = Command::Publish(Publish {
        subject: "/a".into(),
        kind: Kind::Json,
        content: b"{}".as_slice().into(),
        fields: Vec::new(),
        retain: Some(true),
        merge: None,
        is_removal: false,
        is_guaranteed: true,
        key: Some("k".into()),
        numbered: None,
        publisher: None,
        reply_to: None,
        ack: crate::command::Ack::Disk,
    });
    assert_eq!(read(&frame), (Id::Number(5), Ok(format!("{expected:?}"))));
    for end in 2..9 {
        assert_eq!(read(&frame[..end]), (Id::Number(5), Err(Code::CommandMalformed)), "{end}");
    }
    assert_eq!(read(&frame[..10]), (Id::Number(5), Err(Code::ContentInvalid)));
    assert_eq!(read(&[0x44, 1, 0]), (Id::Number(1), Err(Code::CommandMalformed)));
    assert_eq!(read(&[0x44, 0x81, 0]), (Id::None, Err(Code::CommandMalformed)));
    assert_eq!(read(&[0x7f, 1]), (Id::Number(1), Err(Code::CommandUnknown)));
    assert_eq!(read(&[]), (Id::None, Err(Code::CommandMalformed)));
    assert!(super::commands(Wire::Binary, &[0, 2, 0x44], &limits).is_err());
}
