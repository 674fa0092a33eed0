//! What the settings say about one subject: the limits, and what patterns change of them. The most specific pattern that
//! names a value decides it. Resolved once for each log; logs that are treated alike share one policy.
mod configure;

use super::ages::{Age, Ages};
use crate::account::Rate;
use crate::codes::Code;
use crate::command::Refusal;
use crate::limits::Limits;
use crate::settings::{PatternSettings, Settings};
use crate::subject::Pattern;

/// Policies are numbered by 16 bits; patterns make far fewer.
const POLICIES_MAX: usize = u16::MAX as usize;

/// How one subject is kept and sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    pub log_messages_max: usize,
    pub log_age_ms_max: u64,
    /// False: no snapshot is kept.
    pub keeps_snapshot: bool,
    /// Members of JSON objects are merged into the snapshot.
    pub merges: bool,
    /// False: the journal has nothing of the subject.
    pub journals: bool,
    /// MQTT publishes are retained without RETAIN, too.
    pub retains_mqtt: bool,
    /// 0: it does not expire.
    pub snapshot_age_ms_max: u64,
    pub conflates_when_slow: bool,
    pub batch_ms: u32,
    pub batch_bytes_max: u32,
    /// An MQTT publish of QoS 1 or 2 is acknowledged from the disk.
    pub acks_mqtt_from_disk: bool,
    /// Nobody is shown a message before it is on the disk.
    pub shows_journaled: bool,
    /// What MQTT sessions and groups are owed is kept for them beyond age and count, within bounds.
    pub holds_owed: bool,
    /// A session ends where something that it is owed is gone; else it goes on with what is left.
    pub ends_session: bool,
    /// Of publishes on the subject, whoever publishes.
    pub publishes: Rate,
    pub(super) log_age: Age,
    pub(super) snapshot_age: Age,
}

#[derive(Debug)]
pub(super) struct Policies {
    patterns: Vec<(Pattern, PatternSettings)>,
    basis: Policy,
    burst_ms: u64,
    reply_age_ms_max: u64,
    has_merge: bool,
    has_unjournaled: bool,
    retains_mqtt: bool,
    known: Vec<Policy>,
}

impl Policies {
    /// Patterns that are none are left out: `check` has refused them before.
    pub(super) fn new(settings: &Settings, ages: &mut Ages) -> Self {
        let mut patterns: Vec<(Pattern, PatternSettings)> = Vec::new();
        for one in &settings.patterns {
            if let Ok(pattern) = Pattern::parse(&one.pattern) {
                patterns.push((pattern, one.clone()));
            }
        }
        let basis = compile_basis(&settings.limits, ages);
        // Registered with the first age, so that what comes before the first such log is seen by its clock.
        ages.register(settings.limits.reply_age_ms_max);
        Self {
            patterns,
            burst_ms: settings.limits.burst_ms_max,
            reply_age_ms_max: settings.limits.reply_age_ms_max,
            has_merge: settings.patterns.iter().any(|one| one.merge == Some(true)),
            has_unjournaled: settings.patterns.iter().any(|one| one.journal == Some(false)),
            retains_mqtt: settings.patterns.iter().any(|one| one.mqtt_retain.as_deref() == Some("always")),
            known: vec![basis.clone()],
            basis,
        }
    }

    /// Other patterns and another basis. Policies that are in use keep their numbers.
    pub(super) fn replace(&mut self, settings: &Settings, ages: &mut Ages) {
        let fresh = Self::new(settings, ages);
        (self.patterns, self.basis, self.burst_ms) = (fresh.patterns, fresh.basis, fresh.burst_ms);
        (self.reply_age_ms_max, self.has_merge) = (fresh.reply_age_ms_max, fresh.has_merge);
        (self.has_unjournaled, self.retains_mqtt) = (fresh.has_unjournaled, fresh.retains_mqtt);
    }

    /// The number of the subject's policy; `is_reply`: it was first named as the place for replies.
    pub(super) fn resolve(&mut self, subject: &str, is_reply: bool, ages: &mut Ages) -> u16 {
        let mut policy = self.compile(subject, ages);
        if is_reply && (policy.log_age_ms_max == 0 || policy.log_age_ms_max > self.reply_age_ms_max) {
            policy.log_age_ms_max = self.reply_age_ms_max;
            policy.log_age = ages.register(self.reply_age_ms_max);
        }
        if let Some(at) = self.known.iter().position(|known| *known == policy) {
            return at as u16;
        }
        if self.known.len() >= POLICIES_MAX {
            return 0;
        }
        self.known.push(policy);
        (self.known.len() - 1) as u16
    }

    /// The rate of publishes on a subject that has no log.
    pub(super) fn rate_of(&self, subject: &str) -> Rate {
        let held = self
            .patterns
            .iter()
            .filter(|(pattern, one)| one.publishes_per_second_max.is_some() && pattern.matches(subject));
        let closest = held.max_by(|a, b| a.0.compare_specificity(&b.0));
        let count = closest.and_then(|(_, one)| one.publishes_per_second_max);
        count.map_or_else(Rate::default, |count| Rate::per_second(u64::from(count), self.burst_ms))
    }

    /// Whether any pattern merges.
    pub(super) fn has_merge(&self) -> bool {
        self.has_merge
    }

    /// Whether any pattern keeps its subjects out of the journal.
    pub(super) fn has_unjournaled(&self) -> bool {
        self.has_unjournaled
    }

    /// The patterns that keep subjects of a selector out of the journal.
    pub(super) fn unjournaled_within(&self, wanted: &Pattern) -> impl Iterator<Item = &Pattern> {
        let is_meant = |one: &PatternSettings| one.journal == Some(false);
        let unjournaled = self.patterns.iter().filter(move |(_, one)| is_meant(one)).map(|(pattern, _)| pattern);
        unjournaled.filter(|pattern| pattern.overlaps(wanted))
    }

