//! What stands between a socket and the core where a listener asks for it: the header of a proxy in front, and TLS. Most sockets
//! have no link and pay nothing. Invariant: ciphertext leaves whole and in order. What a full socket did not take of it is kept here
//! (at most what one send encrypted), and nothing more is encrypted until it has left; plaintext waits in its stream as ever.

use crate::driver::{Driver, Sending, Sent, Socket};
use crate::tls::{Certificates, Session, Turned};
use godwit_core::address::proxy::{self, Header};
use std::net::SocketAddr;

/// Plaintext encrypted for one send: four records.
const SLICE_BYTES: usize = 65_536;
/// Tokens of sends that carry ciphertext; the core's are 32 bits.
const CIPHER: u64 = 1 << 32;
/// A first line or header of a proxy that is longer than this is none.
const HEADER_BYTES_MAX: usize = 8_192;
/// Buffers kept for other sends.
const POOL_MAX: usize = 16;

struct Link {
    tls: Option<Session>,
    /// Ciphertext that the socket did not take; before that, what has come of a proxy's header.
    rest: Vec<u8>,
    awaits_header: bool,
    /// The core wants to hear when the socket takes bytes again.
    is_wanted: bool,
    is_marked: bool,
    is_certified: bool,
}

/// A send of ciphertext that the driver answers later.
struct Flight {
    socket: Socket,
    cipher: Vec<u8>,
    /// The core's token and how much plaintext it is the answer for; none for what is the link's own.
    answers: Option<(u32, usize)>,
}

/// What the core is to hear of received bytes.
pub(crate) struct Received {
    pub(crate) turned: Turned,
    /// Where a trusted proxy says that the client is.
    pub(crate) address: Option<SocketAddr>,
    /// The client's certificate, when it has just been verified.
    pub(crate) certificate: Option<Vec<u8>>,
    /// Why nothing can come of the connection: its handshake, or its proxy's header, is broken.
    pub(crate) fault: Option<String>,
}

/// The links of one shard's sockets.
#[derive(Default)]
pub(crate) struct Links {
    links: Vec<Option<Box<Link>>>,
    flights: Vec<Option<Flight>>,
    /// Sockets with ciphertext of their own to be sent in this turn.
    marked: Vec<Socket>,
    pool: Vec<Vec<u8>>,
    /// Sockets that take plaintext again, and whose core waits for that.
    writable: Vec<Socket>,
}

impl Links {
    /// A socket was accepted by a listener with TLS, or by a trusted proxy. False when it cannot be served.
    pub(crate) fn open(&mut self, socket: Socket, certificates: Option<&Certificates>, awaits_header: bool) -> bool {
        let Ok(tls) = certificates.map(|known| Session::new(known.config())).transpose() else { return false };
        let link =
            Link { tls, rest: Vec::new(), awaits_header, is_wanted: false, is_marked: false, is_certified: false };
        let slot = socket as usize;
        if self.links.len() <= slot {
            self.links.resize_with(slot + 1, || None);
        }
        if let Some(place) = self.links.get_mut(slot) {
            *place = Some(Box::new(link));
        }
        true
    }

    fn get(&mut self, socket: Socket) -> Option<&mut Link> {
        self.links.get_mut(socket as usize)?.as_deref_mut()
    }

    pub(crate) fn has(&self, socket: Socket) -> bool {
        self.links.get(socket as usize).is_some_and(Option::is_some)
    }

    /// Bytes came; what they say is appended to `plain`.
    pub(crate) fn receive(&mut self, socket: Socket, bytes: &mut [u8], plain: &mut Vec<u8>) -> Received {
        let mut received = Received { turned: Turned::Open, address: None, certificate: None, fault: None };
        let Some(link) = self.get(socket) else { return received };
        if !link.awaits_header {
            self.read(socket, bytes, plain, &mut received);
            return received;
        }
        link.rest.extend_from_slice(bytes);
        match proxy::read(&link.rest) {
            Header::Partial if link.rest.len() <= HEADER_BYTES_MAX => {}
            Header::Partial | Header::Broken => {
                received.turned = Turned::Broken;
                received.fault = Some("the header of the proxy is broken".to_owned());
            }
            Header::Whole { bytes: count, address } => {
                received.address = address;
                link.awaits_header = false;
                let mut rest = std::mem::take(&mut link.rest);
                rest.drain(..count);
                self.read(socket, &mut rest, plain, &mut received);
            }
        }
        received
    }

