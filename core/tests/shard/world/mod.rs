//! A node of values: one `Node`, its shards, and sockets that take as many bytes as a test lets them. Time moves when told.
//! Two kinds of sockets stand for the two drivers: answers at once, or at the next flush.
#![allow(clippy::expect_used)] // a test that expects in vain has failed
#![allow(dead_code, reason = "each test file uses its part")]

pub(crate) mod binary;
pub(crate) mod client;
pub(crate) mod events;
pub(crate) mod operator;
pub(crate) mod past;
pub(crate) mod script;
pub(crate) mod seeds;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use godwit_core::node::Node;
use godwit_core::position::Now;
use godwit_core::report::Report;
use godwit_core::settings::{RuleSettings, Settings};
use godwit_core::shard::{Sending, Shard, SocketOutput};
use serde_json::Value;

/// One socket: what it still takes, what it took, what was asked of it.
#[derive(Debug, Default)]
pub(crate) struct Socket {
    pub room: usize,
    pub taken: Vec<u8>,
    pub wants_write: bool,
    pub is_paused: bool,
    pub is_closed: bool,
    /// The peer reset the connection: every send fails.
    pub is_reset: bool,
    /// The sending half has ended.
    pub is_finished: bool,
    inbox: Vec<u8>,
    read: usize,
    numbers: binary::Numbers,
}

impl Socket {
    /// Lets go of the memory of what it took and was heard of.
    pub(crate) fn forget(&mut self) {
        (self.taken, self.inbox, self.read) = (Vec::new(), Vec::new(), 0);
    }
}

#[derive(Debug, Default)]
struct Net {
    sockets: Vec<Socket>,
    is_pending: bool,
    in_flight: Vec<(u32, u32, Vec<u8>)>,
    sends: usize,
    wakes: u64,
    clock_us: u32,
}

impl Net {
    fn take(&mut self, socket: u32, bytes: &[u8]) -> Sending {
        let socket = &mut self.sockets[socket as usize];
        assert!(!socket.is_closed, "a closed socket was sent to");
        if socket.is_reset {
            return Sending::Gone;
        }
        let count = bytes.len().min(socket.room);
        socket.room -= count;
        socket.taken.extend_from_slice(&bytes[..count]);
        if count == 0 { Sending::Blocked } else { Sending::Done(count) }
    }
}

impl SocketOutput for Net {
    fn send(&mut self, socket: u32, bytes: &[u8], token: u32) -> Sending {
        assert!(!bytes.is_empty());
        self.sends += 1;
        if !self.is_pending {
            return self.take(socket, bytes);
        }
        assert!(self.in_flight.iter().all(|(other, _, _)| *other != socket), "two sends of one socket in flight");
        self.in_flight.push((socket, token, bytes.to_vec()));
        Sending::Pending
    }

    fn want_write(&mut self, socket: u32) {
        self.sockets[socket as usize].wants_write = true;
    }

    fn pause_read(&mut self, socket: u32) {
        self.sockets[socket as usize].is_paused = true;
    }

    fn resume_read(&mut self, socket: u32) {
        self.sockets[socket as usize].is_paused = false;
    }

    fn close(&mut self, socket: u32) {
        self.sockets[socket as usize].is_closed = true;
    }

    fn finish(&mut self, socket: u32) {
        self.sockets[socket as usize].is_finished = true;
    }

    fn stop_accepting(&mut self) {}

    fn clock_us(&mut self) -> u32 {
        self.clock_us
    }

    fn wake(&mut self, shards: u64) {
        self.wakes |= shards;
    }
}

pub(crate) struct World {
    pub node: Arc<Mutex<Node>>,
    pub now: Now,
    pub reports: Vec<Report>,
    /// The test says when notes are on the disk.
    pub holds_notes: bool,
    notes: BTreeMap<String, Option<String>>,
    shards: Vec<(Shard, Net)>,
}

/// A socket of a shard.
pub(crate) type Place = (usize, u32);

pub(crate) fn open_settings() -> Settings {
    let rules = vec![RuleSettings { pattern: "/**".into(), actions: "both".into(), verdict: "allow".into() }];
    Settings { node: "test".into(), run: 0xa1, epoch: 7, anonymous: Some(rules), ..Settings::default() }
}

impl World {
    pub(crate) fn new(mut settings: Settings, shards: u8, is_pending: bool) -> Self {
        settings.shards = shards;
        let settings = Arc::new(settings);
        let node = Arc::new(Mutex::new(Node::new(&settings)));
        let shards = (0..shards)
            .map(|index| {
                let net = Net { is_pending, ..Net::default() };
                (Shard::new(index, Arc::clone(&settings), Arc::clone(&node)), net)
            })
            .collect();
        Self {
            node,
            now: Now { mono_ms: 1_000_000, wall_ms: 1_795_250_000_000 },
            shards,
            reports: Vec::new(),
            holds_notes: false,
            notes: BTreeMap::new(),
        }
    }

