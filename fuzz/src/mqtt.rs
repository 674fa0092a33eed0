//! MQTT: whole connections out of bytes, and a shard full of clients that say anything. Nothing may panic, hang or stay pending;
//! what is answered does not depend on how the bytes were cut.

use godwit_core::settings::Listener;

use super::net::{Bench, little_room};
use super::vary;

const CONNECT3: &[u8] = b"\x10\x10\0\x04MQTT\x04\x02\0\x3c\0\x04name";
const CONNECT5: &[u8] = b"\x10\x16\0\x04MQTT\x05\x00\0\x3c\x05\x11\0\0\0\x64\0\x04name";
const WILL5: &[u8] = b"\x10\x2e\0\x04MQTT\x05\xee\0\x0a\x0b\x21\0\x03\x22\0\x02\x27\0\0\x01\0\0\x01n\x07\x18\0\0\0\x01\x01\x01\0\x01w\0\x02ok\0\x01u\0\x01p";
/// What may follow a CONNECT, in 3.1.1 and in 5.0.
const PACKETS: [&[&[u8]]; 2] = [
    &[
        b"\x82\x0c\0\x01\0\x03a/+\x01\0\x01#\x02",
        b"\x30\x06\0\x03a/bm",
        b"\x33\x08\0\x03a/b\0\x07m",
        b"\x34\x07\0\x03a/b\0\x08\x62\x02\0\x08",
        b"\x40\x02\0\x01\x50\x02\0\x02\x70\x02\0\x02",
        b"\xa2\x07\0\x02\0\x03a/+",
        b"\xc0\0",
        b"\xe0\0",
    ],
    &[
        b"\x82\x11\0\x01\x02\x0b\x05\0\x03a/+\x2d\0\x02#\0\0\0",
        b"\x82\x12\0\x01\0\0\x0c$share/g/a/b\x01",
        b"\x30\x0b\0\x03a/b\x03\x23\0\x01{}",
        b"\x32\x19\0\0\0\x07\x0f\x23\0\x01\x02\0\0\0\x01\x26\0\x01k\0\x01vhello",
        b"\x35\x14\0\x03a/b\0\x08\x0b\x08\0\x03a/c\x09\0\x02\0\x01m",
        b"\x62\x04\0\x08\0\0\x40\x02\0\x01\x50\x03\0\x02\x87",
        b"\x70\x08\0\x02\x92\x04\x1f\0\x01x",
        b"\xa2\x08\0\x02\0\0\x03a/+",
        b"\xe0\x07\x04\x05\x11\0\0\0\x09",
        b"\xf0\0",
    ],
];

/// A node with little room, whose only listener speaks MQTT.
fn open() -> Bench {
    let mut settings = little_room();
    settings.listeners = vec![Listener { name: "mqtt".into(), role: "both".into(), ..Listener::default() }];
    settings.limits.mqtt_receive_max = 3;
    settings.limits.mqtt_inflight_max = 2;
    settings.limits.mqtt_aliases_max = 2;
    Bench::new(settings)
}

/// One connection: its answers are the same however its bytes are cut.
pub fn mqtt(input: &[u8]) {
    let whole3 = [&[CONNECT3], PACKETS[0]].concat().concat();
    let whole5 = [&[CONNECT5], PACKETS[1]].concat().concat();
    let willed = [&[WILL5], &PACKETS[1][..4]].concat().concat();
    let bytes = vary(input, &[&whole3, &whole5, &willed, &[CONNECT5, b"\x30\xff\xff\xff\x7f"].concat()]);
    let step = input.first().map_or(1, |&first| usize::from(first / 2) + 1);
    let [whole, pieces] = [usize::MAX, step].map(|step| {
        let mut bench = open();
        let socket = bench.accept();
        bytes.chunks(step).for_each(|piece| bench.hear(socket, piece));
        bench.turn();
        (bench.take(socket), bench.is_open(socket))
    });
    assert_eq!(whole, pieces);
}

/// Each four bytes of the input are a step: who, what, how, and what is changed of it.
pub fn mqtt_session(input: &[u8]) {
    const CLIENTS: usize = 4;
    let mut bench = open();
    let mut sockets: [u32; CLIENTS] = std::array::from_fn(|_| bench.accept());
    for [who, what, how, change] in input.as_chunks::<4>().0 {
        let client = usize::from(*who) % CLIENTS;
        let (socket, is_five) = (sockets[client], client % 2);
        match what % 16 {
            0 | 1 => {
                if what & 0x40 != 0 {
                    bench.cut(socket);
                }
                sockets[client] = bench.accept();
                // Two clients of each standard have the same name: they take each other over.
                bench.hear(sockets[client], if is_five == 1 { CONNECT5 } else { CONNECT3 });
            }
            2 => bench.pass(u64::from(*how) * 400),
            3 | 4 => bench.give_room(socket, usize::from(*how), 100),
            5 | 6 => bench.turn(),
            _ => {
                let mut bytes = PACKETS[is_five][usize::from(*how) % PACKETS[is_five].len()].to_vec();
                if *who > 0xd0 {
                    let place = usize::from(*change) % bytes.len();
                    bytes[place] = bytes[place].wrapping_add(*what);
                }
                bench.hear(socket, &bytes);
            }
        }
    }
    bench.turn();
}
