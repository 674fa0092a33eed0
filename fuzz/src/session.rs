//! A whole shard under commands that the input chooses: some legal, some changed, from clients that read little and leave.
//! What is right is said by the core's own tests, here nothing may panic, hang or stay pending.

use std::fmt::Write;

use godwit_core::websocket::frame;

use super::net::{Bench, little_room};

const CLIENTS: usize = 5;
const NAMES: [&str; 8] = ["/a", "/a/b", "/a/b", "/b", "/a/*", "/a/**", "/a/**", "/*/b"];

/// Most clients speak JSON, so that streams are shared.
fn is_json(client: usize) -> bool {
    client < 4
}

struct Play {
    bench: Bench,
    /// Each client's socket.
    sockets: [u32; CLIENTS],
}

impl Play {
    fn new() -> Self {
        let mut play = Self { bench: Bench::new(little_room()), sockets: [0; CLIENTS] };
        (0..CLIENTS).for_each(|client| play.connect(client));
        play
    }

    fn connect(&mut self, client: usize) {
        self.sockets[client] = self.bench.accept();
        let wire = if is_json(client) { "json" } else { "binary" };
        let head = String::from_utf8_lossy(super::HEAD).replace("godwit.v1.json", &format!("godwit.v1.{wire}"));
        let head = head.replace("?token=a%20b", "");
        self.hear(client, head.as_bytes());
    }

    fn hear(&mut self, client: usize, bytes: &[u8]) {
        self.bench.hear(self.sockets[client], bytes);
    }

    fn say(&mut self, client: usize, payload: &[u8]) {
        let mut bytes = Vec::new();
        frame(&mut bytes, if is_json(client) { 1 } else { 2 }, [1, 2, 3, 4], payload);
        self.hear(client, &bytes);
    }

    fn step(&mut self, client: usize, what: u8, detail: u8) {
        let name = NAMES[usize::from(detail) % NAMES.len()];
        let option = detail >> 3;
        match what % 12 {
            0..=2 => self.publish(client, name, option),
            3..=5 => self.subscribe(client, name, option),
            6 => self.command(client, "unsubscribe", name, 0x42),
            7 => self.command(client, if option & 1 == 0 { "watch" } else { "unwatch" }, name, 0x45 + (option & 1)),
            8 => self.bench.pass(u64::from(detail) * 40),
            9 => self.give_room(client, usize::from(detail)),
            10 if option < 4 => {
                self.bench.cut(self.sockets[client]);
                self.connect(client);
            }
            _ => self.bench.turn(),
        }
    }

    fn publish(&mut self, client: usize, name: &str, option: u8) {
        let is_guaranteed = option & 1 == 0;
        if is_json(client) {
            let mut text = format!(r#"{{"id":1,"publish":"{name}","content":{{"f{option}":{option}}}"#);
            let _ = write!(text, r#","guaranteed":{is_guaranteed},"retain":{}"#, option & 2 == 0);
            if option & 4 != 0 {
                text += r#","key":"0123456789abcdef""#;
            }
            self.say(client, (text + "}").as_bytes());
        } else {
            let flags = if is_guaranteed { 1 } else { 0x11 };
            let payload = [&[0x43, 1, flags, 0, name.len() as u8], name.as_bytes(), b"text"].concat();
            self.say(client, &payload);
        }
    }

    fn subscribe(&mut self, client: usize, name: &str, option: u8) {
        if is_json(client) {
            let extra = match option % 8 {
                0 => "",
                1 => r#","after":"7.2""#,
                2 => r#","last":3"#,
                3 => r#","snapshot":false"#,
                4 => r#","conflate_ms":100"#,
                5 => r#","since":"a1.3.1795250000000""#,
                6 => r#","after":{"/a/b":"7.1","/b":"6.1"}"#,
                _ => r#","after":"6.9","on_gap":"oldest""#,
            };
            self.say(client, format!(r#"{{"id":1,"subscribe":"{name}"{extra}}}"#).as_bytes());
        } else {
            let (flags, extra): (u8, &[u8]) = match option % 4 {
                0 => (0, b""),
                1 => (1, b"\x07\x02"),
                2 => (8, b"\x03"),
                _ => (0x40, b"\x64"),
            };
            self.say(client, &[&[0x41, 1, flags, name.len() as u8], name.as_bytes(), extra].concat());
        }
    }

    fn command(&mut self, client: usize, verb: &str, name: &str, kind: u8) {
        if is_json(client) {
            self.say(client, format!(r#"{{"id":1,"{verb}":"{name}"}}"#).as_bytes());
        } else {
            self.say(client, &[&[kind, 1, name.len() as u8], name.as_bytes()].concat());
        }
    }

    fn give_room(&mut self, client: usize, bytes: usize) {
        self.bench.give_room(self.sockets[client], bytes, 200);
    }
}

/// Each three bytes of the input are a step: who, what, how.
pub fn session(input: &[u8]) {
    let mut play = Play::new();
    for [who, what, how] in input.as_chunks::<3>().0 {
        let client = usize::from(*who) % CLIENTS;
        if *who > 0xf0 {
            let sample = if is_json(client) { super::JSON } else { super::BINARY };
            let payload = super::vary(&[1, *what, *how, *what], &sample).into_owned();
            play.say(client, &payload);
        } else {
            play.step(client, *what, *how);
        }
    }
    play.bench.turn();
    (0..CLIENTS).for_each(|client| play.give_room(client, 1000));
    play.bench.turn();
}