    pub(crate) fn advance(&mut self, ms: u64) {
        for (state, net) in &mut self.shards {
            net.clock_us = net.clock_us.wrapping_add(u32::try_from(ms * 1_000).expect("a test's time is short"));
            state.set_clock_us(net.clock_us);
        }
        self.now.mono_ms += ms;
        self.now.wall_ms += ms;
    }

    /// Connects and upgrades; the socket takes everything until told otherwise.
    pub(crate) fn connect(&mut self, shard: usize) -> Place {
        self.connect_on(shard, "json")
    }

    /// The same on a wire of choice.
    pub(crate) fn connect_on(&mut self, shard: usize, wire: &str) -> Place {
        let place = self.accept(shard);
        self.upgrade(place, wire);
        place
    }

    /// Makes a WebSocket of an accepted socket.
    pub(crate) fn upgrade(&mut self, place: Place, wire: &str) {
        let head = format!(
            "GET /v1/live HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: godwit.v1.{wire}\r\n\r\n"
        );
        self.bytes(place, head.as_bytes());
        self.turn(place.0);
        let socket = self.socket(place);
        let end = socket.taken.windows(4).position(|w| w == b"\r\n\r\n").expect("an answer") + 4;
        assert!(socket.taken.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&socket.taken));
        socket.inbox.extend_from_slice(&socket.taken.clone()[end..]);
        socket.taken.clear();
    }

    pub(crate) fn accept(&mut self, shard: usize) -> Place {
        self.accept_from(shard, SocketAddr::from(([127, 0, 0, 1], 4000)), 0)
    }

    pub(crate) fn accept_from(&mut self, shard: usize, address: SocketAddr, listener: u8) -> Place {
        let now = self.now;
        let (state, net) = &mut self.shards[shard];
        let socket = net.sockets.len() as u32;
        net.sockets.push(Socket { room: usize::MAX / 2, ..Socket::default() });
        state.begin(now);
        state.accept(socket, address, listener, net);
        (shard, socket)
    }

    /// A trusted proxy tells a socket's real address.
    pub(crate) fn set_peer(&mut self, (shard, socket): Place, address: SocketAddr) {
        self.shards[shard].0.set_peer(socket, address);
    }

    pub(crate) fn socket(&mut self, (shard, socket): Place) -> &mut Socket {
        &mut self.shards[shard].1.sockets[socket as usize]
    }

    pub(crate) fn shard(&self, shard: usize) -> &Shard {
        &self.shards[shard].0
    }

    pub(crate) fn sends(&self, shard: usize) -> usize {
        self.shards[shard].1.sends
    }

    /// Hands bytes to the shard, without a turn.
    pub(crate) fn bytes(&mut self, (shard, socket): Place, bytes: &[u8]) {
        let (state, net) = &mut self.shards[shard];
        state.begin(self.now);
        state.receive(socket, &mut bytes.to_vec(), net);
    }

    /// Sends a binary frame, without a turn.
    pub(crate) fn say_bytes(&mut self, place: Place, payload: &[u8]) {
        let mut frame = masked(payload);
        frame[0] = 0x82;
        self.bytes(place, &frame);
    }

    /// Sends a text frame, without a turn.
    pub(crate) fn say(&mut self, place: Place, text: &str) {
        self.bytes(place, &masked(text.as_bytes()));
    }

    pub(crate) fn gone(&mut self, (shard, socket): Place) {
        let now = self.now;
        let (state, net) = &mut self.shards[shard];
        if !net.sockets[socket as usize].is_closed {
            state.begin(now);
            state.gone(socket, net);
        }
    }

    /// Lets a socket take so many more bytes.
    pub(crate) fn give_room(&mut self, (shard, socket): Place, bytes: usize) {
        let now = self.now;
        let (state, net) = &mut self.shards[shard];
        let there = &mut net.sockets[socket as usize];
        there.room = there.room.saturating_add(bytes);
        if there.wants_write && there.room > 0 && !there.is_closed {
            there.wants_write = false;
            state.begin(now);
            state.writable(socket);
        }
    }

    /// One turn of one shard, and of those it wakes.
    pub(crate) fn turn(&mut self, shard: usize) {
        let wakes = self.turn_alone(shard);
        let wakes = wakes | self.write_notes();
        for other in (0..self.shards.len()).filter(|other| wakes & (1 << other) != 0) {
            self.turn(other);
        }
    }

    /// One turn of one shard; the shards to wake.
    pub(crate) fn turn_alone(&mut self, shard: usize) -> u64 {
        let now = self.now;
        let (state, net) = &mut self.shards[shard];
        state.begin(now);
        state.turn(net);
        while !net.in_flight.is_empty() {
            for (socket, token, bytes) in std::mem::take(&mut net.in_flight) {
                let outcome = net.take(socket, &bytes);
                state.sent(token, outcome, net);
            }
            state.more(net);
        }
        assert!(!state.is_pending());
        state.take_reports(&mut self.reports);
        state.take_wakes() | std::mem::take(&mut net.wakes)
    }

    /// What a shard has to write down since the last call.
    pub(crate) fn take_rows(&mut self, shard: usize) -> Vec<godwit_core::journal::Rows> {
        let mut rows = Vec::new();
        self.shards[shard].0.take_rows(|more| rows.push(more));
        rows
    }

    /// What a shard wants to be read from the journal since the last call.
    pub(crate) fn take_asks(&mut self) -> Vec<godwit_core::journal::Ask> {
        let mut asks = Vec::new();
        self.shards.iter_mut().for_each(|(shard, _)| shard.take_asks(|ask| asks.push(ask)));
        asks
    }

    /// What the server was told since the last call.
    pub(crate) fn reports(&mut self) -> Vec<godwit_core::report::Report> {
        std::mem::take(&mut self.reports)
    }

    /// Turns until no shard wants another at once.
    pub(crate) fn settle(&mut self) {
        for _ in 0..100_000 {
            let wanting: Vec<usize> =
                (0..self.shards.len()).filter(|&s| self.shards[s].0.deadline_ms() <= self.now.mono_ms).collect();
            if wanting.is_empty() {
                return;
            }
            wanting.into_iter().for_each(|shard| self.turn(shard));
        }
        panic!("a shard never comes to rest");
    }

    pub(crate) fn turn_all(&mut self) {
        (0..self.shards.len()).for_each(|shard| self.turn(shard));
        self.settle();
    }

    /// What a client has received since the last call, as JSON; close frames as `{"close":CODE}`.
    pub(crate) fn heard(&mut self, place: Place) -> Vec<Value> {
        let socket = self.socket(place);
        let taken = std::mem::take(&mut socket.taken);
        socket.inbox.extend_from_slice(&taken);
        let mut found = Vec::new();
        while let Some((opcode, payload, length)) = parse_frame(&socket.inbox[socket.read..]) {
            match opcode {
                1 => found.push(serde_json::from_slice(&payload).expect("JSON")),
                2 => found.extend(socket.numbers.read(&payload)),
                8 => found.push(serde_json::json!({"close": u16::from_be_bytes([payload[0], payload[1]])})),
                9 | 10 => {}
                other => panic!("opcode {other}"),
            }
            socket.read += length;
        }
        socket.inbox.drain(..socket.read);
        socket.read = 0;
        found
    }

    /// One command, a turn, and everything heard.
    pub(crate) fn ask(&mut self, place: Place, text: &str) -> Vec<Value> {
        self.say(place, text);
        self.turn(place.0);
        self.settle();
        self.heard(place)
    }
}

