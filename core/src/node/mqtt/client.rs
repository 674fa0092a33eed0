//! One MQTT client as the node knows it. Owns whose it is.
use std::sync::Arc;

use super::{Kept, Will, holds};
use crate::holder::Holder;
use crate::node::names::Owner;
use crate::report::ConnectionId;

#[derive(Debug)]
pub(super) struct Client {
    /// Names the client in messages, so that it can be left out of what it published itself.
    pub(super) serial: u32,
    pub(super) holder: Arc<Holder>,
    pub(super) owner: Option<ConnectionId>,
    pub(super) kept: Option<Box<Kept>>,
    pub(super) expires_ms: u64,
    /// Whose place of the table its session has, from the CONNECT that asked for it on.
    pub(super) place: Option<Owner>,
    pub(super) will: Option<Box<(u64, Will)>>,
    /// What it holds while it is connected, or until it has its place again.
    pub(super) hold: Option<Box<holds::Hold>>,
    /// The journal's notes hold its session, and its will.
    pub(super) has_note: bool,
    pub(super) has_will_note: bool,
}

impl Client {
    /// Whether somebody owns it. Of one that an older node wrote down it is not known who vouched for its owner.
    pub(super) fn is_of(&self, holder: &Holder) -> bool {
        let is_known = !self.holder.authority.is_empty();
        let Holder { tenant, authority, identity } = holder;
        self.holder.identity == *identity
            && self.holder.tenant == *tenant
            && (self.holder.authority == *authority || !is_known)
    }

    /// Neither connected, nor is anything kept of it.
    pub(super) fn is_nobodys(&self) -> bool {
        self.owner.is_none() && self.kept.is_none() && self.will.is_none()
    }

    /// When what is kept of it expires, and its will is due, with its serial.
    pub(super) fn due(&self) -> (u64, Option<u64>, u32) {
        (self.expires_ms, self.will.as_ref().map(|will| will.0), self.serial)
    }

    pub(super) fn new(serial: u32, holder: Arc<Holder>) -> Self {
        Self {
            serial,
            holder,
            owner: None,
            kept: None,
            expires_ms: 0,
            place: None,
            will: None,
            hold: None,
            has_note: false,
            has_will_note: false,
        }
    }
}
