//! One connection's TLS: records in, plaintext out, and back. Owns what has arrived of a record and is not whole, and nothing else;
//! what is to be sent is written into the caller's buffer, whole and in order.

use rustls::ServerConfig;
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{ConnectionState, EncodeError, EncryptError, InsufficientSizeError, UnbufferedStatus};
use std::sync::Arc;

/// Most bytes of a half-received record or handshake; the largest record has 16 kB and a little, a client's chain may have more.
const INCOMING_BYTES_MAX: usize = 65_536;
/// Steps of one call: a handshake has a dozen, and a record in 16 bytes is the smallest there is.
const STEPS_MAX: usize = 65_536;
/// The most a record adds to its plaintext, and the plaintext of one record.
const OVERHEAD: usize = 64;
const RECORD_BYTES: usize = 16_384;

/// What became of received bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turned {
    Open,
    /// The peer has said its last; what it said before is in the plaintext.
    Ended,
    /// It does not speak TLS as it should; an alert may be in the ciphertext.
    Broken,
}

pub(crate) struct Session {
    connection: UnbufferedServerConnection,
    incoming: Vec<u8>,
    /// Nothing more is read: it broke the protocol.
    is_broken: bool,
}

impl Session {
    pub(crate) fn new(config: Arc<ServerConfig>) -> Result<Self, rustls::Error> {
        Ok(Self { connection: UnbufferedServerConnection::new(config)?, incoming: Vec::new(), is_broken: false })
    }

    /// Whether plaintext can be sent.
    pub(crate) fn is_established(&self) -> bool {
        !self.connection.is_handshaking() && !self.is_broken
    }

    /// The client's certificate, once it has shown one that leads to one of our authorities, then those it sent with it (DER).
    pub(crate) fn certificates(&self) -> Option<Vec<u8>> {
        self.connection.peer_certificates().map(|chain| chain.iter().flat_map(|one| one.as_ref()).copied().collect())
    }

    /// Takes received bytes; appends what they say to `plain`, and what has to be answered to `cipher`. `fault`: what is wrong
    /// with them, where that is known.
    pub(crate) fn receive(
        &mut self,
        bytes: &mut [u8],
        plain: &mut Vec<u8>,
        cipher: &mut Vec<u8>,
        fault: &mut Option<String>,
    ) -> Turned {
        if self.is_broken {
            return Turned::Broken;
        }
        if self.incoming.is_empty() {
            let (turned, used) = turn(&mut self.connection, bytes, plain, cipher, fault);
            let rest = bytes.get(used..).unwrap_or_default();
            if turned == Turned::Open && !rest.is_empty() {
                self.incoming.reserve_exact(rest.len());
                self.incoming.extend_from_slice(rest);
            }
            return self.conclude(turned);
        }
        let mut incoming = std::mem::take(&mut self.incoming);
        incoming.extend_from_slice(bytes);
        let (turned, used) = turn(&mut self.connection, &mut incoming, plain, cipher, fault);
        if turned == Turned::Open && used < incoming.len() {
            incoming.drain(..used);
            self.incoming = incoming;
        }
        self.conclude(turned)
    }

    fn conclude(&mut self, turned: Turned) -> Turned {
        let is_too_much = self.incoming.len() > INCOMING_BYTES_MAX;
        if is_too_much || turned == Turned::Broken {
            self.is_broken = true;
            self.incoming = Vec::new();
            return Turned::Broken;
        }
        turned
    }

