//! Queries: what the parameters of a request ask for. Owns their names, which go together, and the text of an event's id; a
//! parameter that is unknown, repeated or out of bounds is an error, as on the other wires.

use std::borrow::Cow;

use super::answer::{Refused, malformed};
use super::head::Head;
use crate::codec::sse;
use crate::codes::Code;
use crate::command::{Refusal, Subscribe};
use crate::json::{self, Members};
use crate::limits::{FRAME_BYTES_MIN, FRAME_BYTES_TOP, Limits, RESUME_TOKEN_BYTES_MAX};
use crate::position::{Position, ResumeToken};
use crate::subject::Selector;

/// Messages of one answer, where the request does not say.
const LIMIT_DEFAULT: usize = 100;
const LIMIT_MAX: usize = 1000;

/// What a request wants to listen to, and how.
#[derive(Debug)]
pub struct Listen<'a> {
    pub subscribes: Vec<Subscribe<'a>>,
    /// Most messages of one answer.
    pub limit: usize,
    /// How long an answer may wait for a message.
    pub wait_ms: u64,
    /// The longest event or element that the client takes; none: the default.
    pub frame_bytes_max: Option<u32>,
}

/// Which of the two ways to listen a request uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// One answer with what there is: the last messages, where it names no place.
    Consume,
    /// Events without end: the snapshot, where it names no place.
    Stream,
}

type Pair<'a> = (&'a str, Cow<'a, str>);

/// The parameters in their order, decoded; `token` is left out.
pub(super) fn pairs<'a>(query: &'a str) -> impl Iterator<Item = Result<Pair<'a>, Refusal>> {
    query.split('&').filter(|pair| !pair.is_empty() && !pair.starts_with("token=")).map(|pair| {
        let (name, raw) = pair.split_once('=').unwrap_or((pair, ""));
        let value = decode(raw).ok_or_else(|| invalid(format!("{} does not decode to text", cut(name))))?;
        Ok((name, value))
    })
}

pub(super) fn invalid(reason: impl Into<String>) -> Refusal {
    Refusal::new(Code::FieldInvalid, reason)
}

pub(super) fn unknown(name: &str) -> Refusal {
    Refusal::new(Code::FieldUnknown, format!("there is no parameter {}", cut(name)))
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(64)]
}

/// Puts a parameter's value in its place, once.
pub(super) fn set<T>(slot: &mut Option<T>, name: &str, value: T) -> Result<(), Refusal> {
    if slot.replace(value).is_some() { Err(invalid(format!("{name} is repeated"))) } else { Ok(()) }
}

/// Decodes `%XX` and `+`; none when a percent sign stands alone or the result is not UTF-8 or holds controls.
pub(super) fn decode(raw: &str) -> Option<Cow<'_, str>> {
    if !raw.bytes().any(|byte| matches!(byte, b'%' | b'+')) {
        return Some(Cow::Borrowed(raw));
    }
    let mut bytes = Vec::with_capacity(raw.len());
    let mut rest = raw.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let (pair, tail) = rest.split_at_checked(2)?;
                rest = tail;
                let digit = |b: u8| (b as char).to_digit(16);
                (digit(pair[0])? << 4 | digit(pair[1])?) as u8
            }
            other => other,
        });
    }
    String::from_utf8(bytes).ok().filter(|text| !text.contains(char::is_control)).map(Cow::Owned)
}

/// A token from `Authorization: Bearer`, or else from `token=`. Other credentials are a proxy's, and no token of ours.
///
/// # Errors
/// Where it is repeated or does not decode.
pub fn find_token(head: &Head<'_>) -> Result<Option<String>, Refused> {
    if let Some(value) = head.authorization {
        let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
        if scheme.eq_ignore_ascii_case("bearer") {
            return Ok(Some(token.trim().to_owned()));
        }
    }
    let mut found = None;
    for raw in head.query.split('&').filter_map(|pair| pair.strip_prefix("token=")) {
        if found.is_some() {
            return Err(malformed("token= is repeated"));
        }
        found = Some(decode(raw).ok_or_else(|| malformed("token= does not decode"))?.into_owned());
    }
    Ok(found)
}

pub(super) fn truth(name: &str, value: &str) -> Result<bool, Refusal> {
    match value {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(invalid(format!("{name} is true or false"))),
    }
}

