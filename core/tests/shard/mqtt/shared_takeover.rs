//! A member of a shared subscription whose connection is taken over by its own client keeps what it has in flight; where the session ends or
//! stays away instead, another member gets what was sent at QoS 1, and nobody what was sent at QoS 2 [MQTT-4.4.0-1, MQTT-4.8.2-4].
use std::collections::BTreeSet;

use super::admit::taken;
use super::{come, connect, listeners, packet, subscribe};
use crate::world::{Place, World, open_settings};
use godwit_core::holder::{ANONYMOUS, Revoked};
use godwit_core::position::Now;

/// A PUBLISH that a member received, or a PUBREL, by its identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Got {
    Message { number: u8, packet_id: u8, is_duplicate: bool },
    Release(u8),
}

fn got(world: &mut World, place: Place) -> Vec<Got> {
    let bytes = taken(world, place);
    let (mut rest, mut all) = (&*bytes, Vec::new());
    while let [first, length, more @ ..] = rest {
        let (body, next) = more.split_at(usize::from(*length));
        match first >> 4 {
            3 => all.push(Got::Message { number: body[6] - b'a', packet_id: body[4], is_duplicate: first & 8 > 0 }),
            6 => all.push(Got::Release(body[1])),
            _ => {}
        }
        rest = next;
    }
    all
}

fn numbers(all: &[Got]) -> BTreeSet<u8> {
    let number = |one: &Got| if let Got::Message { number, .. } = one { Some(*number) } else { None };
    all.iter().filter_map(number).collect()
}

struct Pair {
    world: World,
    one: Place,
    other: Place,
    /// What the first has in flight, and what the other has.
    sent: [Vec<Got>; 2],
}

