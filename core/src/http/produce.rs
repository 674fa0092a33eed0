//! Publishes by HTTP: what the query of a POST and the DELETE of a snapshot ask for.

use std::borrow::Cow;

use super::content::read_content;
use super::fields::GivenFields;
use super::head::Head;
use super::query::{invalid, missing, number as whole, pairs, set, truth, unknown};
use crate::codec::{check_numbered, check_publisher};
use crate::codes::Code;
use crate::command::{Ack, Numbered, Publish, Refusal};
use crate::limits::{KEY_BYTES_MAX, Limits};
use crate::message::Kind;

/// What a publish and a removal have in common: a level to be reached, and a place among those of the publisher.
#[derive(Default)]
struct GivenNumber<'a> {
    ack: Option<Ack>,
    publisher: Option<Cow<'a, str>>,
    number: Option<u64>,
    floor: Option<u64>,
    is_again: Option<bool>,
}

impl<'a> GivenNumber<'a> {
    /// Takes a parameter; false: it is another's.
    fn take(&mut self, name: &str, value: &str) -> Result<bool, Refusal> {
        match name {
            "ack" => set(&mut self.ack, name, level(value)?)?,
            "publisher" => set(&mut self.publisher, name, Cow::Owned(value.to_owned()))?,
            "number" => set(&mut self.number, name, whole(name, value)?)?,
            "floor" => set(&mut self.floor, name, whole(name, value)?)?,
            "again" => set(&mut self.is_again, name, truth(name, value)?)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// A publisher and a number, or neither.
    fn hold(self, is_guaranteed: bool, has_key: bool) -> Result<(Option<Cow<'a, str>>, Option<Numbered>), Refusal> {
        let Some(number) = self.number else {
            let is_alone = self.publisher.is_some() || self.floor.is_some() || self.is_again.is_some();
            return if is_alone { Err(invalid("publisher, floor and again need number")) } else { Ok((None, None)) };
        };
        check_publisher(self.publisher.as_deref(), None)?;
        let (floor, is_again) = (self.floor.unwrap_or(0), self.is_again.unwrap_or(false));
        let numbered = check_numbered(Numbered { number, floor, is_again }, is_guaranteed, has_key)?;
        Ok((self.publisher, Some(numbered)))
    }
}

/// The publish that a POST with a subject is.
///
/// # Errors
/// What is wrong with its parameters or its body.
pub fn read_produce<'a>(head: &Head<'a>, body: &'a [u8], limits: &Limits) -> Result<Publish<'a>, Refusal> {
    let (mut subject, mut retain, mut merge) = (None, None, None);
    let (mut guaranteed, mut reply_to) = (None, None);
    let (mut given, mut number) = (GivenFields::default(), GivenNumber::default());
    for pair in pairs(head.query) {
        let (name, value) = pair?;
        match name {
            "subject" => set(&mut subject, name, value)?,
            "retain" => set(&mut retain, name, truth(name, &value)?)?,
            "merge" => set(&mut merge, name, truth(name, &value)?)?,
            "guaranteed" => set(&mut guaranteed, name, truth(name, &value)?)?,
            "reply_to" => set(&mut reply_to, name, value)?,
            _ if number.take(name, &value)? => {}
            _ if given.take(name, &value, limits)? => {}
            _ => return Err(unknown(name)),
        }
    }
    let fields = given.hold(limits)?;
    let (kind, content) = read_content(head, body, limits)?;
    let is_guaranteed = guaranteed.unwrap_or(true);
    let ack = number.ack.unwrap_or(Ack::Cached);
    let (publisher, numbered) = number.hold(is_guaranteed, head.idempotency_key.is_some())?;
    Ok(Publish {
        subject: subject.ok_or_else(missing)?,
        kind,
        content: Cow::Borrowed(content),
        fields,
        retain,
        merge,
        is_removal: false,
        is_guaranteed,
        numbered,
        publisher,
        key: head.idempotency_key.map(read_key).transpose()?,
        reply_to,
        ack,
    })
}

/// The removal that a DELETE of a snapshot is.
///
/// # Errors
/// What is wrong with its parameters.
pub fn read_removal<'a>(head: &Head<'a>) -> Result<Publish<'a>, Refusal> {
    let (mut subject, mut number) = (None, GivenNumber::default());
    for pair in pairs(head.query) {
        let (name, value) = pair?;
        match name {
            "subject" => set(&mut subject, name, value)?,
            _ if number.take(name, &value)? => {}
            _ => return Err(unknown(name)),
        }
    }
    let ack = number.ack.unwrap_or(Ack::Cached);
    let (publisher, numbered) = number.hold(true, head.idempotency_key.is_some())?;
    Ok(Publish {
        subject: subject.ok_or_else(missing)?,
        kind: Kind::Text,
        content: Cow::Borrowed(b""),
        fields: Vec::new(),
        retain: None,
        merge: None,
        is_removal: true,
        is_guaranteed: true,
        key: head.idempotency_key.map(read_key).transpose()?,
        numbered,
        publisher,
        reply_to: None,
        ack,
    })
}

fn level(value: &str) -> Result<Ack, Refusal> {
    match value {
        "cached" => Ok(Ack::Cached),
        "replicated" => Ok(Ack::Replicated),
        "disk" => Ok(Ack::Disk),
        _ => Err(invalid("ack is cached, replicated or disk")),
    }
}

/// A key as it stands, or within the quotes of a structured field.
fn read_key(value: &str) -> Result<Cow<'_, str>, Refusal> {
    let key = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value);
    if (1..=KEY_BYTES_MAX).contains(&key.len()) {
        return Ok(Cow::Borrowed(key));
    }
    Err(Refusal::new(Code::KeyInvalid, format!("a key has 1 to {KEY_BYTES_MAX} bytes")))
}
