//! From what the kernel says is ready to events: clients accepted, bytes read, ends and wishes to write.
//! Edge-triggered: what is ready stays noted until a call says that there is no more.

use super::descriptors::first_kept_descriptor;
use super::readiness::{
    ACCEPT_REST, CONNECTING, ENDED, GONE, LISTED, LISTENERS, PAUSED, READABLE, Readiness, WAKE, WANTING, list, spare,
};
use super::{Event, Listener};
use mio::Interest;
use std::io::{ErrorKind, Read};
use std::os::fd::AsRawFd;
use std::time::Instant;

/// Clients accepted of one listener in one turn; the others wait for the next, after those that are here were served.
const ACCEPTS_A_TURN: usize = 256;

impl Readiness {
    pub(super) fn accept(&mut self, events: &mut Vec<Event>) {
        if self.accept_again.is_some_and(|again| Instant::now() < again) {
            return;
        }
        self.accept_again = None;
        let mut first_kept = None;
        for number in 0..self.listeners.len() {
            for _ in 0..ACCEPTS_A_TURN {
                let Some(Some(listening)) = self.listeners.get_mut(number) else { break };
                if !listening.is_ready {
                    break;
                }
                match listening.listener.accept() {
                    // The kernel gives the lowest number that is free: from here on few are left.
                    Ok((stream, _)) if stream.as_raw_fd() >= *first_kept.get_or_insert_with(first_kept_descriptor) => {
                        self.counters.refused += 1;
                    }
                    Ok((stream, peer)) => match self.admit(stream, Interest::READABLE, 0) {
                        Ok(socket) => events.push(Event::Accepted { listener: number as Listener, socket, peer }),
                        Err(_) => self.counters.refused += 1,
                    },
                    Err(error) if error.kind() == ErrorKind::WouldBlock => listening.is_ready = false,
                    Err(error) => match error.raw_os_error() {
                        Some(libc::EMFILE | libc::ENFILE) if self.refuse(number) => {}
                        Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::ENOBUFS) => {
                            self.accept_again = Some(Instant::now() + ACCEPT_REST);
                            return;
                        }
                        // The client gave up while it waited; the next one is tried.
                        _ => {}
                    },
                }
            }
        }
    }

    /// At the limit of descriptors: gives up the spare one to take the client out of the backlog and close it.
    fn refuse(&mut self, number: usize) -> bool {
        let Some(Some(listening)) = self.listeners.get_mut(number) else { return false };
        if self.spare.take().is_none() {
            self.spare = spare();
            return false;
        }
        let result = listening.listener.accept();
        self.counters.refused += u64::from(result.is_ok());
        // Without a descriptor the kernel does not even say that nobody waits.
        let is_empty = result.as_ref().is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
        listening.is_ready = !is_empty;
        let is_settled = is_empty || result.is_ok();
        drop(result);
        self.spare = spare();
        is_settled
    }

    /// Takes what the kernel says is ready into the lists and slots.
    pub(super) fn harvest(&mut self, events: &mut Vec<Event>) {
        for event in &self.harvest {
            let token = event.token();
            if token == WAKE {
                continue;
            }
            if token.0 >= LISTENERS {
                if let Some(Some(listening)) = self.listeners.get_mut(token.0 - LISTENERS) {
                    listening.is_ready = true;
                }
                continue;
            }
            let socket = token.0 as u32;
            let Some(slot) = self.slots.get_of(socket, (token.0 >> 32) as u32) else { continue };
            let Some(stream) = &slot.stream else { continue };
            if slot.is(CONNECTING) {
                let errno = match stream.take_error() {
                    Ok(None) if event.is_writable() => 0,
                    Ok(None) => continue,
                    Ok(Some(error)) | Err(error) => error.raw_os_error().unwrap_or(libc::EIO),
                };
                slot.set(CONNECTING, false);
                slot.set(GONE, errno != 0);
                events.push(Event::Connected { socket, errno });
            } else if event.is_writable() && slot.is(WANTING) {
                slot.set(WANTING, false);
                events.push(Event::Writable { socket });
            }
            if event.is_readable() || event.is_error() {
                slot.set(READABLE, true);
                slot.set(ENDED, slot.is(ENDED) || event.is_read_closed() || event.is_error());
                list(&mut self.to_read, socket, slot);
            }
        }
    }

    /// Reads one buffer from each socket that has something; those with more stay in the list.
    pub(super) fn read(&mut self, events: &mut Vec<Event>) {
        let to_read = std::mem::take(&mut self.to_read);
        for &socket in &to_read {
            let Some(slot) = self.slots.get(socket) else { continue };
            slot.set(LISTED, false);
            if slot.is(PAUSED | GONE) || !slot.is(READABLE) {
                continue;
            }
            let Some(stream) = &mut slot.stream else { continue };
            let Some(&buffer) = self.free.last() else {
                self.counters.starved += 1;
                list(&mut self.to_read, socket, slot);
                continue;
            };
            let whole = self.memory.whole(buffer);
            match stream.read(whole) {
                Ok(0) => {
                    slot.set(GONE, true);
                    events.push(Event::Gone { socket, errno: 0 });
                }
                Ok(length) => {
                    // A read that leaves room has emptied the socket: what comes later is told again.
                    slot.set(READABLE, length == whole.len() || slot.is(ENDED));
                    if slot.is(READABLE) {
                        list(&mut self.to_read, socket, slot);
                    }
                    self.free.pop();
                    events.push(Event::Data { socket, buffer: self.memory.lend(buffer, length) });
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => slot.set(READABLE, false),
                Err(error) if error.kind() == ErrorKind::Interrupted => list(&mut self.to_read, socket, slot),
                Err(error) => {
                    slot.set(GONE, true);
                    events.push(Event::Gone { socket, errno: error.raw_os_error().unwrap_or(libc::EIO) });
                }
            }
        }
        if self.to_read.is_empty() {
            self.to_read = to_read;
            self.to_read.clear();
        }
    }
}
