//! The io_uring driver: direct descriptors, multishot receives from shared buffers, sends that complete inside the enter.
//! Every send carries MSG_DONTWAIT: without it a send parks on a full socket, pins its memory, and later delivers what should
//! have been skipped. A socket is closed by shutting it down and waiting until none of its operations is left in the kernel;
//! only then is its slot used again, and a generation in every tag guards that rule.

use super::buffers::RECEIVES_FEW;
use super::slots::Slots;
use super::uring_accept::{self, ACCEPTS, Listening};
use super::uring_buffers::ProvidedBuffers;
use super::uring_completions::outcome;
use super::uring_ring::{Operation, Ring};
use super::uring_slot::{CLOSING, CONNECTING, GONE, LIVE, PAUSED, RECEIVING, Slot, TO_ARM, WANTING};
use super::uring_wake;
use super::{
    Buffer, Counters, Driver, DriverOptions, Event, Listener, ReceiveBuffer, Sending, Sent, Socket, Waker,
    descriptor_limit,
};
use io_uring::opcode;
use io_uring::types::Fixed;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The kernel's own bound of a table of direct descriptors.
const FILES_MAX: u64 = 1 << 20;
/// Slots for accepts, enough for those of four listeners.
const RESERVE: u32 = 4 * ACCEPTS;
/// How long accepting rests after the system ran out of what an accept needs.
pub(super) const ACCEPT_REST: Duration = Duration::from_millis(100);

const SEND_FLAGS: i32 = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;

pub(super) struct Uring {
    /// First, so that it is dropped first: the kernel lets go of what the other fields lend it.
    ring: Ring,
    pub(super) buffers: ProvidedBuffers,
    pub(super) listeners: Vec<Option<Listening>>,
    pub(super) slots: Slots<Slot>,
    pub(super) sockets_max: usize,
    /// Sockets whose receive is to be armed, at the next turn: by then the lent buffers are back.
    to_arm: Vec<Socket>,
    /// Accepts to be armed, when a slot is free and the rest is over.
    pub(super) to_accept: VecDeque<(Listener, u32)>,
    pub(super) accept_again: Option<Instant>,
    /// The tokens of the pending sends and whose they are, in the order of their indices.
    tokens: Vec<(u64, Socket)>,
    answered: usize,
    /// Paused sockets that a send found broken: no receive would tell.
    broken: Vec<Socket>,
    wake_source: Arc<File>,
    waker: Waker,
    pub(super) counters: Counters,
}

impl Uring {
    pub(super) fn open(options: &DriverOptions) -> io::Result<Self> {
        // Slots beyond the limit are for accepts that wait, and for clients accepted to be refused.
        let wanted = u64::from(options.sockets_max) + u64::from(RESERVE);
        let files = wanted.min(descriptor_limit()?).min(FILES_MAX) as u32;
        let sockets_max = options.sockets_max.min(files - RESERVE.min(files / 8)) as usize;
        let ring = Ring::open(files)?;
        let buffers = ProvidedBuffers::register(ring.uring(), options.buffers_max)?;
        let (wake_source, waker) = uring_wake::open()?;
        let mut driver = Self {
            ring,
            buffers,
            listeners: Vec::new(),
            slots: Slots::new(files),
            sockets_max,
            to_arm: Vec::new(),
            to_accept: VecDeque::new(),
            accept_again: None,
            tokens: Vec::new(),
            answered: 0,
            broken: Vec::new(),
            waker,
            wake_source,
            counters: Counters::default(),
        };
        driver.watch_bell();
        driver.ring.submit()?;
        Ok(driver)
    }

    /// The eventfd is polled; its value is never read.
    pub(super) fn watch_bell(&mut self) {
        let descriptor = io_uring::types::Fd(self.wake_source.as_raw_fd());
        let entry = opcode::PollAdd::new(descriptor, libc::POLLIN as u32).multi(true).build();
        // SAFETY: the operation points to no memory.
        unsafe { self.ring.push(&entry.user_data(Operation::WakeSource.tag(0, 0))) };
    }

