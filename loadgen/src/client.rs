//! One connection of a load and how it hears: bytes in, counts out. Owns the order check of its subject; sockets and
//! timing are the worker's. Holds a buffer only while half a unit or an unsent request waits.
use crate::content;
use crate::dialect::{Dialect, Heard, Place, Role};
use crate::histogram::Histogram;
use crate::tally::Sums;
use crate::tls::Tls;

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Away,
    Connecting,
    Opening,
    Joining,
    Live,
}

/// Bytes that complete a half unit are tried in portions of this size, so that a whole buffer is not copied for it.
const PORTION: usize = 1024;

pub(crate) struct Client {
    pub(crate) role: Role,
    pub(crate) stage: Stage,
    pub(crate) socket: u32,
    pub(crate) is_blocked: bool,
    /// When its connection was begun, for the time to join.
    pub(crate) began_ns: u64,
    pub(crate) place: Option<Place>,
    /// The first part of a unit whose rest has not come.
    partial: Vec<u8>,
    /// Bytes to send.
    pub(crate) pending: Vec<u8>,
    /// What stands between them and the socket, where the server speaks TLS.
    pub(crate) tls: Option<Box<Tls>>,
}

/// What hearing needs beside the client itself.
pub(crate) struct Ear<'a> {
    pub(crate) dialect: &'a dyn Dialect,
    pub(crate) now_ns: u64,
    pub(crate) is_acked: bool,
    pub(crate) keeps_places: bool,
    /// The number the client expects next in its subject.
    pub(crate) number: &'a mut u32,
    pub(crate) counts: &'a mut Sums,
    pub(crate) latency: &'a mut Histogram,
}

impl Client {
    pub(crate) fn new(role: Role) -> Self {
        Self {
            role,
            stage: Stage::Away,
            socket: u32::MAX,
            is_blocked: false,
            began_ns: 0,
            place: None,
            partial: Vec::new(),
            pending: Vec::new(),
            tls: None,
        }
    }

    /// Forgets the socket; where the client stands in its subject stays.
    pub(crate) fn leave(&mut self) {
        (self.stage, self.socket, self.is_blocked) = (Stage::Away, u32::MAX, false);
        self.partial = Vec::new();
        self.pending = Vec::new();
        self.tls = None;
    }

    /// Takes in received bytes.
    ///
    /// # Errors
    /// What the server did wrong.
    pub(crate) fn hear(&mut self, bytes: &[u8], ear: &mut Ear<'_>) -> Result<(), String> {
        let mut rest = bytes;
        if !self.partial.is_empty() {
            let mut buffer = std::mem::take(&mut self.partial);
            let old = buffer.len();
            loop {
                let taken = buffer.len() - old;
                if taken == bytes.len() {
                    self.partial = buffer;
                    return Ok(());
                }
                buffer.extend_from_slice(&bytes[taken..(taken + PORTION).min(bytes.len())]);
                let used = self.hear_units(&buffer, old, ear)?;
                if used >= old {
                    rest = &bytes[used - old..];
                    break;
                }
                buffer.drain(..used);
                if used > 0 {
                    return Err("a unit ended inside bytes that held no whole one".to_owned());
                }
            }
            buffer.clear();
            self.partial = buffer;
        }
        let used = self.hear_units(rest, usize::MAX, ear)?;
        self.partial.extend_from_slice(&rest[used..]);
        Ok(())
    }

    /// Takes in whole units from the start of `bytes` until one ends at or behind `until`; returns where the last ended.
    fn hear_units(&mut self, bytes: &[u8], until: usize, ear: &mut Ear<'_>) -> Result<usize, String> {
        let mut used = 0;
        while used < until {
            let is_ready = self.stage >= Stage::Joining;
            let Some((length, heard)) = ear.dialect.next(is_ready, &bytes[used..]) else { break };
            used += length;
            self.take(heard, ear)?;
        }
        Ok(used)
    }

    fn take(&mut self, heard: Heard<'_>, ear: &mut Ear<'_>) -> Result<(), String> {
        match heard {
            Heard::Message { content, head } => return self.take_message(content, head, ear),
            Heard::Acked(count) => ear.counts.acked += u64::from(count),
            Heard::Nothing => {}
            Heard::Ready if self.stage == Stage::Opening => self.become_ready(ear),
            Heard::Joined(place) if self.stage == Stage::Joining => {
                self.place = self.place.or(place);
                self.become_live(ear);
            }
            Heard::Gap(missed) => {
                ear.counts.gaps += 1;
                ear.counts.missed += missed.unwrap_or(0);
            }
            Heard::Echo(echo) => self.pending.extend_from_slice(&echo),
            Heard::Fault(fault) => return Err(format!("the server said: {fault}")),
            Heard::Ready | Heard::Joined(_) => return Err(format!("the server said {heard:?} when {:?}", self.stage)),
        }
        Ok(())
    }

