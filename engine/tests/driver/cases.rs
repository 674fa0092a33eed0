//! What every driver does, each a sentence.

use crate::rig::{DEADLINE, Rig};
use godwit_engine::driver::{DriverOptions, Event, Outgoing, Preference, Sending};
use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

pub(crate) fn a_client_is_accepted_with_its_address_and_answered(preference: Preference) {
    let mut rig = Rig::new(preference);
    let (mut client, socket) = rig.client();
    let address = client.local_addr().unwrap();
    assert!(
        rig.seen.iter().any(|event| matches!(event, Event::Accepted { peer, listener: 0, .. } if *peer == address))
    );
    client.write_all(b"ask").unwrap();
    rig.until(|rig| rig.received(socket) == b"ask");
    assert_eq!(rig.send(socket, b"answer"), Sending::Done(6));
    let mut answer = [0; 6];
    client.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"answer");
    rig.close(socket);
    assert_eq!(client.read(&mut answer).unwrap(), 0);
}

pub(crate) fn a_connection_made_here_is_connected_and_answered(preference: Preference) {
    let mut rig = Rig::new(preference);
    let from: IpAddr = "127.0.0.77".parse().unwrap();
    let socket = rig.driver.connect(rig.address, Some(from)).unwrap();
    let is_connected = |event: &Event| matches!(event, Event::Connected { socket: of, errno: 0 } if *of == socket);
    rig.until(|rig| rig.count(is_connected) == 1 && rig.accepted().len() == 1);
    let there = rig.accepted()[0];
    assert!(rig.seen.iter().any(|event| matches!(event, Event::Accepted { peer, .. } if peer.ip() == from)));
    assert_eq!(rig.send(socket, b"to there"), Sending::Done(8));
    assert_eq!(rig.send(there, b"to here"), Sending::Done(7));
    rig.until(|rig| rig.received(there) == b"to there" && rig.received(socket) == b"to here");
}

pub(crate) fn a_refused_connection_says_so_and_can_be_closed(preference: Preference) {
    let mut rig = Rig::new(preference);
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let Ok(socket) = rig.driver.connect(nobody, None) else { return };
    rig.until(|rig| {
        rig.count(|event| matches!(event, Event::Connected { errno, .. } if *errno == libc::ECONNREFUSED)) == 1
    });
    assert_eq!(rig.send(socket, b"x"), Sending::Gone);
    rig.close(socket);
    assert_eq!(rig.driver.counters().sockets, 0);
}

pub(crate) fn a_paused_socket_that_a_send_finds_broken_is_gone(preference: Preference) {
    let mut rig = Rig::new(preference);
    let (client, socket) = rig.client();
    rig.send(socket, b"never read");
    rig.driver.pause_read(socket);
    rig.turn(Duration::ZERO);
    drop(client);
    while rig.send(socket, b"x") != Sending::Gone {
        rig.driver.want_write(socket);
        rig.turn(Duration::from_millis(1));
    }
    rig.until(|rig| rig.is_gone(socket));
    rig.driver.resume_read(socket);
    rig.close(socket);
    assert_eq!(rig.count(|event| matches!(event, Event::Gone { .. })), 1);
}

/// Sends until the socket takes no more; returns what it took.
fn fill(rig: &mut Rig, socket: u32, bytes: &[u8]) -> usize {
    let mut total = 0;
    loop {
        match rig.send(socket, bytes) {
            Sending::Done(sent) => total += sent,
            Sending::Blocked => return total,
            other => panic!("{other:?}"),
        }
    }
}

pub(crate) fn what_does_not_fit_is_blocked_and_one_writable_follows(preference: Preference) {
    let mut rig = Rig::new(preference);
    let (mut client, socket) = rig.client();
    let is_writable = |event: &Event| matches!(event, Event::Writable { .. });
    let bytes = vec![b'x'; 1 << 20];
    let mut total = 0;
    let mut taken = Vec::new();
    for round in 1..4 {
        total += fill(&mut rig, socket, &bytes);
        rig.driver.want_write(socket);
        rig.driver.want_write(socket);
        rig.turn(Duration::ZERO);
        assert_eq!(rig.count(is_writable), round - 1, "writable before anything was read");
        while taken.len() < total {
            let mut some = vec![0; 1 << 16];
            let length = client.read(&mut some).unwrap();
            taken.extend_from_slice(&some[..length]);
        }
        rig.until(|rig| rig.count(is_writable) == round);
        rig.turn(Duration::ZERO);
        assert_eq!(rig.count(is_writable), round, "asked twice, answered once");
    }
    assert!(total > 3 * 32 * 1024, "{total} bytes are fewer than the kernel keeps unsent");
}