    /// Pushes an operation of a socket that holds its slot until it completes.
    ///
    /// # Safety
    /// What the operation points to must be valid until it completes.
    pub(super) unsafe fn push_of(&mut self, operation: Operation, socket: Socket, entry: io_uring::squeue::Entry) {
        let generation = self.slots.generation(socket);
        if let Some(slot) = self.slots.get(socket) {
            slot.operations += 1;
        }
        // SAFETY: the caller's promise.
        unsafe { self.ring.push(&entry.user_data(operation.tag(generation, socket))) };
    }

    /// The slot of a socket that is held and not being closed.
    fn live(&mut self, socket: Socket) -> Option<&mut Slot> {
        self.slots.get(socket).filter(|slot| slot.is(LIVE) && !slot.is(CLOSING))
    }

    fn cancel(&mut self, operation: Operation, socket: Socket) {
        let tag = operation.tag(self.slots.generation(socket), socket);
        // SAFETY: the operation points to no memory.
        unsafe { self.push_of(Operation::Cancel, socket, opcode::AsyncCancel::new(tag).build()) };
    }

    pub(super) fn arm_later(&mut self, socket: Socket) {
        if let Some(slot) = self.slots.get(socket)
            && !slot.is(RECEIVING | PAUSED | CLOSING | GONE | TO_ARM | CONNECTING)
        {
            slot.set(TO_ARM, true);
            self.to_arm.push(socket);
        }
    }

    fn arm_receives(&mut self) {
        let mut to_arm = std::mem::take(&mut self.to_arm);
        for socket in to_arm.drain(..) {
            let Some(slot) = self.slots.get(socket) else { continue };
            slot.set(TO_ARM, false);
            if !slot.is(RECEIVING | PAUSED | CLOSING | GONE) {
                slot.set(RECEIVING, true);
                let entry = opcode::RecvMulti::new(Fixed(socket), super::uring_buffers::GROUP).build();
                // SAFETY: the receive writes into the registered buffers, which outlive the ring.
                unsafe { self.push_of(Operation::Receive, socket, entry) };
            }
        }
        self.to_arm = to_arm;
    }

    fn arm_accepts(&mut self) {
        if self.accept_again.is_some_and(|again| Instant::now() < again) {
            return;
        }
        self.accept_again = None;
        while let Some((listener, accept)) = self.to_accept.pop_front() {
            let Some(Some(listening)) = self.listeners.get_mut(listener as usize) else { continue };
            if listening.is_stopping {
                continue;
            }
            let Some(socket) = self.slots.take() else {
                self.to_accept.push_front((listener, accept));
                return;
            };
            let (address, length) = listening.promise(accept, socket);
            let descriptor = io_uring::types::Fd(listening.descriptor());
            let place = io_uring::types::DestinationSlot::try_from_slot_target(socket).ok();
            let entry = opcode::Accept::new(descriptor, address, length).file_index(place).build();
            let tag = Operation::Accept.tag(0, uring_accept::index(listener, accept));
            // SAFETY: the address lies in the listener's mapping, which outlives the ring or the last of its accepts.
            unsafe { self.ring.push(&entry.user_data(tag)) };
        }
    }

    /// Takes the answers to sends out of what was reaped; the rest is the next turn's.
    fn take_answers(&mut self, sent: &mut Vec<Sent>) {
        let (tokens, slots, broken) = (&self.tokens, &mut self.slots, &mut self.broken);
        let answered = &mut self.answered;
        self.ring.reaped.retain(|completion| {
            if completion.operation() != Some(Operation::Send) {
                return true;
            }
            if let Some(&(token, socket)) = tokens.get(completion.index() as usize) {
                *answered += 1;
                let outcome = outcome(completion.result);
                if outcome == Sending::Gone
                    && slots.get(socket).is_some_and(|slot| slot.is(PAUSED) && !slot.is(RECEIVING))
                {
                    broken.push(socket);
                }
                sent.push(Sent { token, outcome });
            }
            false
        });
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        let listeners = (0..).zip(&self.listeners);
        let armed = listeners.filter_map(|(number, place)| Some(place.as_ref()?.armed(number)));
        self.ring.empty(armed.flatten());
    }
}

