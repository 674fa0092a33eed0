//! One name may belong to two people: what is kept for a holder is kept for its tenant, its authority and its name together.
use std::sync::Arc;

use super::admit::{come_as, connect_with, has, publish, settings, taken};
use super::end::{packet, subscribe};
use crate::world::{Place, World};
use godwit_core::codes::Code;
use godwit_core::holder::{Holder, Revoked};
use godwit_core::report::Order;

/// What a CONNECT was answered: whether a session was present, and the reason code.
fn answer(world: &mut World, place: Place) -> (u8, u8) {
    let bytes = taken(world, place);
    assert_eq!(bytes.first(), Some(&0x20), "{bytes:x?}");
    (bytes[2], bytes[3])
}

/// The reason of the DISCONNECT that ends what a connection was sent.
fn disconnect(world: &mut World, place: Place) -> Option<u8> {
    let bytes = taken(world, place);
    let start = if bytes.first() == Some(&0x20) { 2 + usize::from(bytes[1]) } else { 0 };
    (bytes.get(start) == Some(&0xe0)).then(|| bytes[start + 2])
}

/// A session of the client `c` with one subscription, whose connection has gone.
fn leave_a_session(world: &mut World, holder: &Arc<Holder>) {
    let place = come_as(world, Arc::clone(holder), &connect_with("c", false));
    assert_eq!(answer(world, place), (0, 0));
    let filters = subscribe(&[("secret/#", 1)]);
    world.bytes(place, &packet(0x82, &[&filters[2..4], &[0], &filters[4..]].concat()));
    world.turn_all();
    world.gone(place);
    world.turn_all();
    publish(world, "/secret/queued", "queued");
}

#[test]
fn a_session_belongs_to_who_vouched_for_its_owner_too() {
    let mut world = World::new(settings(), 2, false);
    let (by_token, by_certificate) = (Holder::new("", "jwt:https://id", "ann"), Holder::new("", "certificate", "ann"));
    leave_a_session(&mut world, &by_token);
    let other = come_as(&mut world, by_certificate, &connect_with("c", false));
    assert_eq!(answer(&mut world, other), (0, 0x85), "another authority's ann is somebody else");
    let back = come_as(&mut world, by_token, &connect_with("c", false));
    let bytes = taken(&mut world, back);
    assert_eq!(bytes[2..4], [1, 0]);
    assert!(has(&bytes, "queued"));
}

#[test]
fn a_client_identifier_is_unique_in_its_tenant_alone() {
    let mut world = World::new(settings(), 2, false);
    let acme = Holder::new("acme", "jwt:https://id", "ann");
    leave_a_session(&mut world, &acme);
    let other = come_as(&mut world, Holder::new("umbrella", "jwt:https://id", "ann"), &connect_with("c", false));
    assert_eq!(answer(&mut world, other), (0, 0), "another tenant's node is another node");
    let back = come_as(&mut world, acme, &connect_with("c", false));
    assert_eq!(taken(&mut world, back)[2..4], [1, 0]);
    assert_eq!(disconnect(&mut world, other), None, "and nobody has been taken over");
}

#[test]
fn a_group_of_one_tenant_has_no_members_of_another() {
    let tenants = ["", "acme", "umbrella", "a/b"];
    let holders = tenants.map(|tenant| Holder::new(tenant, "jwt:https://id", "ann"));
    let join = |world: &mut World, holder: &Arc<Holder>| {
        let place = come_as(world, Arc::clone(holder), &connect_with("worker", false));
        taken(world, place);
        place
    };
    let mut world = World::new(settings(), 2, false);
    let mut places = Vec::new();
    for holder in &holders {
        let place = join(&mut world, holder);
        let filters = subscribe(&[("$share/g/jobs/#", 1)]);
        world.bytes(place, &packet(0x82, &[&filters[2..4], &[0], &filters[4..]].concat()));
        world.turn_all();
        places.push(place);
    }
    publish(&mut world, "/jobs/1", "first");
    for (place, tenant) in places.iter().zip(tenants) {
        assert!(has(&taken(&mut world, *place), "first"), "{tenant}");
        world.bytes(*place, &packet(0x40, &[0, 1]));
        world.turn_all();
        world.gone(*place);
        world.turn_all();
    }
    // While they are all away each group stands still, and is owed what comes.
    publish(&mut world, "/jobs/1", "second");
    for (holder, tenant) in holders.iter().zip(tenants) {
        let place = join(&mut world, holder);
        world.turn_all();
        world.bytes(place, &[]);
        world.gone(place);
        let again = come_as(&mut world, Arc::clone(holder), &connect_with("worker", false));
        world.turn_all();
        let bytes = taken(&mut world, again);
        assert!(has(&bytes, "second") && !has(&bytes, "first"), "{tenant}");
    }
}

