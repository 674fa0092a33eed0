//! What a core shard asks of its sockets, handed to the driver.

use crate::clock::Clock;
use crate::driver::{self, Driver, Listener};
use crate::links::Links;
use crate::node_shared::NodeShared;
use godwit_core::shard::{Sending, SocketOutput};
use std::sync::Arc;

pub(crate) struct Sockets {
    pub(crate) driver: Box<dyn Driver>,
    pub(crate) listeners: Vec<Listener>,
    pub(crate) node_shared: Arc<NodeShared>,
    pub(crate) links: Links,
    pub(crate) clock: Clock,
}

impl SocketOutput for Sockets {
    fn send(&mut self, socket: u32, bytes: &[u8], token: u32) -> Sending {
        if self.links.has(socket) {
            return outcome(self.links.send(self.driver.as_mut(), socket, bytes, token));
        }
        // SAFETY: `SocketOutput` asks of the core that the bytes stay until the send is answered, which the flush after each of its
        // steps does; when the shard gives up, the driver is dropped without another system call that reads them.
        outcome(unsafe { self.driver.send(socket, bytes, u64::from(token)) })
    }

    fn want_write(&mut self, socket: u32) {
        if self.links.want_write(socket) {
            self.driver.want_write(socket);
        }
    }

    fn pause_read(&mut self, socket: u32) {
        self.driver.pause_read(socket);
    }

    fn resume_read(&mut self, socket: u32) {
        self.driver.resume_read(socket);
    }

    fn close(&mut self, socket: u32) {
        self.links.close(self.driver.as_mut(), socket);
        self.driver.close(socket);
    }

    fn finish(&mut self, socket: u32) {
        self.driver.finish(socket);
    }

    fn stop_accepting(&mut self) {
        for listener in self.listeners.drain(..) {
            self.driver.stop_listening(listener);
        }
    }

    fn journal(&mut self) {
        self.node_shared.journal();
    }

    fn clock_us(&mut self) -> u32 {
        self.clock.us()
    }

    fn wake(&mut self, shards: u64) {
        self.node_shared.wake(shards);
    }
}

/// The driver's answer in the core's words.
pub(crate) fn outcome(sending: driver::Sending) -> Sending {
    match sending {
        driver::Sending::Done(sent) => Sending::Done(sent),
        driver::Sending::Pending => Sending::Pending,
        driver::Sending::Blocked => Sending::Blocked,
        driver::Sending::Gone => Sending::Gone,
    }
}