impl Driver for Uring {
    fn listen(&mut self, listener: TcpListener) -> io::Result<Listener> {
        let number = self.listeners.len() as Listener;
        let accepts = ACCEPTS.min(self.sockets_max as u32 / 8).max(1);
        let listening = Listening::new(listener, accepts)?;
        self.to_accept.extend((0..listening.accepts()).map(|accept| (number, accept)));
        self.listeners.push(Some(listening));
        Ok(number)
    }

    fn stop_listening(&mut self, listener: Listener) {
        let Some(place) = self.listeners.get_mut(listener as usize) else { return };
        let Some(listening) = place else { return };
        listening.is_stopping = true;
        if listening.is_idle() {
            *place = None;
            return;
        }
        for tag in listening.armed(listener) {
            let entry = opcode::AsyncCancel::new(tag).build();
            // SAFETY: the operation points to no memory. Its completion is of a slot of no generation: it is passed over.
            unsafe { self.ring.push(&entry.user_data(Operation::Cancel.tag(u32::MAX >> 8, u32::MAX))) };
        }
    }

    fn connect(&mut self, to: SocketAddr, from: Option<IpAddr>) -> io::Result<Socket> {
        if self.counters.sockets >= self.sockets_max as u64 {
            return Err(io::Error::from_raw_os_error(libc::EMFILE));
        }
        let outgoing = super::listen::outgoing(to, from)?;
        let socket = self.slots.take().ok_or_else(|| io::Error::from_raw_os_error(libc::EMFILE))?;
        if let Err(error) = self.ring.uring().submitter().register_files_update(socket, &[outgoing.as_raw_fd()]) {
            self.slots.give(socket);
            return Err(error);
        }
        self.counters.sockets += 1;
        if let Some(slot) = self.slots.get(socket) {
            slot.set(CONNECTING | LIVE, true);
        }
        let address = socket2::SockAddr::from(to);
        let entry = opcode::Connect::new(Fixed(socket), address.as_ptr().cast(), address.len()).build();
        // SAFETY: the kernel copies the address while submitting, which happens in the next line.
        unsafe { self.push_of(Operation::Connect, socket, entry) };
        self.ring.submit()?;
        Ok(socket)
    }

    fn turn(&mut self, events: &mut Vec<Event>, wait: Option<Duration>) -> io::Result<()> {
        debug_assert!(self.tokens.is_empty(), "sends are flushed before a turn");
        events.clear();
        self.arm_receives();
        self.arm_accepts();
        let mut wait = wait;
        if let Some(again) = self.accept_again {
            let rest = again.saturating_duration_since(Instant::now());
            wait = Some(wait.map_or(rest, |wait| wait.min(rest)));
        }
        let mut broken = std::mem::take(&mut self.broken);
        for socket in broken.drain(..) {
            if self.live(socket).is_some() {
                self.gone(socket, libc::EPIPE, events);
                wait = Some(Duration::ZERO);
            }
        }
        self.broken = broken;
        if wait != Some(Duration::ZERO) && (self.ring.has_completions() || !self.waker.fall_asleep()) {
            wait = Some(Duration::ZERO);
        }
        let result = self.ring.wait(wait, self.buffers.given());
        if self.waker.rise() {
            events.push(Event::Wake);
        }
        let mut reaped = std::mem::take(&mut self.ring.reaped);
        for completion in reaped.drain(..) {
            self.on_completion(completion, events);
        }
        // What was reaped while handling came from a full ring; it is later than what was handled, and waits its turn.
        reaped.append(&mut self.ring.reaped);
        self.ring.reaped = reaped;
        let filled = events.iter().filter(|event| matches!(event, Event::Data { .. })).count();
        if filled * 4 >= self.buffers.given() * 3 {
            self.buffers.grow();
        }
        result
    }

