//! Who shows a token waits unread for the server's answer, and no longer than that; what a listener and an address allow.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::mqtt::{connect, text};
use crate::world::{Place, World, open_settings};
use godwit_core::codes::Code;
use godwit_core::holder::{Holder, Revoked};
use godwit_core::report::{ConnectionId, Order, Report};
use godwit_core::rights::{Rights, Rule};
use godwit_core::settings::{Listener, RuleSettings, Settings};
use godwit_core::shard::check_access;

/// A client that has shown its token, and the connection the question was about.
pub(crate) fn asking(world: &mut World) -> (Place, ConnectionId) {
    let place = world.connect(0);
    world.say(place, r#"[{"id":1,"connect":{"token":"t"}},{"subscribe":"/a"}]"#);
    world.turn(0);
    let connection = world.reports.iter().find_map(|report| match report {
        Report::Authorize { connection, .. } => Some(*connection),
        _ => None,
    });
    (place, connection.expect("a question"))
}

#[test]
fn a_refused_client_is_read_again_so_that_its_own_close_ends_the_connection() {
    let mut world = World::new(Settings { asks_on_connect: true, ..open_settings() }, 1, false);
    let (place, connection) = asking(&mut world);
    assert!(world.socket(place).is_paused, "nothing is read behind a question");
    world.order(0, Order::Refuse { connection, code: Code::TokenInvalid, reason: "no".into() });
    world.turn(0);
    assert!(!world.socket(place).is_paused);
    assert!(!world.socket(place).is_closed);
    world.bytes(place, &[0x88, 0x80, 0, 0, 0, 0]);
    world.turn(0);
    assert!(world.socket(place).is_closed);
}

#[test]
fn a_token_that_expires_soon_is_warned_of_at_once_and_one_that_has_expired_does_nothing_more() {
    let mut world = World::new(Settings { asks_on_connect: true, ..open_settings() }, 1, false);
    let rules = Rights::compile(&open_settings().anonymous.unwrap_or_default()).map(Arc::new).expect("rules");
    for (in_ms, said) in [(500, "token_expiring"), (0, "close")] {
        let (place, connection) = asking(&mut world);
        let expires_ms = Some(world.now.wall_ms + in_ms);
        let grant = Order::Grant {
            connection,
            holder: Holder::new("", "authorizer", "ann"),
            rights: Arc::clone(&rules),
            expires_ms,
            token: None,
        };
        world.order(0, grant);
        world.turn(0);
        let heard: Vec<String> = world.heard(place).iter().map(ToString::to_string).collect();
        assert!(heard.iter().any(|line| line.contains(said)), "{heard:?}");
        assert!(!world.socket(place).is_paused);
        world.reports.clear();
    }
}

/// What a client that came by a door is answered to a subscribe, a publish and a watch: the codes, 0 for success.
fn try_all(world: &mut World, place: Place) -> Vec<u64> {
    world.say(place, r#"[{"id":1,"subscribe":"/a"},{"id":2,"publish":"/a","content":1},{"id":3,"watch":"/a"}]"#);
    world.turn(0);
    let heard = world.heard(place);
    let answers = heard.iter().filter(|line| line["id"].is_u64());
    answers.map(|line| line["error"].as_u64().unwrap_or(0)).collect()
}

#[test]
fn a_listener_of_a_role_takes_nothing_else() {
    let listeners = ["both", "subscribe", "publish"].map(|role| Listener { role: role.into(), ..Listener::default() });
    let mut world = World::new(Settings { listeners: listeners.into(), ..open_settings() }, 1, false);
    let forbidden = |code: Code| u64::from(code.number());
    let (subscribe, publish, watch) = (Code::SubscribeForbidden, Code::PublishForbidden, Code::WatchForbidden);
    let table =
        [(0, vec![0, 0, 0]), (1, vec![0, forbidden(publish), forbidden(watch)]), (2, vec![forbidden(subscribe), 0, 0])];
    for (listener, expected) in table {
        let place = world.accept_from(0, SocketAddr::from(([127, 0, 0, 1], 4000)), listener);
        world.upgrade(place, "json");
        assert_eq!(try_all(&mut world, place), expected, "listener {listener}");
    }
}

#[test]
fn whom_a_door_keeps_out_is_not_told_of_rights() {
    let listeners = ["subscribe", "publish"].map(|role| Listener { role: role.into(), ..Listener::default() });
    let mut world = World::new(Settings { listeners: listeners.into(), ..open_settings() }, 1, false);
    for (listener, command, reason) in [
        (0, r#"{"publish":"/a","content":1}"#, "nothing may be published from this address, or over this listener"),
        (1, r#"{"subscribe":"/a"}"#, "this listener is for publishers alone"),
    ] {
        let place = world.accept_from(0, SocketAddr::from(([127, 0, 0, 1], 4000)), listener);
        world.upgrade(place, "json");
        assert_eq!(world.ask(place, command)[0]["reason"], reason);
    }
}

/// More filters in one packet than answers are kept: each answer would let go of one that is still needed.
#[test]
fn a_subscribe_of_very_many_questions_comes_to_an_end() {
    const FILTERS: usize = 1_003;
    let rule = |verdict: &str| RuleSettings { pattern: "/**".into(), actions: "both".into(), verdict: verdict.into() };
    let listeners = ["client", "mqtt"].map(|name| Listener { name: name.into(), ..Listener::default() });
    let settings = Settings { listeners: listeners.into(), anonymous: Some(vec![rule("ask")]), ..open_settings() };
    let mut world = World::new(settings, 1, false);
    let place = world.accept_from(0, SocketAddr::from(([127, 0, 0, 1], 4000)), 1);
    world.bytes(place, &connect("c", true));
    let mut body = vec![0, 1, 0];
    (0..FILTERS).for_each(|n| body.extend([text(&format!("{n}")).as_slice(), &[0]].concat()));
    world.bytes(place, &[&[0x82, body.len() as u8 & 127 | 128, (body.len() >> 7) as u8], body.as_slice()].concat());
    world.turn(0);
    let mut asked = 0;
    let question = |report| match report {
        Report::Ask { connection, selector, .. } => Some((connection, selector)),
        _ => None,
    };
    while let Some((connection, selector)) = std::mem::take(&mut world.reports).into_iter().find_map(question) {
        asked += 1;
        assert!(asked <= FILTERS, "it is asked without end");
        let rule = RuleSettings { pattern: selector, ..rule("deny") };
        world.order(0, Order::Answer { connection, rule: Rule::compile(&rule).expect("a rule"), is_background: false });
        world.turn(0);
    }
    let taken = std::mem::take(&mut world.socket(place).taken);
    assert_eq!(asked, 1_000);
    assert_eq!(taken[taken.len() - 4..], [0x87, 0x97, 0x97, 0x97], "the last of the asked, and those beyond");
}

#[test]
fn only_listed_addresses_publish_and_a_trusted_proxy_says_which_it_is() {
    let settings = Settings {
        publisher_addresses: vec!["10.0.0.0/8".into()],
        trusted_proxies: vec!["127.0.0.1".into()],
        ..open_settings()
    };
    let mut world = World::new(settings, 1, false);
    let near = SocketAddr::from(([10, 1, 2, 3], 1));
    let far = SocketAddr::from(([192, 0, 2, 1], 1));
    let proxy = SocketAddr::from(([127, 0, 0, 1], 1));
    assert!(world.shard(0).trusts(proxy) && !world.shard(0).trusts(near));
    let publish = u64::from(Code::PublishForbidden.number());
    let watch = u64::from(Code::WatchForbidden.number());
    for (address, proxied, expected) in [
        (near, None, vec![0, 0, 0]),
        (far, None, vec![0, publish, watch]),
        (proxy, None, vec![0, publish, watch]),
        (proxy, Some(near), vec![0, 0, 0]),
        (near, Some(far), vec![0, publish, watch]),
    ] {
        let place = world.accept_from(0, address, 0);
        if let Some(proxied) = proxied {
            world.set_peer(place, proxied);
        }
        world.upgrade(place, "json");
        assert_eq!(try_all(&mut world, place), expected, "{address} {proxied:?}");
    }
}

#[test]
fn lists_and_roles_that_are_none_are_refused_before_a_node_starts() {
    let role = Listener { role: "admin".into(), ..Listener::default() };
    assert!(check_access(&Settings { listeners: vec![role], ..Settings::default() }).is_err());
    assert!(check_access(&Settings { publisher_addresses: vec!["here".into()], ..Settings::default() }).is_err());
    assert!(check_access(&Settings { trusted_proxies: vec!["10.0.0.1/8".into()], ..Settings::default() }).is_err());
    assert!(check_access(&Settings::default()).is_ok());
}

#[test]
fn a_revocation_closes_whom_it_names_and_nobody_else() {
    let mut world = World::new(Settings { asks_on_connect: true, ..open_settings() }, 1, false);
    let rights = Rights::compile(&open_settings().anonymous.unwrap_or_default()).map(Arc::new).expect("rules");
    let mut come = |identity: &str, token: Option<&str>| {
        let (place, connection) = asking(&mut world);
        let token = token.map(Into::into);
        let rights = Arc::clone(&rights);
        world.order(
            0,
            Order::Grant {
                connection,
                holder: Holder::new("", "authorizer", identity),
                rights,
                expires_ms: None,
                token,
            },
        );
        world.turn(0);
        world.reports.clear();
        place
    };
    let places = [come("ann", Some("t1")), come("ann", None), come("bob", Some("t1")), come("bob", Some("t2"))];
    let code = Code::TokenRevoked;
    world.order(0, Order::Revoke { revoked: Revoked { identity: Some("nobody".into()), ..Revoked::default() }, code });
    world.order(0, Order::Revoke { revoked: Revoked::default(), code });
    let closed = |world: &mut World| {
        world.turn(0);
        places.map(|place| world.heard(place).iter().any(|line| line.to_string().contains("4005")))
    };
    assert_eq!(closed(&mut world), [false; 4]);
    world.order(0, Order::Revoke { revoked: Revoked { identity: Some("ann".into()), ..Revoked::default() }, code });
    assert_eq!(closed(&mut world), [true, true, false, false]);
    world.order(0, Order::Revoke { revoked: Revoked { token: Some("t2".into()), ..Revoked::default() }, code });
    assert_eq!(closed(&mut world), [false, false, false, true]);
}

#[test]
fn a_forwarded_address_is_believed_from_a_trusted_proxy_and_for_its_request_alone() {
    let settings = Settings {
        publisher_addresses: vec!["10.0.0.0/8".into()],
        trusted_proxies: vec!["127.0.0.1".into(), "192.168.0.0/16".into()],
        ..open_settings()
    };
    let mut world = World::new(settings, 1, false);
    let proxy = SocketAddr::from(([127, 0, 0, 1], 4000));
    let stranger = SocketAddr::from(([192, 0, 2, 1], 4000));
    let near = SocketAddr::from(([10, 0, 0, 1], 4000));
    let post = |forwarded: &str| {
        let fields = forwarded.split('|').filter(|field| !field.is_empty());
        let line: String = fields.map(|field| format!("X-Forwarded-For: {field}\r\n")).collect();
        format!(
            "POST /v1/messages?subject=/a HTTP/1.1\r\nHost: h\r\nContent-Type: text/plain\r\n{line}Content-Length: 1\r\n\r\nx"
        )
    };
    for (from, requests) in [
        (proxy, vec![("10.1.2.3", true), ("192.0.2.9", false), ("10.1.2.3", true), ("", false)]),
        (
            proxy,
            vec![
                ("10.1.2.3, 192.0.2.9", false),
                ("192.0.2.9, 10.1.2.3", true),
                ("192.0.2.9, 10.1.2.3, 192.168.1.1", true),
            ],
        ),
        (proxy, vec![("192.0.2.9, 10.1.2.3|192.168.1.1", true), ("10.1.2.3|192.0.2.9|192.168.1.1", false)]),
        (proxy, vec![("10.1.2.3|\u{e9}", false)]),
        (proxy, vec![("10.1.2.3, nonsense", false), ("unknown", false), ("::ffff:10.1.2.3", true)]),
        (proxy, vec![("", false)]),
        (stranger, vec![("10.1.2.3", false)]),
        (near, vec![("192.0.2.9", true)]),
    ] {
        let place = world.accept_from(0, from, 0);
        for (forwarded, is_published) in requests {
            world.bytes(place, post(forwarded).as_bytes());
            world.turn(0);
            let answer = String::from_utf8_lossy(&std::mem::take(&mut world.socket(place).taken)).into_owned();
            let expected = if is_published { "HTTP/1.1 201" } else { "HTTP/1.1 403" };
            assert!(answer.starts_with(expected), "{from} for {forwarded:?}: {answer}");
        }
    }
}

#[test]
fn an_mqtt_subscription_ends_with_its_right_whatever_its_name_is_like() {
    let listeners = vec![
        Listener { name: "client".into(), ..Listener::default() },
        Listener { name: "mqtt".into(), ..Listener::default() },
    ];
    let settings = Settings { listeners, ..open_settings() };
    let mut world = World::new(settings.clone(), 1, false);
    let device = world.accept_from(0, SocketAddr::from(([127, 0, 0, 1], 4001)), 1);
    let mut packets = vec![0x10, 13, 0, 4, b'M', b'Q', b'T', b'T', 4, 2, 0, 0, 0, 1, b'd'];
    for filter in ["$share/g/a/+", "b//c", "d/#"] {
        packets.extend([0x82, filter.len() as u8 + 5, 0, 1, 0, filter.len() as u8]);
        packets.extend(filter.as_bytes());
        packets.push(0);
    }
    world.bytes(device, &packets);
    let publisher = world.accept_from(0, SocketAddr::from(([127, 0, 0, 1], 4002)), 1);
    world.bytes(publisher, &[0x10, 13, 0, 4, b'M', b'Q', b'T', b'T', 4, 2, 0, 0, 0, 1, b'p']);
    world.turn_all();
    world.socket(device).taken.clear();
    let publish = |world: &mut World| {
        for topic in ["a/x", "b//c", "d/e"] {
            let mut packet = vec![0x30, topic.len() as u8 + 3, 0, topic.len() as u8];
            packet.extend(topic.as_bytes());
            packet.push(b'1');
            world.bytes(publisher, &packet);
        }
        world.turn_all();
        std::mem::take(&mut world.socket(device).taken)
    };
    assert_eq!(publish(&mut world).iter().filter(|&&byte| byte == 0x30).count(), 3, "all three come while they may");
    let mut rules = settings.anonymous.clone().unwrap_or_default();
    for rule in &mut rules {
        rule.actions = "publish".into();
    }
    world.order(0, Order::Configure(Arc::new(Settings { anonymous: Some(rules), ..settings })));
    world.turn_all();
    world.socket(device).taken.clear();
    assert_eq!(publish(&mut world), [0_u8; 0], "nothing of what may not be subscribed any more");
}

#[test]
fn case_69_a_wall_clock_that_jumps_disconnects_nobody_and_takes_no_epoch_back() {
    let mut world = World::new(Settings { asks_on_connect: true, ..open_settings() }, 1, false);
    let (anonymous, reader) = (world.connect(0), world.connect(0));
    world.ask(reader, r#"{"id":1,"subscribe":"/a"}"#);
    let rights = Rights::compile(&open_settings().anonymous.unwrap_or_default()).map(Arc::new).expect("rules");
    let (bearer, connection) = asking(&mut world);
    let expires_ms = Some(world.now.wall_ms + 7_200_000);
    let holder = Holder::new("", "authorizer", "ann");
    world.order(0, Order::Grant { connection, holder, rights, expires_ms, token: None });
    let position = |world: &mut World| {
        let heard = world.ask(anonymous, r#"{"id":1,"publish":"/a","content":1}"#);
        let at = heard[0]["at"].as_str().expect("a position").split_once('.').map(|(epoch, sequence)| {
            (epoch.parse::<u64>().expect("a number"), sequence.parse::<u64>().expect("a number"))
        });
        at.expect("two numbers")
    };
    let first = position(&mut world);
    let mut last = first;
    for jump_ms in [-3_600_000_i64, 86_400_000, -86_400_000, 3_600_000] {
        world.now.wall_ms = world.now.wall_ms.saturating_add_signed(jump_ms);
        for _ in 0..8 {
            world.advance(250);
            world.turn_all();
        }
        let at = position(&mut world);
        assert!(at.0 == first.0 && at.1 == last.1 + 1, "{at:?} after {last:?}");
        last = at;
        for place in [anonymous, reader] {
            assert!(!world.socket(place).is_closed);
            assert!(world.heard(place).iter().all(|line| line.get("close").is_none()));
        }
    }
    let ended = world.heard(bearer).iter().any(|line| line["close"] == 4003);
    assert!(ended, "a token goes by the wall clock, which was past its end for a while");
}

fn grant(world: &World, connection: ConnectionId, identity: &str, in_ms: Option<u64>) -> Order {
    let rules = [RuleSettings { pattern: "/**".into(), actions: "both".into(), verdict: "allow".into() }];
    let rights = Arc::new(Rights::compile(&rules).expect("rules"));
    let expires_ms = in_ms.map(|ms| world.now.wall_ms + ms);
    Order::Grant { connection, holder: Holder::new("", "authorizer", identity), rights, expires_ms, token: None }
}

fn is_closed_with(world: &mut World, place: Place, code: &str) -> bool {
    world.heard(place).iter().any(|line| line.to_string().contains(code))
}

#[test]
fn a_connection_ends_within_100_ms_of_its_token() {
    let mut world = World::new(Settings { asks_on_connect: true, ..open_settings() }, 1, false);
    let (place, connection) = asking(&mut world);
    let order = grant(&world, connection, "ann", Some(60_000));
    world.order(0, order);
    world.turn(0);
    let end_ms = world.now.mono_ms + 60_000;
    // As the engine does: it comes again when the shard asks for it.
    while world.now.mono_ms < end_ms + 100 {
        let next_ms = world.shard(0).deadline_ms().clamp(world.now.mono_ms + 1, end_ms + 100);
        world.advance(next_ms - world.now.mono_ms);
        world.turn(0);
        if is_closed_with(&mut world, place, "4003") {
            assert!((end_ms..=end_ms + 1).contains(&world.now.mono_ms), "{} ms late", world.now.mono_ms - end_ms);
            return;
        }
    }
    panic!("the connection outlives its token");
}

#[test]
fn a_renewed_token_of_somebody_else_ends_the_connection() {
    for (identity, is_closed) in [("ann", false), ("bob", true)] {
        let mut world = World::new(Settings { asks_on_connect: true, ..open_settings() }, 1, false);
        let (place, connection) = asking(&mut world);
        let order = grant(&world, connection, "ann", None);
        world.order(0, order);
        world.turn(0);
        world.say(place, r#"{"id":9,"connect":{"token":"u"}}"#);
        world.turn(0);
        let order = grant(&world, connection, identity, None);
        world.order(0, order);
        world.turn(0);
        assert_eq!(is_closed_with(&mut world, place, "4002"), is_closed, "{identity}");
    }
}

#[test]
fn a_refused_subscribe_leaves_the_subscription_that_was_there() {
    let mut settings = open_settings();
    settings.limits.subscribes_per_second_max = 1;
    let mut world = World::new(settings, 1, false);
    let place = world.connect(0);
    assert_eq!(world.ask(place, r#"{"id":1,"subscribe":"/a"}"#)[0]["ok"], "subscribed");
    let answers: Vec<_> = (0..20).flat_map(|_| world.ask(place, r#"{"id":2,"subscribe":"/a"}"#)).collect();
    assert!(answers.iter().any(|line| line["error"].is_u64()), "{answers:?}");
    let heard = world.ask(place, r#"{"publish":"/a","content":"still"}"#);
    assert!(heard.iter().any(|line| line["content"] == "still" || line["text"] == "still"), "{heard:?}");
}
