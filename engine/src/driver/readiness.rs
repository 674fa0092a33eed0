//! The readiness driver: epoll or kqueue through mio, edge-triggered, for kernels and containers without io_uring.
//! Sends are made at once. A socket with more to read than a turn has buffers for stays in a list and is read in the next.
//! At the limit of descriptors a spare one is given up to accept and close, so that clients are refused and nothing spins.

use super::buffers::{RECEIVES_FEW, ReceiveMemory};
use super::slots::Slots;
use super::waker::WakeSource;
use super::{Buffer, Counters, Driver, DriverOptions, Event, Listener, ReceiveBuffer, Sending, Sent, Socket, Waker};
use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Poll, Token};
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::time::{Duration, Instant};

pub(super) const WAKE: Token = Token(usize::MAX);
/// Tokens from here on are listeners; below, 24 bits of generation and 32 of slot.
pub(super) const LISTENERS: usize = 1 << 60;
/// Events taken from the kernel in one turn.
const EVENTS: usize = 1024;
pub(super) const ACCEPT_REST: Duration = Duration::from_millis(100);

#[derive(Default)]
pub(super) struct Slot {
    pub(super) stream: Option<TcpStream>,
    flags: u8,
}

pub(super) const PAUSED: u8 = 1;
/// The kernel said there is something to read, and a read has not yet said that there is no more.
pub(super) const READABLE: u8 = 1 << 1;
/// It is in the list of sockets to read.
pub(super) const LISTED: u8 = 1 << 2;
/// The peer has ended or broken the connection: it is read until the read says so.
pub(super) const ENDED: u8 = 1 << 3;
pub(super) const GONE: u8 = 1 << 4;
pub(super) const WANTING: u8 = 1 << 5;
const WRITE_WATCHED: u8 = 1 << 6;
pub(super) const CONNECTING: u8 = 1 << 7;

impl Slot {
    /// Whether it has any of these flags.
    pub(super) fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    pub(super) fn set(&mut self, flag: u8, on: bool) {
        self.flags = if on { self.flags | flag } else { self.flags & !flag };
    }
}

pub(super) struct Listening {
    pub(super) listener: TcpListener,
    pub(super) is_ready: bool,
}

pub(super) struct Readiness {
    poll: Poll,
    pub(super) harvest: mio::Events,
    pub(super) slots: Slots<Slot>,
    sockets_max: usize,
    pub(super) listeners: Vec<Option<Listening>>,
    pub(super) accept_again: Option<Instant>,
    pub(super) to_read: Vec<Socket>,
    /// Paused sockets that a send found broken: no read would tell.
    broken: Vec<Socket>,
    /// Closed in this turn: their numbers are used again in the next, when no event of theirs is left.
    closed: Vec<Socket>,
    pub(super) memory: ReceiveMemory,
    pub(super) free: Vec<u16>,
    pub(super) spare: Option<File>,
    waker: Waker,
    pub(super) counters: Counters,
}

struct MioWakeSource(mio::Waker);

impl WakeSource for MioWakeSource {
    fn signal(&self) -> io::Result<()> {
        self.0.wake()
    }
}

pub(super) fn spare() -> Option<File> {
    File::open("/dev/null").ok()
}

impl Readiness {
    pub(super) fn open(options: &DriverOptions) -> io::Result<Self> {
        let poll = Poll::new()?;
        let wake_source = MioWakeSource(mio::Waker::new(poll.registry(), WAKE)?);
        let memory = ReceiveMemory::new(options.buffers_max.max(1))?;
        Ok(Self {
            poll,
            harvest: mio::Events::with_capacity(EVENTS),
            slots: Slots::new(options.sockets_max),
            sockets_max: options.sockets_max as usize,
            listeners: Vec::new(),
            accept_again: None,
            to_read: Vec::new(),
            broken: Vec::new(),
            closed: Vec::new(),
            free: (0..memory.count()).rev().collect(),
            memory,
            spare: spare(),
            waker: Waker::new(Box::new(wake_source)),
            counters: Counters::default(),
        })
    }

    fn token(&self, socket: Socket) -> Token {
        Token((self.slots.generation(socket) as usize) << 32 | socket as usize)
    }

    /// Puts a connected stream into the table and watches it.
    pub(super) fn admit(&mut self, mut stream: TcpStream, interest: Interest, flags: u8) -> io::Result<Socket> {
        let full = || io::Error::from_raw_os_error(libc::EMFILE);
        if self.slots.len() - self.closed.len() >= self.sockets_max {
            return Err(full());
        }
        let socket = self.slots.take().ok_or_else(full)?;
        if let Err(error) = self.poll.registry().register(&mut stream, self.token(socket), interest) {
            self.slots.give(socket);
            return Err(error);
        }
        if let Some(slot) = self.slots.get(socket) {
            *slot = Slot { stream: Some(stream), flags };
        }
        self.counters.sockets += 1;
        Ok(socket)
    }

    fn has_work(&self) -> bool {
        !(self.to_read.is_empty() && self.broken.is_empty())
            || (self.accept_again.is_none() && self.listeners.iter().flatten().any(|listening| listening.is_ready))
    }

    fn wait_of(&self, wait: Option<Duration>) -> Option<Duration> {
        match (self.accept_again, wait) {
            _ if self.has_work() => Some(Duration::ZERO),
            (None, wait) => wait,
            (Some(again), wait) => {
                let rest = again.saturating_duration_since(Instant::now());
                Some(wait.map_or(rest, |wait| wait.min(rest)))
            }
        }
    }
}