    /// Whether any pattern retains all MQTT publishes.
    pub(super) fn retains_mqtt(&self) -> bool {
        self.retains_mqtt
    }

    /// Whether a pattern that shares a subject with a selector acknowledges MQTT from the disk.
    pub(super) fn promises_disk_within(&self, selector: &str) -> bool {
        let is_meant = |one: &PatternSettings| one.mqtt_ack.as_deref() == Some("disk");
        let mut meant = self.patterns.iter().filter(|(_, one)| is_meant(one)).peekable();
        meant.peek().is_some()
            && Pattern::parse(selector).is_ok_and(|wanted| meant.any(|(pattern, _)| pattern.overlaps(&wanted)))
    }

    pub(super) fn get(&self, number: u16) -> &Policy {
        self.known.get(usize::from(number)).unwrap_or(&self.basis)
    }

    fn compile(&self, subject: &str, ages: &mut Ages) -> Policy {
        let mut policy = self.basis.clone();
        let mut held: Vec<&(Pattern, PatternSettings)> =
            self.patterns.iter().filter(|(pattern, _)| pattern.matches(subject)).collect();
        if held.is_empty() {
            return policy;
        }
        held.sort_by(|a, b| a.0.compare_specificity(&b.0));
        for (_, one) in held {
            if let Some(count) = one.log_messages_max {
                policy.log_messages_max = (count as usize).max(1);
            }
            if let Some(age_ms) = one.log_age_ms_max {
                policy.log_age_ms_max = age_ms;
            }
            policy.keeps_snapshot = one.snapshot.unwrap_or(policy.keeps_snapshot);
            policy.journals = one.journal.unwrap_or(policy.journals);
            policy.retains_mqtt = one.mqtt_retain.as_deref().map_or(policy.retains_mqtt, |when| when == "always");
            policy.merges = one.merge.unwrap_or(policy.merges);
            policy.snapshot_age_ms_max = one.snapshot_age_ms_max.unwrap_or(policy.snapshot_age_ms_max);
            policy.conflates_when_slow = one.conflate_when_slow.unwrap_or(policy.conflates_when_slow);
            policy.batch_ms = one.batch_ms.unwrap_or(policy.batch_ms);
            policy.batch_bytes_max = one.batch_bytes_max.unwrap_or(policy.batch_bytes_max);
            policy.acks_mqtt_from_disk =
                one.mqtt_ack.as_deref().map_or(policy.acks_mqtt_from_disk, |ack| ack == "disk");
            policy.shows_journaled = one.visible.as_deref().map_or(policy.shows_journaled, |when| when == "journaled");
            policy.holds_owed = one.mqtt_holds.unwrap_or(policy.holds_owed);
            policy.ends_session = one.mqtt_at_owed_max.as_deref().map_or(policy.ends_session, |at| at == "end");
            if let Some(count) = one.publishes_per_second_max {
                policy.publishes = Rate::per_second(u64::from(count), self.burst_ms);
            }
        }
        policy.log_age = ages.register(policy.log_age_ms_max);
        policy.snapshot_age = ages.register(policy.snapshot_age_ms_max);
        policy
    }
}

/// Refuses settings whose patterns are none.
pub fn check(patterns: &[PatternSettings]) -> Result<(), Refusal> {
    for one in patterns {
        Pattern::parse(&one.pattern)?;
        if one.log_messages_max == Some(0) {
            return Err(Refusal::new(Code::FieldInvalid, format!("{}: log_messages_max is 0", one.pattern)));
        }
        let is_known = |value: &Option<String>, known: [&str; 2]| value.as_deref().is_none_or(|v| known.contains(&v));
        if !is_known(&one.mqtt_ack, ["cached", "disk"]) || !is_known(&one.visible, ["accepted", "journaled"]) {
            let why = format!("{}: mqtt_ack is cached or disk, visible is accepted or journaled", one.pattern);
            return Err(Refusal::new(Code::FieldInvalid, why));
        }
        if !is_known(&one.mqtt_retain, ["asked", "always"]) {
            return Err(Refusal::new(Code::FieldInvalid, format!("{}: mqtt_retain is asked or always", one.pattern)));
        }
        let needs_disk = one.mqtt_ack.as_deref() == Some("disk") || one.visible.as_deref() == Some("journaled");
        if one.journal == Some(false) && needs_disk {
            let why =
                format!("{}: with journal = false neither mqtt_ack nor visible can wait for the disk", one.pattern);
            return Err(Refusal::new(Code::FieldInvalid, why));
        }
        if !is_known(&one.mqtt_at_owed_max, ["skip", "end"]) {
            let why = format!("{}: mqtt_at_owed_max is skip or end", one.pattern);
            return Err(Refusal::new(Code::FieldInvalid, why));
        }
    }
    Ok(())
}

fn compile_basis(limits: &Limits, ages: &mut Ages) -> Policy {
    Policy {
        log_messages_max: limits.log_messages_max.max(1),
        log_age_ms_max: limits.log_age_ms_max,
        keeps_snapshot: true,
        merges: false,
        journals: true,
        retains_mqtt: false,
        snapshot_age_ms_max: limits.snapshot_age_ms_max,
        conflates_when_slow: false,
        batch_ms: 0,
        batch_bytes_max: 0,
        acks_mqtt_from_disk: false,
        shows_journaled: false,
        holds_owed: true,
        ends_session: false,
        publishes: Rate::default(),
        log_age: ages.register(limits.log_age_ms_max),
        snapshot_age: ages.register(limits.snapshot_age_ms_max),
    }
}