/// A number without sign; one that is too large for its bound is cut to it.
pub(super) fn number(name: &str, value: &str) -> Result<u64, Refusal> {
    let is_plain = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    let number = if is_plain { value.parse().ok() } else { None };
    number.ok_or_else(|| invalid(format!("{name} is a number from 0 to 18446744073709551615")))
}

pub(super) fn missing() -> Refusal {
    invalid("subject is missing")
}

/// Whether the query names a subject: without one a POST holds many publishes.
#[must_use]
pub fn has_subject(head: &Head<'_>) -> bool {
    head.query.split('&').any(|pair| pair.split('=').next() == Some("subject"))
}

/// What helps where a subject is not there: a `+` of a query stands for a blank.
#[must_use]
pub fn hint_at_plus(head: &Head<'_>) -> &'static str {
    let mut pairs = head.query.split('&').filter_map(|pair| pair.split_once('='));
    if pairs.any(|(name, raw)| name == "subject" && raw.contains('+')) {
        "the subject has no snapshot; in a query + means a blank, and %2B a plus sign"
    } else {
        ""
    }
}

/// What a GET wants to listen to.
///
/// # Errors
/// What is wrong with the parameters.
pub fn read_listen<'a>(head: &Head<'a>, way: Way, limits: &Limits) -> Result<Listen<'a>, Refusal> {
    let is_stream = way == Way::Stream;
    let (mut last, mut snapshot, mut on_gap) = (None, None, None);
    let (mut conflate_ms, mut limit, mut wait, mut last_id, mut frame_bytes) = (None, None, None, None, None);
    let mut subscribes: Vec<Subscribe<'a>> = Vec::new();
    for pair in pairs(head.query) {
        let (name, value) = pair?;
        match name {
            "subject" => {
                if subscribes.len() >= limits.subscriptions_per_connection_max {
                    return Err(Refusal::new(Code::SubscriptionsTooMany, ""));
                }
                if subscribes.iter().any(|other| other.selector == value) {
                    return Err(invalid("a subject is named twice"));
                }
                subscribes.push(subscribe(value));
            }
            "after" | "since" => {
                let of =
                    subscribes.last_mut().ok_or_else(|| invalid(format!("{name} belongs to a subject before it")))?;
                place(of, name, &value, limits)?;
            }
            "last" => set(&mut last, name, number(name, &value)?.min(u64::from(u32::MAX)) as u32)?,
            "snapshot" => set(&mut snapshot, name, truth(name, &value)?)?,
            "on_gap" => set(&mut on_gap, name, from_oldest(&value)?)?,
            // The second name, and a parameter that keeps caches away, are what polyfills of EventSource send.
            "last_event_id" | "lastEventId" => set(&mut last_id, name, value)?,
            "_" => {}
            "frame_bytes_max" => set(&mut frame_bytes, name, frame_bytes_max(name, &value)?)?,
            "conflate_ms" if is_stream => set(&mut conflate_ms, name, window(&value, limits)?)?,
            "limit" if !is_stream => set(&mut limit, name, number(name, &value)?)?,
            "wait" if !is_stream => set(&mut wait, name, number(name, &value)?)?,
            _ => return Err(unknown(name)),
        }
    }
    if subscribes.is_empty() {
        return Err(missing());
    }
    let limit = (limit.unwrap_or(LIMIT_DEFAULT as u64) as usize).clamp(1, LIMIT_MAX);
    let last = last.or((!is_stream && snapshot != Some(true)).then_some(limit as u32));
    for subscribe in &mut subscribes {
        subscribe.last = last;
        subscribe.wants_snapshot = snapshot.unwrap_or(true);
        subscribe.gap_from_oldest = on_gap.unwrap_or(false);
        subscribe.conflate_ms = conflate_ms.unwrap_or(0);
    }
    if let Some(id) = last_event_id(head, last_id.as_deref()) {
        resume(subscribes.iter_mut().collect(), id);
    }
    let wait_ms = wait.unwrap_or(0).saturating_mul(1000).min(limits.poll_ms_max);
    Ok(Listen { subscribes, limit, wait_ms, frame_bytes_max: frame_bytes })
}

/// The id that a stream is resumed from: the field is newer than the URL, since a browser repeats the URL and adds the field.
pub(super) fn last_event_id<'a>(head: &Head<'a>, parameter: Option<&'a str>) -> Option<&'a [u8]> {
    head.last_event_id.or(parameter.map(str::as_bytes)).filter(|id| !id.is_empty())
}

