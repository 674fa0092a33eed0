//! A client as the rules of the wire describe it: it judges whatever it hears against the ledger of every message.
use std::collections::HashMap;

use godwit_core::position::Position;
use serde_json::{Value, json};

use super::Place;

/// A seeded sequence (xorshift): the same life each time.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
}

/// Every message ever accepted.
#[derive(Default)]
pub(crate) struct Ledger {
    pub(crate) heads: HashMap<String, Position>,
    pub(crate) contents: HashMap<(String, u64, u64), Value>,
    /// Standard messages published, by subject.
    pub(crate) standard: HashMap<String, u64>,
}

/// A client as the rules of the wire describe it.
pub(crate) struct Client {
    pub(crate) place: Place,
    pub(crate) selector: String,
    pub(crate) is_pattern: bool,
    pub(crate) conflate_ms: u64,
    pub(crate) is_binary: bool,
    pub(crate) has_resumed: bool,
    pub(crate) stands: HashMap<String, Position>,
    pub(crate) resume_token: Option<String>,
    /// Subjects whose stand is not known yet may begin anywhere (history).
    pub(crate) begins_anywhere: bool,
    /// Resumed by a resume token: what came after it may come again until the join's resume token.
    pub(crate) allows_repeats: bool,
    pub(crate) is_subscribed: bool,
    /// Standard messages that came or were said to be lost, and how many there had been before.
    pub(crate) standard: (u64, u64),
    /// A subject of which nothing was kept begins wherever its next message is.
    pub(crate) asked_history: bool,
}

pub(crate) fn position(value: &Value) -> Position {
    Position::parse(value.as_str().expect("a position")).expect("a position")
}

impl Client {
    pub(crate) fn hear(&mut self, ledger: &Ledger, heard: Vec<Value>) {
        for value in heard {
            if let Some(ok) = value.get("ok") {
                if ok == "subscribed" {
                    self.subscribed(&value);
                }
            } else if let Some(count) = value.get("count").filter(|_| value.get("dropped").is_some()) {
                self.standard.0 += count.as_u64().expect("as the wire has it");
            } else if value.get("message").is_some() && value.get("at").is_none() {
                self.standard.0 += value.get("conflated").map_or(1, |n| n.as_u64().expect("as the wire has it"));
            } else if value.get("message").is_some() {
                self.message(ledger, &value);
            } else if value.get("gap").is_some() {
                self.gap(&value);
            } else if let Some(resume_token) = value.get("resume_token") {
                self.resume_token = Some(resume_token.as_str().expect("as the wire has it").to_owned());
                (self.allows_repeats, self.begins_anywhere) = (false, self.asked_history);
            } else {
                panic!("{}: unexpected {value}", self.selector);
            }
        }
    }

    fn subscribed(&mut self, value: &Value) {
        self.is_subscribed = true;
        if self.is_pattern {
            return;
        }
        match value["outcome"].as_str().expect("as the wire has it") {
            "live" => drop(self.stands.insert(self.selector.clone(), position(&value["at"]))),
            "history" if value["count"] == 0 => drop(self.stands.insert(self.selector.clone(), position(&value["at"]))),
            "history" => {
                self.stands.clear();
                self.begins_anywhere = true;
            }
            "snapshot" => self.stands.clear(),
            _ => {}
        }
    }

