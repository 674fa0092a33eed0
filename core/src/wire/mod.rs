//! Between bytes and commands, replies and pushes: one folder per wire, one door to all of them.
//! Owns encoding only; what a command means is the session's, framing is `websocket`'s.
use crate::command::{Command, Id, Push, Refusal, Reply};
use crate::limits::Limits;

/// Which wire a session speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wire {
    Json,
    Binary,
}

impl Wire {
    pub fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Binary => "binary",
        }
    }
}

/// Appends `push` as one whole WebSocket frame (nothing, where the wire has no such push).
pub fn push(_wire: Wire, _out: &mut Vec<u8>, _push: &Push<'_>) {}

/// Appends `reply` as one whole WebSocket frame.
pub fn reply(_wire: Wire, _out: &mut Vec<u8>, _id: &Id, _reply: &Reply<'_>) {}

/// The commands of one WebSocket message, checked in number but not yet parsed one by one.
#[derive(Debug)]
pub struct Commands<'a> {
    _payload: &'a [u8],
}

/// Opens a message's payload; an error means that none of it is executed.
pub fn commands<'a>(_wire: Wire, payload: &'a [u8], _limits: &Limits) -> Result<Commands<'a>, Refusal> {
    Ok(Commands { _payload: payload })
}

impl<'a> Commands<'a> {
    /// The next command in order; a malformed one is an error with the id it could be found to have.
    #[expect(clippy::should_implement_trait, reason = "the shard drives it by hand, between other work")]
    pub fn next(&mut self) -> Option<(Id, Result<Command<'a>, Refusal>)> {
        None
    }
}