    fn become_ready(&mut self, ear: &mut Ear<'_>) {
        self.stage = Stage::Joining;
        match self.role {
            Role::Subscriber(subject) => {
                ear.dialect.join(subject, self.place, &mut self.pending);
                if ear.dialect.joins_by_greeting() {
                    self.become_live(ear);
                }
            }
            Role::Publisher(subject) => {
                ear.dialect.begin(subject, ear.is_acked, &mut self.pending);
                self.become_live(ear);
            }
        }
    }

    fn become_live(&mut self, ear: &mut Ear<'_>) {
        self.stage = Stage::Live;
        ear.counts.live += 1;
        ear.latency.record(ear.now_ns.saturating_sub(self.began_ns));
    }

    fn take_message(&mut self, content: &[u8], head: &[u8], ear: &mut Ear<'_>) -> Result<(), String> {
        let Some((stamp_ns, number)) = content::read(content) else {
            return Err("content came that no publisher of this load sent".to_owned());
        };
        ear.dialect.acknowledge(head, &mut self.pending);
        if ear.keeps_places {
            self.place = match (ear.dialect.place(head), self.place) {
                (Some((0, sequence)), Some((epoch, _))) => Some((epoch, sequence)),
                (Some(place), _) => Some(place),
                (None, place) => place,
            };
        }
        if number != *ear.number && ear.dialect.is_snapshot(head) {
            ear.counts.snapshots += 1;
            *ear.number = number + 1;
            return Ok(());
        }
        ear.latency.record(ear.now_ns.saturating_sub(stamp_ns));
        if number < *ear.number {
            ear.counts.repeated += 1;
            return Ok(());
        }
        ear.counts.delivered += 1;
        ear.counts.lost += u64::from(number - *ear.number);
        *ear.number = number + 1;
        Ok(())
    }
}

impl PartialOrd for Stage {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        (*self as u8).partial_cmp(&(*other as u8))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::{self, Outgoing};

    fn frames(dialect: &dyn Dialect, numbers: &[u32]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for &number in numbers {
            let mut publish = Vec::new();
            dialect.publish(Outgoing { subject: 0, number, stamp_ns: 7, wants_ack: false }, &mut publish);
            // What the baseline passes on: the same content in a frame without mask and group.
            let content = &publish[12..];
            bytes.extend_from_slice(&[0x82, 126, 0, content.len() as u8]);
            bytes.extend_from_slice(content);
        }
        bytes
    }

    fn hear_in_pieces(bytes: &[u8], piece: usize) -> (Sums, u32, usize) {
        let dialect = dialect::of_name("baseline", "h", 100).unwrap();
        let mut client = Client::new(Role::Subscriber(0));
        client.stage = Stage::Live;
        let (mut counts, mut latency, mut number) = (Sums::default(), Histogram::default(), 0);
        for part in bytes.chunks(piece) {
            let mut ear = Ear {
                dialect: &*dialect,
                now_ns: 10,
                is_acked: false,
                keeps_places: false,
                number: &mut number,
                counts: &mut counts,
                latency: &mut latency,
            };
            client.hear(part, &mut ear).unwrap();
        }
        (counts, number, client.partial.len())
    }

    #[test]
    fn however_the_bytes_are_cut_every_message_is_counted_once() {
        let dialect = dialect::of_name("baseline", "h", 100).unwrap();
        let bytes = frames(&*dialect, &(0..40).collect::<Vec<_>>());
        for piece in [1, 2, 3, 7, 50, 103, 104, 105, 1_000, 1_025, 5_000] {
            let (counts, number, left) = hear_in_pieces(&bytes, piece);
            assert_eq!((counts.delivered, counts.lost, counts.repeated, number, left), (40, 0, 0, 40, 0), "{piece}");
        }
    }

    #[test]
    fn a_hole_is_lost_and_a_repeat_is_no_delivery() {
        let dialect = dialect::of_name("baseline", "h", 100).unwrap();
        let (counts, number, _) = hear_in_pieces(&frames(&*dialect, &[0, 1, 4, 4, 5]), 64);
        assert_eq!((counts.delivered, counts.lost, counts.repeated, number), (4, 2, 1, 6));
    }
}
