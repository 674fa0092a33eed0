//! A shard of values for the session targets: sockets that take as much as the input lets them, and a clock that it moves.
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use godwit_core::limits::Limits;
use godwit_core::node::Node;
use godwit_core::position::Now;
use godwit_core::settings::{RuleSettings, Settings};
use godwit_core::shard::{Sending, Shard, SocketOutput};

/// Turns a shard may want at once before it counts as hanging.
const TURNS_MAX: usize = 10_000;
/// What a socket that is not held back takes.
const WIDE: usize = 1 << 30;

/// A node with little room, on which everybody may do everything.
pub(crate) fn little_room() -> Settings {
    let limits = Limits {
        log_messages_max: 4,
        stream_window_bytes_max: 4096,
        subscriptions_per_connection_max: 4,
        reply_buffer_bytes_max: 4096,
        message_bytes_max: 1024,
        ..Limits::default()
    };
    let rules = vec![RuleSettings { pattern: "/**".into(), actions: "both".into(), verdict: "allow".into() }];
    Settings { shards: 1, run: 0xa1, epoch: 7, anonymous: Some(rules), limits, ..Settings::default() }
}

#[derive(Default)]
pub(crate) struct Net {
    /// What each socket still takes; none: it is closed.
    rooms: Vec<Option<usize>>,
    wants_write: Vec<bool>,
    taken: Vec<Vec<u8>>,
}

impl SocketOutput for Net {
    fn send(&mut self, socket: u32, bytes: &[u8], _token: u32) -> Sending {
        let socket = socket as usize;
        match self.rooms.get_mut(socket) {
            Some(Some(0)) => Sending::Blocked,
            Some(Some(room)) => {
                let count = bytes.len().min(*room);
                *room -= count;
                self.taken[socket].extend_from_slice(&bytes[..count]);
                Sending::Done(count)
            }
            _ => Sending::Gone,
        }
    }

    fn want_write(&mut self, socket: u32) {
        self.wants_write[socket as usize] = true;
    }

    fn pause_read(&mut self, _socket: u32) {}

    fn resume_read(&mut self, _socket: u32) {}

    fn close(&mut self, socket: u32) {
        self.rooms[socket as usize] = None;
    }

    fn finish(&mut self, _socket: u32) {}

    fn stop_accepting(&mut self) {}

    fn wake(&mut self, _shards: u64) {}
}

pub(crate) struct Bench {
    shard: Shard,
    net: Net,
    now: Now,
}

impl Bench {
    pub(crate) fn new(settings: Settings) -> Self {
        let settings = Arc::new(settings);
        let node = Arc::new(Mutex::new(Node::new(&settings)));
        let now = Now { mono_ms: 1_000_000, wall_ms: 1_795_250_000_000 };
        Self { shard: Shard::new(0, settings, node), net: Net::default(), now }
    }

    pub(crate) fn accept(&mut self) -> u32 {
        let socket = self.net.rooms.len() as u32;
        self.net.rooms.push(Some(WIDE));
        self.net.wants_write.push(false);
        self.net.taken.push(Vec::new());
        self.shard.begin(self.now);
        self.shard.accept(socket, SocketAddr::from(([127, 0, 0, 1], 1)), 0, &mut self.net);
        socket
    }

    pub(crate) fn is_open(&self, socket: u32) -> bool {
        self.net.rooms[socket as usize].is_some()
    }

    pub(crate) fn hear(&mut self, socket: u32, bytes: &[u8]) {
        if self.is_open(socket) {
            self.shard.begin(self.now);
            self.shard.receive(socket, &mut bytes.to_vec(), &mut self.net);
        }
    }

    /// What the socket took so far.
    pub(crate) fn take(&mut self, socket: u32) -> Vec<u8> {
        std::mem::take(&mut self.net.taken[socket as usize])
    }

    pub(crate) fn pass(&mut self, ms: u64) {
        self.now.mono_ms += ms;
        self.now.wall_ms += ms;
    }

    /// The peer is gone, if it was there.
    pub(crate) fn cut(&mut self, socket: u32) {
        if self.net.rooms[socket as usize].take().is_some() {
            self.shard.begin(self.now);
            self.shard.gone(socket, &mut self.net);
        }
    }

    /// From now on the socket takes so many bytes (of many: any number); what waited for it may go on.
    pub(crate) fn give_room(&mut self, socket: u32, bytes: usize, many: usize) {
        let place = socket as usize;
        if self.net.rooms[place].is_some() {
            self.net.rooms[place] = Some(if bytes > many { WIDE } else { bytes });
            if bytes > 0 && std::mem::take(&mut self.net.wants_write[place]) {
                self.shard.begin(self.now);
                self.shard.writable(socket);
            }
        }
    }

    /// Turns until the shard wants no more.
    pub(crate) fn turn(&mut self) {
        for _ in 0..TURNS_MAX {
            self.shard.begin(self.now);
            self.shard.turn(&mut self.net);
            self.shard.take_reports(&mut Vec::new());
            assert!(!self.shard.is_pending());
            if self.shard.deadline_ms() > self.now.mono_ms {
                return;
            }
        }
        panic!("the shard never comes to rest");
    }
}
