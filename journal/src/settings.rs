//! What the operator decided about the journal. Owns the shape; defaults are core's. Which of it may change while the node runs, and
//! who may set it, is the server's.
use std::collections::BTreeMap;
use std::path::PathBuf;

use godwit_core::settings::JournalSettings;
use serde::Deserialize;

/// Everything a journal is told at start.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// `DATA/journal`; made where it is not there.
    pub directory: PathBuf,
    pub node: String,
    pub run: u64,
    /// The epoch that the run begins with.
    pub epoch: u64,
    /// Messages that wait to be written, and those not yet known to be on the disk, hold at most this. Past half of it publishers
    /// are held back; at twice this (they had sent more by then) or, while the disk fails, at this, messages are dropped and
    /// the missing range is reported.
    pub messages_bytes_max: usize,
    /// The same for each other stream; past it rows are dropped and counted.
    pub rows_bytes_max: usize,
    /// Messages that nobody waits for are written together, at most this long after the first.
    pub write_interval_ms: u64,
    /// What was written is synced at least this often; rows of the other streams are written as often.
    pub sync_interval_ms: u64,
    /// … and whenever this much is not.
    pub sync_bytes_max: usize,
    /// An open segment is sealed at this size, …
    pub segment_bytes_max: u64,
    /// … or at this age.
    pub segment_age_ms_max: u64,
    /// While the disk fails it is tried this often.
    pub probe_interval_ms: u64,
    /// By the stream's name; a stream that is not named is kept for ever.
    pub retention: BTreeMap<String, Retention>,
}

/// How long sealed segments of a stream are kept; the first bound that is met lets the oldest go, whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Retention {
    /// Since its newest row; 0: for ever.
    pub age_ms_max: u64,
    /// Of all sealed segments of the stream; 0: without bound.
    pub bytes_max: u64,
}

impl From<&JournalSettings> for Settings {
    /// What crosses from the configuration; whose run it is the node adds.
    fn from(asked: &JournalSettings) -> Self {
        let kept = |&(age_ms_max, bytes_max): &(u64, u64)| Retention { age_ms_max, bytes_max };
        Self {
            directory: PathBuf::from(&asked.directory),
            node: String::new(),
            run: 0,
            epoch: 0,
            messages_bytes_max: asked.messages_bytes_max,
            rows_bytes_max: asked.rows_bytes_max,
            write_interval_ms: asked.write_interval_ms,
            sync_interval_ms: asked.sync_interval_ms,
            sync_bytes_max: asked.sync_bytes_max,
            segment_bytes_max: asked.segment_bytes_max,
            segment_age_ms_max: asked.segment_age_ms_max,
            probe_interval_ms: asked.probe_interval_ms,
            retention: asked.retention.iter().map(|(stream, asked)| (stream.clone(), kept(asked))).collect(),
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::from(&JournalSettings::default())
    }
}