pub(crate) fn masked(payload: &[u8]) -> Vec<u8> {
    let mut out = vec![0x81];
    match payload.len() {
        short @ 0..=125 => out.push(0x80 | short as u8),
        middle @ 126..=65_535 => {
            out.push(0xfe);
            out.extend_from_slice(&(middle as u16).to_be_bytes());
        }
        long => {
            out.push(0xff);
            out.extend_from_slice(&(long as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(payload);
    out
}

fn parse_frame(bytes: &[u8]) -> Option<(u8, Vec<u8>, usize)> {
    let (first, second) = (*bytes.first()?, *bytes.get(1)?);
    assert_eq!(first & 0xf0, 0x80, "a frame begins where the last ended");
    let (length, start) = match second {
        126 => (usize::from(u16::from_be_bytes([*bytes.get(2)?, *bytes.get(3)?])), 4),
        127 => (u64::from_be_bytes(bytes.get(2..10)?.try_into().ok()?) as usize, 10),
        short => (usize::from(short), 2),
    };
    Some((first & 15, bytes.get(start..start + length)?.to_vec(), start + length))
}

impl World {
    pub(crate) fn shard_count(&self) -> usize {
        self.shards.len()
    }

    pub(crate) fn turn_if(&mut self, shard: usize, is_due: bool) {
        if is_due {
            self.turn(shard);
        }
    }
}
