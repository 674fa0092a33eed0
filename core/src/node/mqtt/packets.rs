//! What MQTT clients had sent at QoS 2 when the node was killed. The message and the identifier that its client gave it are one row, so that
//! they are on the disk together; what a session's note says of identifiers holds for the rows before the note.
use std::collections::HashMap;
use std::sync::Arc;

use crate::journal::KeptMessage;

/// A message of QoS 2 from a client that has not released it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    pub packet_id: u16,
    /// Of one whose subject promises the disk; 0 of any other. `u64::MAX`: it has not been accepted yet.
    pub arrival: u64,
    /// Another connection had received it: a repeat of it says that it is a repeat.
    pub is_returned: bool,
    /// Its row was on the disk, and it was answered: what is lost later does not concern it.
    pub is_kept: bool,
}

/// What a session's note says of it.
impl std::hash::Hash for Received {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (self.packet_id, self.arrival, self.is_returned).hash(state);
    }
}

impl Received {
    pub const UNDER_WAY: u64 = u64::MAX;

    /// Whether its release is on the disk before the client hears of it.
    #[must_use]
    pub const fn is_on_disk(&self) -> bool {
        self.arrival > 0 && self.arrival != Self::UNDER_WAY
    }
}

/// By client: arrivals and identifiers, in order of arrival.
#[derive(Debug, Default)]
pub(in crate::node) struct Packets(HashMap<Arc<str>, Vec<(u64, u16)>>);

impl Packets {
    /// Notes a row that comes back. A client has no more than 65,535 identifiers: of each the last counts.
    pub(in crate::node) fn note(&mut self, kept: &KeptMessage) {
        let Some((client, packet_id)) = kept.numbered.as_ref().filter(|_| kept.is_mqtt) else { return };
        let Ok(packet_id) = u16::try_from(*packet_id) else { return };
        let rows = self.0.entry(kept.holder.client_key(client)).or_default();
        rows.push((kept.arrival, packet_id));
        if rows.len() > 2 * usize::from(u16::MAX) {
            let mut last = HashMap::new();
            for row in rows.iter() {
                last.insert(row.1, *row);
            }
            *rows = last.into_values().collect();
            rows.sort_unstable();
        }
    }

    /// Adds what a client sent after its session was noted.
    pub(super) fn settle(&mut self, client: &str, noted: u64, received: &mut Vec<Received>) {
        let Some(rows) = self.0.remove(client) else { return };
        for (arrival, packet_id) in rows.into_iter().filter(|(arrival, _)| *arrival > noted) {
            match received.binary_search_by_key(&packet_id, |one| one.packet_id) {
                Ok(place) => received.get_mut(place).into_iter().for_each(|one| one.arrival = arrival),
                Err(place) => {
                    received.insert(place, Received { packet_id, arrival, is_returned: false, is_kept: true });
                }
            }
        }
    }
}
