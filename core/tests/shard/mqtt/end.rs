//! What both ends of a client have in common: its packets, its connection, and how packets come out of that.

use crate::world::client::Random;
use crate::world::{Place, World};
use godwit_core::settings::Listener;

pub(crate) fn packet(first: u8, body: &[u8]) -> Vec<u8> {
    assert!(body.len() < 128);
    [&[first, body.len() as u8], body].concat()
}

pub(crate) fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u16).to_be_bytes(), text.as_bytes()].concat()
}

/// What a client asks for, with packet identifier 1, as 3.1.1 writes it.
pub(crate) fn subscribe(filters: &[(&str, u8)]) -> Vec<u8> {
    let filters = filters.iter().flat_map(|(filter, qos)| [text(filter), vec![*qos]].concat());
    packet(0x82, &[0, 1].into_iter().chain(filters).collect::<Vec<u8>>())
}

/// One for the wires of ours, one for MQTT.
pub(crate) fn listeners() -> Vec<Listener> {
    ["client", "mqtt"].map(|name| Listener { name: name.into(), role: "both".into(), ..Listener::default() }).into()
}

/// A connection to the second of them, and what it says first.
pub(crate) fn come(world: &mut World, shard: usize, says: &[u8]) -> Place {
    let place = world.accept_from(shard, ([127, 0, 0, 1], 4000).into(), 1);
    world.bytes(place, says);
    place
}

pub(crate) fn connect(name: &str, is_five: bool) -> Vec<u8> {
    let level = if is_five { 5 } else { 4 };
    let keep: &[u8] = if is_five { &[5, 0x11, 0, 0, 0xff, 0xff] } else { &[] };
    packet(0x10, &[text("MQTT").as_slice(), &[level, 0, 0, 0], keep, &text(name)].concat())
}

pub(super) struct End {
    pub(super) name: String,
    pub(super) is_five: bool,
    pub(super) place: Option<Place>,
    input: Vec<u8>,
    pub(super) is_connected: bool,
    has_connected: bool,
    /// The node has promised it something that outlives the node.
    pub(super) is_promised: bool,
    pub(super) has_crashed: bool,
}

impl End {
    pub(super) fn new(name: &str, is_five: bool) -> Self {
        let name = name.to_owned();
        Self {
            name,
            is_five,
            place: None,
            input: Vec::new(),
            is_connected: false,
            has_connected: false,
            is_promised: false,
            has_crashed: false,
        }
    }

    /// Comes, to any shard; what it had before is given up without a word, or is still there to be taken over.
    pub(super) fn come(&mut self, world: &mut World, random: &mut Random) {
        if let Some(place) = self.place.take().filter(|_| random.below(2) == 0) {
            world.gone(place);
        }
        let shard = random.below(world.shard_count() as u64) as usize;
        let place = come(world, shard, &connect(&self.name, self.is_five));
        (self.place, self.is_connected) = (Some(place), false);
        self.input.clear();
    }

    /// Comes to a node that was killed and has begun again.
    pub(super) fn return_after_crash(&mut self, world: &mut World, random: &mut Random) {
        (self.place, self.has_connected) = (None, self.has_connected && self.is_promised);
        self.has_crashed = true;
        self.come(world, random);
    }

    pub(super) fn say(&self, world: &mut World, bytes: &[u8]) {
        if let Some(place) = self.place.filter(|&place| !world.socket(place).is_closed) {
            world.bytes(place, bytes);
        }
    }

    /// The packets that have come whole: first byte and body.
    pub(super) fn hear(&mut self, world: &mut World) -> Vec<(u8, Vec<u8>)> {
        let Some(place) = self.place else { return Vec::new() };
        let socket = world.socket(place);
        self.input.append(&mut socket.taken);
        let mut packets = Vec::new();
        while let [first, length, ..] = self.input[..] {
            let end = 2 + usize::from(length);
            assert!(length < 128);
            if self.input.len() < end {
                break;
            }
            packets.push((first, self.input[2..end].to_vec()));
            self.input.drain(..end);
        }
        for (first, body) in &packets {
            self.is_promised |= matches!(*first, 0x50 | 0x90);
            if *first == 0x20 {
                assert_eq!(body[1], 0, "{} is refused: {body:x?}", self.name);
                assert!(body[0] == 1 || !self.has_connected, "{}: the session is gone", self.name);
                (self.is_connected, self.has_connected) = (true, true);
            }
        }
        packets
    }
}