pub(super) fn list(to_read: &mut Vec<Socket>, socket: Socket, slot: &mut Slot) {
    if !slot.is(LISTED) && !slot.is(PAUSED) {
        slot.set(LISTED, true);
        to_read.push(socket);
    }
}

impl Driver for Readiness {
    fn listen(&mut self, listener: std::net::TcpListener) -> io::Result<Listener> {
        listener.set_nonblocking(true)?;
        let mut listener = TcpListener::from_std(listener);
        let number = self.listeners.len();
        self.poll.registry().register(&mut listener, Token(LISTENERS + number), Interest::READABLE)?;
        self.listeners.push(Some(Listening { listener, is_ready: true }));
        Ok(number as Listener)
    }

    fn stop_listening(&mut self, listener: Listener) {
        if let Some(listening) = self.listeners.get_mut(listener as usize) {
            *listening = None;
        }
    }

    fn connect(&mut self, to: SocketAddr, from: Option<IpAddr>) -> io::Result<Socket> {
        let outgoing = super::listen::outgoing(to, from)?;
        outgoing.set_nonblocking(true)?;
        match outgoing.connect(&to.into()) {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => return Err(error),
            _ => {}
        }
        let stream = TcpStream::from_std(outgoing.into());
        self.admit(stream, Interest::READABLE | Interest::WRITABLE, CONNECTING | WRITE_WATCHED)
    }

    fn turn(&mut self, events: &mut Vec<Event>, wait: Option<Duration>) -> io::Result<()> {
        events.clear();
        for socket in self.closed.drain(..) {
            self.slots.give(socket);
        }
        let mut wait = self.wait_of(wait);
        if wait != Some(Duration::ZERO) && !self.waker.fall_asleep() {
            wait = Some(Duration::ZERO);
        }
        self.counters.enters += 1;
        let result = self.poll.poll(&mut self.harvest, wait);
        if self.waker.rise() {
            events.push(Event::Wake);
        }
        match result {
            Ok(()) => self.harvest(events),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        for socket in self.broken.drain(..) {
            if let Some(slot) = self.slots.get(socket)
                && slot.stream.is_some()
                && !slot.is(GONE)
            {
                slot.set(GONE, true);
                events.push(Event::Gone { socket, errno: libc::EPIPE });
            }
        }
        self.accept(events);
        self.read(events);
        Ok(())
    }

    fn bytes(&mut self, buffer: Buffer) -> &mut [u8] {
        self.memory.received(buffer)
    }

    fn lend(&mut self, buffer: Buffer) -> ReceiveBuffer {
        self.memory.lend_out(buffer)
    }

    fn take_back(&mut self, lent: ReceiveBuffer) {
        let buffer = self.memory.take_back(lent);
        self.release(buffer);
    }

    fn release(&mut self, buffer: Buffer) {
        if self.memory.release(buffer) {
            self.free.push(buffer.0);
        }
    }

    unsafe fn send(&mut self, socket: Socket, bytes: &[u8], _token: u64) -> Sending {
        let Some(slot) = self.slots.get(socket).filter(|slot| !slot.is(CONNECTING)) else { return Sending::Gone };
        let Some(stream) = &mut slot.stream else { return Sending::Gone };
        loop {
            return match stream.write(bytes) {
                Ok(sent) => Sending::Done(sent),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => Sending::Blocked,
                Err(error) if matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::ENOMEM)) => Sending::Blocked,
                Err(_) => {
                    if slot.is(PAUSED) {
                        self.broken.push(socket);
                    }
                    Sending::Gone
                }
            };
        }
    }

    fn flush(&mut self, _sent: &mut Vec<Sent>) -> io::Result<()> {
        Ok(())
    }

    fn want_write(&mut self, socket: Socket) {
        let token = self.token(socket);
        let Some(slot) = self.slots.get(socket) else { return };
        slot.set(WANTING, true);
        // On Linux one registration gives an edge whenever a full socket has room again; elsewhere it is asked for again.
        if slot.is(WRITE_WATCHED) && cfg!(target_os = "linux") {
            return;
        }
        slot.set(WRITE_WATCHED, true);
        if let Some(stream) = &mut slot.stream {
            // The watch exists already, so nothing can fail here but a kernel out of memory.
            let _ = self.poll.registry().reregister(stream, token, Interest::READABLE | Interest::WRITABLE);
        }
    }

    fn pause_read(&mut self, socket: Socket) {
        if let Some(slot) = self.slots.get(socket) {
            slot.set(PAUSED, true);
        }
    }

    fn resume_read(&mut self, socket: Socket) {
        if let Some(slot) = self.slots.get(socket) {
            slot.set(PAUSED, false);
            if slot.is(READABLE) {
                list(&mut self.to_read, socket, slot);
            }
        }
    }

    fn finish(&mut self, socket: Socket) {
        if let Some(Slot { stream: Some(stream), .. }) = self.slots.get(socket) {
            // A socket that is not connected any more has nothing to finish.
            let _ = stream.shutdown(Shutdown::Write);
        }
    }

    fn close(&mut self, socket: Socket) {
        if let Some(slot) = self.slots.get(socket)
            && slot.stream.take().is_some()
        {
            *slot = Slot::default();
            self.counters.sockets -= 1;
            self.closed.push(socket);
        }
    }

    fn rest(&mut self) {
        self.memory.rest(RECEIVES_FEW);
    }

    fn waker(&self) -> Waker {
        self.waker.clone()
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}
