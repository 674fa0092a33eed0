//! What became of the operations: each completion changes its socket's slot, and becomes at most one event.
//! Invariant: a slot is freed by the completion of its close, which is pushed when nothing else of it is in the kernel.

use super::uring::{ACCEPT_REST, Uring};
use super::uring_accept;
use super::uring_ring::{Completion, Operation};
use super::uring_slot::{CLOSING, CONNECTING, GONE, LIVE, RECEIVING, WANTING};
use super::{Driver, Event, Sending, Socket};
use io_uring::types::Fixed;
use io_uring::{cqueue, opcode};
use std::time::Instant;

/// The answer to a send.
pub(super) fn outcome(result: i32) -> Sending {
    match usize::try_from(result) {
        Ok(sent) => Sending::Done(sent),
        Err(_) if matches!(-result, libc::EAGAIN | libc::ENOBUFS | libc::EINTR | libc::ENOMEM) => Sending::Blocked,
        Err(_) => Sending::Gone,
    }
}

impl Uring {
    fn on_accept(&mut self, completion: Completion, events: &mut Vec<Event>) {
        let (listener, accept) = uring_accept::of_index(completion.index());
        let Some(Some(listening)) = self.listeners.get_mut(listener as usize) else { return };
        let Some(socket) = listening.fulfil(accept) else { return };
        let peer = listening.peer(accept);
        let (is_stopping, is_idle) = (listening.is_stopping, listening.is_idle());
        if completion.result < 0 {
            self.slots.give(socket);
            if matches!(-completion.result, libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::ENOBUFS) {
                self.accept_again = Some(Instant::now() + ACCEPT_REST);
            }
        } else {
            self.counters.sockets += 1;
            if let Some(slot) = self.slots.get(socket) {
                slot.set(LIVE, true);
            }
            if is_stopping || self.counters.sockets > self.sockets_max as u64 {
                self.counters.refused += u64::from(!is_stopping);
                self.close(socket);
            } else {
                events.push(Event::Accepted { listener, socket, peer });
                self.arm_later(socket);
            }
        }
        if !is_stopping {
            self.to_accept.push_back((listener, accept));
        } else if is_idle {
            self.listeners[listener as usize] = None;
        }
    }

    fn on_receive(&mut self, completion: Completion, events: &mut Vec<Event>) {
        let socket = completion.index();
        let is_lent = cqueue::buffer_select(completion.flags)
            .map(|buffer| self.buffers.memory().lend(buffer, usize::try_from(completion.result).unwrap_or(0)));
        let slot = self.slots.get_of(socket, completion.generation());
        if let Some(buffer) = is_lent {
            if completion.result > 0 && slot.as_ref().is_some_and(|slot| !slot.is(CLOSING)) {
                events.push(Event::Data { socket, buffer });
            } else {
                self.buffers.release(buffer);
            }
        }
        let Some(slot) = slot.filter(|_| !cqueue::more(completion.flags)) else { return };
        slot.set(RECEIVING, false);
        let is_closing = slot.is(CLOSING);
        self.end_of(socket);
        match completion.result {
            _ if is_closing => {}
            0 => self.gone(socket, 0, events),
            n if n > 0 => self.arm_later(socket),
            n => match -n {
                libc::ENOBUFS => {
                    self.counters.starved += 1;
                    self.buffers.grow();
                    self.arm_later(socket);
                }
                libc::ECANCELED | libc::EINTR | libc::EAGAIN => self.arm_later(socket),
                errno => self.gone(socket, errno, events),
            },
        }
    }

    pub(super) fn gone(&mut self, socket: Socket, errno: i32, events: &mut Vec<Event>) {
        if let Some(slot) = self.slots.get(socket)
            && !slot.is(GONE)
        {
            slot.set(GONE, true);
            events.push(Event::Gone { socket, errno });
        }
    }

    /// One operation of a socket ended; a closing one is closed after its last.
    pub(super) fn end_of(&mut self, socket: Socket) {
        if let Some(slot) = self.slots.get(socket) {
            slot.operations -= 1;
            if slot.is(CLOSING) && slot.operations == 0 {
                // SAFETY: the operation points to no memory.
                unsafe { self.push_of(Operation::Close, socket, opcode::Close::new(Fixed(socket)).build()) };
            }
        }
    }

    fn on_writable(&mut self, socket: Socket, events: &mut Vec<Event>) {
        if let Some(slot) = self.slots.get(socket) {
            slot.set(WANTING, false);
            if !slot.is(CLOSING) {
                events.push(Event::Writable { socket });
            }
        }
        self.end_of(socket);
    }

    fn on_connect(&mut self, socket: Socket, result: i32, events: &mut Vec<Event>) {
        self.end_of(socket);
        let Some(slot) = self.slots.get(socket) else { return };
        slot.set(CONNECTING, false);
        if slot.is(CLOSING) {
            return;
        }
        slot.set(GONE, result < 0);
        events.push(Event::Connected { socket, errno: -result });
        self.arm_later(socket);
    }

    pub(super) fn on_completion(&mut self, completion: Completion, events: &mut Vec<Event>) {
        let socket = completion.index();
        let Some(operation) = completion.operation() else { return };
        match operation {
            Operation::Accept => return self.on_accept(completion, events),
            Operation::Receive => return self.on_receive(completion, events),
            Operation::WakeSource => {
                if !cqueue::more(completion.flags) {
                    self.watch_bell();
                }
                return;
            }
            Operation::Send => return,
            _ => {}
        }
        if self.slots.get_of(socket, completion.generation()).is_none() {
            return;
        }
        match operation {
            Operation::Writable => self.on_writable(socket, events),
            Operation::Connect => self.on_connect(socket, completion.result, events),
            Operation::Close => {
                self.slots.give(socket);
                self.counters.sockets -= 1;
            }
            _ => self.end_of(socket),
        }
    }
}
