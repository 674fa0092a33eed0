//! Tokens that were refused: counted by the address that showed them and by what was shown, so that guessing is slow and a client that
//! shows one wrong token again and again locks out nobody but itself. A client that has connected and then shows a wrong one counts against
//! its holder and that token at its address, never against its neighbours; nor is it hindered by what they try.
use std::hash::{Hash, Hasher};
use std::net::IpAddr;

use siphasher::sip::SipHasher13;

use super::Excess;
use crate::account::{Key, Rate, Scope, What};
use crate::codes::Code;
use crate::shard::Shard;

/// Sets this hash apart from others with the same seed.
const TRIED: u64 = 0x7472_6965;
const TRIED_BY: u64 = 0x7472_6279;

impl Shard {
    /// Whether a connection may show this token, which no holder of its own vouches for yet. Notes what is shown.
    pub(in crate::shard) fn may_show_token(&mut self, socket: u32, token: &str) -> Result<(), Excess> {
        let rate = self.bounds.address.failures;
        let tried = self.fingerprint(token);
        let Some(connection) = self.connections.get_mut(socket).filter(|_| !rate.is_off()) else { return Ok(()) };
        connection.details().tried = Some((tried, None));
        if self.accounts.is_empty() {
            return Ok(());
        }
        let address = connection.peer.address().ip();
        let wait_ms = match self.accounts.find(&Key::of_tried(address, tried)) {
            // It was refused already, and has a count of its own.
            Some(known) => known.failures.wait_ms(rate, self.now_ns(), 1),
            None => self.wait_of(address, rate),
        };
        match wait_ms {
            Some(wait_ms) => {
                let excess = Excess { scope: Scope::Address, what: What::Failures, wait_ms };
                self.note_excess(excess);
                Err(excess)
            }
            None => Ok(()),
        }
    }

    /// Whether a connection may show another token than the one that it came with. Notes what is shown, and who shows it.
    pub(in crate::shard) fn may_renew(&mut self, socket: u32, token: &str) -> Result<(), Excess> {
        let rate = self.bounds.address.failures;
        let (tried, tried_by) = (self.fingerprint(token), self.fingerprint_of_holder(socket));
        let Some(connection) = self.connections.get_mut(socket).filter(|_| !rate.is_off()) else { return Ok(()) };
        connection.details().tried = Some((tried, Some(tried_by)));
        let address = connection.peer.address().ip();
        let wait_of =
            |tried| self.accounts.find(&Key::of_tried(address, tried))?.failures.wait_ms(rate, self.now_ns(), 1);
        match [tried, tried_by].into_iter().filter_map(wait_of).max() {
            Some(wait_ms) => {
                let excess = Excess { scope: Scope::Address, what: What::Failures, wait_ms };
                self.note_excess(excess);
                Err(excess)
            }
            None => Ok(()),
        }
    }

    fn wait_of(&self, address: IpAddr, rate: Rate) -> Option<u32> {
        self.accounts.find(&Key::of_address(address))?.failures.wait_ms(rate, self.now_ns(), 1)
    }

    /// A token was refused: it counts against its address once, and then against itself; that of a renewal against itself and its holder.
    pub(in crate::shard) fn note_failure(&mut self, socket: u32, code: Code) {
        let rate = self.bounds.address.failures;
        let is_guess = matches!(code, Code::TokenInvalid | Code::ConnectRefused);
        let Some(connection) = self.connections.get(socket).filter(|_| is_guess && !rate.is_off()) else { return };
        let address = connection.peer.address().ip();
        let tried = connection.details.as_ref().and_then(|details| details.tried);
        if self.doors.proxies.contains(address) {
            return;
        }
        let (now_ns, entries_max) = (self.now_ns(), self.bounds.rate_limit_entries_max);
        let mut keys = vec![Key::of_address(address)];
        if let Some((tried, tried_by)) = tried {
            let key = Key::of_tried(address, tried);
            if tried_by.is_some() || self.accounts.find(&key).is_some() {
                keys.clear();
            }
            keys.push(key);
            keys.extend(tried_by.map(|by| Key::of_tried(address, by)));
        }
        for key in keys {
            self.accounts.open(key, entries_max, now_ns).failures.take(rate, now_ns, 1);
        }
    }

    /// Tells those apart who show tokens; one that has no name is its connection.
    fn fingerprint_of_holder(&self, socket: u32) -> u64 {
        let mut hasher = SipHasher13::new_with_keys(self.settings.seed, TRIED_BY);
        match self.connections.get(socket).and_then(|connection| connection.access.as_ref()) {
            Some(access) if !access.is_anonymous => access.holder.hash(&mut hasher),
            _ => self.connection_id(socket).0.hash(&mut hasher),
        }
        hasher.finish()
    }

    /// Tells tokens apart and gives none away.
    fn fingerprint(&self, token: &str) -> u64 {
        let mut hasher = SipHasher13::new_with_keys(self.settings.seed, TRIED);
        hasher.write(token.as_bytes());
        hasher.finish()
    }
}
