//! What happens to connections, counted with the wire that each speaks. Owns that the two sums agree: whatever is counted for a
//! wire is counted for its connection's, as it was when it came.
use std::sync::Arc;

use super::connection::Connection;
use crate::codec::Wire;
use crate::codes::Code;
use crate::command::GapReason;
use crate::report::{Counters, WireCounters};

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

    /// In place of messages that are longer than a client takes it was sent so many gaps, and so many standard messages were dropped.
    pub(super) fn count_too_large(&mut self, connection: &Connection, gaps: u64, dropped: u64) {
        self.gaps += gaps;
        if let Some(count) = self.gap_reasons.get_mut(GapReason::TooLarge as usize) {
            *count += gaps;
        }
        self.dropped += dropped;
        let counters = self.of(connection);
        counters.gaps += gaps;
        counters.dropped += dropped;
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
        before.slow_consumers -= u64::from(connection.is_slow());
        connection.counted = self.wires.place(wire.name());
        let counters = self.of(connection);
        counters.connections += 1;
        counters.slow_consumers += u64::from(connection.is_slow());
        counters.connects += 1;
    }

    /// A connection has ended. One that never spoke a wire came and went as one that made requests.
    pub(super) fn count_ended(&mut self, connection: &Connection, code: u16) {
        self.disconnected += 1;
        Arc::make_mut(&mut self.codes).closes.add(code);
        let counters = self.of(connection);
        counters.connections -= 1;
        counters.slow_consumers -= u64::from(connection.is_slow());
        counters.disconnects += 1;
        counters.connects += u64::from(connection.counted == 0);
    }
}
