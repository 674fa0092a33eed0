//! The JSON wire, `godwit.v1.json`: one object, or an array of them, a text frame (protocol.md, chapters 4 to 6).
//! Parsing borrows from the payload; writing uses no formatting machinery and passes a publisher's JSON on byte for byte.

mod fields;
mod parse;
mod write;

pub(super) use parse::{Commands, check_connect, check_frame_bytes, check_key, parse_resume_token};
pub(crate) use parse::{check_numbered, check_publisher};
pub(super) use write::{put_code, put_object, put_push, put_reply, put_reply_object, put_resume_token};