    fn message(&mut self, ledger: &Ledger, value: &Value) {
        let subject = value["message"].as_str().expect("as the wire has it").to_owned();
        let at = position(&value["at"]);
        if value.get("snapshot").is_some() {
            self.stands.insert(subject, at);
            return;
        }
        let context = || format!("{} conflate {}: {value}", self.selector, self.conflate_ms);
        let after = value.get("after").map_or(Position { sequence: at.sequence - 1, ..at }, position);
        match self.stands.get(&subject) {
            Some(stand) if stand.epoch == at.epoch => {
                // A window that was open when a client joined may end where its snapshot stood.
                if at.sequence <= stand.sequence && (self.allows_repeats || self.conflate_ms > 0) {
                    return;
                }
                assert!(at.sequence > stand.sequence, "repeat after {stand}: {}", context());
                let is_exact = after == *stand || (self.conflate_ms > 0 && after.sequence < stand.sequence);
                assert!(
                    is_exact || self.allows_repeats && after.sequence <= stand.sequence,
                    "messages missing after {stand}: {}",
                    context()
                );
            }
            Some(stand) => panic!("another epoch without a gap after {stand}: {}", context()),
            None => assert!(self.begins_anywhere || after.sequence == 0, "begins in the middle: {}", context()),
        }
        if self.conflate_ms == 0 && value.get("conflated").is_none() {
            let content = &ledger.contents[&(subject.clone(), at.epoch, at.sequence)];
            assert_eq!(&value["content"], content, "{}", context());
        } else {
            let count = value.get("conflated").map_or(1, |n| n.as_u64().expect("as the wire has it"));
            assert_eq!(count, at.sequence - after.sequence, "{}", context());
        }
        self.stands.insert(subject, at);
    }

    fn gap(&mut self, value: &Value) {
        let subject = value["gap"].as_str().expect("as the wire has it").to_owned();
        let Some(at) = value.get("at").map(position) else {
            assert_eq!(subject, self.selector, "the gap of a whole pattern");
            self.stands.clear();
            return;
        };
        assert_ne!(value["missed"], 0, "a gap in which nothing is missing: {value}");
        let after = value.get("after").map(position);
        if let (Some(stand), Some(after)) = (self.stands.get(&subject), after) {
            // Of several subjects' merged frames some may have left when the rest fell into a gap.
            let is_loose = self.allows_repeats || self.conflate_ms > 0;
            let is_exact = *stand == after || is_loose && stand.sequence >= after.sequence;
            assert!(is_exact, "a gap that begins elsewhere, stand {stand}: {value}");
        }
        if let (Some(missed), Some(after)) = (value["missed"].as_u64(), after) {
            assert_eq!(missed, at.sequence - after.sequence, "{value}");
        }
        self.stands.insert(subject, at);
    }

    pub(crate) fn subscribe(&mut self, random: &mut Random, is_resume: bool) -> Value {
        let mut command = json!({"id": 1, "subscribe": self.selector});
        if self.conflate_ms > 0 {
            command["conflate_ms"] = json!(self.conflate_ms);
        }
        if random.below(3) == 0 {
            command["on_gap"] = json!("oldest");
        }
        if is_resume && self.is_pattern {
            if let Some(resume_token) = &self.resume_token {
                command["since"] = json!(resume_token);
                if random.below(2) == 0 {
                    let stands = self.stands.iter().map(|(subject, at)| (subject.clone(), json!(at.to_string())));
                    command["after"] = Value::Object(stands.collect());
                    // Nothing comes again but from a window that merges.
                    self.allows_repeats = self.conflate_ms > 0;
                }
            }
        } else if is_resume {
            if let Some(stand) = self.stands.get(&self.selector) {
                command["after"] = json!(stand.to_string());
            }
        } else if random.below(4) == 0 {
            command["last"] = json!(random.below(4));
            self.asked_history = true;
        }
        command
    }
}

/// As many random lives as GODWIT_SEEDS says (100), or only that of GODWIT_SEED.
pub(crate) fn live_all(live: impl Fn(u64) + std::panic::RefUnwindSafe) {
    #[allow(clippy::disallowed_methods, reason = "the tester chooses which lives are lived")]
    let read = |name| std::env::var(name).ok().and_then(|text: String| text.parse::<u64>().ok());
    let (seeds, first) = (read("GODWIT_SEEDS").unwrap_or(100), read("GODWIT_SEED"));
    for seed in first.map_or(0..seeds, |seed| seed..seed + 1) {
        assert!(std::panic::catch_unwind(|| live(seed)).is_ok(), "seed {seed}: run again with GODWIT_SEED={seed}");
    }
}
