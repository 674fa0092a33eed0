//! The body of a publish: its media type says which kind of content it is.

use super::head::Head;
use crate::codes::Code;
use crate::command::Refusal;
use crate::json::{self, JsonFault};
use crate::limits::Limits;
use crate::message::Kind;

use super::head::is_token;

/// Checks a body against its media type. Blanks around JSON are no part of it.
pub(super) fn read_content<'a>(head: &Head<'_>, body: &'a [u8], limits: &Limits) -> Result<(Kind, &'a [u8]), Refusal> {
    check_coding(head)?;
    let kind = kind_of(head.content_type)?;
    let text = || std::str::from_utf8(body).map_err(|_| Refusal::new(Code::ContentInvalid, "the body is not UTF-8"));
    match kind {
        Kind::Bytes => Ok((kind, body)),
        Kind::Text => text().map(|text| (kind, text.as_bytes())),
        Kind::Json => {
            let text = text()?.trim_matches([' ', '\t', '\r', '\n']);
            check_json(text, limits.content_depth_max)?;
            Ok((kind, text.as_bytes()))
        }
    }
}

/// A coded body is not taken: what it grows to cannot be known.
pub(super) fn check_coding(head: &Head<'_>) -> Result<(), Refusal> {
    match head.content_encoding {
        None | Some("" | "identity") => Ok(()),
        Some(_) => Err(Refusal::new(Code::MediaUnsupported, "no Content-Encoding is taken here")),
    }
}

fn check_json(text: &str, depth_max: usize) -> Result<(), Refusal> {
    json::check(text, depth_max).map_err(|fault| match fault {
        JsonFault::TooDeep => Refusal::new(Code::ContentTooDeep, fault.sentence()),
        _ => Refusal::new(Code::ContentInvalid, format!("bad JSON: {}", fault.sentence())),
    })
}

fn kind_of(media: Option<&str>) -> Result<Kind, Refusal> {
    let Some(media) = media else { return Ok(Kind::Bytes) };
    if media == "application/json" {
        return Ok(Kind::Json);
    }
    let unsupported = |why| Err(Refusal::new(Code::MediaUnsupported, why));
    let (essence, parameters) = media.split_once(';').unwrap_or((media, ""));
    let essence = essence.trim_matches([' ', '\t']).to_ascii_lowercase();
    let Some((family, name)) = essence.split_once('/') else { return unsupported("Content-Type is no media type") };
    let is_name = |text: &str| !text.is_empty() && text.bytes().all(|byte| is_token(&byte));
    if !is_name(family) || !is_name(name) {
        return unsupported("Content-Type is no media type");
    }
    let kind = match (family, name) {
        ("application", "x-www-form-urlencoded") | ("multipart", _) => {
            return unsupported("a form is no message: say application/json, text/plain or application/octet-stream");
        }
        ("application", "json") => Kind::Json,
        (_, name) if name.ends_with("+json") => Kind::Json,
        ("text", _) => Kind::Text,
        _ => Kind::Bytes,
    };
    if kind != Kind::Bytes && !is_utf8(parameters) {
        return unsupported("text is taken as UTF-8 alone");
    }
    Ok(kind)
}

fn is_utf8(parameters: &str) -> bool {
    parameters.split(';').all(|parameter| match parameter.trim().split_once('=') {
        Some((name, value)) if name.trim().eq_ignore_ascii_case("charset") => {
            let value = value.trim().trim_matches('"');
            ["utf-8", "utf8", "us-ascii"].iter().any(|known| value.eq_ignore_ascii_case(known))
        }
        _ => true,
    })
}

/// The media type of a kind.
#[must_use]
pub const fn media_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Json => "application/json",
        Kind::Text => "text/plain; charset=utf-8",
        Kind::Bytes => "application/octet-stream",
    }
}

/// That a body may hold several publishes: JSON, and an array.
///
/// # Errors
/// What it is instead.
pub fn check_publishes(head: &Head<'_>, body: &[u8]) -> Result<(), Refusal> {
    if head.query.split('&').any(|pair| !pair.is_empty() && !pair.starts_with("token=")) {
        return Err(Refusal::new(
            Code::FieldUnknown,
            "without a subject in the query, each publish says for itself what it wants",
        ));
    }
    if head.idempotency_key.is_some() {
        return Err(Refusal::new(Code::KeyInvalid, "without a subject in the query, each publish names its own key"));
    }
    check_array(head, body, "without a subject in the query, the body is an array of publishes in application/json")
}

/// That a body is an array of commands; `sentence` says so to who sent another.
pub(super) fn check_array(head: &Head<'_>, body: &[u8], sentence: &str) -> Result<(), Refusal> {
    check_coding(head)?;
    if kind_of(head.content_type)? != Kind::Json {
        return Err(Refusal::new(Code::MediaUnsupported, sentence));
    }
    if body.trim_ascii_start().first() != Some(&b'[') {
        return Err(Refusal::new(Code::CommandMalformed, sentence));
    }
    Ok(())
}
