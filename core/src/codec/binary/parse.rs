//! Commands out of binary frames (binary.md, B5).

use std::borrow::Cow;

use super::kind;
use super::more::{FIELDS, MORE, PATCH, REMOVAL, WHOLE};
use super::varint::Values;
use crate::codec::json::{
    check_connect, check_frame_bytes, check_key, check_numbered, check_publisher, parse_resume_token,
};
use crate::codec::{Bounds, too_many};
use crate::codes::Code;
use crate::command::{Ack, Command, Connect, Id, Numbered, Publish, Refusal, Subscribe};
use crate::json::{self, JsonFault};
use crate::limits::Limits;
use crate::message::Kind;
use crate::message::fields::{self, Value};

type Parsed<'a> = Result<Command<'a>, Refusal>;

/// The commands of one binary WebSocket message.
#[derive(Debug)]
pub(in crate::codec) struct Commands<'a> {
    bounds: Bounds,
    is_batch: bool,
    rest: Values<'a>,
}

impl<'a> Commands<'a> {
    /// A batch is counted, and its lengths checked, before anything of it is executed.
    pub(in crate::codec) fn open(payload: &'a [u8], limits: &Limits) -> Result<Self, Refusal> {
        let bounds = Bounds::of(limits);
        let Some((&kind::BATCH, rest)) = payload.split_first() else {
            return Ok(Self { bounds, is_batch: false, rest: Values(payload) });
        };
        let mut values = Values(rest);
        let mut count = 0;
        while !values.is_empty() {
            if values.bytes().is_none_or(<[u8]>::is_empty) {
                return Err(malformed());
            }
            count += 1;
            if count > limits.commands_in_flight_max {
                return Err(too_many(limits.commands_in_flight_max));
            }
        }
        Ok(Self { bounds, is_batch: true, rest: Values(rest) })
    }

    pub(in crate::codec) fn next(&mut self) -> Option<(Id, Parsed<'a>)> {
        let frame = if !self.is_batch {
            self.is_batch = true;
            std::mem::replace(&mut self.rest, Values(&[])).0
        } else if self.rest.is_empty() {
            return None;
        } else {
            self.rest.bytes()?
        };
        let mut values = Values(frame);
        let Some((kind, number)) = values.byte().zip(values.varint()) else {
            return Some((Id::None, Err(malformed())));
        };
        let id = match i64::try_from(number) {
            Ok(0) => Id::None,
            Ok(number) => Id::Number(number),
            Err(_) => return Some((Id::None, Err(malformed()))),
        };
        let command = command(kind, values, self.bounds);
        Some((id, command))
    }
}

fn malformed() -> Refusal {
    Refusal::new(Code::CommandMalformed, "the frame is malformed")
}

fn command(kind: u8, mut values: Values<'_>, bounds: Bounds) -> Parsed<'_> {
    if kind == kind::PUBLISH {
        return publish(values, bounds).map(Command::Publish);
    }
    let command = match kind {
        kind::SUBSCRIBE => Command::Subscribe(subscribe(&mut values, bounds)?),
        kind::UNSUBSCRIBE => Command::Unsubscribe { selector: string(&mut values)? },
        kind::PING => Command::Ping,
        kind::WATCH => Command::Watch { pattern: string(&mut values)? },
        kind::UNWATCH => Command::Unwatch { pattern: string(&mut values)? },
        kind::CONNECT => connect(&mut values)?,
        other => return Err(Refusal::new(Code::CommandUnknown, format!("no command is 0x{other:02x}"))),
    };
    // B1.4: nothing may be left over.
    if values.is_empty() { Ok(command) } else { Err(malformed()) }
}

fn string<'a>(values: &mut Values<'a>) -> Result<Cow<'a, str>, Refusal> {
    values.string().map(Cow::Borrowed).ok_or_else(malformed)
}

/// A string that is there when its flag is set.
fn string_if<'a>(is_there: bool, values: &mut Values<'a>) -> Result<Option<Cow<'a, str>>, Refusal> {
    if is_there { string(values).map(Some) } else { Ok(None) }
}

fn flags(values: &mut Values<'_>, known: u8) -> Result<u8, Refusal> {
    values.byte().filter(|flags| flags & !known == 0).ok_or_else(malformed)
}

fn connect<'a>(values: &mut Values<'a>) -> Parsed<'a> {
    let flags = flags(values, 0x1f)?;
    let token = string_if(flags & 1 != 0, values)?;
    let client = string_if(flags & 2 != 0, values)?;
    let bytes = if flags & 4 == 0 { None } else { Some(values.varint().ok_or_else(malformed)?) };
    let publisher = string_if(flags & 8 != 0, values)?;
    let number = if flags & 0x10 == 0 { None } else { Some(values.varint().ok_or_else(malformed)?) };
    check_connect(token.as_deref(), client.as_deref())?;
    check_publisher(publisher.as_deref(), number)?;
    let frame_bytes_max = bytes.map(check_frame_bytes).transpose()?;
    Ok(Command::Connect(Connect { token, client, frame_bytes_max, publisher, number }))
}

