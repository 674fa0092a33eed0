//! Commands out of JSON: strict in everything that a command is made of, indifferent to what content means.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::fields::{Field, Fields, PUBLISH_NUMBER_MAX, Verb, cut, publish_number, refuse_json, wrong_type};
use crate::codec::{Bounds, too_many};
use crate::codes::Code;
use crate::command::{Ack, Command, Connect, Id, Numbered, Publish, Refusal, Subscribe};
use crate::json::{self, Elements, Members};
use crate::limits::{
    CLIENT_BYTES_MAX, FRAME_BYTES_MIN, FRAME_BYTES_TOP, ID_BYTES_MAX, KEY_BYTES_MAX, Limits, PUBLISHER_BYTES_MAX,
    PUBLISHER_BYTES_MIN, RESUME_TOKEN_BYTES_MAX, TOKEN_BYTES_MAX,
};
use crate::message::Kind;
use crate::message::fields::{self, Value};
use crate::position::{Position, ResumeToken};

type Parsed<'a> = Result<Command<'a>, Refusal>;

/// The commands of one text frame.
#[derive(Debug)]
pub(in crate::codec) struct Commands<'a> {
    bounds: Bounds,
    rest: Rest<'a>,
}

#[derive(Debug)]
enum Rest<'a> {
    One(Option<&'a str>),
    Many(Elements<'a>),
}

impl<'a> Commands<'a> {
    /// An array is checked to its end and counted before anything of it is executed.
    pub(in crate::codec) fn open(payload: &'a [u8], limits: &Limits) -> Result<Self, Refusal> {
        let bounds = Bounds::of(limits);
        let text =
            std::str::from_utf8(payload).map_err(|_| Refusal::new(Code::CommandMalformed, "bad JSON: not UTF-8"))?;
        let is_array = text.trim_ascii_start().starts_with('[');
        if !is_array {
            return Ok(Self { bounds, rest: Rest::One(Some(text)) });
        }
        // The array, the command's object, and its content.
        let elements = Elements::new(text, limits.content_depth_max + 2);
        let mut count = 0;
        for element in elements.clone() {
            element.map_err(refuse_json)?;
            count += 1;
            if count > limits.commands_in_flight_max {
                return Err(too_many(limits.commands_in_flight_max));
            }
        }
        Ok(Self { bounds, rest: Rest::Many(elements) })
    }

    pub(in crate::codec) fn next(&mut self) -> Option<(Id, Parsed<'a>)> {
        let text = match &mut self.rest {
            Rest::One(text) => text.take()?,
            Rest::Many(elements) => elements.next()?.ok()?,
        };
        let mut fields = Fields::default();
        let read = fields.read(text, self.bounds.content_depth_max + 1);
        let id = match parse_id(fields.id) {
            Ok(id) => id,
            Err(refusal) => return Some((Id::None, Err(refusal))),
        };
        Some((id, read.and_then(|()| command(&fields, self.bounds))))
    }
}

fn parse_id(raw: Option<&str>) -> Result<Id, Refusal> {
    let Some(raw) = raw else { return Ok(Id::None) };
    if raw.len() <= ID_BYTES_MAX {
        if let Ok(number) = raw.parse() {
            return Ok(Id::Number(number));
        }
        if let Some(text) = json::string(raw) {
            return Ok(Id::Text(text.into()));
        }
        if raw.bytes().all(|b| b.is_ascii_digit() || b == b'-') {
            return Ok(Id::Digits(raw.into()));
        }
    }
    Err(Refusal::new(Code::CommandMalformed, format!("id is an integer or a string of at most {ID_BYTES_MAX} bytes")))
}

fn command<'a>(fields: &Fields<'a>, bounds: Bounds) -> Parsed<'a> {
    let (verb, value) = fields.verb()?;
    let named = |verb| json::string(value).ok_or_else(|| wrong_type(verb, "a string"));
    match verb {
        Verb::Publish => publish(named("publish")?, fields, bounds).map(Command::Publish),
        Verb::Subscribe => subscribe(named("subscribe")?, fields, bounds).map(Command::Subscribe),
        Verb::Unsubscribe => Ok(Command::Unsubscribe { selector: named("unsubscribe")? }),
        Verb::Watch => Ok(Command::Watch { pattern: named("watch")? }),
        Verb::Unwatch => Ok(Command::Unwatch { pattern: named("unwatch")? }),
        Verb::Ping if value == "true" => Ok(Command::Ping),
        Verb::Ping => Err(wrong_type("ping", "true")),
        Verb::Connect => connect(value),
    }
}

