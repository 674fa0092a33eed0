//! What a shard counts for operators: in all, by wire, by code and by reason. Owns the shapes; counting is the shard's.
//! Invariant: there are as many counters as wires, codes and reasons, and nothing a client chooses makes one.
use std::sync::Arc;

use crate::codes::Code;
use crate::command::GapReason;

/// Counted from the start on; others from their first connection on. The first is for who has opened no wire.
const WIRES: [&str; 4] = ["http", "json", "binary", "sse"];
const WIRES_MAX: usize = 16;

/// What one kind of connections comes to. Counters since start, unless marked as gauges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WireCounters {
    /// Gauge.
    pub connections: u64,
    /// Gauge.
    pub subscriptions: u64,
    /// Gauge: connections whose socket takes nothing now.
    pub slow_consumers: u64,
    pub connects: u64,
    pub disconnects: u64,
    /// Publishes that were allowed.
    pub messages_in: u64,
    /// Messages handed to sockets, snapshots and conflated ones too.
    pub messages_out: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
    pub publishes_refused: u64,
    pub gaps: u64,
    pub recovered: u64,
    pub resynced: u64,
    pub dropped: u64,
}

/// The counters of each wire, by its name.
#[derive(Clone, Copy, Debug)]
pub struct Wires([(&'static str, WireCounters); WIRES_MAX]);

impl Default for Wires {
    fn default() -> Self {
        let name = |place: usize| WIRES.get(place).copied().unwrap_or("");
        Self(std::array::from_fn(|place| (name(place), WireCounters::default())))
    }
}

impl Wires {
    /// Names and counters.
    pub fn each(&self) -> impl Iterator<Item = (&'static str, &WireCounters)> + '_ {
        self.0.iter().filter(|(name, _)| !name.is_empty()).map(|(name, counters)| (*name, counters))
    }

    /// Where a wire is counted: at its name, or at the first free place, which becomes its.
    pub(crate) fn place(&mut self, name: &'static str) -> u8 {
        let place = self.0.iter().position(|(known, _)| known.is_empty() || *known == name).unwrap_or(0);
        if let Some((known, _)) = self.0.get_mut(place) {
            *known = name;
        }
        place as u8
    }

    #[inline]
    pub(crate) fn at(&mut self, place: u8) -> &mut WireCounters {
        &mut self.0[usize::from(place) % WIRES_MAX].1
    }
}

/// Counts by number: of codes, which are few, so a list is searched. A number that is no code counts as 0.
#[derive(Clone, Debug, Default)]
pub struct Tally(Vec<(u16, u64)>);

impl Tally {
    /// Counts one of a code, or of what a peer took for one.
    pub fn add(&mut self, number: u16) {
        let number = Code::from_number(number).map_or(0, |code| code as u16);
        match self.0.iter_mut().find(|(known, _)| *known == number) {
            Some((_, count)) => *count += 1,
            None => self.0.push((number, 1)),
        }
    }

    /// Numbers and their counts, in the order of their first.
    pub fn each(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        self.0.iter().copied()
    }
}

/// What happened, by code.
#[derive(Clone, Debug, Default)]
pub struct Codes {
    /// Connections and requests refused.
    pub refused: Tally,
    pub publishes: Tally,
    pub commands: Tally,
    /// What connections ended with.
    pub closes: Tally,
    /// Limits of rates and quotas that somebody reached, by their names.
    pub limits: Hits,
}

/// Counts by the names of limits.
#[derive(Clone, Debug, Default)]
pub struct Hits(Vec<(&'static str, u64)>);

impl Hits {
    pub fn add(&mut self, limit: &'static str) {
        match self.0.iter_mut().find(|(known, _)| *known == limit) {
            Some((_, count)) => *count += 1,
            None => self.0.push((limit, 1)),
        }
    }

    pub fn each(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.0.iter().copied()
    }
}

/// Counters since start; gauges are marked so. Read as a whole once a turn.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    /// Gauge.
    pub connections: u64,
    /// Gauge.
    pub subscriptions: u64,
    /// Gauge.
    pub streams: u64,
    /// Gauge: allocated bytes of all windows.
    pub window_bytes: u64,
    /// Gauge: half-received messages, and the rests of cut frames that were copied.
    pub held_bytes: u64,
    /// Gauge: subscriptions that are being brought to the head from the logs.
    pub catching_up: u64,
    pub accepted: u64,
    pub refused: u64,
    pub disconnected: u64,
    pub messages_in: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
    /// Sends that carried stream frames.
    pub sends: u64,
    pub short_sends: u64,
    pub blocked_sends: u64,
    pub publishes_refused: u64,
    pub commands_refused: u64,
    pub gaps: u64,
    pub recovered: u64,
    pub resynced: u64,
    pub dropped: u64,
    /// Messages of QoS 1 and 2 that MQTT sessions were owed and are not sent; 1 where nobody can count them.
    pub mqtt_missed: u64,
    pub catch_up_messages: u64,
    pub window_misses: u64,
    pub reports_dropped: u64,
    /// By the names of wires; a wire that shares another's name is counted with it.
    pub wires: Wires,
    /// By the place of `GapReason::ALL`.
    pub gap_reasons: [u64; GapReason::ALL.len()],
    /// Shared with who was shown it: copied when it changes, not once a turn.
    pub codes: Arc<Codes>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wire_has_a_place_of_its_own_from_its_first_connection_on() {
        let mut wires = Wires::default();
        let places: Vec<u8> = ["http", "binary", "new", "json", "new"].iter().map(|name| wires.place(name)).collect();
        assert_eq!(places, [0, 2, 4, 1, 4]);
        wires.at(4).connects += 1;
        assert_eq!(wires.each().filter(|(_, c)| c.connects > 0).map(|(name, _)| name).collect::<Vec<_>>(), ["new"]);
    }

    #[test]
    fn a_tally_holds_codes_and_nothing_that_peers_make_up() {
        let mut tally = Tally::default();
        [4114, 4114, 4120, 3000, 3001, 4999].into_iter().for_each(|number| tally.add(number));
        assert_eq!(tally.each().collect::<Vec<_>>(), [(4114, 2), (4120, 1), (0, 3)]);
    }
}
