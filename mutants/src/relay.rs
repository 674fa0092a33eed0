//! The broken way out: bytes pass between clients and the hidden engine, and on the way to a client whole frames may be tampered with.
//! Two threads a connection and blocking sockets with small buffers, so that a reader that stops is felt by the engine.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use socket2::{Domain, SockRef, Socket, Type};

use crate::mutation::{Kind, Mutant, Mutation, kind};

const BUFFER_BYTES: usize = 16_384;

/// Takes connections for as long as the program lives.
pub(crate) fn accept(listener: &TcpListener, hidden: SocketAddr, mutant: &Arc<Mutant>) {
    for client in listener.incoming().flatten() {
        let mutant = Arc::clone(mutant);
        std::thread::spawn(move || relay(&client, hidden, &mutant));
    }
}

fn relay(client: &TcpStream, hidden: SocketAddr, mutant: &Mutant) -> io::Result<()> {
    let socket = Socket::new(Domain::for_address(hidden), Type::STREAM, None)?;
    socket.set_recv_buffer_size(BUFFER_BYTES)?;
    socket.connect(&hidden.into())?;
    let engine: TcpStream = socket.into();
    SockRef::from(client).set_send_buffer_size(BUFFER_BYTES)?;
    client.set_nodelay(true)?;
    engine.set_nodelay(true)?;
    let (from, to) = (client.try_clone()?, engine.try_clone()?);
    std::thread::spawn(move || {
        let _ = io::copy(&mut &from, &mut &to);
        let _ = to.shutdown(Shutdown::Both);
    });
    let passed = pass(&engine, client, mutant);
    let _ = client.shutdown(Shutdown::Both);
    let _ = engine.shutdown(Shutdown::Both);
    passed
}

/// From the engine to the client: the head of the handshake as it is, then frame by frame.
fn pass(mut engine: &TcpStream, mut client: &TcpStream, mutant: &Mutant) -> io::Result<()> {
    let (mut held, mut is_open, mut out) = (Vec::new(), false, Vec::new());
    let mut tampering = Tampering { mutant, late: None };
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let count = engine.read(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        held.extend_from_slice(&buffer[..count]);
        let mut taken = 0;
        if !is_open && let Some(end) = held.windows(4).position(|four| four == b"\r\n\r\n") {
            is_open = true;
            taken = end + 4;
            out.extend_from_slice(&held[..taken]);
        }
        while is_open && let Some((head, whole)) = frame(&held[taken..]) {
            tampering.take(&held[taken..taken + whole], head, &mut out);
            taken += whole;
        }
        held.drain(..taken);
        client.write_all(&out)?;
        out.clear();
    }
}

/// The lengths of the first frame's head and of the whole of it, if all of it is there. Frames to a client have no mask.
fn frame(bytes: &[u8]) -> Option<(usize, usize)> {
    let (head, length) = match bytes.get(1)? & 0x7f {
        126 => (4, usize::from(u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?))),
        127 => (10, usize::try_from(u64::from_be_bytes(bytes.get(2..10)?.try_into().ok()?)).ok()?),
        short => (2, usize::from(short)),
    };
    (bytes.len() >= head + length).then_some((head, head + length))
}

/// What one connection's frames go through; `late` is a frame that waits for the next of its subject, and its subject.
struct Tampering<'a> {
    mutant: &'a Mutant,
    late: Option<(Vec<u8>, Vec<u8>)>,
}

impl Tampering<'_> {
    fn take(&mut self, frame: &[u8], head: usize, out: &mut Vec<u8>) {
        let kind = kind(&frame[head..]);
        match (self.mutant.judge(kind), kind) {
            (Mutation::Lose | Mutation::HideGap, _) => return,
            (Mutation::Repeat, _) => out.extend_from_slice(frame),
            (Mutation::Reorder, Kind::Message(subject)) if self.late.is_none() => {
                self.late = Some((subject.to_vec(), frame.to_vec()));
                return;
            }
            _ => {}
        }
        out.extend_from_slice(frame);
        if let Kind::Message(subject) = kind
            && self.late.as_ref().is_some_and(|(late, _)| late == subject)
            && let Some((_, late)) = self.late.take()
        {
            out.extend_from_slice(&late);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Mutant, Mutation, Tampering, frame};

    fn text(payload: &str) -> Vec<u8> {
        [&[0x81, payload.len() as u8], payload.as_bytes()].concat()
    }

    fn tampered(mutation: Mutation, each: u64, payloads: &[&str]) -> Vec<String> {
        let mutant = Mutant::new(mutation, each);
        let mut tampering = Tampering { mutant: &mutant, late: None };
        let mut out = Vec::new();
        for payload in payloads {
            tampering.take(&text(payload), 2, &mut out);
        }
        let mut told = Vec::new();
        while let Some((head, whole)) = frame(&out) {
            told.push(String::from_utf8_lossy(&out[head..whole]).into_owned());
            out.drain(..whole);
        }
        told
    }

    const A1: &str = r#"{"message":"/a","at":"7.1"}"#;
    const A2: &str = r#"{"message":"/a","at":"7.2"}"#;
    const B1: &str = r#"{"message":"/b","at":"7.1"}"#;
    const GAP: &str = r#"{"gap":"/a","at":"7.9"}"#;

    #[test]
    fn each_mutation_does_what_it_says() {
        assert_eq!(tampered(Mutation::None, 1, &[A1, GAP]), [A1, GAP]);
        assert_eq!(tampered(Mutation::Lose, 2, &[A1, GAP, B1, A2]), [A1, GAP, A2]);
        assert_eq!(tampered(Mutation::Repeat, 2, &[A1, A2]), [A1, A2, A2]);
        assert_eq!(tampered(Mutation::HideGap, 1, &[A1, GAP, A2]), [A1, A2]);
    }

    #[test]
    fn a_reordered_message_comes_after_the_next_of_its_own_subject() {
        let mutant_of_the_first = [A1, B1, A2];
        let told = tampered(Mutation::Reorder, 1, &mutant_of_the_first);
        assert_eq!(told, [B1, A2, A1]);
    }

    #[test]
    fn a_frame_is_whole_or_not_at_all() {
        let long = [vec![0x82, 126, 1, 0], vec![7; 256]].concat();
        assert_eq!(frame(&long), Some((4, 260)));
        assert_eq!(frame(&long[..259]), None);
        assert_eq!(frame(&[0x81]), None);
    }
}
