//! What an audit hears of accepted messages: who published what, in order, waiting to be taken in batches. Bounded: past its limit
//! the oldest go and are counted, or publishers are held back, as configured; delivery never waits for it.
use std::collections::VecDeque;
use std::sync::Arc;

use crate::holder::Holder;
use crate::message::Message;
use crate::settings::TapSettings;
use crate::subject::Pattern;

/// Where publishers are held back: room at least for what they had sent before that, and shards had read.
const UNDER_WAY_BYTES: usize = 64 << 20;

/// One accepted message and who published it.
#[derive(Clone, Debug)]
pub struct Heard {
    pub message: Arc<Message>,
    pub holder: Arc<Holder>,
}

#[derive(Debug, Default)]
pub(in crate::node) struct Tap {
    patterns: Vec<Pattern>,
    waiting: VecDeque<Heard>,
    bytes: usize,
    entries_max: usize,
    bytes_max: usize,
    holds: bool,
    lost: u64,
}

impl Tap {
    /// None where nobody listens. Patterns that are none are left out: the server has checked them.
    pub(in crate::node) fn new(settings: &TapSettings) -> Option<Self> {
        let patterns: Vec<_> = settings.patterns.iter().filter_map(|text| Pattern::parse(text).ok()).collect();
        (!patterns.is_empty()).then(|| Self {
            patterns,
            entries_max: settings.entries_max.max(1),
            bytes_max: settings.bytes_max.max(1),
            holds: settings.holds_publishers,
            ..Self::default()
        })
    }

    pub(in crate::node) fn hear(&mut self, message: &Arc<Message>, holder: &Arc<Holder>) {
        if !self.patterns.iter().any(|pattern| pattern.matches(&message.subject)) {
            return;
        }
        self.bytes += cost(message);
        self.waiting.push_back(Heard { message: Arc::clone(message), holder: Arc::clone(holder) });
        while self.is_over() {
            let Some(oldest) = self.waiting.pop_front() else { break };
            self.bytes -= cost(&oldest.message);
            self.lost += 1;
        }
    }

    /// Where publishers are held back, what they had sent before that still comes in: a turn of a shard reads from each of
    /// them once, however little may wait. It has as much room again, and no less than a busy node's turn needs.
    fn is_over(&self) -> bool {
        if self.holds {
            self.bytes > self.bytes_max + self.bytes_max.max(UNDER_WAY_BYTES)
        } else {
            self.waiting.len() > self.entries_max || (self.bytes > self.bytes_max && self.waiting.len() > 1)
        }
    }

    /// Whether publishers should not be read until some have been taken: half of what fits is left for what is under way.
    pub(in crate::node) fn holds_publishers(&self) -> bool {
        self.holds && (self.waiting.len() >= self.entries_max / 2 || self.bytes >= self.bytes_max / 2)
    }

    /// The oldest that wait, at least one and further ones within `bytes_max`, and how many were lost since start.
    pub(in crate::node) fn take(&mut self, max: usize, bytes_max: usize) -> (Vec<Heard>, u64) {
        let mut bytes = 0;
        let fits = self.waiting.iter().take(max).take_while(|heard| {
            let is_first = bytes == 0;
            bytes += cost(&heard.message);
            is_first || bytes <= bytes_max
        });
        let count = fits.count();
        let taken: Vec<_> = self.waiting.drain(..count).collect();
        self.bytes -= taken.iter().map(|heard| cost(&heard.message)).sum::<usize>();
        (taken, self.lost)
    }
}

fn cost(message: &Message) -> usize {
    size_of::<Message>() + message.bytes.len()
}
