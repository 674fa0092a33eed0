//! The contract's cases, protocol/vectors, held against the core: exact bytes, names, merging.
//! The Python client is held to the same files.

use std::borrow::Cow;

use godwit_core::codec::{self, Wire};
use godwit_core::codes::Code;
use godwit_core::command::{Ack, GapReason, Id, MessageView, Outcome, Push, Reply};
use godwit_core::json::{self, Members, Nulls};
use godwit_core::limits::Limits;
use godwit_core::message::{Kind, fields};
use godwit_core::position::{Position, ResumeToken};
use godwit_core::subject::{
    Pattern, Selector, check_publish_subject, check_subject, has_empty_segment, is_dispatch, names_owner,
};
use serde_json::Value;

const CODEC: &str = include_str!("../../../protocol/vectors/codec.json");
const SUBJECTS: &str = include_str!("../../../protocol/vectors/subjects.json");
const CONFLATION: &str = include_str!("../../../protocol/vectors/conflation.json");

fn cases(text: &str, way: &str) -> Vec<Value> {
    let Ok(Value::Object(mut file)) = serde_json::from_str(text) else { panic!("no JSON object") };
    let Some(Value::Array(cases)) = file.remove("cases") else { panic!("no cases") };
    let found: Vec<_> = cases.into_iter().filter(|case| way.is_empty() || case["way"] == way).collect();
    assert!(!found.is_empty(), "{way}");
    found
}

fn text<'a>(case: &'a Value, key: &str) -> &'a str {
    case[key].as_str().unwrap_or_else(|| panic!("{key} of {case}"))
}

fn unhex(text: &str) -> Vec<u8> {
    text.as_bytes()
        .chunks(2)
        .map(|pair| std::str::from_utf8(pair).ok().and_then(|pair| u8::from_str_radix(pair, 16).ok()).unwrap_or(0))
        .collect()
}

/// The payload of the one server frame in `frame`.
fn payload(frame: &[u8], wire: Wire) -> &[u8] {
    if frame.is_empty() || wire == Wire::Sse {
        return frame;
    }
    assert_eq!(frame[0], if wire == Wire::Json { 0x81 } else { 0x82 });
    let (header, length) = match frame[1] {
        126 => (4, usize::from(u16::from_be_bytes([frame[2], frame[3]]))),
        short => (2, usize::from(short)),
    };
    assert_eq!(frame.len(), header + length);
    &frame[header..]
}

/// The members of a JSON wire object: values as written.
struct Object<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Object<'a> {
    fn read(text: &'a str) -> Self {
        Self(Members::new(text, 64).map(|member| member.unwrap_or_else(|fault| panic!("{fault:?} {text}"))).collect())
    }

    fn raw(&self, key: &str) -> Option<&'a str> {
        self.0.iter().find(|member| member.0 == key).map(|member| member.1)
    }

    fn text(&self, key: &str) -> Option<Cow<'a, str>> {
        self.raw(key).and_then(json::string)
    }

    fn must(&self, key: &str) -> Cow<'a, str> {
        self.text(key).unwrap_or_else(|| panic!("{key}"))
    }

    fn number(&self, key: &str) -> Option<u64> {
        self.raw(key).and_then(|raw| raw.parse().ok())
    }

    fn position(&self, key: &str) -> Option<Position> {
        self.text(key).and_then(|text| Position::parse(&text))
    }

    fn is_true(&self, key: &str) -> bool {
        self.raw(key) == Some("true")
    }

    fn fields(&self) -> Vec<u8> {
        let object = |key| serde_json::from_str::<Value>(self.raw(key).unwrap_or("{}")).unwrap();
        let mut all = object("fields");
        for (name, bytes) in object("fields_bytes").as_object().unwrap() {
            all[name] = serde_json::json!({"bytes": bytes});
        }
        fields::from_json(&all).unwrap()
    }

    fn content(&self) -> (Kind, Vec<u8>) {
        use base64::Engine;
        match (self.raw("content"), self.text("text"), self.text("bytes")) {
            (Some(raw), ..) => (Kind::Json, raw.as_bytes().to_vec()),
            (_, Some(text), _) => (Kind::Text, text.as_bytes().to_vec()),
            (.., Some(text)) => {
                (Kind::Bytes, base64::engine::general_purpose::STANDARD.decode(text.as_bytes()).unwrap_or_default())
            }
            _ => panic!("no content"),
        }
    }
}