fn connect(value: &str) -> Parsed<'_> {
    let (mut token, mut client, mut frame_bytes_max) = (None, None, None);
    let (mut publisher, mut number) = (None, None);
    if !value.starts_with('{') {
        return Err(wrong_type("connect", "an object"));
    }
    for member in Members::new(value, usize::MAX) {
        let (raw, value) = member.map_err(refuse_json)?;
        let text = json::string(value);
        let is_repeated = match &*json::unescape(raw) {
            "token" => token.replace(text.ok_or_else(|| wrong_type("token", "a string"))?).is_some(),
            "client" => client.replace(text.ok_or_else(|| wrong_type("client", "a string"))?).is_some(),
            "publisher" => publisher.replace(text.ok_or_else(|| wrong_type("publisher", "a string"))?).is_some(),
            "number" => number.replace(publish_number("number", value)?).is_some(),
            "frame_bytes_max" => frame_bytes_max.replace(frame_bytes(value)?).is_some(),
            other => {
                return Err(Refusal::new(Code::FieldUnknown, format!("connect has no field {}", cut(other))));
            }
        };
        if is_repeated {
            return Err(Refusal::new(Code::CommandMalformed, format!("the key {} is repeated", cut(raw))));
        }
    }
    check_connect(token.as_deref(), client.as_deref())?;
    check_publisher(publisher.as_deref(), number)?;
    Ok(Command::Connect(Connect { token, client, frame_bytes_max, publisher, number }))
}

/// What all wires hold a publisher's name to, and the first number beside it.
pub(crate) fn check_publisher(publisher: Option<&str>, number: Option<u64>) -> Result<(), Refusal> {
    let Some(publisher) = publisher else {
        let is_alone = number.is_some();
        return if is_alone { Err(Refusal::new(Code::FieldInvalid, "number without publisher")) } else { Ok(()) };
    };
    if !(PUBLISHER_BYTES_MIN..=PUBLISHER_BYTES_MAX).contains(&publisher.len()) || publisher.contains(char::is_control) {
        let (least, most) = (PUBLISHER_BYTES_MIN, PUBLISHER_BYTES_MAX);
        return Err(wrong_type("publisher", &format!("{least} to {most} bytes without control characters")));
    }
    Ok(())
}

/// What all wires hold a numbered publish to.
pub(crate) fn check_numbered(numbered: Numbered, is_guaranteed: bool, has_key: bool) -> Result<Numbered, Refusal> {
    if !is_guaranteed || has_key {
        return Err(Refusal::new(Code::FieldInvalid, "a publish with a key, and a standard one, has no number"));
    }
    if !(1..=PUBLISH_NUMBER_MAX).contains(&numbered.number) {
        return Err(wrong_type("number", "an integer from 1 to 9007199254740991"));
    }
    if numbered.floor > numbered.number {
        return Err(Refusal::new(Code::FieldInvalid, "floor is above number: a settled publish is not sent again"));
    }
    Ok(numbered)
}

fn numbered(fields: &Fields<'_>, is_guaranteed: bool) -> Result<Option<Numbered>, Refusal> {
    let read = |field, name| fields.raw(field).map(|raw| publish_number(name, raw)).transpose();
    let (number, floor) = (read(Field::Number, "number")?, read(Field::Floor, "floor")?);
    let is_again = fields.truth(Field::Again)?;
    let Some(number) = number else {
        let is_alone = floor.is_some() || is_again.is_some();
        return if is_alone { Err(Refusal::new(Code::FieldInvalid, "floor and again need number")) } else { Ok(None) };
    };
    let numbered = Numbered { number, floor: floor.unwrap_or(0), is_again: is_again.unwrap_or(false) };
    check_numbered(numbered, is_guaranteed, fields.raw(Field::Key).is_some()).map(Some)
}

fn publisher<'a>(fields: &Fields<'a>) -> Result<Option<Cow<'a, str>>, Refusal> {
    let name = fields.text(Field::Publisher)?;
    check_publisher(name.as_deref(), None)?;
    if name.is_some() && fields.raw(Field::Number).is_none() {
        return Err(Refusal::new(Code::FieldInvalid, "publisher needs number"));
    }
    Ok(name)
}

fn frame_bytes(raw: &str) -> Result<u32, Refusal> {
    let is_plain = raw.bytes().all(|byte| byte.is_ascii_digit());
    check_frame_bytes(raw.parse().ok().filter(|_| is_plain).unwrap_or(u64::MAX))
}

