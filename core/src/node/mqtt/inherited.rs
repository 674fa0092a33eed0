//! What an MQTT subscription inherits from others of its client in whose place it sends now, because they ended or rank lower: it sends what
//! they had still to send, and not what they have sent. Owns which messages those are, so that nothing is missed and nothing sent twice;
//! who inherits from whom is the shard's to say.
use serde::{Deserialize, Serialize};

use crate::subject::Pattern;

/// Senders, those that they had inherited from included, of which one remembers what was theirs. Of more it does not, and sends again what
/// was sent.
const SENDERS_MAX: usize = 16;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inherited {
    /// The arrival up to which the subscription itself had come.
    until: u64,
    /// The latest last.
    from: Vec<Sender>,
}

/// A subscription that was to send what another one selects as well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sender {
    pub selector: Box<str>,
    pub is_not_local: bool,
    /// It selected what came after this arrival, and had come up to that.
    pub began: u64,
    pub stood: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inherited: Option<Inherited>,
}

impl Inherited {
    /// Whether a message is still to be sent; `is_own`: its client published it. The last that was to send it decides.
    pub fn sends(&self, subject: &str, arrival: u64, is_own: bool) -> bool {
        if arrival > self.end() {
            return true;
        }
        let last = self.from.iter().rev().find(|sender| sender.selects(subject, arrival, is_own));
        last.map_or(arrival > self.until, |sender| sender.owes(subject, arrival, is_own))
    }

    /// The same of a subscription that had come up to `until` when it took over from another one; none where there is nothing to
    /// remember, or too much.
    #[must_use]
    pub fn and(of: Option<Self>, until: u64, sender: Sender) -> Option<Self> {
        if of.is_none() && sender.inherited.is_none() && sender.stood == until {
            return None;
        }
        let mut all = of.and_then(|inherited| inherited.beyond(until)).unwrap_or_default();
        for before in &mut all.from {
            before.began = before.began.max(until); // up to there all that was to be sent is
        }
        all.until = all.until.max(until);
        all.from.push(sender);
        Some(all).filter(|all| all.count() <= SENDERS_MAX)
    }

    /// What is left of it for a subscription that stands here.
    #[must_use]
    pub fn beyond(self, arrival: u64) -> Option<Self> {
        Some(self).filter(|inherited| inherited.end() > arrival)
    }

    /// No arrival beyond `head` means anything any more.
    pub(super) fn cut(&mut self, head: u64) {
        self.until = self.until.min(head);
        for sender in &mut self.from {
            (sender.began, sender.stood) = (sender.began.min(head), sender.stood.min(head));
            if let Some(inherited) = &mut sender.inherited {
                inherited.cut(head);
            }
        }
    }

    /// What comes after this arrival is nobody's but the subscription's own.
    fn end(&self) -> u64 {
        let theirs = self.from.iter().map(|sender| sender.stood.max(sender.inherited.as_ref().map_or(0, Self::end)));
        theirs.max().unwrap_or(0).max(self.until)
    }

    fn count(&self) -> usize {
        self.from.iter().map(|sender| 1 + sender.inherited.as_ref().map_or(0, Self::count)).sum()
    }
}

impl Sender {
    fn selects(&self, subject: &str, arrival: u64, is_own: bool) -> bool {
        arrival > self.began
            && !(is_own && self.is_not_local)
            && Pattern::parse(&self.selector).is_ok_and(|pattern| pattern.matches(subject))
    }

    /// Whether it still had to send what it selected.
    fn owes(&self, subject: &str, arrival: u64, is_own: bool) -> bool {
        arrival > self.stood
            && self.inherited.as_ref().is_none_or(|inherited| inherited.sends(subject, arrival, is_own))
    }
}
