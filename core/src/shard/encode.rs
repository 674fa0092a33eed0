//! A message to its frame on one stream: what a wire shows of it, and on the binary wire the number that stands for the
//! subject, announced where the reader may not know it. Owns who has been told which number.
use std::sync::Arc;

use super::mqtt;
use crate::codec::{self, Wire, sse};
use crate::command::{GapReason, MessageView, Push};
use crate::conflation::Part;
use crate::message::{Kind, LogId, Message};
use crate::position::Position;
use crate::settings::Settings;
use crate::stream::{Number, Source, Stream};
use crate::websocket::Deflater;

/// Times further than this from the base time would need more than three bytes.
const BASE_TIME_REACH_MS: u64 = 1 << 20;

/// What is shown: a message, several that became one, or a snapshot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item<'a> {
    pub subject: &'a Arc<str>,
    pub log: LogId,
    pub epoch: u64,
    pub at: Option<Position>,
    pub after: Option<Position>,
    pub time_ms: u64,
    pub kind: Kind,
    pub content: &'a [u8],
    pub fields: &'a [u8],
    pub reply_to: Option<&'a str>,
    pub conflated: u32,
    pub is_snapshot: bool,
    pub is_patch: bool,
    /// The message it is made of; of several, the last.
    pub source: &'a Message,
}

impl<'a> Item<'a> {
    pub(super) fn message(message: &'a Message) -> Self {
        Self {
            subject: &message.subject,
            log: message.log,
            epoch: message.epoch,
            at: message.at(),
            after: message.after(),
            time_ms: message.time_ms,
            kind: message.kind,
            content: message.content(),
            fields: message.fields(),
            reply_to: message.reply_to(),
            conflated: 0,
            is_snapshot: false,
            is_patch: message.is_patch,
            source: message,
        }
    }

    pub(super) fn part(part: &'a Part) -> Self {
        let message = &part.message;
        let is_many = part.count > 1;
        Self {
            after: if is_many { part.after } else { message.after() },
            content: part.content(),
            fields: part.fields(),
            is_patch: part.is_patch,
            conflated: if is_many { part.count } else { 0 },
            ..Self::message(message)
        }
    }
}

/// Appends the frame of `item`, without any announcement. True: it would be longer than the stream's readers take, and what says so
/// stands in its place.
fn frame(stream: &Stream, item: &Item<'_>, out: &mut Vec<u8>) -> bool {
    match stream.wire {
        Wire::Json | Wire::Binary | Wire::Sse | Wire::SseMany | Wire::Poll => {}
        Wire::Mqtt(writer) => {
            mqtt::put_shared(writer, item.source, out);
            return false;
        }
        Wire::MqttParts => {
            mqtt::put_parts(item.source, out);
            return false;
        }
        Wire::MqttShared(_) => return false,
    }
    let number = if stream.wire == Wire::Binary { stream.numbers.get(&item.log) } else { None };
    let view = MessageView {
        number: number.map_or(0, |n| n.number),
        base_time_ms: number.map_or(0, |n| n.base_time_ms),
        subject: item.subject,
        at: item.at,
        after: item.after,
        time_ms: item.time_ms,
        kind: item.kind,
        content: item.content,
        fields: item.fields,
        reply_to: item.reply_to,
        conflated: item.conflated,
        pattern: stream.pattern(),
        is_snapshot: item.is_snapshot,
        is_patch: item.is_patch,
        is_removal: item.source.is_removal && !item.is_snapshot,
    };
    let begin = out.len();
    codec::push(stream.wire, out, &Push::Message(view));
    let bytes = codec::frame_bytes(stream.wire, out.get(begin..).unwrap_or(&[]));
    let is_too_large = stream.frame_bytes_max > 0 && bytes > stream.frame_bytes_max as usize;
    if is_too_large {
        out.truncate(begin);
        put_too_large(stream, item, out);
    }
    is_too_large
}

/// What stands in the place of a frame that is too long: a gap, which moves its readers on as the frame would have.
fn put_too_large(stream: &Stream, item: &Item<'_>, out: &mut Vec<u8>) {
    let count = u64::from(item.conflated.max(1));
    let Some(at) = item.at else {
        return codec::push(stream.wire, out, &Push::Dropped { selector: &stream.name, count });
    };
    if stream.wire == Wire::Sse {
        sse::put_id(out, at);
    }
    let before = (!item.is_snapshot).then(|| item.after.unwrap_or_else(|| item.source.place_before()));
    let (subject, reason, pattern) = (item.subject, GapReason::TooLarge, stream.pattern());
    codec::push(stream.wire, out, &Push::Gap { subject, after: before, at, reason, missed: Some(count), pattern });
}

/// Makes sure that the item's subject has a number whose base time is near. True: its announcement is a new one.
fn renumber(stream: &mut Stream, next: &mut u32, item: &Item<'_>) -> bool {
    if stream.wire != Wire::Binary {
        return false;
    }
    let number = stream.number(item.subject, item.log, item.epoch, item.time_ms, next);
    // A standard message has no position: a number that one of them began learns its epoch from the first that has.
    let has_epoch = item.at.is_none() || number.epoch == item.epoch;
    if has_epoch && number.base_time_ms.abs_diff(item.time_ms) < BASE_TIME_REACH_MS {
        return false;
    }
    if item.at.is_some() {
        number.epoch = item.epoch;
    }
    number.base_time_ms = item.time_ms;
    number.version = number.version.wrapping_add(1).max(1);
    number.segment = 0;
    true
}

