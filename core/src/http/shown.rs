//! Which snapshot a request asks for, and in which form.
use std::borrow::Cow;

use super::head::Head;
use super::query::{invalid, missing, pairs, set, unknown};
use crate::command::Refusal;

/// The subject whose snapshot a query asks for, and whether as a whole message.
///
/// # Errors
/// The first parameter that is missing, unknown, repeated or not valid.
pub fn read_shown<'a>(head: &Head<'a>) -> Result<(Cow<'a, str>, bool), Refusal> {
    let (mut subject, mut form) = (None, None);
    for pair in pairs(head.query) {
        let (name, value) = pair?;
        match name {
            "subject" => set(&mut subject, name, value)?,
            "as" if value == "message" => set(&mut form, name, ())?,
            "as" => return Err(invalid("as must be \"message\"; leave it out to get the content alone")),
            _ => return Err(unknown(name)),
        }
    }
    Ok((subject.ok_or_else(missing)?, form.is_some()))
}