pub(crate) fn a_reset_during_sends_is_gone_once(preference: Preference) {
    let mut rig = Rig::new(preference);
    let (mut client, socket) = rig.client();
    rig.send(socket, b"never read");
    // Closing with unread bytes resets the connection.
    client.write_all(b"!").unwrap();
    rig.until(|rig| rig.received(socket) == b"!");
    drop(client);
    while rig.send(socket, &[b'x'; 4096]) != Sending::Gone {
        rig.turn(Duration::ZERO);
    }
    rig.until(|rig| rig.is_gone(socket));
    assert_eq!(rig.send(socket, b"x"), Sending::Gone);
    rig.close(socket);
    assert_eq!(rig.count(|event| matches!(event, Event::Gone { .. })), 1);
}

pub(crate) fn a_used_number_hears_nothing_of_its_predecessor(preference: Preference) {
    let mut rig = Rig::new(preference);
    let mut numbers = std::collections::BTreeSet::new();
    for round in 0..200_u32 {
        let (mut client, socket) = rig.client();
        numbers.insert(socket);
        rig.received.clear();
        rig.seen.clear();
        client.write_all(&round.to_be_bytes()).unwrap();
        rig.driver.want_write(socket);
        // Half of them are closed with everything still on its way: bytes, a wish to write, an end.
        if round % 2 == 0 {
            rig.until(|rig| rig.received(socket) == round.to_be_bytes());
        }
        drop(client);
        rig.driver.pause_read(socket);
        rig.driver.close(socket);
        rig.driver.close(socket);
        rig.turn(Duration::ZERO);
        assert!(!rig.is_gone(socket), "an event of a closed socket");
        if round % 20 == 19 {
            // However slow the machine is, no more than these are still being closed.
            rig.until(|rig| rig.driver.counters().sockets == 0);
        }
        rig.seen.clear();
    }
    rig.until(|rig| rig.driver.counters().sockets == 0);
    assert!(numbers.len() < 150, "{} numbers for one client at a time", numbers.len());
}

pub(crate) fn a_paused_socket_is_read_again_without_loss(preference: Preference) {
    let mut rig = Rig::new(preference);
    let (mut client, socket) = rig.client();
    let mut expected = Vec::new();
    for round in 0..50_u8 {
        rig.driver.pause_read(socket);
        rig.turn(Duration::ZERO);
        let before = rig.received(socket).len();
        client.write_all(&[round; 3000]).unwrap();
        expected.extend_from_slice(&[round; 3000]);
        if round % 3 == 0 {
            rig.driver.resume_read(socket);
            rig.driver.pause_read(socket);
        }
        rig.turn(Duration::ZERO);
        if round % 3 != 0 {
            assert_eq!(rig.received(socket).len(), before, "read while paused");
        }
        rig.driver.resume_read(socket);
        rig.until(|rig| rig.received(socket).len() == expected.len());
    }
    assert_eq!(rig.received(socket), expected);
    rig.driver.pause_read(socket);
    drop(client);
    rig.driver.resume_read(socket);
    rig.until(|rig| rig.is_gone(socket));
}

pub(crate) fn an_orderly_end_comes_after_the_last_bytes(preference: Preference) {
    let mut rig = Rig::new(preference);
    let (mut client, socket) = rig.client();
    let bytes: Vec<u8> = (0..200_000_u32).map(|at| at as u8).collect();
    let sent = bytes.clone();
    let sender = std::thread::spawn(move || client.write_all(&sent).map(|()| client.shutdown(Shutdown::Write)));
    rig.until(|rig| rig.is_gone(socket));
    sender.join().unwrap().unwrap().unwrap();
    assert_eq!(rig.received(socket), bytes);
    assert!(matches!(rig.seen.last(), Some(Event::Gone { errno: 0, .. })));
}

