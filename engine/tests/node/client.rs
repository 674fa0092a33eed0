//! A blocking WebSocket client of a few lines, and a node to talk to. Reads end at a deadline, which only a failure meets.

use crate::disk::SimulatedDisk;
use godwit_engine::{Engine, Started};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

pub(crate) struct Node {
    pub(crate) engine: Engine,
    pub(crate) started: Started,
}

impl Node {
    /// A node with these settings beside the usual ones, as JSON members.
    pub(crate) fn start(driver: &str, shards: u8, limits: &str) -> Self {
        let engine = Engine::new(&settings(driver, shards, limits, "127.0.0.1:0")).unwrap();
        let started = engine.start().unwrap();
        Self { engine, started }
    }

    /// A node with its journal on this disk; `life` is its run, and its epoch.
    pub(crate) fn start_on(driver: &str, life: u64, disk: &SimulatedDisk) -> Self {
        let engine = Engine::new(&journaled_settings(driver, life)).unwrap();
        let started = engine.start_on(Arc::new(disk.clone())).unwrap();
        Self { engine, started }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.started.addresses[0].1
    }

    pub(crate) fn client(&self) -> Client {
        Client::open(self.address())
    }

    /// Asks until it is so.
    pub(crate) fn until(&self, what: &str, mut is_so: impl FnMut(&Engine) -> bool) {
        let end = Instant::now() + DEADLINE;
        while !is_so(&self.engine) {
            assert!(Instant::now() < end, "{what}; {:?}", self.engine.stats());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub(crate) fn connections(&self) -> u64 {
        self.engine.stats().shards.iter().map(|figures| figures.shard.connections).sum()
    }
}

pub(crate) fn settings(driver: &str, shards: u8, limits: &str, address: &str) -> String {
    format!(
        r#"{{"node":"n","run":1,"epoch":7,"shards":{shards},"driver":"{driver}","limits":{{{limits}}},
        "listeners":[{{"name":"client","address":"{address}"}}],
        "anonymous":[{{"pattern":"/**","actions":"both","verdict":"allow"}}]}}"#
    )
}

/// Small segments, so that lives of a second seal some; a reader of two seconds ago still finds everything.
pub(crate) fn journaled_settings(driver: &str, life: u64) -> String {
    format!(
        r#"{{"node":"n","run":{life},"epoch":{life},"shards":2,"driver":"{driver}",
        "limits":{{"log_messages_max":1000000,"log_age_ms_max":3600000}},
        "journal":{{"directory":"/journal","segment_bytes_max":40000,"sync_interval_ms":5,"write_interval_ms":1,"probe_interval_ms":2}},
        "listeners":[{{"name":"client","address":"127.0.0.1:0"}}],
        "anonymous":[{{"pattern":"/**","actions":"both","verdict":"allow"}}]}}"#
    )
}

pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    buffer: Vec<u8>,
    /// What the node said when it closed.
    pub(crate) farewell: String,
}

impl Client {
    pub(crate) fn open(address: SocketAddr) -> Self {
        let mut client = Self::connect(address);
        client.stream.write_all(UPGRADE).unwrap();
        let end = client.await_answer().expect("an answer to the handshake");
        assert!(client.was_let_in(), "{}", String::from_utf8_lossy(&client.buffer));
        client.buffer.drain(..end);
        client
    }

    /// Reads until the answer to the handshake is there: where it ends; none where the connection ends before it.
    pub(crate) fn await_answer(&mut self) -> Option<usize> {
        loop {
            if let Some(at) = self.buffer.windows(4).position(|four| four == b"\r\n\r\n") {
                return Some(at + 4);
            }
            if !self.fill() {
                return None;
            }
        }
    }

    pub(crate) fn was_let_in(&self) -> bool {
        self.buffer.starts_with(b"HTTP/1.1 101")
    }

    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        Self { stream, buffer: Vec::new(), farewell: String::new() }
    }

    pub(crate) fn send(&mut self, text: &str) {
        self.stream.write_all(&frame(text)).unwrap();
    }

    /// Reads more; false at the end of the connection.
    pub(crate) fn fill(&mut self) -> bool {
        let mut some = vec![0; 1 << 16];
        let length = match self.stream.read(&mut some) {
            Ok(length) => length,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => 0,
            Err(error) => panic!("nothing came: {error}"),
        };
        self.buffer.extend_from_slice(&some[..length]);
        length > 0
    }

    /// The next text, or none when the connection ended. Pings are passed over.
    pub(crate) fn next(&mut self) -> Option<String> {
        loop {
            if let Some((kind, head, length)) = self.head()
                && self.buffer.len() >= head + length
            {
                let frame: Vec<u8> = self.buffer.drain(..head + length).skip(head).collect();
                match kind {
                    1 => return Some(String::from_utf8(frame).unwrap()),
                    8 => {
                        self.farewell = format!("{:?} {}", frame.get(..2), String::from_utf8_lossy(&frame));
                        return None;
                    }
                    _ => continue,
                }
            }
            if !self.fill() {
                return None;
            }
        }
    }

    pub(crate) fn read(&mut self) -> String {
        self.next().expect("the connection is open")
    }

    fn head(&self) -> Option<(u8, usize, usize)> {
        let (&first, &second) = (self.buffer.first()?, self.buffer.get(1)?);
        let (head, length) = match second {
            126 => (4, usize::from(u16::from_be_bytes(self.buffer.get(2..4)?.try_into().ok()?))),
            127 => (10, u64::from_be_bytes(self.buffer.get(2..10)?.try_into().ok()?) as usize),
            short => (2, usize::from(short)),
        };
        Some((first & 15, head, length))
    }
}

pub(crate) const UPGRADE: &[u8] = b"GET /v1/live HTTP/1.1\r\nHost: node\r\nUpgrade: websocket\r\n\
    Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// A masked text frame; the mask is zero, which is as good as any here.
pub(crate) fn frame(text: &str) -> Vec<u8> {
    let mut bytes = vec![0x81];
    match text.len() {
        short @ ..126 => bytes.push(0x80 | short as u8),
        long => {
            bytes.push(0x80 | 126);
            bytes.extend_from_slice(&u16::try_from(long).unwrap().to_be_bytes());
        }
    }
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(text.as_bytes());
    bytes
}
