//! The members of a command's object, sorted by name without building anything: which verb, which fields, each once.

use std::borrow::Cow;

use crate::codes::Code;
use crate::command::Refusal;
use crate::json::{self, JsonFault, Members};

/// What a command asks for: the key that names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Connect,
    Subscribe,
    Unsubscribe,
    Publish,
    Ping,
    Watch,
    Unwatch,
}

/// A field beside verb and id. The order is that of `NAMES`; the first sixteen belong to `publish`, the others to `subscribe`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Content,
    Text,
    Bytes,
    Retain,
    Guaranteed,
    Key,
    ReplyTo,
    Ack,
    Number,
    Floor,
    Again,
    Merge,
    Removed,
    Fields,
    FieldsBytes,
    Publisher,
    After,
    Since,
    Last,
    Snapshot,
    OnGap,
    ConflateMs,
}

const NAMES: [&str; 22] = [
    "content",
    "text",
    "bytes",
    "retain",
    "guaranteed",
    "key",
    "reply_to",
    "ack",
    "number",
    "floor",
    "again",
    "merge",
    "removed",
    "fields",
    "fields_bytes",
    "publisher",
    "after",
    "since",
    "last",
    "snapshot",
    "on_gap",
    "conflate_ms",
];
const OF_PUBLISH: u32 = 0x0000_ffff;
const OF_SUBSCRIBE: u32 = 0x003f_0000;

/// Highest number of a publish: what a double holds exactly.
pub(in crate::codec) const PUBLISH_NUMBER_MAX: u64 = (1 << 53) - 1;

enum Name {
    Id,
    Verb(Verb),
    Field(Field),
}

fn name(key: &str) -> Option<Name> {
    Some(match key {
        "id" => Name::Id,
        "publish" => Name::Verb(Verb::Publish),
        "subscribe" => Name::Verb(Verb::Subscribe),
        "unsubscribe" => Name::Verb(Verb::Unsubscribe),
        "connect" => Name::Verb(Verb::Connect),
        "ping" => Name::Verb(Verb::Ping),
        "watch" => Name::Verb(Verb::Watch),
        "unwatch" => Name::Verb(Verb::Unwatch),
        "content" => Name::Field(Field::Content),
        "text" => Name::Field(Field::Text),
        "bytes" => Name::Field(Field::Bytes),
        "retain" => Name::Field(Field::Retain),
        "guaranteed" => Name::Field(Field::Guaranteed),
        "key" => Name::Field(Field::Key),
        "reply_to" => Name::Field(Field::ReplyTo),
        "ack" => Name::Field(Field::Ack),
        "number" => Name::Field(Field::Number),
        "floor" => Name::Field(Field::Floor),
        "again" => Name::Field(Field::Again),
        "merge" => Name::Field(Field::Merge),
        "removed" => Name::Field(Field::Removed),
        "fields" => Name::Field(Field::Fields),
        "fields_bytes" => Name::Field(Field::FieldsBytes),
        "publisher" => Name::Field(Field::Publisher),
        "after" => Name::Field(Field::After),
        "since" => Name::Field(Field::Since),
        "last" => Name::Field(Field::Last),
        "snapshot" => Name::Field(Field::Snapshot),
        "on_gap" => Name::Field(Field::OnGap),
        "conflate_ms" => Name::Field(Field::ConflateMs),
        _ => return None,
    })
}

