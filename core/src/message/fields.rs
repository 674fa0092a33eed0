//! Fields of a message: names with a text, bytes, or nothing where the field is removed. Owns how they are held (sorted by name, one allocation
//! with the message), what is a valid name, and what fields become that are put over others.
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value as Json};

use crate::codes::Code;
use crate::command::Refusal;

/// Longest name.
pub const NAME_BYTES_MAX: usize = 256;
/// What stands before name and value: their lengths and the type.
const HEAD_BYTES: usize = 7;

/// What a field is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    Text(&'a str),
    Bytes(&'a [u8]),
    Removed,
}

/// Fields that are held, in the order of their names. Bytes that are none end them.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = (&'a str, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (head, rest) = self.0.split_first_chunk::<HEAD_BYTES>()?;
        let [name_0, name_1, kind, value @ ..] = *head;
        let (name, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes([name_0, name_1])))?;
        let (value, rest) = rest.split_at_checked(u32::from_le_bytes(value) as usize)?;
        self.0 = rest;
        let value = match kind {
            0 => Value::Text(std::str::from_utf8(value).ok()?),
            1 => Value::Bytes(value),
            _ => Value::Removed,
        };
        Some((std::str::from_utf8(name).ok()?, value))
    }
}

fn put(out: &mut Vec<u8>, name: &str, value: Value<'_>) {
    let (kind, bytes) = match value {
        Value::Text(text) => (0, text.as_bytes()),
        Value::Bytes(bytes) => (1, bytes),
        Value::Removed => (2, &b""[..]),
    };
    out.extend_from_slice(&(name.len() as u16).to_le_bytes());
    out.push(kind);
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(bytes);
}

/// Whether fields may have this name.
pub fn is_name(name: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&name.len()) && !name.contains(char::is_control)
}