fn from_oldest(value: &str) -> Result<bool, Refusal> {
    match value {
        "oldest" => Ok(true),
        "snapshot" => Ok(false),
        _ => Err(invalid("on_gap is oldest or snapshot")),
    }
}

fn subscribe(selector: Cow<'_, str>) -> Subscribe<'_> {
    Subscribe {
        selector,
        after: None,
        after_each: Vec::new(),
        since: None,
        last: None,
        wants_snapshot: true,
        gap_from_oldest: false,
        conflate_ms: 0,
    }
}

/// The longest event or element that a client takes, cut to what may be said.
pub(super) fn frame_bytes_max(name: &str, value: &str) -> Result<u32, Refusal> {
    let bytes = number(name, value)?.clamp(FRAME_BYTES_MIN as u64, FRAME_BYTES_TOP as u64);
    Ok(bytes as u32)
}

fn window(value: &str, limits: &Limits) -> Result<u32, Refusal> {
    let window_ms = number("conflate_ms", value)?;
    let is_within = window_ms == 0 || (limits.conflate_ms_min..=limits.conflate_ms_max).contains(&window_ms);
    u32::try_from(window_ms).ok().filter(|_| is_within).ok_or_else(|| {
        invalid(format!("conflate_ms is between {} and {}, or 0", limits.conflate_ms_min, limits.conflate_ms_max))
    })
}

/// `after` is a position, or for a pattern a JSON object of them; `since` is a resume token or an event's id.
fn place(of: &mut Subscribe<'_>, name: &str, value: &str, limits: &Limits) -> Result<(), Refusal> {
    let bad = || Refusal::new(Code::PositionInvalid, "a position is EPOCH.SEQUENCE");
    if name == "since" {
        if value.len() > RESUME_TOKEN_BYTES_MAX {
            return Err(Refusal::new(
                Code::ResumeTokenInvalid,
                format!("a resume token has at most {RESUME_TOKEN_BYTES_MAX} bytes"),
            ));
        }
        let resume_token =
            sse::parse_id(value).map(|(resume_token, _)| resume_token).or(ResumeToken::parse(value)).unwrap_or(NOWHERE);
        return set(&mut of.since, name, resume_token);
    }
    if !value.starts_with('{') {
        return set(&mut of.after, name, Position::parse(value).ok_or_else(bad)?);
    }
    for member in Members::new(value, 2) {
        let (subject, raw) = member.map_err(|fault| invalid(format!("after: bad JSON: {}", fault.sentence())))?;
        let at = json::string(raw).and_then(|text| Position::parse(&text)).ok_or_else(bad)?;
        if of.after_each.len() >= limits.positions_per_subscribe_max {
            return Err(invalid("after names too many subjects"));
        }
        of.after_each.push((Cow::Owned(json::unescape(subject).into_owned()), at));
    }
    Ok(())
}

/// The resume token of another run: whoever comes with it gets a gap.
const NOWHERE: ResumeToken = ResumeToken { run: 0, arrival: 0, time_ms: 0 };

/// Places subscriptions where the last event's id says. One that is none of ours places all of them nowhere: the client is
/// told that it was not recovered, never given what it cannot have missed.
pub(super) fn resume(mut subscribes: Vec<&mut Subscribe<'_>>, id: &[u8]) {
    let text = std::str::from_utf8(id).ok().filter(|text| text.len() <= RESUME_TOKEN_BYTES_MAX);
    if let ([only], Some(at)) = (subscribes.as_mut_slice(), text.and_then(Position::parse))
        && matches!(Selector::parse(&only.selector), Ok(Selector::Subject(_)))
    {
        (only.after, only.since) = (Some(at), None);
        return;
    }
    let known = text.and_then(sse::parse_id);
    let selectors: Vec<String> = subscribes.iter().map(|subscribe| subscribe.selector.to_string()).collect();
    for subscribe in subscribes {
        let resume_token = match known {
            Some((resume_token, digest)) => match sse::covers(digest, &selectors, &subscribe.selector) {
                Some(true) => resume_token,
                // It was not listened to when the id was given: it begins as the query says.
                Some(false) => continue,
                None => NOWHERE,
            },
            None => NOWHERE,
        };
        (subscribe.since, subscribe.after) = (Some(resume_token), None);
        subscribe.after_each.clear();
    }
}