fn announce(stream: &Stream, number: &Number, out: &mut Vec<u8>) {
    let push = Push::Announce {
        number: number.number,
        subject: &number.subject,
        epoch: number.epoch,
        base_time_ms: number.base_time_ms,
        pattern: stream.pattern(),
    };
    codec::push(stream.wire, out, &push);
}

/// Where a frame is made before it goes anywhere, and what compresses it: once, for all that read its stream.
#[derive(Debug, Default)]
pub(super) struct Press {
    pub frame: Vec<u8>,
    pub deflater: Deflater,
    /// Shorter frames stay as they are.
    pub bytes_min: usize,
}

impl Press {
    pub(super) fn new(settings: &Settings) -> Self {
        Self { bytes_min: settings.limits.compress_bytes_min, ..Self::default() }
    }

    /// Compresses the frame that stands in `out` from `begin` on, where the stream's readers agreed to that.
    pub(super) fn squeeze(&mut self, window_bits: u8, out: &mut Vec<u8>, begin: usize) {
        if window_bits > 0 && out.len() - begin >= self.bytes_min {
            self.deflater.squeeze(window_bits, out, begin);
        }
    }
}

/// Appends to the stream's window, announcing the subject at its first use in a segment.
pub(super) fn append(stream: &mut Stream, next: &mut u32, item: &Item<'_>, arrival: u64, press: &mut Press) {
    let mut taken = std::mem::take(&mut press.frame);
    let buffer = &mut taken;
    buffer.clear();
    let is_anew = renumber(stream, next, item);
    let is_too_large = frame(stream, item, buffer);
    press.squeeze(stream.window_bits, buffer, 0);
    append_frame(stream, item, arrival, is_anew, buffer);
    if is_too_large && let Some(window) = &mut stream.window {
        window.set_last_missing(item.conflated.max(1));
    }
    press.frame = taken;
}

fn append_frame(stream: &mut Stream, item: &Item<'_>, arrival: u64, is_anew: bool, buffer: &mut Vec<u8>) {
    if buffer.is_empty() {
        // A subject that this wire has no name for.
        return;
    }
    let Some(mut window) = stream.window.take() else { return };
    if is_anew {
        window.seal();
    }
    if stream.wire == Wire::Binary {
        let segment = window.segment_for(buffer.len());
        if let Some(number) = stream.numbers.get(&item.log).filter(|n| n.segment != segment) {
            let frame_bytes = buffer.len();
            announce(stream, number, buffer);
            buffer.rotate_left(frame_bytes);
            let segment = window.segment_for(buffer.len());
            if let Some(number) = stream.numbers.get_mut(&item.log) {
                number.segment = segment;
            }
        }
    }
    let sequence = if item.at.is_some() { item.source.sequence } else { window.sequence() };
    window.append(buffer, arrival, stream.standard, sequence);
    match item.at {
        Some(_) => {
            window.merge_last(item.conflated);
            if stream.conflate_ms > 0 && stream.pattern().is_some() {
                window.set_last_log(item.log);
            }
        }
        None => window.set_last_standard(),
    }
    stream.window = Some(window);
}

/// What was appended for one reader.
#[derive(Clone, Copy, Debug)]
pub(super) struct Framed {
    /// Where the frame begins.
    pub begin: usize,
    /// What stands there says that the frame is longer than the reader takes.
    pub is_too_large: bool,
}

/// For one reader outside the window: announces the subject unless `told` knows it, then appends the frame.
pub(super) fn private_frame(
    stream: &mut Stream,
    next: &mut u32,
    item: &Item<'_>,
    told: &mut Told,
    out: &mut Vec<u8>,
) -> Framed {
    if stream.wire == Wire::Binary {
        if renumber(stream, next, item)
            && let Some(window) = &mut stream.window
        {
            // Who comes into the window now has not been told what the number stood for there.
            window.seal();
        }
        if let Some(number) = stream.numbers.get(&item.log)
            && told.learn(&stream.source, item.log, number.version)
        {
            announce(stream, number, out);
        }
    }
    let begin = out.len();
    let is_too_large = frame(stream, item, out);
    Framed { begin, is_too_large }
}

/// What one reader has been told: of a subject's stream the version it knows, of a pattern's the subjects announced in
/// this run of frames.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub version: u16,
    logs: Vec<(LogId, u16)>,
}

impl Told {
    pub(super) fn version(version: u16) -> Self {
        Self { version, logs: Vec::new() }
    }

    /// Notes the announcement; true when it is news to the reader.
    fn learn(&mut self, source: &Source, log: LogId, version: u16) -> bool {
        if let Source::Subject(_) = source {
            let is_news = self.version != version;
            self.version = version;
            return is_news;
        }
        match self.logs.iter_mut().find(|(known, _)| *known == log) {
            // The number stands for another epoch, or another base time, than it did a message ago.
            Some((_, known)) => std::mem::replace(known, version) != version,
            None => {
                self.logs.push((log, version));
                true
            }
        }
    }
}

/// The announcements that a reader needs who enters the window in its newest segment.
pub(super) fn announce_newest(stream: &Stream, out: &mut Vec<u8>) {
    if stream.wire != Wire::Binary {
        return;
    }
    let newest = stream.window.as_ref().map_or(0, |w| w.newest());
    let mut numbers: Vec<&Number> = stream.numbers.values().filter(|n| n.segment == newest && newest > 0).collect();
    numbers.sort_by_key(|n| n.number);
    for number in numbers {
        announce(stream, number, out);
    }
}