    /// Reads what stands behind a proxy's header.
    fn read(&mut self, socket: Socket, bytes: &mut [u8], plain: &mut Vec<u8>, received: &mut Received) {
        let Some(link) = self.links.get_mut(socket as usize).and_then(Option::as_deref_mut) else { return };
        let Some(tls) = &mut link.tls else {
            // The header was all there was to it: from here on the socket has no link.
            plain.extend_from_slice(bytes);
            if let Some(place) = self.links.get_mut(socket as usize) {
                *place = None;
            }
            return;
        };
        if bytes.is_empty() {
            return;
        }
        let mut fault = None;
        received.turned = tls.receive(bytes, plain, &mut link.rest, &mut fault);
        if !link.is_certified {
            received.fault = fault;
        }
        if !link.is_certified && tls.is_established() {
            link.is_certified = true;
            if link.is_wanted {
                self.writable.push(socket);
            }
            received.certificate = tls.certificates();
        }
        if !link.rest.is_empty() && !link.is_marked {
            link.is_marked = true;
            self.marked.push(socket);
        }
    }

    /// Encrypts and sends for the core; answers as the driver would, of plaintext.
    pub(crate) fn send(&mut self, driver: &mut dyn Driver, socket: Socket, bytes: &[u8], token: u32) -> Sending {
        let mut cipher = self.pool.pop().unwrap_or_default();
        let Some(link) = self.links.get_mut(socket as usize).and_then(Option::as_deref_mut) else {
            return Sending::Gone;
        };
        let taken = bytes.get(..SLICE_BYTES.min(bytes.len())).unwrap_or(bytes);
        let tls = link.tls.as_mut().filter(|tls| tls.is_established() && link.rest.is_empty());
        let Some(tls) = tls else {
            self.pool.push(cipher);
            return Sending::Blocked;
        };
        if !tls.encrypt(taken, &mut cipher) {
            return Sending::Gone;
        }
        self.launch(driver, socket, cipher, Some((token, taken.len())))
    }

    /// Hands ciphertext to the driver. It lies in a flight until the driver has answered.
    fn launch(
        &mut self,
        driver: &mut dyn Driver,
        socket: Socket,
        cipher: Vec<u8>,
        answers: Option<(u32, usize)>,
    ) -> Sending {
        let slot = self.flights.iter().position(Option::is_none).unwrap_or_else(|| {
            self.flights.push(None);
            self.flights.len() - 1
        });
        // SAFETY: the vector's memory does not move with the vector, and the flight is taken apart only when the driver has
        // answered, or after the driver was dropped.
        let sending = unsafe { driver.send(socket, &cipher, CIPHER | slot as u64) };
        let flight = Flight { socket, cipher, answers };
        if sending == Sending::Pending {
            if let Some(place) = self.flights.get_mut(slot) {
                *place = Some(flight);
            }
            return Sending::Pending;
        }
        self.land(driver, flight, sending)
    }

    /// Whether the answer is of ciphertext; then for whom, and what it means in plaintext. None where nobody waits for it.
    pub(crate) fn sent(&mut self, driver: &mut dyn Driver, sent: Sent) -> Result<Option<(u32, Sending)>, Sent> {
        if sent.token & CIPHER == 0 {
            return Err(sent);
        }
        let slot = (sent.token & !CIPHER) as usize;
        let Some(flight) = self.flights.get_mut(slot).and_then(Option::take) else { return Ok(None) };
        let answers = flight.answers;
        let outcome = self.land(driver, flight, sent.outcome);
        Ok(answers.map(|(token, _)| (token, outcome)))
    }

