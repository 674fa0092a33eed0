//! The memory that wills take, from the CONNECT that brings one until it is published or discarded. Owns the count in bytes and the shares of
//! it: at the limit a CONNECT with a will is refused, and no will that was accepted is dropped.
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Will;
use crate::codes::Code;
use crate::holder::Holder;
use crate::node::Node;
use crate::node::names::{Owner, Shares};

#[derive(Debug, Default)]
pub(in crate::node) struct WillTable(Mutex<Taken>);

#[derive(Debug, Default)]
struct Taken {
    bytes: usize,
    shares: Shares,
}

/// The bytes that one will takes; dropping it frees them.
#[derive(Debug)]
pub struct WillPlace {
    table: Arc<WillTable>,
    owner: Owner,
    bytes: usize,
    /// There was no room for it, unless it replaces one of its own client.
    is_extra: bool,
}

impl WillTable {
    pub(in crate::node) fn bytes(&self) -> usize {
        self.lock().bytes
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    fn check(&self, owner: Owner, bytes: usize, max: usize) -> Result<(), Code> {
        if self.bytes.saturating_add(bytes) > max {
            return Err(Code::NodeBusy);
        }
        self.shares.check(owner, self.bytes, max)
    }

    /// The same where it replaces a will, if any, of this owner and so many bytes.
    fn check_replacing(
        &mut self,
        owner: Owner,
        bytes: usize,
        max: usize,
        old: Option<(Owner, usize)>,
    ) -> Result<(), Code> {
        let Some((old_owner, old_bytes)) = old else { return self.check(owner, bytes, max) };
        if owner == old_owner && bytes <= old_bytes {
            return Ok(());
        }
        self.remove(old_owner, old_bytes);
        let checked = self.check(owner, bytes, max);
        self.add(old_owner, old_bytes);
        checked
    }

    fn add(&mut self, owner: Owner, bytes: usize) {
        self.bytes += bytes;
        self.shares.add_many(owner, bytes as u64);
    }

    fn remove(&mut self, owner: Owner, bytes: usize) {
        self.bytes -= bytes;
        self.shares.remove_many(owner, bytes as u64);
    }
}

impl WillPlace {
    /// The will is somebody else's from now on; if their share does not allow it, it stays where it was.
    fn move_to(&mut self, owner: Owner, max: usize, old: Option<(Owner, usize)>) -> Result<(), Code> {
        if owner != self.owner || self.is_extra {
            let mut taken = self.table.lock();
            taken.remove(self.owner, self.bytes);
            let checked = taken.check_replacing(owner, self.bytes, max, old);
            taken.add(if checked.is_ok() { owner } else { self.owner }, self.bytes);
            checked?;
        }
        (self.owner, self.is_extra) = (owner, false);
        Ok(())
    }
}

impl Will {
    /// Its client's rights changed what it takes: a rule at most, which no limit refuses any more.
    pub(super) fn count_again(&mut self) {
        let bytes = self.held_bytes();
        if let Some(place) = &mut self.place {
            let mut taken = place.table.lock();
            taken.remove(place.owner, place.bytes);
            taken.add(place.owner, bytes);
            place.bytes = bytes;
        }
    }
}

impl Drop for WillPlace {
    fn drop(&mut self) {
        self.table.lock().remove(self.owner, self.bytes);
    }
}

impl Node {
    /// Counts a will that a client brings, while it is not known yet who that is: as its address's. Beyond the limit a quarter more, and one
    /// message, is held until that is known: it may replace one of its client.
    pub fn place_will(&self, will: &mut Will, origin: u64) -> Result<(), Code> {
        let owner = self.owner_of(&Holder::nobody(), origin);
        let (bytes, max) = (will.held_bytes(), self.limits.mqtt_wills_bytes_max);
        let checked = {
            let taken = self.wills.lock();
            let extra = max / 4 + self.limits.message_bytes_max;
            let is_within = max > 0 && taken.bytes.saturating_add(bytes) <= max.saturating_add(extra);
            taken.check(owner, bytes, max).map_err(|code| (code, is_within))
        };
        if let Err((code, false)) = checked {
            return Err(code);
        }
        self.place_kept_will(will, owner);
        if let Some(place) = will.place.as_mut() {
            place.is_extra = checked.is_err();
        }
        Ok(())
    }

    /// It is known who brings a will: this client, whose will before it goes.
    pub fn move_will(&self, will: &mut Will, owner: Owner, (id, holder): (&str, &Holder)) -> Result<(), Code> {
        let client = self.clients.by_id.get(id).filter(|client| client.is_of(holder));
        let before = client.and_then(|client| {
            let away = client.will.as_ref().map(|will| &will.1);
            client.connected_will.as_deref().or(away)?.place.as_ref()
        });
        let before = before.map(|place| (place.owner, place.bytes));
        will.place.as_mut().map_or(Ok(()), |place| place.move_to(owner, self.limits.mqtt_wills_bytes_max, before))
    }

    /// A will that an earlier run accepted counts, whatever the limit is now.
    pub(super) fn place_kept_will(&self, will: &mut Will, owner: Owner) {
        let bytes = will.held_bytes();
        self.wills.lock().add(owner, bytes);
        will.place = Some(WillPlace { table: Arc::clone(&self.wills), owner, bytes, is_extra: false });
    }
}