/// Two members of one group have five of ten messages each, and have settled none.
fn pair(qos: u8) -> Pair {
    let mut settings = open_settings();
    settings.listeners = listeners();
    let mut world = World::new(settings, 2, false);
    let publisher = world.connect(0);
    let [one, other] = [(0, "one"), (1, "other")].map(|(shard, name)| {
        let place = come(&mut world, shard, &connect(name, false));
        world.turn_all();
        world.bytes(place, &subscribe(&[("$share/g/j", qos)]));
        world.turn_all();
        place
    });
    for number in b'a'..b'k' {
        world.say(publisher, &format!(r#"{{"publish":"/j","content":"{}"}}"#, number as char));
        world.turn_all();
    }
    let sent = [one, other].map(|place| got(&mut world, place));
    assert!(sent.iter().all(|sent| sent.len() == 5), "{sent:?}");
    Pair { world, one, other, sent }
}

/// CONNECT of the first member; a clean one begins a new session.
fn hello(is_clean: bool) -> Vec<u8> {
    let mut hello = connect("one", false);
    hello[9] |= u8::from(is_clean) << 1;
    hello
}

/// The other settles what it has, and says what it got after that.
fn settle(world: &mut World, place: Place, sent: &[Got], qos: u8) -> Vec<Got> {
    for one in sent {
        if let Got::Message { packet_id, .. } = one {
            world.bytes(place, &packet(if qos == 1 { 0x40 } else { 0x50 }, &[0, *packet_id]));
        }
    }
    world.turn_all();
    world.turn_all();
    got(world, place).into_iter().filter(|one| matches!(one, Got::Message { .. })).collect()
}

#[test]
fn what_is_in_flight_stays_with_a_session_whose_client_takes_over() {
    for (qos, received, shard) in [(1, 0, 0), (1, 0, 1), (2, 0, 0), (2, 2, 1), (2, 5, 0)] {
        let Pair { mut world, one, other, sent } = pair(qos);
        // The client has said of the first ones that it received them.
        settle(&mut world, one, &sent[0][..received], qos);
        let mut place = one;
        for _ in 0..3 {
            place = come(&mut world, shard, &hello(false));
            world.turn_all();
            world.turn_all();
            let again: Vec<Got> = sent[0]
                .iter()
                .enumerate()
                .map(|(at, sent)| match *sent {
                    Got::Message { packet_id, .. } if at < received => Got::Release(packet_id),
                    Got::Message { number, packet_id, .. } => Got::Message { number, packet_id, is_duplicate: true },
                    Got::Release(_) => panic!("nothing was received yet"),
                })
                .collect();
            assert_eq!(got(&mut world, place), again, "QoS {qos}, received {received}, shard {shard}");
            assert_eq!(settle(&mut world, other, &sent[1], qos), [], "the other gets none of them");
        }
        // Once they are settled, nothing is left of them.
        assert_eq!(settle(&mut world, place, &sent[0], qos), []);
        world.gone(place);
        world.turn_all();
        assert_eq!(settle(&mut world, other, &[], qos), []);
    }
}

/// How the session ends, or stays away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Clean,
    Gone,
    GoneAfterTakeover,
}

#[test]
fn what_is_in_flight_goes_to_another_member_when_the_session_ends_or_stays_away() {
    for qos in [1, 2] {
        for end in [End::Clean, End::Gone, End::GoneAfterTakeover] {
            let Pair { mut world, one, other, sent } = pair(qos);
            match end {
                End::Clean => {
                    come(&mut world, 1, &hello(true));
                }
                End::Gone => world.gone(one),
                End::GoneAfterTakeover => {
                    let place = come(&mut world, 1, &hello(false));
                    world.turn_all();
                    world.turn_all();
                    world.gone(place);
                }
            }
            world.turn_all();
            world.turn_all();
            let again = settle(&mut world, other, &sent[1], qos);
            let expected = if qos == 1 { numbers(&sent[0]) } else { BTreeSet::new() };
            assert_eq!(numbers(&again), expected, "QoS {qos}, {end:?}");
            assert_eq!(again.len(), expected.len(), "each once");
        }
    }
}

/// The connection that waits for its client's present one leaves before that has gone, or before it has looked.
#[test]
fn what_is_in_flight_goes_to_another_member_when_the_one_that_waits_leaves() {
    for has_gone in [false, true] {
        let Pair { mut world, other, sent, .. } = pair(1);
        let waiting = come(&mut world, 1, &hello(false));
        world.turn_alone(1);
        if has_gone {
            world.turn_alone(0);
        }
        world.gone(waiting);
        world.turn_alone(1);
        world.turn_all();
        world.turn_all();
        let again = settle(&mut world, other, &sent[1], 1);
        assert_eq!(numbers(&again), numbers(&sent[0]), "has_gone {has_gone}");
    }
}

/// A client connects three times at once: its second connection leaves when its first has gone, and before its third has looked.
#[test]
fn what_is_in_flight_stays_with_the_session_when_an_earlier_connection_that_waited_leaves() {
    for is_evicted in [true, false] {
        let Pair { mut world, other, sent, .. } = pair(1);
        let second = come(&mut world, 1, &hello(false));
        world.turn_alone(1);
        let third = come(&mut world, 1, &hello(false));
        world.turn_alone(0);
        if !is_evicted {
            world.gone(second);
        }
        world.turn_alone(1);
        world.turn_all();
        world.turn_all();
        assert_eq!(numbers(&got(&mut world, third)), numbers(&sent[0]), "evicted {is_evicted}");
        assert_eq!(settle(&mut world, other, &sent[1], 1), [], "the other gets none of them");
    }
}

/// What ends a session that another connection of its client is about to take over.
#[test]
fn what_is_in_flight_goes_to_another_member_when_the_session_expires_or_is_revoked_in_a_takeover() {
    for is_revoked in [false, true] {
        for qos in [1, 2] {
            let Pair { mut world, other, sent, .. } = pair(qos);
            come(&mut world, 1, &hello(false));
            world.turn_alone(1);
            world.turn_alone(0);
            {
                let mut node = world.node.lock().unwrap();
                if is_revoked {
                    let revoked = Revoked { authority: Some(ANONYMOUS.into()), ..Revoked::default() };
                    assert_eq!(node.revoke_away(&revoked, None), None);
                    assert_eq!(node.ended().sessions, 1);
                } else {
                    node.sweep(Now { mono_ms: u64::MAX, ..world.now });
                }
            }
            world.turn_all();
            world.turn_all();
            let again = settle(&mut world, other, &sent[1], qos);
            let expected = if qos == 1 { numbers(&sent[0]) } else { BTreeSet::new() };
            assert_eq!(numbers(&again), expected, "QoS {qos}, revoked {is_revoked}");
            assert_eq!(again.len(), expected.len(), "each once");
        }
    }
}