    fn bytes(&mut self, buffer: Buffer) -> &mut [u8] {
        self.buffers.memory().received(buffer)
    }

    fn lend(&mut self, buffer: Buffer) -> ReceiveBuffer {
        self.buffers.memory().lend_out(buffer)
    }

    fn take_back(&mut self, lent: ReceiveBuffer) {
        let buffer = self.buffers.memory().take_back(lent);
        self.release(buffer);
    }

    fn release(&mut self, buffer: Buffer) {
        self.buffers.release(buffer);
    }

    unsafe fn send(&mut self, socket: Socket, bytes: &[u8], token: u64) -> Sending {
        if self.live(socket).is_none_or(|slot| slot.is(CONNECTING)) {
            return Sending::Gone;
        }
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let tag = Operation::Send.tag(0, self.tokens.len() as u32);
        self.tokens.push((token, socket));
        let entry = opcode::Send::new(Fixed(socket), bytes.as_ptr(), length).flags(SEND_FLAGS).build();
        // SAFETY: the caller keeps the bytes until flush, which waits for every pending send.
        unsafe { self.ring.push(&entry.user_data(tag)) };
        Sending::Pending
    }

    fn flush(&mut self, sent: &mut Vec<Sent>) -> io::Result<()> {
        if self.tokens.is_empty() {
            return Ok(());
        }
        self.ring.submit()?;
        self.take_answers(sent);
        while self.answered < self.tokens.len() {
            // Only completions that overflowed their ring are missing: MSG_DONTWAIT ends each send within the submission.
            self.ring.enter(Some(Duration::from_millis(1)))?;
            self.take_answers(sent);
        }
        self.tokens.clear();
        self.answered = 0;
        Ok(())
    }

    fn want_write(&mut self, socket: Socket) {
        let Some(slot) = self.live(socket) else { return };
        if !slot.is(WANTING) {
            slot.set(WANTING, true);
            let entry = opcode::PollAdd::new(Fixed(socket), libc::POLLOUT as u32).build();
            // SAFETY: the operation points to no memory.
            unsafe { self.push_of(Operation::Writable, socket, entry) };
        }
    }

    fn pause_read(&mut self, socket: Socket) {
        let Some(slot) = self.live(socket) else { return };
        if !slot.is(PAUSED) {
            slot.set(PAUSED, true);
            if slot.is(RECEIVING) {
                self.cancel(Operation::Receive, socket);
            }
        }
    }

    fn resume_read(&mut self, socket: Socket) {
        if let Some(slot) = self.live(socket) {
            slot.set(PAUSED, false);
            self.arm_later(socket);
        }
    }

    fn finish(&mut self, socket: Socket) {
        if self.live(socket).is_some() {
            let entry = opcode::Shutdown::new(Fixed(socket), libc::SHUT_WR).build();
            // SAFETY: the operation points to no memory.
            unsafe { self.push_of(Operation::Shutdown, socket, entry) };
        }
    }

    fn close(&mut self, socket: Socket) {
        let Some(slot) = self.live(socket) else { return };
        slot.set(CLOSING, true);
        let is_connecting = slot.is(CONNECTING);
        if slot.operations == 0 {
            slot.operations = 1;
            return self.end_of(socket);
        }
        if is_connecting {
            self.cancel(Operation::Connect, socket);
        }
        let entry = opcode::Shutdown::new(Fixed(socket), libc::SHUT_RDWR).build();
        // SAFETY: the operation points to no memory.
        unsafe { self.push_of(Operation::Shutdown, socket, entry) };
    }

    fn rest(&mut self) {
        // What was received and not looked at yet lies in buffers that the kernel has filled: only this thread's enters bring such.
        if !self.ring.has_completions() {
            self.buffers.memory().rest(RECEIVES_FEW);
        }
    }

    fn waker(&self) -> Waker {
        self.waker.clone()
    }

    fn counters(&self) -> Counters {
        Counters { enters: self.ring.enters, ..self.counters }
    }
}