fn reason(name: &str) -> GapReason {
    use GapReason::{Ahead, Epoch, Expired, Overrun, TooLarge, Unknown};
    let all = [Expired, Overrun, Epoch, Ahead, Unknown, TooLarge];
    *all.iter().find(|reason| reason.name() == name).unwrap_or_else(|| panic!("{name}"))
}

fn outcome(name: &str) -> Outcome {
    use Outcome::{History, Live, Recovered, Resync, Snapshot};
    let all = [Snapshot, Recovered, History, Live, Resync];
    *all.iter().find(|outcome| outcome.name() == name).unwrap_or_else(|| panic!("{name}"))
}

fn code(object: &Object<'_>) -> Code {
    let number = object.number("error").and_then(|number| u16::try_from(number).ok());
    let code = number.and_then(Code::from_number).unwrap_or_else(|| panic!("no such code"));
    assert_eq!(object.must("name"), code.name());
    assert_eq!(object.is_true("retry"), code.is_retryable());
    code
}

/// Writes `push` on all wires that have it and compares.
fn compare(case: &Value, write: impl Fn(Wire, &mut Vec<u8>)) {
    for wire in [Wire::Json, Wire::Binary, Wire::Sse] {
        let mut out = Vec::new();
        write(wire, &mut out);
        let written = payload(&out, wire);
        let expected = match (wire, case[wire.name()].as_str()) {
            (Wire::Binary, Some(hex)) => unhex(hex),
            (Wire::Binary | Wire::Sse, None) => continue,
            (_, Some(text)) => text.as_bytes().to_vec(),
            (_, None) => Vec::new(),
        };
        assert_eq!(String::from_utf8_lossy(written), String::from_utf8_lossy(&expected), "{case}");
        assert_eq!(written, expected, "{case}");
    }
}

#[test]
fn pushes_are_written_as_the_vectors_say() {
    for case in cases(CODEC, "push") {
        let object = Object::read(text(&case, "json"));
        if object.raw("message").is_some() {
            compare_message(&case, &object);
        } else {
            compare_notice(&case, &object);
        }
    }
}

fn compare_message(case: &Value, object: &Object<'_>) {
    let ((kind, content), held) = (object.content(), object.fields());
    let (subject, pattern, reply_to) = (object.must("message"), object.text("pattern"), object.text("reply_to"));
    let view = MessageView {
        number: case["number"].as_u64().unwrap_or(0) as u32,
        base_time_ms: case["base_time"].as_u64().unwrap_or(0),
        subject: &subject,
        at: object.position("at"),
        after: object.position("after"),
        time_ms: object.number("time").unwrap_or(0),
        kind,
        content: &content,
        fields: &held,
        reply_to: reply_to.as_deref(),
        conflated: object.number("conflated").unwrap_or(0) as u32,
        pattern: pattern.as_deref(),
        is_snapshot: object.is_true("snapshot"),
        is_patch: object.is_true("merge"),
        is_removal: object.is_true("removed"),
    };
    compare(case, |wire, out| codec::push(wire, out, &Push::Message(view)));
    // The position before is not written when the sequence says it.
    if view.after.is_none() && view.at.is_some_and(|at| at.sequence > 0) {
        let after = view.at.map(|at| Position { sequence: at.sequence - 1, ..at });
        compare(case, |wire, out| codec::push(wire, out, &Push::Message(MessageView { after, ..view })));
    }
}

