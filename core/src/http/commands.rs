//! What a POST to the stream asks for: an array of the JSON encoding's `subscribe` and `watch` commands, each with its own options.

use std::borrow::Cow;

use super::content::check_array;
use super::head::Head;
use super::query::{frame_bytes_max, last_event_id, pairs, resume, set, unknown};
use crate::codec::{self, Wire};
use crate::codes::Code;
use crate::command::{Command, Id, Refusal, Subscribe};
use crate::limits::Limits;

/// One command of the array, in its place.
#[derive(Debug)]
pub struct Asked<'a> {
    pub id: Id,
    pub what: Result<Wish<'a>, Refusal>,
}

#[derive(Debug)]
pub enum Wish<'a> {
    Subscribe(Subscribe<'a>),
    Watch(Cow<'a, str>),
}

/// What a POST wants to listen to.
#[derive(Debug)]
pub struct ListenMany<'a> {
    pub asked: Vec<Asked<'a>>,
    /// The longest event that the client takes; none: the default.
    pub frame_bytes_max: Option<u32>,
}

/// # Errors
/// What is wrong with the request as a whole; what is wrong with one command is said in its place.
pub fn read_commands<'a>(head: &Head<'_>, body: &'a [u8], limits: &Limits) -> Result<ListenMany<'a>, Refusal> {
    let (mut frame_bytes, mut last_id) = (None, None);
    for pair in pairs(head.query) {
        let (name, value) = pair?;
        match name {
            "last_event_id" => set(&mut last_id, name, value)?,
            "frame_bytes_max" => set(&mut frame_bytes, name, frame_bytes_max(name, &value)?)?,
            _ => return Err(unknown(name)),
        }
    }
    check_array(head, body, "a stream is asked for with an array of commands in application/json")?;
    let mut commands = codec::commands(Wire::Json, body, limits)?;
    let mut asked: Vec<Asked<'a>> = Vec::new();
    while let Some((id, command)) = commands.next() {
        let what = command.and_then(|command| wish(command, &asked));
        asked.push(Asked { id, what });
    }
    if asked.is_empty() {
        return Err(Refusal::new(Code::FieldInvalid, "the array holds no command"));
    }
    if let Some(id) = last_event_id(head, last_id.as_deref()) {
        let subscribes = asked.iter_mut().filter_map(|one| match &mut one.what {
            Ok(Wish::Subscribe(subscribe)) => Some(subscribe),
            _ => None,
        });
        resume(subscribes.collect(), id);
    }
    Ok(ListenMany { asked, frame_bytes_max: frame_bytes })
}

/// A command as far as a stream carries it; each selector is named once.
fn wish<'a>(command: Command<'a>, before: &[Asked<'a>]) -> Result<Wish<'a>, Refusal> {
    let twice = || Err(Refusal::new(Code::FieldInvalid, "a selector is named twice"));
    let is_named = |name: &str, is_watch: bool| {
        before.iter().any(|one| match &one.what {
            Ok(Wish::Subscribe(other)) => !is_watch && other.selector == name,
            Ok(Wish::Watch(other)) => is_watch && other == name,
            Err(_) => false,
        })
    };
    match command {
        Command::Subscribe(subscribe) if is_named(&subscribe.selector, false) => twice(),
        Command::Subscribe(subscribe) => Ok(Wish::Subscribe(subscribe)),
        Command::Watch { pattern } if is_named(&pattern, true) => twice(),
        Command::Watch { pattern } => Ok(Wish::Watch(pattern)),
        _ => Err(Refusal::new(
            Code::CommandUnknown,
            "a stream takes subscribe and watch: send others to their own paths",
        )),
    }
}
