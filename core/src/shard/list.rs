//! Connections as operators see them, and where each stands behind the head. Owns the pace: a list looks at a bounded number
//! of places in one turn and says where to go on, so that no delivery waits for whoever looks on.
use std::fmt::Write;
use std::sync::Arc;

use super::{Shard, lock};
use crate::cursor::{Cursor, CursorState};
use crate::holder::Holder;
use crate::report::{ConnectionId, ConnectionList, ConnectionRow, Report, STANDS_MAX, SubscriptionRow};
use crate::stream::Source;

/// Places looked at in one turn; a place is some 200 ns where something is searched for.
const LOOKS_MAX: u32 = 1024;

impl Shard {
    pub(super) fn list(&mut self, ask: u64, list: &ConnectionList) {
        // No connection has the serial 0: such an id is a place to go on from.
        let start = list.after.slot() + u32::from(list.after.serial() != 0);
        let end = self.connections.end().min(start.saturating_add(LOOKS_MAX));
        let (mut rows, mut text, mut next_slot) = (Vec::new(), String::new(), end);
        for socket in (start..end).filter(|&socket| self.connections.get(socket).is_some()) {
            if rows.len() >= list.limit as usize {
                next_slot = socket;
                break;
            }
            let row = self.row(socket);
            rows.extend(row.filter(|row| {
                (!list.is_behind || row.behind > 0)
                    && list.search.as_deref().is_none_or(|search| is_found(row, search, &mut text))
            }));
        }
        let next = (next_slot < self.connections.end()).then(|| ConnectionId::new(self.index, 0, next_slot));
        self.reports.push(Report::Connections { ask, shard: self.index, rows, next });
    }

    /// One connection with all its stands; no row when it is no more.
    pub(super) fn show(&mut self, ask: u64, connection: ConnectionId) {
        let socket = connection.slot();
        let is_same = self.connections.get(socket).is_some_and(|found| found.serial == connection.serial());
        let mut row = if is_same { self.row(socket) } else { None };
        if let Some(row) = &mut row {
            row.stands = self.stands(socket);
        }
        self.reports.push(Report::Connections { ask, shard: self.index, rows: row.into_iter().collect(), next: None });
    }

    fn row(&self, socket: u32) -> Option<ConnectionRow> {
        let connection = self.connections.get(socket)?;
        let (mut behind, mut lag_bytes, mut lag_arrivals) = (0, 0, 0);
        let mut id = connection.first_cursor;
        while let Some(cursor) = self.cursors.get(id) {
            let (is_behind, bytes, arrivals) = self.distance(cursor);
            behind += u32::from(is_behind);
            lag_bytes += bytes;
            lag_arrivals = arrivals.max(lag_arrivals);
            id = cursor.next;
        }
        let access = connection.access.as_ref();
        Some(ConnectionRow {
            connection: self.connection_id(socket),
            address: connection.peer.address(),
            holder: access.map_or_else(Holder::nobody, |access| Arc::clone(&access.holder)),
            client: connection.client().cloned().unwrap_or_else(|| "".into()),
            protocol: connection.wire.name(),
            connected_ms: connection.since.age_ms(self.now.mono_ms),
            subscriptions: connection.cursors,
            behind,
            lag_bytes,
            lag_arrivals,
            stands: Vec::new(),
        })
    }

    /// Whether a cursor is not at the head, by how many encoded bytes, and by how many of the node's messages.
    fn distance(&self, cursor: &Cursor) -> (bool, u64, u64) {
        match cursor.stand {
            CursorState::Current => (false, 0, 0),
            CursorState::Live(place) => {
                let window = self.streams.get(cursor.stream).and_then(|stream| stream.window.as_ref());
                let bytes = window.map_or(0, |window| window.head().saturating_sub(place));
                (bytes > 0, bytes, 0)
            }
            CursorState::Behind(arrival) | CursorState::Reading(arrival) => {
                (true, 0, self.arrived.saturating_sub(arrival))
            }
            CursorState::Joining => (true, 0, 0),
        }
    }

    fn stands(&self, socket: u32) -> Vec<SubscriptionRow> {
        let mut stands = Vec::new();
        let mut id = self.connections.get(socket).map_or(crate::cursor::NONE, |found| found.first_cursor);
        while let Some(cursor) = self.cursors.get(id).filter(|_| stands.len() < STANDS_MAX) {
            id = cursor.next;
            let Some(stream) = self.streams.get(cursor.stream) else { continue };
            let (is_behind, lag_bytes, lag_arrivals) = self.distance(cursor);
            let lag_messages = match &stream.source {
                _ if !is_behind => Some(0),
                Source::Subject(_) if cursor.sequence > 0 && !matches!(cursor.stand, CursorState::Reading(_)) => {
                    let node = lock(&self.node);
                    let head = node.find(&stream.name).map(|log| node.head(log).number);
                    head.map(|head| head.saturating_sub(cursor.sequence))
                }
                _ => None,
            };
            let stand = match cursor.stand {
                CursorState::Current | CursorState::Live(_) => "live",
                CursorState::Behind(_) => "behind",
                CursorState::Reading(_) => "reading",
                CursorState::Joining => "joining",
            };
            let conflate_ms = stream.conflate_ms;
            let selector = Arc::clone(&stream.name);
            stands.push(SubscriptionRow { selector, stand, lag_bytes, lag_arrivals, lag_messages, conflate_ms });
        }
        stands
    }
}

fn is_found(row: &ConnectionRow, search: &str, text: &mut String) -> bool {
    if row.holder.identity.contains(search) || row.client.contains(search) || row.protocol == search {
        return true;
    }
    text.clear();
    // Writing to a String cannot fail.
    let _ = write!(text, "{} {:x}", row.address, row.connection.0);
    text.contains(search)
}
