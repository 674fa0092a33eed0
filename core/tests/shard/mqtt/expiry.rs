//! A message whose expiry passes while it is under way: the exchange is finished first, and its identifier stays taken until then
//! [MQTT-4.4.0-1].
use super::end::{come, connect, listeners, packet, subscribe, text};
use crate::world::{Place, World, open_settings};

fn publish(qos: u8, id: u8, payload: u8, expiry_s: u8) -> Vec<u8> {
    let properties: &[u8] = if expiry_s > 0 { &[5, 2, 0, 0, 0, expiry_s] } else { &[0] };
    packet(0x30 | qos << 1, &[&text("t"), &[0, id][..], properties, &[payload]].concat())
}

/// Packets that came: first byte, identifier, last byte.
fn heard(world: &mut World, place: Place) -> Vec<(u8, u16, u8)> {
    world.turn_all();
    let mut rest = std::mem::take(&mut world.socket(place).taken);
    let mut packets = Vec::new();
    while !rest.is_empty() {
        let body: Vec<u8> = rest.drain(..2 + usize::from(rest[1])).skip(2).collect();
        packets.push(body);
    }
    packets
        .into_iter()
        .map(|body| {
            let at = if body.len() > 4 && body[..3] == [0, 1, b't'] { 3 } else { 0 };
            (u8::from(at > 0), u16::from_be_bytes([body[at], body[at + 1]]), body[body.len() - 1])
        })
        .collect()
}

fn arrive(world: &mut World, is_five: bool) -> Place {
    let place = come(world, 0, &connect("s", is_five));
    world.turn_all();
    place
}

#[test]
fn an_identifier_whose_message_expired_under_way_is_free_when_the_client_has_settled_it() {
    for (is_five, qos) in [(false, 1), (false, 2), (true, 1), (true, 2)] {
        let mut settings = open_settings();
        settings.listeners = listeners();
        settings.limits.idle_ms_max = 1 << 40;
        let mut world = World::new(settings, 1, false);
        let place = arrive(&mut world, is_five);
        let mut asks = subscribe(&[("t", qos)]);
        if is_five {
            asks.insert(4, 0);
            asks[1] += 1;
        }
        world.bytes(place, &asks);
        let publisher = come(&mut world, 0, &connect("p", true));
        world.bytes(publisher, &publish(qos, 1, b'x', 1));
        let sent = heard(&mut world, place).into_iter().find(|one| one.0 == 1).expect("the message");
        world.gone(place);
        world.advance(3_000);
        world.turn_all();
        let place = arrive(&mut world, is_five);
        let came = heard(&mut world, place);
        assert!(came.iter().all(|one| one.0 == 0), "it has expired: {came:?}");
        for number in 0..4 {
            world.bytes(publisher, &publish(qos, 2 + number, b'0' + number, 0));
        }
        let ids: Vec<u16> = heard(&mut world, place).iter().filter(|one| one.0 == 1).map(|one| one.1).collect();
        assert!(ids.len() == 4 && !ids.contains(&sent.1), "QoS {qos}: {ids:?} beside {}", sent.1);
        // The client has had it all the time, and says so.
        world.bytes(place, &packet(if qos == 1 { 0x40 } else { 0x50 }, &sent.1.to_be_bytes()));
        let answer = heard(&mut world, place);
        if qos == 2 {
            assert_eq!(answer.iter().map(|one| one.1).collect::<Vec<_>>(), [sent.1], "its release");
            world.bytes(place, &packet(0x70, &sent.1.to_be_bytes()));
        }
        assert!(heard(&mut world, place).is_empty());
        assert!(!world.socket(place).is_closed);
    }
}