pub(crate) fn finishing_ends_the_sending_half_alone(preference: Preference) {
    let mut rig = Rig::new(preference);
    let (mut client, socket) = rig.client();
    rig.send(socket, b"last words");
    rig.driver.finish(socket);
    rig.turn(Duration::ZERO);
    let mut heard = Vec::new();
    client.read_to_end(&mut heard).unwrap();
    assert_eq!(heard, b"last words");
    client.write_all(b"I heard").unwrap();
    rig.until(|rig| rig.received(socket) == b"I heard");
    rig.close(socket);
}

pub(crate) fn thousands_of_clients_are_served_at_once(preference: Preference) {
    const CLIENTS: usize = 4000;
    let mut rig = Rig::new(preference);
    let mut made = Vec::new();
    for batch in 0..CLIENTS / 200 {
        let from = IpAddr::from([127, 0, 1, batch as u8]);
        made.extend((0..200).map(|_| rig.driver.connect(rig.address, Some(from)).unwrap()));
        let expected = (batch + 1) * 200;
        rig.until(|rig| rig.accepted().len() == expected);
    }
    rig.until(|rig| rig.count(|event| matches!(event, Event::Connected { errno: 0, .. })) == CLIENTS);
    let accepted = rig.accepted();
    for round in 1..=3 {
        let batch: Vec<_> = accepted
            .iter()
            .map(|&socket| Outgoing { socket, bytes: b"to everybody", token: u64::from(socket) })
            .collect();
        let mut sent = Vec::new();
        rig.driver.send_all(&batch, &mut sent).unwrap();
        assert!(sent.iter().all(|sent| sent.outcome == Sending::Done(12)));
        let mut tokens: Vec<_> = sent.iter().map(|sent| sent.token).collect();
        let mut expected: Vec<_> = accepted.iter().map(|&socket| u64::from(socket)).collect();
        tokens.sort_unstable();
        expected.sort_unstable();
        assert_eq!(tokens, expected);
        rig.until(|rig| made.iter().all(|&socket| rig.received(socket).len() == round * 12));
    }
    for socket in made.into_iter().chain(accepted) {
        rig.driver.close(socket);
    }
    rig.until(|rig| rig.driver.counters().sockets == 0);
}

pub(crate) fn a_large_stream_arrives_whole_through_few_buffers(preference: Preference) {
    let mut rig = Rig::with(DriverOptions { preference, buffers_max: 8, ..DriverOptions::default() });
    let mut senders = Vec::new();
    let mut sockets = Vec::new();
    for number in 0..20_u8 {
        let (mut client, socket) = rig.client();
        sockets.push(socket);
        senders.push(std::thread::spawn(move || {
            client.write_all(&vec![number; 1_000_000]).unwrap();
            client
        }));
    }
    rig.until(|rig| sockets.iter().all(|&socket| rig.received(socket).len() == 1_000_000));
    for (number, &socket) in sockets.iter().enumerate() {
        assert!(rig.received(socket).iter().all(|&byte| usize::from(byte) == number));
    }
    for sender in senders {
        sender.join().unwrap();
    }
}

pub(crate) fn wakes_are_one_event_and_none_is_lost(preference: Preference) {
    let mut rig = Rig::new(preference);
    let is_wake = |event: &Event| matches!(event, Event::Wake);
    let waker = rig.driver.waker();
    for _ in 0..1000 {
        waker.wake();
    }
    rig.turn(DEADLINE);
    assert_eq!(rig.count(is_wake), 1);
    rig.turn(Duration::ZERO);
    assert_eq!(rig.count(is_wake), 1);
    // From another thread, each ring answered before the next: a lost one would hang until the deadline.
    let (to, from) = std::sync::mpsc::channel::<()>();
    let ringer = std::thread::spawn(move || from.iter().for_each(|()| waker.wake()));
    for round in 0..2000 {
        to.send(()).unwrap();
        rig.until(|rig| rig.count(is_wake) >= round + 2);
    }
    drop(to);
    ringer.join().unwrap();
}

pub(crate) fn a_stopped_listener_accepts_no_more(preference: Preference) {
    let mut rig = Rig::new(preference);
    let (mut client, socket) = rig.client();
    rig.driver.stop_listening(0);
    let address: SocketAddr = rig.address;
    rig.until(|_| TcpStream::connect(address).is_err());
    assert_eq!(rig.accepted().len(), 1);
    client.write_all(b"still here").unwrap();
    rig.until(|rig| rig.received(socket) == b"still here");
}
