//! What the operator decided, compiled by the server into one value that crosses to the engine once.
//! Owns the shape; defaults and bounds of single limits are the generated limits table's.
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::limits::Limits;
use crate::mqtt::split_shared;
use crate::subject::Pattern;

/// Everything a node is told at start.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    pub node: String,
    /// This run's number; resume tokens carry it in hexadecimal.
    pub run: u64,
    /// A secret of this run: with it, nobody can choose names or keys that collide. Never shown.
    pub seed: u64,
    /// The epoch that numbers subjects from start on.
    pub epoch: u64,
    /// 0: one for each core.
    pub shards: u8,
    /// "auto", "io_uring" or "readiness".
    pub driver: String,
    pub listeners: Vec<Listener>,
    pub tls: TlsSettings,
    /// Origins whose pages may connect, such as `https://a.example`; none: any. Who names no origin is no page.
    pub origins: Vec<String>,
    /// With origins: names that requests without one may be addressed to, beside addresses and localhost.
    pub hosts: Vec<String>,
    /// A publish of MQTT 3.1.1 that cannot be kept is acknowledged and dropped; else it ends the connection.
    pub drops_mqtt_refused: bool,
    /// Replies may be awaited only where the requester may publish; else the right to subscribe suffices.
    pub reply_to_needs_publish: bool,
    /// Revocations in force at the start: nothing that an earlier run left behind is published in their names.
    pub revoked: Vec<RevokedSettings>,
    /// WebSocket clients that offer permessage-deflate get it.
    pub compresses: bool,
    /// For conformance suites, which no configuration can name: every WebSocket message is sent back as it came.
    pub echoes: bool,
    pub limits: Limits,
    /// What a connection may do that showed no token; none: it must show one.
    pub anonymous: Option<Vec<RuleSettings>>,
    /// Addresses and networks from which publishing is possible at all; none: from everywhere.
    pub publisher_addresses: Vec<String>,
    /// Addresses and networks whose word about a client's own address is taken (PROXY protocol, X-Forwarded-For).
    pub trusted_proxies: Vec<String>,
    /// A shown token is judged by the server. False: tokens are ignored and all are anonymous.
    pub asks_on_connect: bool,
    /// Who may vouch for a holder: an authority, or one of its keys or names behind a line's end; none: all may.
    pub trusted: Option<Vec<String>>,
    /// By the authority that vouches: the rules that the configuration gives its holders, with `{identity}` and `{tenant}` for their names.
    pub authority_rules: BTreeMap<String, Vec<RuleSettings>>,
    /// Whether connects, subscriptions and their ends are reported: nobody pays for what nobody reads.
    pub reports_sessions: bool,
    pub patterns: Vec<PatternSettings>,
    pub tap: TapSettings,
    /// None: nothing is written down.
    pub journal: Option<JournalSettings>,
}

/// Where and how the node writes down what it accepts and delivers; the crate `godwit-journal` says what each bound does.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JournalSettings {
    /// Its streams are folders in here.
    pub directory: String,
    /// Messages that wait to be on the disk.
    pub messages_bytes_max: usize,
    /// Rows of each other stream that wait.
    pub rows_bytes_max: usize,
    pub write_interval_ms: u64,
    pub sync_interval_ms: u64,
    pub sync_bytes_max: usize,
    pub segment_bytes_max: u64,
    pub segment_age_ms_max: u64,
    pub probe_interval_ms: u64,
    /// By the stream's name: age and bytes; 0: without bound.
    pub retention: BTreeMap<String, (u64, u64)>,
    /// Whether connections and subscriptions are written down too.
    pub keeps_access: bool,
    /// Whether what was handed to the kernel for whom is, and how long that took.
    pub keeps_deliveries: bool,
    /// How often that is.
    pub flush_interval_ms: u64,
}

impl Default for JournalSettings {
    fn default() -> Self {
        Self {
            directory: String::new(),
            messages_bytes_max: 64 << 20,
            rows_bytes_max: 8 << 20,
            write_interval_ms: 50,
            sync_interval_ms: 200,
            sync_bytes_max: 8 << 20,
            segment_bytes_max: 64 << 20,
            segment_age_ms_max: 60_000,
            probe_interval_ms: 500,
            retention: BTreeMap::new(),
            keeps_access: true,
            keeps_deliveries: true,
            flush_interval_ms: 10_000,
        }
    }
}

/// What an audit hears of accepted messages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TapSettings {
    /// Of which subjects; none: of no message.
    pub patterns: Vec<String>,
    pub entries_max: usize,
    pub bytes_max: usize,
    /// Past half of its limits publishers are not read; else the oldest go.
    pub holds_publishers: bool,
}

