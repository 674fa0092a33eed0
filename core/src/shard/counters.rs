//! What a shard counts for operators: in all, by wire, by code and by reason. Owns the shapes; who counts is where it happens.
//! Invariant: there are as many counters as wires, codes and reasons, and nothing a client chooses makes one.
use std::sync::Arc;

use super::connection::Connection;
use crate::codes::Code;
use crate::command::GapReason;
use crate::wire::Wire;

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
    pub slow_readers: u64,
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
    fn place(&mut self, name: &'static str) -> u8 {
        let place = self.0.iter().position(|(known, _)| known.is_empty() || *known == name).unwrap_or(0);
        if let Some((known, _)) = self.0.get_mut(place) {
            *known = name;
        }
        place as u8
    }

    #[inline]
    fn at(&mut self, place: u8) -> &mut WireCounters {
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
    pub caught_up: u64,
    pub fell_off: u64,
    pub reports_dropped: u64,
    /// By the names of wires; a wire that shares another's name is counted with it.
    pub wires: Wires,
    /// By the place of `GapReason::ALL`.
    pub gap_reasons: [u64; GapReason::ALL.len()],
    /// Shared with who was shown it: copied when it changes, not once a turn.
    pub codes: Arc<Codes>,
}

impl Counters {
    /// The counters of a connection's kind.
    #[inline]
    pub(super) fn of(&mut self, connection: &Connection) -> &mut WireCounters {
        self.wires.at(connection.counted)
    }

    /// A gap was told to a connection.
    pub(super) fn count_gap(&mut self, connection: Option<&Connection>, reason: GapReason) {
        self.gaps += 1;
        if let Some(count) = self.gap_reasons.get_mut(reason as usize) {
            *count += 1;
        }
        if let Some(connection) = connection {
            self.of(connection).gaps += 1;
        }
    }

    /// A publish was refused.
    pub(super) fn count_refused_publish(&mut self, connection: Option<&Connection>, code: Code) {
        self.publishes_refused += 1;
        Arc::make_mut(&mut self.codes).publishes.add(code as u16);
        if let Some(connection) = connection {
            self.of(connection).publishes_refused += 1;
        }
    }

    /// A connection or a request was refused.
    pub(super) fn count_refused(&mut self, code: Code) {
        self.refused += 1;
        Arc::make_mut(&mut self.codes).refused.add(code as u16);
    }

    /// A command was refused.
    pub(super) fn count_refused_command(&mut self, code: Code) {
        self.commands_refused += 1;
        Arc::make_mut(&mut self.codes).commands.add(code as u16);
    }

    /// A socket was accepted: what it will speak is not known yet.
    pub(super) fn count_accepted(&mut self, connection: &Connection) {
        self.accepted += 1;
        self.of(connection).connections += 1;
    }

    /// A connection that has been counted as one that makes requests speaks `wire` from now on.
    pub(super) fn count_opened(&mut self, connection: &mut Connection, wire: Wire) {
        let before = self.of(connection);
        before.connections -= 1;
        before.slow_readers -= u64::from(connection.is_blocked);
        connection.counted = self.wires.place(wire.name());
        let counters = self.of(connection);
        counters.connections += 1;
        counters.slow_readers += u64::from(connection.is_blocked);
        counters.connects += 1;
    }

    /// A connection has ended. One that never spoke a wire came and went as one that made requests.
    pub(super) fn count_ended(&mut self, connection: &Connection, code: u16) {
        self.disconnected += 1;
        Arc::make_mut(&mut self.codes).closes.add(code);
        let counters = self.of(connection);
        counters.connections -= 1;
        counters.slow_readers -= u64::from(connection.is_blocked);
        counters.disconnects += 1;
        counters.connects += u64::from(connection.counted == 0);
    }
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