    /// Keeps what the socket did not take.
    fn land(&mut self, driver: &mut dyn Driver, flight: Flight, outcome: Sending) -> Sending {
        let Flight { socket, mut cipher, answers } = flight;
        let count = match outcome {
            Sending::Done(count) => count,
            Sending::Blocked => 0,
            Sending::Pending | Sending::Gone => return Sending::Gone,
        };
        if count < cipher.len() {
            if let Some(link) = self.get(socket) {
                cipher.drain(..count);
                cipher.extend_from_slice(&link.rest);
                cipher.shrink_to_fit();
                link.rest = cipher;
                driver.want_write(socket);
            }
        } else if self.pool.len() < POOL_MAX && cipher.capacity() <= 2 * SLICE_BYTES {
            cipher.clear();
            self.pool.push(cipher);
        }
        Sending::Done(answers.map_or(0, |(_, plain)| plain))
    }

    /// Sends what links have to say themselves: handshakes, alerts, the rests of records. The driver is flushed afterwards.
    pub(crate) fn send_own(&mut self, driver: &mut dyn Driver) -> bool {
        let marked = std::mem::take(&mut self.marked);
        for socket in &marked {
            let Some(link) = self.get(*socket) else { continue };
            link.is_marked = false;
            if link.awaits_header {
                continue;
            }
            let rest = std::mem::take(&mut link.rest);
            if !rest.is_empty() {
                self.launch(driver, *socket, rest, None);
            }
        }
        !marked.is_empty()
    }

    /// The socket takes bytes again: first the rest. True when the core is to hear of it at once.
    pub(crate) fn writable(&mut self, socket: Socket) -> bool {
        let Some(link) = self.get(socket) else { return true };
        if link.rest.is_empty() || link.awaits_header {
            return std::mem::take(&mut link.is_wanted);
        }
        if !link.is_marked {
            link.is_marked = true;
            self.marked.push(socket);
        }
        self.writable.push(socket);
        false
    }

    /// Sockets whose rest has left, and whose core waits for that.
    pub(crate) fn take_writable(&mut self) -> Vec<Socket> {
        let mut freed = std::mem::take(&mut self.writable);
        freed.retain(|&socket| {
            self.get(socket).is_some_and(|link| link.rest.is_empty() && std::mem::take(&mut link.is_wanted))
        });
        freed
    }

    /// The core wants to hear when the socket takes bytes; whether the driver has to be asked. A link that holds a rest has asked;
    /// one that holds none has only sent as much as one send may, and takes more in the next turn: the driver would never say so.
    pub(crate) fn want_write(&mut self, socket: Socket) -> bool {
        let Some(link) = self.get(socket) else { return true };
        link.is_wanted = true;
        if link.rest.is_empty() && link.tls.as_ref().is_none_or(Session::is_established) {
            self.writable.push(socket);
        }
        false
    }

    /// Whether there is something to tell the core at once.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.writable.is_empty()
    }

    /// The socket is about to be closed: says so to the peer, where that can be said.
    pub(crate) fn close(&mut self, driver: &mut dyn Driver, socket: Socket) {
        let Some(mut link) = self.links.get_mut(socket as usize).and_then(Option::take) else { return };
        // Of a header that never ended nothing is sent back.
        let mut last = if link.awaits_header { Vec::new() } else { std::mem::take(&mut link.rest) };
        if let Some(tls) = link.tls.as_mut().filter(|tls| tls.is_established() && last.is_empty()) {
            tls.finish(&mut last);
        }
        if !last.is_empty() {
            self.launch(driver, socket, last, None);
        }
    }

    /// Whether the driver owes an answer to a send of ciphertext.
    pub(crate) fn is_pending(&self) -> bool {
        self.flights.iter().any(Option::is_some)
    }
}
