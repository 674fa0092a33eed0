//! A snapshot as the journal's file of snapshots holds it, for when the rows that made it are gone: whole, with the head of its subject. Owns its
//! text, one line of JSON.
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::KeptMessage;
use crate::message::{Kind, NO_EXPIRY, fields};
use crate::mqtt::Qos;
use crate::node::Snapshot;
use crate::position::Position;

/// A snapshot to be saved; shares its bytes with the log.
#[derive(Clone, Debug)]
pub struct SavedState {
    /// None: it was lost, and what patches make is not the whole.
    pub(crate) snapshot: Option<Snapshot>,
    /// The head of the subject.
    pub(crate) at: Position,
    /// Arrival of the log's last message.
    pub(crate) log_arrival: u64,
}

/// The line of one that was lost.
const LOST: &str = r#"{"lost":true}"#;

/// Its line.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    /// The head of the subject.
    at: String,
    log_arrival: u64,
    /// Everything of the subject up to this arrival is in it.
    arrival: u64,
    time_ms: u64,
    kind: Kind,
    /// It has no position: a standard message made it.
    #[serde(default)]
    standard: bool,
    qos: u8,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expiry_s: Option<u32>,
    /// The content, where it is text; else `bytes`, in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bytes: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    reply_to: String,
    /// The latest value of every field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fields: Option<serde_json::Value>,
    /// Properties of MQTT as they are written there, in base64.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    properties: String,
}

impl SavedState {
    pub fn text(&self) -> String {
        let Some(snapshot) = &self.snapshot else { return LOST.to_owned() };
        let (last, content) = (&snapshot.last, snapshot.content());
        let text = std::str::from_utf8(content).ok().filter(|_| last.kind != Kind::Bytes);
        let line = Line {
            at: self.at.to_string(),
            log_arrival: self.log_arrival,
            arrival: last.arrival,
            time_ms: last.time_ms,
            kind: last.kind,
            standard: last.sequence == 0,
            qos: last.qos as u8,
            expiry_s: Some(last.expiry_s).filter(|expiry_s| *expiry_s != NO_EXPIRY),
            content: text.map(str::to_owned),
            bytes: text.is_none().then(|| STANDARD.encode(content)),
            reply_to: last.reply_to().unwrap_or("").to_owned(),
            fields: Some(snapshot.fields()).filter(|held| !held.is_empty()).map(fields::to_json),
            properties: STANDARD.encode(last.carried()),
        };
        serde_json::to_string(&line).unwrap_or_default()
    }

    /// Whether a line says that a snapshot was lost.
    pub fn is_lost(text: &str) -> bool {
        text == LOST
    }

    /// What a line says of a subject: the message, the head of the subject, and the arrival of that.
    pub fn parse(subject: &str, text: &str) -> Option<(KeptMessage, Position, u64)> {
        let line: Line = serde_json::from_str(text).ok()?;
        let at = Position::parse(&line.at)?;
        let content = match (line.content, line.bytes) {
            (Some(text), None) if line.kind != Kind::Bytes => text.into_bytes(),
            (None, Some(bytes)) => STANDARD.decode(bytes).ok()?,
            _ => return None,
        };
        let number = if line.standard { 0 } else { at.sequence.max(1) };
        let mut kept = KeptMessage::new(0, 0, Arc::from(subject), Position { sequence: number, ..at });
        (kept.arrival, kept.time_ms, kept.kind) = (line.arrival, line.time_ms, line.kind);
        (kept.qos, kept.expiry_s, kept.is_retained) =
            (Qos::from_bits(line.qos)?, line.expiry_s.unwrap_or(NO_EXPIRY), true);
        let properties = STANDARD.decode(line.properties).ok()?;
        let held = line.fields.map_or(Some(Vec::new()), |held| fields::from_json(&held))?;
        Some((kept.carry_fields(&content, &line.reply_to, &held, &properties), at, line.log_arrival))
    }
}