    /// Appends the records that carry `plain` to `cipher`; false when that cannot be.
    pub(crate) fn encrypt(&mut self, plain: &[u8], cipher: &mut Vec<u8>) -> bool {
        for _ in 0..STEPS_MAX {
            let UnbufferedStatus { state, .. } = self.connection.process_tls_records(&mut self.incoming);
            match state {
                Ok(ConnectionState::WriteTraffic(mut traffic)) => {
                    let room = plain.len() + OVERHEAD * (plain.len() / RECORD_BYTES + 1);
                    return grow(cipher, room, |out| traffic.encrypt(plain, out).map_err(missing_in_encrypt));
                }
                Ok(ConnectionState::EncodeTlsData(mut encode)) => {
                    if !grow(cipher, OVERHEAD, |out| encode.encode(out).map_err(missing_in_encode)) {
                        return false;
                    }
                }
                Ok(ConnectionState::TransmitTlsData(transmit)) => transmit.done(),
                _ => return false,
            }
        }
        false
    }

    /// Appends the last word.
    pub(crate) fn finish(&mut self, cipher: &mut Vec<u8>) {
        if let UnbufferedStatus { state: Ok(ConnectionState::WriteTraffic(mut traffic)), .. } =
            self.connection.process_tls_records(&mut self.incoming)
        {
            grow(cipher, OVERHEAD, |out| traffic.queue_close_notify(out).map_err(missing_in_encrypt));
        }
    }
}

/// Goes through all records that are whole; returns how it stands and how many bytes were used up.
fn turn(
    connection: &mut UnbufferedServerConnection,
    bytes: &mut [u8],
    plain: &mut Vec<u8>,
    cipher: &mut Vec<u8>,
    fault: &mut Option<String>,
) -> (Turned, usize) {
    let mut used = 0;
    let mut is_failing = false;
    for _ in 0..STEPS_MAX {
        let rest = bytes.get_mut(used..).unwrap_or_default();
        let UnbufferedStatus { mut discard, state } = connection.process_tls_records(rest);
        let mut ended = None;
        match state {
            Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                while let Some(record) = traffic.next_record() {
                    let Ok(record) = record else { return (Turned::Broken, used) };
                    discard += record.discard;
                    plain.extend_from_slice(record.payload);
                }
            }
            Ok(ConnectionState::EncodeTlsData(mut encode)) => {
                if !grow(cipher, OVERHEAD, |out| encode.encode(out).map_err(missing_in_encode)) {
                    return (Turned::Broken, used);
                }
            }
            Ok(ConnectionState::TransmitTlsData(transmit)) => transmit.done(),
            Ok(ConnectionState::BlockedHandshake | ConnectionState::WriteTraffic(_)) => ended = Some(Turned::Open),
            Ok(ConnectionState::PeerClosed | ConnectionState::Closed) => ended = Some(Turned::Ended),
            // The first time there may be an alert to be encoded; after that it is over.
            Err(error) if !is_failing => {
                is_failing = true;
                *fault = Some(error.to_string());
            }
            _ => return (Turned::Broken, used),
        }
        used += discard;
        if let Some(turned) = ended {
            return (if is_failing { Turned::Broken } else { turned }, used);
        }
    }
    (Turned::Broken, used)
}

/// Makes room behind `out` and has `write` fill it, with more room where it asks for that.
fn grow(out: &mut Vec<u8>, room: usize, mut write: impl FnMut(&mut [u8]) -> Result<usize, Option<usize>>) -> bool {
    let start = out.len();
    let mut room = room;
    for _ in 0..2 {
        out.resize(start + room, 0);
        match write(out.get_mut(start..).unwrap_or_default()) {
            Ok(written) => {
                out.truncate(start + written);
                return true;
            }
            Err(Some(required)) => room = required,
            Err(None) => break,
        }
    }
    out.truncate(start);
    false
}

fn missing_in_encode(error: EncodeError) -> Option<usize> {
    match error {
        EncodeError::InsufficientSize(InsufficientSizeError { required_size }) => Some(required_size),
        EncodeError::AlreadyEncoded => None,
    }
}

fn missing_in_encrypt(error: EncryptError) -> Option<usize> {
    match error {
        EncryptError::InsufficientSize(InsufficientSizeError { required_size }) => Some(required_size),
        EncryptError::EncryptExhausted => None,
    }
}