/// Fields as a publish gives them: each name once.
///
/// # Errors
/// A name is not valid or there twice, or there are more than `fields_max`.
pub fn hold(mut fields: Vec<(&str, Value<'_>)>, fields_max: usize) -> Result<Vec<u8>, Refusal> {
    if fields.len() > fields_max {
        return Err(Refusal::new(Code::FieldsTooMany, format!("a message has at most {fields_max} fields")));
    }
    if fields.iter().any(|(name, _)| !is_name(name)) {
        let reason = format!("the name of a field has 1 to {NAME_BYTES_MAX} bytes without control characters");
        return Err(Refusal::new(Code::FieldInvalid, reason));
    }
    fields.sort_by_key(|(name, _)| *name);
    if let Some(pair) = fields.windows(2).find(|pair| pair.first().map(|one| one.0) == pair.get(1).map(|one| one.0)) {
        let name = pair.first().map_or("", |one| one.0);
        return Err(Refusal::new(Code::FieldInvalid, format!("the field {name:?} is given twice")));
    }
    Ok(hold_sorted(&fields))
}

/// The last of each name, of fields whose publisher knows no such rules; names that fields may not have are left out, and so is what is too many.
pub fn hold_last(fields: Vec<(&str, &str)>, fields_max: usize) -> Vec<u8> {
    let mut last: std::collections::BTreeMap<&str, Value<'_>> = std::collections::BTreeMap::new();
    for (name, text) in fields.into_iter().filter(|(name, _)| is_name(name)) {
        last.insert(name, Value::Text(text));
    }
    hold_sorted(&last.into_iter().take(fields_max).collect::<Vec<_>>())
}

fn hold_sorted(fields: &[(&str, Value<'_>)]) -> Vec<u8> {
    let mut out = Vec::new();
    fields.iter().for_each(|(name, value)| put(&mut out, name, *value));
    out
}

/// The latest value of every field. `keeps_removed`: of those that were removed, too, as what is made is put over others.
pub fn merge(old: &[u8], new: &[u8], keeps_removed: bool) -> Vec<u8> {
    let (mut old, mut new) = (Fields(old).peekable(), Fields(new).peekable());
    let mut out = Vec::new();
    loop {
        let before = match (old.peek(), new.peek()) {
            (Some((one, _)), Some((other, _))) => one.cmp(other),
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (None, None) => return out,
        };
        let next = if before.is_lt() { old.next() } else { new.next() };
        if before.is_eq() {
            old.next();
        }
        if let Some((name, value)) = next.filter(|(_, value)| keeps_removed || *value != Value::Removed) {
            put(&mut out, name, value);
        }
    }
}

/// Whether old fields with others put over them would be more than a message may have, and more than they are.
pub fn would_be_too_many(old: &[u8], new: &[u8], fields_max: usize) -> bool {
    let before = Fields(old).count();
    let is_few = before + Fields(new).count() <= fields_max;
    !is_few && Fields(&merge(old, new, false)).count() > fields_max.max(before)
}

/// The fields of a message that leaves of the old ones only those that it has: all others are removed by it.
pub fn replace(old: &[u8], new: &[u8]) -> Vec<u8> {
    merge(&remove(old), new, true)
}

/// The removal of every field in `fields`.
pub fn remove(fields: &[u8]) -> Vec<u8> {
    hold_sorted(&Fields(fields).map(|(name, _)| (name, Value::Removed)).collect::<Vec<_>>())
}

/// Those of `fields` that remove one.
pub fn only_removed(fields: &[u8]) -> Vec<u8> {
    hold_sorted(&Fields(fields).filter(|(_, value)| *value == Value::Removed).collect::<Vec<_>>())
}

/// One object: a text, null for one that is removed, `{"bytes":BASE64}`.
pub fn to_json(fields: &[u8]) -> Json {
    let value = |value| match value {
        Value::Text(text) => Json::String(text.to_owned()),
        Value::Bytes(bytes) => Json::Object(Map::from_iter([("bytes".to_owned(), STANDARD.encode(bytes).into())])),
        Value::Removed => Json::Null,
    };
    Json::Object(Fields(fields).map(|(name, held)| (name.to_owned(), value(held))).collect())
}

/// What `to_json` wrote; none for anything else.
pub fn from_json(json: &Json) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut members: Vec<(&String, &Json)> = json.as_object()?.iter().collect();
    members.sort_by_key(|(name, _)| *name);
    for (name, value) in members.into_iter().filter(|(name, _)| is_name(name)) {
        match value {
            Json::String(text) => put(&mut out, name, Value::Text(text)),
            Json::Null => put(&mut out, name, Value::Removed),
            other => put(&mut out, name, Value::Bytes(&STANDARD.decode(other.get("bytes")?.as_str()?).ok()?)),
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Value::{Bytes, Removed, Text};

    fn held(fields: &[(&str, Value<'_>)]) -> Vec<u8> {
        hold(fields.to_vec(), 64).unwrap()
    }

    #[test]
    fn the_latest_value_of_each_name_stays() {
        let old = held(&[("b", Text("1")), ("a", Bytes(b"\xff")), ("c", Text("x"))]);
        let new = held(&[("c", Removed), ("b", Text("2")), ("d", Removed)]);
        let all = |bytes: &[u8]| Fields(bytes).map(|(name, value)| format!("{name}={value:?}")).collect::<Vec<_>>();
        assert_eq!(all(&merge(&old, &new, false)), ["a=Bytes([255])", "b=Text(\"2\")"]);
        assert_eq!(all(&merge(&old, &new, true)), ["a=Bytes([255])", "b=Text(\"2\")", "c=Removed", "d=Removed"]);
        assert_eq!(all(&replace(&old, &held(&[("b", Text("2"))]))), ["a=Removed", "b=Text(\"2\")", "c=Removed"]);
        assert_eq!(all(&remove(&old)), ["a=Removed", "b=Removed", "c=Removed"]);
        assert_eq!(all(&only_removed(&new)), ["c=Removed", "d=Removed"]);
    }

    #[test]
    fn what_is_no_field_is_refused() {
        let code = |fields: Vec<(&str, Value<'_>)>| hold(fields, 2).unwrap_err().code;
        let long = "x".repeat(257);
        assert_eq!(code(vec![("a", Removed), ("b", Removed), ("c", Removed)]), Code::FieldsTooMany);
        for bad in ["", "a\nb", &long] {
            assert_eq!(code(vec![(bad, Removed)]), Code::FieldInvalid, "{bad:?}");
        }
        assert_eq!(code(vec![("a", Text("1")), ("a", Bytes(b""))]), Code::FieldInvalid);
    }

    #[test]
    fn fields_come_back_from_json_as_they_were() {
        let fields = held(&[("t", Text("ä\n")), ("b", Bytes(b"\x00\xff")), ("r", Removed)]);
        assert_eq!(from_json(&to_json(&fields)), Some(fields));
        assert_eq!(from_json(&Json::Null), None);
        assert_eq!(Fields(b"\x05\x00\x00garbage").count(), 0);
    }
}