/// What both wires hold the longest frame to that a client takes.
pub(in crate::codec) fn check_frame_bytes(bytes: u64) -> Result<u32, Refusal> {
    let (least, most) = (FRAME_BYTES_MIN as u64, FRAME_BYTES_TOP as u64);
    u32::try_from(bytes)
        .ok()
        .filter(|_| (least..=most).contains(&bytes))
        .ok_or_else(|| Refusal::new(Code::FieldInvalid, format!("frame_bytes_max is a number from {least} to {most}")))
}

/// What both wires hold a `connect` to.
pub(in crate::codec) fn check_connect(token: Option<&str>, client: Option<&str>) -> Result<(), Refusal> {
    if token.is_some_and(|token| token.len() > TOKEN_BYTES_MAX) {
        return Err(wrong_type("token", "shorter"));
    }
    if client.is_some_and(|client| client.len() > CLIENT_BYTES_MAX || client.contains(char::is_control)) {
        return Err(wrong_type("client", "at most 256 bytes without control characters"));
    }
    Ok(())
}

fn publish<'a>(subject: Cow<'a, str>, fields: &Fields<'a>, bounds: Bounds) -> Result<Publish<'a>, Refusal> {
    let is_removal = fields.truth(Field::Removed)?.unwrap_or(false);
    let (kind, content) = if is_removal { removal(fields)? } else { content(fields)? };
    let key = fields.text(Field::Key)?;
    if let Some(key) = &key {
        check_key(key)?;
    }
    let is_guaranteed = fields.truth(Field::Guaranteed)?.unwrap_or(true);
    Ok(Publish {
        subject,
        kind,
        content,
        fields: hold_fields(fields.raw(Field::Fields), fields.raw(Field::FieldsBytes), bounds)?,
        retain: fields.truth(Field::Retain)?,
        merge: fields.truth(Field::Merge)?,
        is_removal,
        is_guaranteed,
        key,
        numbered: numbered(fields, is_guaranteed)?,
        publisher: publisher(fields)?,
        reply_to: fields.text(Field::ReplyTo)?,
        ack: match fields.raw(Field::Ack) {
            None | Some("\"cached\"") => Ack::Cached,
            Some("\"replicated\"") => Ack::Replicated,
            Some("\"disk\"") => Ack::Disk,
            Some(_) => return Err(wrong_type("ack", "cached, replicated or disk")),
        },
    })
}

/// A removal has nothing but its subject, a key, and what its publisher waits for.
fn removal<'a>(fields: &Fields<'a>) -> Result<(Kind, Cow<'a, [u8]>), Refusal> {
    use Field::{Bytes, Content, FieldsBytes, Guaranteed, Merge, ReplyTo, Retain, Text};
    let others = [Content, Text, Bytes, Retain, Merge, Guaranteed, ReplyTo, Field::Fields, FieldsBytes];
    if others.iter().any(|field| fields.raw(*field).is_some()) {
        return Err(Refusal::new(
            Code::FieldInvalid,
            "beside removed only id, key, number, floor, again and ack are allowed",
        ));
    }
    Ok((Kind::Text, Cow::Borrowed(b"")))
}

/// The fields of a publish: texts, or null for one that is removed, and bytes in base64.
fn hold_fields(texts: Option<&str>, bytes: Option<&str>, bounds: Bounds) -> Result<Vec<u8>, Refusal> {
    if texts.is_none() && bytes.is_none() {
        return Ok(Vec::new());
    }
    let texts = members(texts, "fields", bounds)?;
    let bytes = members(bytes, "fields_bytes", bounds)?;
    let mut held: Vec<(Cow<'_, str>, Option<Cow<'_, str>>)> = Vec::new();
    for (name, raw) in texts {
        let text = json::string(raw);
        if text.is_none() && raw != "null" {
            return Err(wrong_type("fields", "an object of strings, or null where a field is removed"));
        }
        held.push((name, text));
    }
    let mut decoded: Vec<(Cow<'_, str>, Vec<u8>)> = Vec::new();
    for (name, raw) in bytes {
        let text = json::string(raw).and_then(|text| STANDARD.decode(text.as_bytes()).ok());
        let bytes = text.ok_or_else(|| wrong_type("fields_bytes", "an object of strings of base64"))?;
        decoded.push((name, bytes));
    }
    let texts = held.iter().map(|(name, text)| (&**name, text.as_deref().map_or(Value::Removed, Value::Text)));
    let bytes = decoded.iter().map(|(name, bytes)| (&**name, Value::Bytes(bytes)));
    fields::hold(texts.chain(bytes).collect(), bounds.fields_max)
}

/// The members of an object; more than a publish may have fields are not read.
fn members<'a>(raw: Option<&'a str>, name: &str, bounds: Bounds) -> Result<Vec<(Cow<'a, str>, &'a str)>, Refusal> {
    let Some(raw) = raw else { return Ok(Vec::new()) };
    if !raw.starts_with('{') {
        return Err(wrong_type(name, "an object"));
    }
    let members = Members::new(raw, usize::MAX).take(bounds.fields_max + 1);
    members.map(|member| member.map(|(name, value)| (json::unescape(name), value)).map_err(refuse_json)).collect()
}

