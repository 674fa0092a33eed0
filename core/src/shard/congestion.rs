//! Publishers that outrun the slowest shard, or the disk that they wait for, are not read until it has caught up: the feed stays
//! bounded, and the kernel tells the publisher by no longer taking its bytes.
use super::{Shard, SocketOutput, lock};
use std::sync::Arc;

impl Shard {
    /// Notes whose publishes found the node congested; they are paused before the turn ends.
    pub(super) fn note_congestion(&mut self) {
        let sockets: Vec<u32> = self.batch.connections().collect();
        for socket in sockets {
            if let Some(connection) = self.connections.get_mut(socket)
                && !connection.is_congesting
            {
                connection.is_congesting = true;
                self.congesting.push(socket);
            }
        }
    }

    /// Pauses those publishers, or reads them again once no shard is half a feed behind.
    pub(super) fn relieve<O: SocketOutput>(&mut self, out: &mut O) {
        if self.congesting.is_empty() {
            return;
        }
        let node = Arc::clone(&self.node);
        let is_congested = lock(&node).is_congested();
        let sockets = std::mem::take(&mut self.congesting);
        for &socket in &sockets {
            let is_held = is_congested || self.awaits_too_many(socket);
            let Some(connection) = self.connections.get_mut(socket) else { continue };
            if is_held {
                if !connection.is_paused {
                    connection.is_paused = true;
                    out.pause_read(socket);
                }
                self.congesting.push(socket);
            } else {
                connection.is_congesting = false;
                self.resume(socket, out);
            }
        }
    }

    /// Reads a connection again if nothing keeps it from being read.
    pub(super) fn resume<O: SocketOutput>(&mut self, socket: u32, out: &mut O) {
        if let Some(connection) = self.connections.get_mut(socket)
            && connection.is_paused
            && !connection.is_asking
            && !connection.is_choked
            && !connection.is_congesting
        {
            connection.is_paused = false;
            out.resume_read(socket);
        }
    }
}