fn compare_notice(case: &Value, object: &Object<'_>) {
    let pattern = object.text("pattern");
    let named = |key| object.must(key);
    let name = ["gap", "epochs", "dropped", "resume_token", "interest", "interest_state", "ended"]
        .into_iter()
        .find_map(|key| object.text(key));
    let (name, why) = (name.unwrap_or_default(), object.text("reason").unwrap_or_default());
    let push = if object.raw("gap").is_some() {
        match object.position("at") {
            Some(at) => Push::Gap {
                subject: &name,
                after: object.position("after"),
                at,
                reason: reason(&why),
                missed: object.number("missed"),
                pattern: pattern.as_deref(),
            },
            None => {
                Push::PatternGap { part: &name, pattern: pattern.as_deref().unwrap_or(&name), reason: reason(&why) }
            }
        }
    } else if object.raw("dropped").is_some() {
        Push::Dropped { selector: &name, count: object.number("count").unwrap_or(0) }
    } else if object.raw("epochs").is_some() {
        let order: Vec<u64> = case["order"].as_array().unwrap().iter().map(|epoch| epoch.as_u64().unwrap()).collect();
        let push = Push::Epochs { subject: &name, epochs: &order, pattern: pattern.as_deref() };
        return compare(case, |wire, out| codec::push(wire, out, &push));
    } else if object.raw("resume_token").is_some() {
        let resume_token = ResumeToken::parse(&name).unwrap_or_else(|| panic!("{name}"));
        Push::ResumeToken { resume_token, pattern: pattern.as_deref().unwrap_or("") }
    } else if object.raw("interest").is_some() {
        Push::Interest { selector: &name, has_subscribers: object.is_true("subscribers") }
    } else if object.raw("interest_state").is_some() {
        Push::InterestState { pattern: &name, is_complete: object.is_true("complete") }
    } else if object.raw("ended").is_some() {
        Push::Ended { selector: &name, code: code(object), reason: &why }
    } else if named("notice") == "draining" {
        Push::Draining { reconnect_after_ms: object.number("reconnect_after_ms").unwrap_or(0) }
    } else {
        Push::TokenExpiring { in_ms: object.number("in_ms").unwrap_or(0) }
    };
    compare(case, |wire, out| codec::push(wire, out, &push));
}

#[test]
fn announcements_are_written_as_the_vectors_say() {
    for case in cases(CODEC, "announcement") {
        let pattern = text(&case, "pattern");
        let push = Push::Announce {
            number: case["number"].as_u64().unwrap_or(0) as u32,
            subject: text(&case, "subject"),
            epoch: case["epoch"].as_u64().unwrap_or(0),
            base_time_ms: case["base_time"].as_u64().unwrap_or(0),
            pattern: (!pattern.is_empty()).then_some(pattern),
        };
        compare(&case, |wire, out| codec::push(wire, out, &push));
    }
}

#[test]
fn replies_are_written_as_the_vectors_say() {
    for case in cases(CODEC, "reply") {
        let object = Object::read(text(&case, "json"));
        let id = match (object.raw("id"), object.text("id")) {
            (None, _) => Id::None,
            (_, Some(text)) => Id::Text(text.as_ref().into()),
            (Some(raw), None) => raw.parse().map_or_else(|_| Id::Digits(raw.into()), Id::Number),
        };
        let (ok, subject) = (object.text("ok").unwrap_or_default(), object.text("subject").unwrap_or_default());
        let texts = ["session", "node", "reason"].map(|key| object.text(key).unwrap_or_default());
        let [session, node, why] = &texts;
        let time_ms = object.number("time").unwrap_or(0);
        let at = object.position("at");
        let reply = match ok.as_ref() {
            "connected" => {
                let ping_interval_ms = object.number("ping_interval_ms").unwrap_or(0);
                let lacks_publisher = object.raw("publisher").is_some();
                Reply::Connected { session, node, time_ms, ping_interval_ms, lacks_publisher }
            }
            "subscribed" => {
                let outcome = outcome(&object.must("outcome"));
                Reply::Subscribed { selector: &subject, at, outcome, count: object.number("count") }
            }
            "unsubscribed" => Reply::Unsubscribed { selector: &subject },
            "published" => {
                let reached = object.raw("ack").map(|_| Ack::Cached);
                Reply::Published { at, is_duplicate: object.is_true("duplicate"), reached }
            }
            "pong" => Reply::Pong { time_ms },
            "watching" => Reply::Watching { pattern: &subject },
            "unwatched" => Reply::Unwatched { pattern: &subject },
            _ => Reply::Error { code: code(&object), reason: why },
        };
        compare(&case, |wire, out| codec::reply(wire, out, &id, &reply));
    }
}

/// What a payload asks for: ids and commands as they print, or the code of a refusal.
fn understood(wire: Wire, payload: &[u8]) -> Vec<(Id, Result<String, Code>)> {
    let mut commands = match codec::commands(wire, payload, &Limits::default()) {
        Ok(commands) => commands,
        Err(refusal) => return vec![(Id::None, Err(refusal.code))],
    };
    let mut all = Vec::new();
    while let Some((id, command)) = commands.next() {
        all.push((id, command.map(|command| format!("{command:?}")).map_err(|refusal| refusal.code)));
    }
    all
}

