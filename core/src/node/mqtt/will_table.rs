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
    fn move_to(&mut self, owner: Owner, max: usize) -> Result<(), Code> {
        if owner != self.owner {
            let mut taken = self.table.lock();
            taken.remove(self.owner, self.bytes);
            let checked = taken.check(owner, self.bytes, max);
            taken.add(if checked.is_ok() { owner } else { self.owner }, self.bytes);
            checked?;
        }
        self.owner = owner;
        Ok(())
    }
}

impl Drop for WillPlace {
    fn drop(&mut self) {
        self.table.lock().remove(self.owner, self.bytes);
    }
}

impl Node {
    /// Counts a will that a client brings, while it is not known yet who that is: as its address's.
    pub fn place_will(&self, will: &mut Will, origin: u64) -> Result<(), Code> {
        let owner = self.owner_of(&Holder::nobody(), origin);
        self.wills.lock().check(owner, will.held_bytes(), self.limits.mqtt_wills_bytes_max)?;
        self.place_kept_will(will, owner);
        Ok(())
    }

    /// It is known who brings a will.
    pub fn move_will(&self, will: &mut Will, owner: Owner) -> Result<(), Code> {
        will.place.as_mut().map_or(Ok(()), |place| place.move_to(owner, self.limits.mqtt_wills_bytes_max))
    }

    /// A will that an earlier run accepted counts, whatever the limit is now.
    pub(super) fn place_kept_will(&self, will: &mut Will, owner: Owner) {
        let bytes = will.held_bytes();
        self.wills.lock().add(owner, bytes);
        will.place = Some(WillPlace { table: Arc::clone(&self.wills), owner, bytes });
    }
}