/// One address to listen on.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Listener {
    /// "client", or "mqtt": packets without a WebSocket around them.
    pub name: String,
    /// Where its address is taken, the node starts without it.
    pub is_optional: bool,
    /// HOST:PORT; port 0 lets the system choose.
    pub address: String,
    /// "both" (or empty), "subscribe" or "publish": what its clients may do at most.
    pub role: String,
    /// Clients speak TLS.
    pub is_tls: bool,
    /// Trusted proxies begin with a PROXY header.
    pub proxy_protocol: bool,
}

/// What TLS listeners show and ask for; files are read by the engine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TlsSettings {
    /// The first is for clients that name no host, or none of the others'.
    pub certificates: Vec<CertificateFiles>,
    /// "1.2" (or empty) or "1.3".
    pub version_min: String,
    /// By their names of the standard; none: all that are known, each of which authenticates what it encrypts.
    pub cipher_suites: Vec<String>,
    /// "none" (or empty), "optional" or "required".
    pub client_certificates: String,
    pub client_authorities_file: String,
    /// A client without a token is who its certificate says: the server is asked.
    pub gives_identity: bool,
}

/// One certificate with its chain, and its key, both PEM.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CertificateFiles {
    pub certificate_file: String,
    pub key_file: String,
}

/// Whom a revocation means: every part that is given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RevokedSettings {
    pub identity: Option<String>,
    pub tenant: Option<String>,
    pub authority: Option<String>,
    /// The name of a token.
    pub token: Option<String>,
}

/// One rule of what an identity may do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RuleSettings {
    pub pattern: String,
    /// "subscribe", "publish" or "both".
    pub actions: String,
    /// "allow", "deny" or "ask".
    pub verdict: String,
}

/// What differs for the subjects of a pattern; the most specific pattern that names a value decides it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PatternSettings {
    pub pattern: String,
    pub log_messages_max: Option<u32>,
    pub log_age_ms_max: Option<u64>,
    /// False: no snapshot is kept.
    pub snapshot: Option<bool>,
    /// Members of JSON objects are merged into the snapshot, unless a publish says otherwise.
    pub merge: Option<bool>,
    /// False: nothing of these subjects is journaled.
    pub journal: Option<bool>,
    /// Which MQTT publishes are retained: "asked" (or empty), those with RETAIN, or "always".
    pub mqtt_retain: Option<String>,
    /// The snapshot expires this long after its last message; 0 never.
    pub snapshot_age_ms_max: Option<u64>,
    /// A slow consumer gets one merged message a subject when it falls off the window.
    pub conflate_when_slow: Option<bool>,
    /// Batching: frames of these subjects wait this long for company, 0 not.
    pub batch_ms: Option<u32>,
    /// Batching: a stream that holds this many bytes goes out at once.
    pub batch_bytes_max: Option<u32>,
    /// What PUBACK and PUBREC say of a message: "cached" (or empty), or "disk".
    pub mqtt_ack: Option<String>,
    /// False: what MQTT sessions are owed is not kept beyond the age and count of the log.
    pub mqtt_holds: Option<bool>,
    /// What an MQTT session does where something it is owed is gone: "skip" (or empty), or "end".
    pub mqtt_at_owed_max: Option<String>,
    /// When subscribers are shown a message: "accepted" (or empty), or "journaled".
    pub visible: Option<String>,
    /// Most publishes on each subject in a second.
    pub publishes_per_second_max: Option<u32>,
}

impl Settings {
    /// Whether a voucher, an authority and behind a line's end one of its keys or names, counts now.
    #[must_use]
    pub fn trusts(&self, voucher: &str) -> bool {
        let is_of =
            |one: &String| voucher.strip_prefix(&**one).is_some_and(|rest| rest.is_empty() || rest.starts_with('\n'));
        voucher.is_empty() || self.trusted.as_ref().is_none_or(|trusted| trusted.iter().any(is_of))
    }

    /// Whether the journal has rows about what a selector holds, a group's too: not where the closest pattern that says something about all
    /// of it says no, and none says yes about a part.
    #[must_use]
    pub fn journals(&self, selector: &str) -> bool {
        if self.patterns.iter().all(|one| one.journal != Some(false)) {
            return true;
        }
        let text = split_shared(selector).map_or(selector, |(_, text)| text);
        let Ok(of) = Pattern::parse(text) else { return true };
        let said = self.patterns.iter().filter_map(|one| one.journal.zip(Pattern::parse(&one.pattern).ok()));
        let said: Vec<(bool, Pattern)> = said.filter(|(_, pattern)| pattern.overlaps(&of)).collect();
        let whole = said.iter().filter(|(_, pattern)| pattern.covers(&of));
        match whole.max_by(|a, b| a.1.compare_specificity(&b.1)) {
            Some((false, closest)) => {
                said.iter().any(|(journals, part)| *journals && part.compare_specificity(closest).is_gt())
            }
            _ => true,
        }
    }
}