/// A command's members as written.
#[derive(Debug, Default)]
pub(super) struct Fields<'a> {
    pub(super) id: Option<&'a str>,
    verb: Option<(Verb, &'a str)>,
    values: [Option<&'a str>; NAMES.len()],
    /// A bit of each field that has a value.
    given: u32,
    /// A key of no known name.
    unknown: Option<&'a str>,
}

impl<'a> Fields<'a> {
    /// Reads the whole object. A fault leaves what was read before it, so that an error can name the id.
    pub(super) fn read(&mut self, text: &'a str, depth_max: usize) -> Result<(), Refusal> {
        for member in Members::new(text, depth_max) {
            let (raw, value) = member.map_err(refuse_json)?;
            let key = if raw.contains('\\') { json::unescape(raw) } else { Cow::Borrowed(raw) };
            let is_repeated = match name(&key) {
                Some(Name::Id) => self.id.replace(value).is_some(),
                Some(Name::Field(field)) => {
                    self.given |= 1 << field as u32;
                    self.values[field as usize].replace(value).is_some()
                }
                Some(Name::Verb(verb)) => match self.verb.replace((verb, value)) {
                    Some((before, _)) if before != verb => {
                        return Err(Refusal::new(Code::CommandMalformed, "more than one verb"));
                    }
                    before => before.is_some(),
                },
                None => self.unknown.replace(raw) == Some(raw),
            };
            if is_repeated {
                return Err(Refusal::new(Code::CommandMalformed, format!("the key {} is repeated", cut(raw))));
            }
        }
        Ok(())
    }

    /// The verb with its value, once it is sure that every other field belongs to it.
    pub(super) fn verb(&self) -> Result<(Verb, &'a str), Refusal> {
        let Some((verb, value)) = self.verb else {
            return Err(match self.unknown {
                Some(key) => {
                    Refusal::new(Code::CommandUnknown, format!("no verb is known among the keys: {}", cut(key)))
                }
                None => Refusal::new(Code::CommandMalformed, "no verb"),
            });
        };
        if let Some(key) = self.unknown {
            return Err(Refusal::new(Code::FieldUnknown, format!("no field is named {}", cut(key))));
        }
        let allowed = match verb {
            Verb::Publish => OF_PUBLISH,
            Verb::Subscribe => OF_SUBSCRIBE,
            _ => 0,
        };
        let strange = self.given & !allowed;
        if let Some(field) = NAMES.get(strange.trailing_zeros() as usize) {
            return Err(Refusal::new(Code::FieldUnknown, format!("{field} does not go with this verb")));
        }
        Ok((verb, value))
    }

    #[inline]
    pub(super) fn raw(&self, field: Field) -> Option<&'a str> {
        self.values[field as usize]
    }

    pub(super) fn text(&self, field: Field) -> Result<Option<Cow<'a, str>>, Refusal> {
        match self.raw(field) {
            None => Ok(None),
            Some(raw) => json::string(raw).map(Some).ok_or_else(|| wrong_type(NAMES[field as usize], "a string")),
        }
    }

    pub(super) fn truth(&self, field: Field) -> Result<Option<bool>, Refusal> {
        match self.raw(field) {
            None => Ok(None),
            Some("true") => Ok(Some(true)),
            Some("false") => Ok(Some(false)),
            Some(_) => Err(wrong_type(NAMES[field as usize], "true or false")),
        }
    }

    pub(super) fn number(&self, field: Field) -> Result<Option<u32>, Refusal> {
        match self.raw(field) {
            None => Ok(None),
            Some(raw) => {
                raw.parse().map(Some).map_err(|_| wrong_type(NAMES[field as usize], "an integer from 0 to 4294967295"))
            }
        }
    }
}

/// A publish's number, or its floor.
pub(super) fn publish_number(name: &str, raw: &str) -> Result<u64, Refusal> {
    let is_plain = raw.bytes().all(|byte| byte.is_ascii_digit());
    raw.parse()
        .ok()
        .filter(|number| is_plain && (1..=PUBLISH_NUMBER_MAX).contains(number))
        .ok_or_else(|| wrong_type(name, "an integer from 1 to 9007199254740991"))
}

pub(super) fn wrong_type(field: &str, wanted: &str) -> Refusal {
    Refusal::new(Code::FieldInvalid, format!("{field} is {wanted}"))
}

pub(super) fn refuse_json(fault: JsonFault) -> Refusal {
    match fault {
        JsonFault::TooDeep => Refusal::new(Code::ContentTooDeep, fault.sentence()),
        _ => Refusal::new(Code::CommandMalformed, format!("bad JSON: {}", fault.sentence())),
    }
}

/// So much of a peer's text as goes into an error.
pub(super) fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(64)]
}
