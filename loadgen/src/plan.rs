//! What a load does: whom it talks to, with how many connections, and which steps it takes one after another.
//! Everything is bounded: counts by the fields here, time by `seconds_max` and `stall_seconds_max`.
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// One run against one server.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Plan {
    /// `godwit-json`, `godwit-binary`, `godwit-disk`, `godwit-http`, `baseline`, `mqtt`, `nchan` or `nats`.
    pub(crate) dialect: String,
    pub(crate) address: SocketAddr,
    /// The processes whose CPU time and memory are read at the steps' borders.
    #[serde(default)]
    pub(crate) pids: Vec<u32>,
    /// The core the generator's threads stay on; none: anywhere.
    #[serde(default)]
    pub(crate) core: Option<usize>,
    /// The generator's own driver: `auto`, `io_uring` or `readiness`.
    #[serde(default = "auto")]
    pub(crate) driver: String,
    #[serde(default = "one")]
    pub(crate) threads: u32,
    /// Subscriber `n` listens to subject `n % subjects`.
    pub(crate) subscribers: u32,
    pub(crate) subjects: u32,
    #[serde(default)]
    pub(crate) publishers: u32,
    #[serde(default = "content_bytes")]
    pub(crate) content_bytes: usize,
    /// Connections being opened at one time, in all threads together.
    #[serde(default = "opening_max")]
    pub(crate) opening_max: u32,
    /// Whether publishes ask to be acknowledged.
    #[serde(default)]
    pub(crate) is_acked: bool,
    /// Whether subscribers note where they stand, so that they can resume.
    #[serde(default)]
    pub(crate) keeps_places: bool,
    /// The server speaks TLS.
    #[serde(default)]
    pub(crate) tls: Option<TlsPlan>,
    /// The process ends after this load: its sockets go with it, which is quicker than closing a million one by one.
    #[serde(default)]
    pub(crate) is_last: bool,
    pub(crate) steps: Vec<Step>,
    #[serde(default = "seconds_max")]
    pub(crate) seconds_max: f64,
    #[serde(default = "stall_seconds_max")]
    pub(crate) stall_seconds_max: f64,
}

/// Whom clients believe that the server is.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TlsPlan {
    /// Certificates (PEM) that the server's must be signed by, or be.
    pub(crate) authorities_file: String,
    pub(crate) name: String,
}

/// One step; the next begins when all of it has happened.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(tag = "do", rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum Step {
    /// Open every connection, subscribe every subscriber; or only so many of them in all, more in a later step.
    Connect {
        name: String,
        #[serde(default = "everybody")]
        upto: u32,
    },
    /// Publish so many messages, subject after subject in turn, and wait until all are delivered and acknowledged.
    Publish {
        name: String,
        messages: u64,
        /// Messages a second in all; 0: as fast as the window allows.
        #[serde(default)]
        rate: f64,
        /// Publishes not yet acknowledged (not yet delivered, where the wire has no acknowledgement); 0: no such bound.
        #[serde(default)]
        in_flight: u64,
        /// Messages of a subject that its slowest subscriber may be behind; 0: no such bound.
        #[serde(default)]
        ahead_max: u64,
    },
    /// Subscribers disconnect.
    Leave {
        name: String,
    },
    /// Subscribers connect again and ask for what they missed.
    Return {
        name: String,
    },
    Pause {
        name: String,
        seconds: f64,
    },
    /// Further subscribers of subject 0 connect, subscribe, and then never read.
    Silence {
        name: String,
        clients: u32,
    },
    /// The silent ones read again, up to the last message, and say what they were told.
    Wake {
        name: String,
    },
}

impl Step {
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Connect { name, .. }
            | Self::Publish { name, .. }
            | Self::Leave { name }
            | Self::Return { name }
            | Self::Pause { name, .. }
            | Self::Silence { name, .. }
            | Self::Wake { name } => name,
        }
    }
}

impl Plan {
    /// Parses and checks a plan.
    ///
    /// # Errors
    /// A sentence that says what is wrong with it.
    pub(crate) fn parse(json: &str) -> Result<Self, String> {
        let plan: Self = serde_json::from_str(json).map_err(|error| format!("the plan is not valid: {error}"))?;
        let checks = [
            (plan.subjects >= 1 && plan.subjects <= 1_000_000, "subjects must be 1 to 1,000,000"),
            (plan.subscribers <= 2_000_000, "subscribers must be at most 2,000,000"),
            (plan.publishers <= 10_000, "publishers must be at most 10,000"),
            (plan.threads >= 1 && plan.threads <= 64, "threads must be 1 to 64"),
            ((crate::content::BYTES_MIN..=60_000).contains(&plan.content_bytes), "content_bytes must be 58 to 60,000"),
            (plan.opening_max >= 1, "opening_max must be at least 1"),
            (plan.seconds_max > 0.0 && plan.seconds_max <= 3_600.0, "seconds_max must be above 0, at most 3,600"),
        ];
        match checks.iter().find(|(holds, _)| !holds) {
            Some((_, sentence)) => Err((*sentence).to_owned()),
            None => Ok(plan),
        }
    }

    /// How many messages of the first `published` are of `subject`.
    pub(crate) fn share(&self, subject: u32, published: u64) -> u64 {
        let (subject, subjects) = (u64::from(subject), u64::from(self.subjects));
        (published + subjects - 1 - subject.min(published + subjects - 1)) / subjects
    }

    /// How many deliveries the first `published` messages make to the first `subscribers`.
    pub(crate) fn deliveries(&self, subscribers: u32, published: u64) -> u64 {
        let (subscribers, subjects) = (u64::from(subscribers), u64::from(self.subjects));
        let listened = subjects.min(subscribers);
        (0..listened)
            .map(|subject| {
                let listeners = (subscribers - subject).div_ceil(subjects);
                listeners * self.share(subject as u32, published)
            })
            .sum()
    }
}

fn everybody() -> u32 {
    u32::MAX
}

fn auto() -> String {
    "auto".to_owned()
}

fn one() -> u32 {
    1
}

fn content_bytes() -> usize {
    144
}

fn opening_max() -> u32 {
    256
}

fn seconds_max() -> f64 {
    300.0
}

fn stall_seconds_max() -> f64 {
    20.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(subscribers: u32, subjects: u32) -> Plan {
        let json = format!(
            r#"{{"dialect":"baseline","address":"127.0.0.1:1","subscribers":{subscribers},"subjects":{subjects},"steps":[]}}"#
        );
        Plan::parse(&json).unwrap()
    }

    #[test]
    fn every_message_of_every_subject_is_expected_once_a_listener() {
        for (subscribers, subjects, published) in [(1, 1, 7), (10, 3, 7), (3, 10, 25), (1000, 100, 250), (5, 5, 0)] {
            let plan = plan(subscribers, subjects);
            let counted: u64 = (0..published)
                .map(|k| (0..subscribers).filter(|n| u64::from(n % subjects) == k % u64::from(subjects)).count() as u64)
                .sum();
            assert_eq!(plan.deliveries(subscribers, published), counted, "{subscribers} {subjects} {published}");
        }
    }

    #[test]
    fn a_plan_that_cannot_be_is_refused_with_a_sentence() {
        assert!(Plan::parse("{}").unwrap_err().starts_with("the plan is not valid"));
        let json = r#"{"dialect":"baseline","address":"127.0.0.1:1","subscribers":1,"subjects":0,"steps":[]}"#;
        assert_eq!(Plan::parse(json).unwrap_err(), "subjects must be 1 to 1,000,000");
    }
}
