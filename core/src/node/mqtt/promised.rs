//! Places of the table of sessions. A session has its place from the CONNECT that asks for it until it ends, so that nobody else can take
//! it meanwhile: at the limit whoever asks is refused, and no promised session is dropped. Owns the count and the shares.
use std::sync::Arc;

use super::{Client, Clients};
use crate::codes::Code;
use crate::node::names::{Owner, Shares};

#[derive(Debug, Default)]
pub(super) struct Promises {
    count: usize,
    shares: Shares,
}

impl Promises {
    fn take(&mut self, owner: Owner, max: usize) -> Result<(), Code> {
        if self.count >= max {
            return Err(Code::NodeBusy);
        }
        self.shares.check(owner, self.count, max)?;
        self.add(owner);
        Ok(())
    }

    fn add(&mut self, owner: Owner) {
        self.count += 1;
        self.shares.add(owner);
    }

    fn give_back(&mut self, owner: Option<Owner>) {
        if let Some(owner) = owner {
            self.count -= 1;
            self.shares.remove(owner);
        }
    }
}

impl Clients {
    /// Sessions that have a place: of clients that are connected, and of those that are away.
    pub(in crate::node) fn promised(&self) -> usize {
        self.promises.count
    }

    /// A client that is there asks for a session as `owner`, or for none. Where no session is kept at all (`max` 0) nobody is refused.
    pub(super) fn promise(&mut self, id: &str, owner: Option<Owner>, is_own: bool, max: usize) -> Result<(), Code> {
        let Some(client) = self.by_id.get_mut(id) else { return Ok(()) };
        match owner.filter(|_| max > 0) {
            // It is promised already, wherever its client comes from now.
            Some(_) if is_own && client.place().is_some() => {}
            Some(owner) => {
                self.promises.take(owner, max)?;
                self.promises.give_back(client.set_place(Some(owner)));
            }
            None => self.promises.give_back(client.set_place(None)),
        }
        Ok(())
    }

    /// A session that an earlier run promised is restored, whatever the limit is now.
    pub(super) fn insert_promised(&mut self, id: &Arc<str>, mut client: Client, owner: Owner) {
        self.promises.add(owner);
        client.set_place(Some(owner));
        self.by_id.insert(Arc::clone(id), Box::new(client));
    }

    /// Nothing of a client is left.
    pub(super) fn remove(&mut self, id: &str) {
        if let Some(client) = self.by_id.remove(id) {
            self.promises.give_back(client.place());
            self.freed.remove(&client.serial);
        }
    }
}