/// What both wires hold an idempotency key to; that an anonymous one is long enough is the session's to see.
pub(in crate::codec) fn check_key(key: &str) -> Result<(), Refusal> {
    if (1..=KEY_BYTES_MAX).contains(&key.len()) {
        return Ok(());
    }
    Err(Refusal::new(Code::KeyInvalid, format!("a key has 1 to {KEY_BYTES_MAX} bytes")))
}

fn content<'a>(fields: &Fields<'a>) -> Result<(Kind, Cow<'a, [u8]>), Refusal> {
    let invalid = |reason| Err(Refusal::new(Code::ContentInvalid, reason));
    match (fields.raw(Field::Content), fields.raw(Field::Text), fields.raw(Field::Bytes)) {
        (Some(raw), None, None) => Ok((Kind::Json, Cow::Borrowed(raw.as_bytes()))),
        (None, Some(raw), None) => match json::string(raw) {
            Some(Cow::Borrowed(text)) => Ok((Kind::Text, Cow::Borrowed(text.as_bytes()))),
            Some(Cow::Owned(text)) => Ok((Kind::Text, Cow::Owned(text.into_bytes()))),
            None => Err(wrong_type("text", "a string")),
        },
        (None, None, Some(raw)) => {
            let Some(text) = json::string(raw) else { return Err(wrong_type("bytes", "a string")) };
            match STANDARD.decode(text.as_bytes()) {
                Ok(bytes) => Ok((Kind::Bytes, Cow::Owned(bytes))),
                Err(_) => invalid("bytes is not base64"),
            }
        }
        (None, None, None) => invalid("a publish has content, text or bytes"),
        _ => invalid("a publish has one of content, text and bytes"),
    }
}

fn subscribe<'a>(selector: Cow<'a, str>, fields: &Fields<'a>, bounds: Bounds) -> Result<Subscribe<'a>, Refusal> {
    let (after, after_each) = match fields.raw(Field::After) {
        None => (None, Vec::new()),
        Some(raw) if raw.starts_with('{') => (None, positions(raw, bounds)?),
        Some(raw) => (Some(position(raw)?), Vec::new()),
    };
    Ok(Subscribe {
        selector,
        after,
        after_each,
        since: fields.text(Field::Since)?.map(|text| parse_resume_token(&text)).transpose()?,
        last: fields.number(Field::Last)?,
        wants_snapshot: fields.truth(Field::Snapshot)?.unwrap_or(true),
        gap_from_oldest: match fields.raw(Field::OnGap) {
            None | Some("\"snapshot\"") => false,
            Some("\"oldest\"") => true,
            Some(_) => return Err(wrong_type("on_gap", "oldest or snapshot")),
        },
        conflate_ms: bounds.conflate_ms(fields.number(Field::ConflateMs)?.unwrap_or(0).into())?,
    })
}

fn position(raw: &str) -> Result<Position, Refusal> {
    json::string(raw)
        .and_then(|text| Position::parse(&text))
        .ok_or_else(|| Refusal::new(Code::PositionInvalid, "a position is EPOCH.SEQUENCE in a string"))
}

fn positions<'a>(raw: &'a str, bounds: Bounds) -> Result<Vec<(Cow<'a, str>, Position)>, Refusal> {
    let mut rows = Vec::new();
    for member in Members::new(raw, usize::MAX) {
        let (subject, value) = member.map_err(refuse_json)?;
        if rows.len() == bounds.positions_max {
            let most = bounds.positions_max;
            return Err(Refusal::new(Code::FieldInvalid, format!("after names more than {most} subjects")));
        }
        rows.push((json::unescape(subject), position(value)?));
    }
    Ok(rows)
}

/// A resume token is opaque to clients, so one that does not parse is another run's: the subscription gets a gap, not an error.
pub(in crate::codec) fn parse_resume_token(text: &str) -> Result<ResumeToken, Refusal> {
    if text.len() > RESUME_TOKEN_BYTES_MAX {
        return Err(Refusal::new(
            Code::ResumeTokenInvalid,
            format!("a resume token has at most {RESUME_TOKEN_BYTES_MAX} bytes"),
        ));
    }
    Ok(ResumeToken::parse(text).unwrap_or(ResumeToken { run: 0, arrival: 0, time_ms: 0 }))
}