#[test]
fn commands_are_understood_alike_on_both_wires() {
    for case in cases(CODEC, "command").into_iter().chain(cases(CODEC, "batch")) {
        let on_json = understood(Wire::Json, text(&case, "json").as_bytes());
        assert!(on_json.iter().all(|row| row.1.is_ok()), "{case} {on_json:?}");
        assert_eq!(on_json.len(), if case["way"] == "batch" { 2 } else { 1 });
        if let Some(hex) = case["binary"].as_str() {
            assert_eq!(understood(Wire::Binary, &unhex(hex)), on_json, "{case}");
        }
    }
}

#[test]
fn what_is_no_command_is_refused_with_its_code() {
    for case in cases(CODEC, "refused") {
        let all = match text(&case, "wire") {
            "json" => understood(Wire::Json, text(&case, "json").as_bytes()),
            _ => understood(Wire::Binary, &unhex(text(&case, "binary"))),
        };
        let id = case["id"].as_i64().map_or(Id::None, Id::Number);
        let code = case["code"].as_u64().and_then(|number| Code::from_number(number as u16));
        assert_eq!(all, vec![(id, Err(code.unwrap_or(Code::CommandInternalError)))], "{case}");
    }
}

#[test]
fn names_are_judged_as_the_vectors_say() {
    let Ok(file) = serde_json::from_str::<Value>(SUBJECTS) else { panic!("no JSON") };
    let names = |key: &str| {
        let names = file[key].as_array().cloned().unwrap_or_default();
        assert!(!names.is_empty(), "{key}");
        names.into_iter().map(|name| name.as_str().unwrap_or("").to_owned()).collect::<Vec<_>>()
    };
    let own = |name: &str| name.starts_with("/$");
    for name in names("valid_subjects") {
        assert_eq!(check_subject(&name).is_ok(), !own(&name), "{name}");
        assert!(!has_empty_segment(&name), "{name}");
        assert!(Pattern::parse(&name).is_ok_and(|pattern| !pattern.has_wildcard()), "{name}");
    }
    for name in names("with_empty_segments") {
        assert!(check_subject(&name).is_ok() && has_empty_segment(&name), "{name}");
        assert!(Selector::parse(&name).is_ok_and(|selector| matches!(selector, Selector::Subject(_))), "{name}");
    }
    for name in names("invalid_subjects").iter().chain(&names("not_for_clients_to_publish")) {
        assert!(check_subject(name).is_err() && check_publish_subject(name).is_err(), "{name}");
    }
    for name in names("for_dispatch_to_publish") {
        assert!(is_dispatch(&name) && check_subject(&name).is_err() && check_publish_subject(&name).is_ok(), "{name}");
    }
    for case in file["owners"].as_array().cloned().unwrap_or_default() {
        assert_eq!(names_owner(text(&case, "selector")), case["named"] == true, "{case}");
    }
    for name in names("valid_patterns") {
        assert!(Pattern::parse(&name).is_ok(), "{name}");
    }
    for name in names("invalid_patterns") {
        assert!(Pattern::parse(&name).is_err(), "{name}");
    }
    for case in file["matches"].as_array().cloned().unwrap_or_default() {
        let Ok(pattern) = Pattern::parse(text(&case, "pattern")) else { panic!("{case}") };
        assert_eq!(pattern.matches(text(&case, "subject")), case["matches"] == true, "{case}");
    }
}

#[test]
fn messages_are_merged_as_the_vectors_say() {
    for case in cases(CONFLATION, "") {
        let messages = case["messages"].as_array().cloned().unwrap_or_default();
        let mut merged: Option<(bool, bool, Vec<u8>)> = None;
        for message in &messages {
            let (is_json, is_patch) = (message["content"].is_string(), message["merge"] == true);
            let new = text(message, if is_json { "content" } else { "text" }).as_bytes();
            merged = Some(match merged {
                Some((was_json, was_patch, old)) if is_patch => {
                    let nulls = if was_patch { Nulls::Keep } else { Nulls::Remove };
                    let union = json::merge(if was_json { &old } else { b"" }, new, nulls);
                    (is_json, was_patch, union.unwrap_or_else(|| new.to_vec()))
                }
                _ => (is_json, is_patch, new.to_vec()),
            });
        }
        let (is_json, is_patch, content) = merged.unwrap_or_default();
        let becomes = &case["becomes"];
        let expected = text(becomes, if is_json { "content" } else { "text" });
        assert_eq!((&*String::from_utf8_lossy(&content), is_patch), (expected, becomes["merge"] == true), "{case}");
    }
}