fn subscribe<'a>(values: &mut Values<'a>, bounds: Bounds) -> Result<Subscribe<'a>, Refusal> {
    let flags = flags(values, 0x7f)?;
    let selector = string(values)?;
    let mut after = None;
    let mut after_each = Vec::new();
    match flags & 3 {
        0 => {}
        1 => after = Some(values.position().ok_or_else(malformed)?),
        2 => {
            let count = values.varint().ok_or_else(malformed)?;
            if count > bounds.positions_max as u64 {
                let most = bounds.positions_max;
                return Err(Refusal::new(Code::FieldInvalid, format!("after names more than {most} subjects")));
            }
            for _ in 0..count {
                after_each.push((string(values)?, values.position().ok_or_else(malformed)?));
            }
        }
        _ => return Err(malformed()),
    }
    let since = string_if(flags & 4 != 0, values)?.map(|text| parse_resume_token(&text)).transpose()?;
    let number_if = |is_there, values: &mut Values<'_>| match is_there {
        false => Ok(None),
        true => values.varint().map(Some).ok_or_else(malformed),
    };
    let last = number_if(flags & 8 != 0, values)?;
    let conflate_ms = number_if(flags & 0x40 != 0, values)?;
    Ok(Subscribe {
        selector,
        after,
        after_each,
        since,
        last: last.map(|last| u32::try_from(last).unwrap_or(u32::MAX)),
        wants_snapshot: flags & 0x10 == 0,
        gap_from_oldest: flags & 0x20 != 0,
        conflate_ms: bounds.conflate_ms(conflate_ms.unwrap_or(0))?,
    })
}

fn publish(mut values: Values<'_>, bounds: Bounds) -> Result<Publish<'_>, Refusal> {
    let flags = flags(&mut values, 0x7f)?;
    let options = values.byte().ok_or_else(malformed)?;
    let subject = string(&mut values)?;
    let key = string_if(flags & 4 != 0, &mut values)?;
    if let Some(key) = &key {
        check_key(key)?;
    }
    let reply_to = string_if(flags & 8 != 0, &mut values)?;
    let numbered = numbered(flags, key.is_some(), &mut values)?;
    let more = if flags & MORE == MORE { values.byte().ok_or_else(malformed)? } else { flags & 3 };
    let (kind, merge) = match (more & 3, more & !3) {
        (0, merge) => (Kind::Json, merge),
        (1, merge) => (Kind::Text, merge),
        (2, merge) => (Kind::Bytes, merge),
        _ => return Err(malformed()),
    };
    let has_fields = merge & FIELDS != 0;
    let held = if has_fields { hold_fields(&mut values, bounds)? } else { Vec::new() };
    let (merge, is_removal) = match merge & !FIELDS {
        0 => (None, false),
        PATCH => (Some(true), false),
        WHOLE => (Some(false), false),
        REMOVAL if !has_fields && kind == Kind::Text && flags & 0x18 == 0 && options & 3 == 0 && values.is_empty() => {
            (None, true)
        }
        _ => return Err(malformed()),
    };
    check_content(kind, values.0, bounds.content_depth_max)?;
    let retain = match options & 3 {
        0 => None,
        1 => Some(true),
        2 => Some(false),
        _ => return Err(malformed()),
    };
    let ack = match options & !3 {
        0 => Ack::Cached,
        4 => Ack::Replicated,
        8 => Ack::Disk,
        _ => return Err(malformed()),
    };
    let content = Cow::Borrowed(values.0);
    let is_guaranteed = flags & 0x10 == 0;
    Ok(Publish {
        subject,
        kind,
        content,
        fields: held,
        retain,
        merge,
        is_removal,
        is_guaranteed,
        key,
        numbered,
        publisher: None,
        reply_to,
        ack,
    })
}

/// B3.4: how many, and each one's name, type and value.
fn hold_fields(values: &mut Values<'_>, bounds: Bounds) -> Result<Vec<u8>, Refusal> {
    let count = values.varint().ok_or_else(malformed)?;
    let mut given = Vec::new();
    for _ in 0..count.min(bounds.fields_max as u64 + 1) {
        let name = values.string().ok_or_else(malformed)?;
        let value = match values.byte().ok_or_else(malformed)? {
            0 => Value::Text(values.string().ok_or_else(malformed)?),
            1 => Value::Bytes(values.bytes().ok_or_else(malformed)?),
            2 => Value::Removed,
            _ => return Err(malformed()),
        };
        given.push((name, value));
    }
    fields::hold(given, bounds.fields_max)
}

fn numbered(flags: u8, has_key: bool, values: &mut Values<'_>) -> Result<Option<Numbered>, Refusal> {
    if flags & 0x60 == 0 {
        return Ok(None);
    }
    if flags & 0x20 == 0 {
        return Err(malformed());
    }
    let (number, floor) = values.varint().zip(values.varint()).ok_or_else(malformed)?;
    check_numbered(Numbered { number, floor, is_again: flags & 0x40 != 0 }, flags & 0x10 == 0, has_key).map(Some)
}

/// Content that comes as bytes is what it says it is.
fn check_content(kind: Kind, content: &[u8], depth_max: usize) -> Result<(), Refusal> {
    let invalid = |reason: &str| Err(Refusal::new(Code::ContentInvalid, reason));
    match (kind, std::str::from_utf8(content)) {
        (Kind::Bytes, _) | (Kind::Text, Ok(_)) => Ok(()),
        (_, Err(_)) => invalid("the content is not UTF-8"),
        (Kind::Json, Ok(text)) => match json::check(text, depth_max) {
            Ok(()) => Ok(()),
            Err(fault @ JsonFault::TooDeep) => Err(Refusal::new(Code::ContentTooDeep, fault.sentence())),
            Err(fault) => invalid(&format!("bad JSON: {}", fault.sentence())),
        },
    }
}
