//! Subscribers that never read, until they are woken: plain blocking sockets, a few of them, on the coordinator's thread.
//! Woken, each reads up to the last message published and says what it was told: what it got, and what it missed.
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::content;
use crate::dialect::{Dialect, Heard, Role};

/// What the silent ones were told, all together.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Told {
    pub(crate) clients: u64,
    pub(crate) delivered: u64,
    pub(crate) gaps: u64,
    pub(crate) missed: u64,
    pub(crate) snapshots: u64,
    /// Clients for which delivered and missed make up exactly what was published.
    pub(crate) exact: u64,
    /// Clients whose connection the server ended.
    pub(crate) closed: u64,
    /// Unsent bytes in the kernel for each of them just before they woke, largest first.
    pub(crate) send_queues: Vec<u64>,
}

pub(crate) struct Silent {
    sockets: Vec<TcpStream>,
    /// Bytes that came with the answer to the subscription.
    partial: Vec<Vec<u8>>,
    server: SocketAddr,
}

impl Silent {
    /// Connects and subscribes `clients` of them to subject 0.
    pub(crate) fn open(server: SocketAddr, dialect: &dyn Dialect, clients: u32) -> Result<Self, String> {
        let mut silent = Self { sockets: Vec::new(), partial: Vec::new(), server };
        for _ in 0..clients {
            let (socket, rest) = join(server, dialect).map_err(|error| format!("a silent client: {error}"))?;
            silent.sockets.push(socket);
            silent.partial.push(rest);
        }
        Ok(silent)
    }

    /// Reads all of them until each has seen message `last` of subject 0, its connection ended, or time is up.
    pub(crate) fn wake(mut self, dialect: &dyn Dialect, last: u32, deadline: Instant) -> Told {
        let ports: Vec<u16> = self.sockets.iter().filter_map(|s| s.local_addr().ok()).map(|a| a.port()).collect();
        let mut told = Told {
            clients: self.sockets.len() as u64,
            send_queues: crate::meter::send_queues(self.server.port(), &ports),
            ..Told::default()
        };
        for (socket, partial) in self.sockets.iter_mut().zip(self.partial) {
            catch_up(socket, partial, dialect, last, deadline, &mut told);
        }
        told
    }
}

fn join(server: SocketAddr, dialect: &dyn Dialect) -> Result<(TcpStream, Vec<u8>), String> {
    let io = |error: std::io::Error| error.to_string();
    let mut socket = TcpStream::connect(server).map_err(io)?;
    socket.set_read_timeout(Some(Duration::from_secs(10))).map_err(io)?;
    let mut out = Vec::new();
    dialect.greet(Role::Subscriber(0), &mut out);
    let (mut bytes, mut is_ready) = (Vec::new(), false);
    loop {
        socket.write_all(&out).map_err(io)?;
        out.clear();
        let mut part = [0; 4096];
        match socket.read(&mut part).map_err(io)? {
            0 => return Err("the server closed the connection".to_owned()),
            count => bytes.extend_from_slice(&part[..count]),
        }
        while let Some((length, heard)) = dialect.next(is_ready, &bytes) {
            let is_joined = match heard {
                Heard::Ready => {
                    is_ready = true;
                    dialect.join(0, None, &mut out);
                    dialect.joins_by_greeting()
                }
                Heard::Joined(_) => true,
                Heard::Fault(fault) => return Err(fault),
                _ => false,
            };
            bytes.drain(..length);
            if is_joined {
                return Ok((socket, bytes));
            }
        }
    }
}

fn catch_up(
    socket: &mut TcpStream,
    mut bytes: Vec<u8>,
    dialect: &dyn Dialect,
    last: u32,
    deadline: Instant,
    told: &mut Told,
) {
    let (mut next, mut delivered, mut missed) = (0u32, 0u64, 0u64);
    let mut part = vec![0; 256 * 1024];
    while next <= last && Instant::now() < deadline {
        match socket.read(&mut part) {
            Ok(0) => {
                told.closed += 1;
                break;
            }
            Ok(count) => bytes.extend_from_slice(&part[..count]),
            Err(_) => break,
        }
        let mut used = 0;
        while let Some((length, heard)) = dialect.next(true, &bytes[used..]) {
            match heard {
                Heard::Message { content, head } => {
                    let Some((_, number)) = content::read(content) else { return };
                    if dialect.is_snapshot(head) {
                        told.snapshots += 1;
                    } else {
                        delivered += 1;
                    }
                    next = number + 1;
                }
                Heard::Gap(count) => {
                    told.gaps += 1;
                    missed += count.unwrap_or(0);
                }
                Heard::Echo(echo) => drop(socket.write_all(&echo)),
                _ => {}
            }
            used += length;
        }
        bytes.drain(..used);
    }
    told.delivered += delivered;
    told.missed += missed;
    told.exact += u64::from(next > last && delivered + missed == u64::from(last) + 1);
}