#[test]
fn who_has_no_name_holds_no_client_identifier_against_who_has_one() {
    let mut world = World::new(settings(), 2, false);
    let nobody = come_as(&mut world, Holder::nobody(), &connect_with("c", false));
    assert_eq!(answer(&mut world, nobody), (0, 0));
    let ann = Holder::new("", "jwt:https://id", "ann");
    let place = come_as(&mut world, Arc::clone(&ann), &connect_with("c", false));
    assert_eq!(answer(&mut world, place), (0, 0), "and nothing of the other's session is hers");
    assert_eq!(disconnect(&mut world, nobody), Some(0x8e), "the nameless connection is taken over");
    let again = come_as(&mut world, Holder::nobody(), &connect_with("c", false));
    assert_eq!(answer(&mut world, again), (0, 0x85));
}

#[test]
fn a_revocation_reaches_all_of_a_name_or_only_whom_it_says() {
    for (authority, are_closed) in [(None, [true, true]), (Some("certificate"), [false, true])] {
        let mut world = World::new(settings(), 1, false);
        let names = ["jwt:https://id", "certificate"];
        let places: Vec<Place> = names
            .iter()
            .map(|name| come_as(&mut world, Holder::new("", name, "ann"), &connect_with(name, false)))
            .collect();
        let (identity, authority) = (Some("ann".into()), authority.map(Into::into));
        let revoked = Revoked { identity, authority, ..Revoked::default() };
        world.order(0, Order::Revoke { revoked, code: Code::TokenRevoked });
        world.turn_all();
        let ended = [places[0], places[1]].map(|place| disconnect(&mut world, place) == Some(0x87));
        assert_eq!(ended, are_closed);
    }
}

#[test]
fn a_revoked_identity_has_no_session_any_more_and_a_revoked_token_leaves_it() {
    for (is_identity, sessions) in [(true, 2), (false, 0)] {
        let mut world = World::new(settings(), 2, false);
        let ann = Holder::new("", "jwt:https://id", "ann");
        leave_a_session(&mut world, &ann);
        let connected = come_as(&mut world, Arc::clone(&ann), &connect_with("d", true));
        let _ = come_as(&mut world, Holder::new("", "jwt:https://id", "bob"), &connect_with("e", true));
        let identity = is_identity.then(|| Arc::from("ann"));
        let token = (!is_identity).then(|| Arc::from("t"));
        world.order(
            0,
            Order::Revoke { revoked: Revoked { identity, token, ..Revoked::default() }, code: Code::TokenRevoked },
        );
        world.turn_all();
        world.gone(connected);
        world.turn_all();
        let ended = world.node.lock().expect("nobody panicked").ended();
        let (connections, wills) = if is_identity { (1, 1) } else { (2, 2) };
        assert_eq!(
            (ended.connections, ended.sessions, ended.wills),
            (connections, sessions, wills),
            "one token for both"
        );
        for name in ["c", "d"] {
            let back = come_as(&mut world, Arc::clone(&ann), &connect_with(name, false));
            assert_eq!(answer(&mut world, back), (u8::from(!is_identity), 0));
        }
    }
}
