//! Whoever comes has one row that says so and one that says how it ended, on every wire and however little it says.

use std::sync::Arc;

use super::journaling;
use crate::http::get;
use crate::mqtt::{come, connect, listeners, packet, text};
use crate::world::{World, masked, open_settings};
use godwit_core::codes::Code;
use godwit_core::holder::Holder;
use godwit_core::journal::{AccessRow, Rows};
use godwit_core::report::{ConnectionId, Order, Report};
use godwit_core::rights::Rights;
use godwit_core::settings::{PatternSettings, RuleSettings, Settings};

fn rows(world: &mut World) -> Vec<AccessRow> {
    let rows = world.take_rows(0).into_iter();
    rows.filter_map(|rows| if let Rows::Access(rows) = rows { Some(rows) } else { None }).flatten().collect()
}

/// What the rows say that happened, each by which wire.
fn access_rows(world: &mut World) -> Vec<(&'static str, &'static str)> {
    rows(world).iter().map(|row| (row.kind.name(), row.protocol)).collect()
}

/// What the last row says of an end: kind, code and reason.
fn end(world: &mut World) -> (&'static str, Option<u16>, Option<Box<str>>) {
    let row = rows(world).pop().expect("a row");
    (row.kind.name(), row.code, row.reason)
}

fn close_frame(code: u16, reason: &str) -> Vec<u8> {
    let mut frame = masked(&[&code.to_be_bytes(), reason.as_bytes()].concat());
    frame[0] = 0x88;
    frame
}

/// The questions that the server was asked since the last look: of whom, and whether it renews a token.
fn questions(world: &mut World) -> Vec<(ConnectionId, bool)> {
    let asked = world.reports().into_iter();
    asked
        .filter_map(|report| match report {
            Report::Authorize { connection, is_renewal, .. } => Some((connection, is_renewal)),
            _ => None,
        })
        .collect()
}

fn grant(world: &mut World, connection: ConnectionId) {
    let rights = Arc::new(Rights::compile(&open_settings().anonymous.expect("rules")).expect("rights"));
    let holder = Holder::new("", "authorizer", "ann");
    world.order(0, Order::Grant { connection, holder, rights, expires_ms: None, token: None });
    world.turn(0);
}

#[test]
fn a_websocket_has_come_at_its_first_command_whatever_that_is() {
    for command in [r#"{"subscribe":"/a"}"#, r#"{"publish":"/a","content":1}"#, r#"{"watch":"/a"}"#, r#"{"ping":true}"#]
    {
        let mut world = World::new(journaling(), 1, false);
        let place = world.connect(0);
        assert_eq!(access_rows(&mut world), [], "it may still say who it is");
        world.ask(place, command);
        let came = rows(&mut world);
        assert_eq!(
            (came[0].kind.name(), came[0].protocol, &*came[0].peer.holder.identity),
            ("connected", "json", ""),
            "{command}"
        );
        world.ask(place, r#"{"connect":{"client":"late"}}"#);
        assert_eq!(access_rows(&mut world), [], "nobody comes twice");
        world.gone(place);
        assert_eq!(end(&mut world), ("disconnected", Some(1001), None));
    }
}

#[test]
fn who_says_nothing_has_come_when_it_leaves_or_when_it_might_have_said_something() {
    let mut world = World::new(journaling(), 1, false);
    let place = world.connect(0);
    world.gone(place);
    assert_eq!(access_rows(&mut world), [("connected", "json"), ("disconnected", "json")]);

    let place = world.connect_on(0, "binary");
    let handshake_ms = Settings::default().limits.handshake_ms_max;
    for _ in 0..(handshake_ms + 3_000) / 250 {
        world.advance(250);
        world.turn_all();
    }
    assert_eq!(access_rows(&mut world), [("connected", "binary")]);
    world.gone(place);
    assert_eq!(access_rows(&mut world), [("disconnected", "binary")]);
}

#[test]
fn who_was_refused_or_left_while_it_was_judged_never_came() {
    let mut world = World::new(Settings { asks_on_connect: true, ..journaling() }, 1, false);
    let place = world.connect(0);
    world.ask(place, r#"{"connect":{"token":"t"}}"#);
    let connection = questions(&mut world)[0].0;
    world.order(0, Order::Refuse { connection, code: Code::TokenInvalid, reason: "no such token".into() });
    world.turn(0);
    world.gone(place);
    let code = Some(Code::TokenInvalid.number());
    assert_eq!(end(&mut world), ("refused", code, Some("no such token".into())));

    let place = world.connect(0);
    world.ask(place, r#"{"connect":{"token":"t"}}"#);
    world.gone(place);
    assert_eq!(access_rows(&mut world), []);
}

#[test]
fn a_token_is_renewed_by_who_has_one_and_not_by_who_came_without() {
    let mut world = World::new(Settings { asks_on_connect: true, ..journaling() }, 1, false);
    let place = world.connect(0);
    world.ask(place, r#"{"subscribe":"/a"}"#);
    world.ask(place, r#"{"connect":{}}"#);
    world.ask(place, r#"{"connect":{"token":"t"}}"#);
    let [(connection, is_renewal)] = questions(&mut world)[..] else { panic!("one question") };
    assert!(!is_renewal, "it has had none");
    grant(&mut world, connection);
    world.ask(place, r#"{"connect":{"token":"u"}}"#);
    assert_eq!(questions(&mut world), [(connection, true)]);
    assert_eq!(access_rows(&mut world).iter().filter(|(kind, _)| *kind == "connected").count(), 1);
}

#[test]
fn requests_and_streams_of_events_have_their_wires() {
    let mut world = World::new(journaling(), 1, false);
    let place = world.accept(0);
    let ask = |world: &mut World, target: &str| {
        world.bytes(place, get(target, None).as_bytes());
        world.turn_all();
    };
    ask(&mut world, "/v1/openapi.json");
    assert_eq!(access_rows(&mut world), [], "what anybody may read");
    ask(&mut world, "/v1/messages?subject=/a");
    assert_eq!(access_rows(&mut world), [("connected", "http"), ("subscribed", "http")]);
    ask(&mut world, "/v1/stream?subject=/a");
    assert_eq!(access_rows(&mut world), [("subscribed", "sse")]);
    world.gone(place);
    assert_eq!(access_rows(&mut world), [("disconnected", "sse")]);

    let place = world.accept(0);
    world.bytes(place, get("/v1/stream?subject=/a&subject=/b", None).as_bytes());
    world.turn_all();
    world.gone(place);
    let kinds = ["connected", "subscribed", "subscribed", "disconnected"];
    assert_eq!(access_rows(&mut world), kinds.map(|kind| (kind, "sse")));
}

#[test]
fn a_stream_that_is_asked_about_comes_when_it_is_allowed() {
    let ask = RuleSettings { pattern: "/**".into(), actions: "both".into(), verdict: "ask".into() };
    let mut world = World::new(Settings { anonymous: Some(vec![ask]), ..journaling() }, 1, false);
    for (verdict, kinds) in [("allow", ["connected", "subscribed"].as_slice()), ("deny", ["connected"].as_slice())] {
        let place = world.accept(0);
        world.bytes(place, get("/v1/stream?subject=/a", None).as_bytes());
        world.turn_all();
        assert_eq!(access_rows(&mut world), []);
        let asked = world.reports().into_iter().find_map(|report| match report {
            Report::Ask { connection, .. } => Some(connection),
            _ => None,
        });
        let rule = RuleSettings { pattern: "/a".into(), actions: "subscribe".into(), verdict: verdict.into() };
        let rule = godwit_core::rights::Rule::compile(&rule).expect("a rule");
        world.order(0, Order::Answer { connection: asked.expect("a question"), rule, is_background: false });
        world.turn_all();
        let protocol = if verdict == "allow" { "sse" } else { "http" };
        assert_eq!(access_rows(&mut world), kinds.iter().map(|kind| (*kind, protocol)).collect::<Vec<_>>());
    }
}

#[test]
fn what_was_said_beside_a_code_is_written_down_whoever_said_it() {
    let mut world = World::new(journaling(), 1, false);
    let place = world.connect(0);
    world.bytes(place, &close_frame(3001, "enough"));
    world.settle();
    assert_eq!(end(&mut world), ("disconnected", Some(3001), Some("enough".into())));

    let place = world.connect(0);
    world.bytes(place, &close_frame(Code::TokenInvalid.number(), ""));
    world.settle();
    let code = Some(Code::TokenInvalid.number());
    assert_eq!(end(&mut world), ("disconnected", code, None), "its own code refuses nobody");

    let place = world.connect(0);
    world.ask(place, r#"{"ping":true}"#);
    let connection = ConnectionId(rows(&mut world)[0].peer.connection.0);
    let reason = "é".repeat(1_000);
    world.order(0, Order::Close { connection, code: Code::ClosedByOperator, reason: reason.clone() });
    world.settle();
    world.gone(place);
    let code = Some(Code::ClosedByOperator.number());
    assert_eq!(end(&mut world), ("disconnected", code, Some(reason[..256].into())), "and no more of it than this");

    let place = world.accept(0);
    world.bytes(place, b"no request at all\r\n\r\n");
    world.turn(0);
    world.gone(place);
    let refused = rows(&mut world);
    let [row] = refused.as_slice() else { panic!("one row of one refusal: {refused:?}") };
    assert_eq!((row.kind.name(), row.protocol, row.reason.is_some()), ("refused", "http", true));
    assert!(row.code.is_some() && row.peer.connection != ConnectionId(0));
}

#[test]
fn mqtt_has_reasons_and_refusals_in_its_own_numbers() {
    let mut world = World::new(Settings { listeners: listeners(), ..journaling() }, 1, false);
    let leaves = packet(0xe0, &[[0x04, 13, 0x1f].as_slice(), &text("lights out")].concat());
    let bad = packet(0x10, &[text("MQTT").as_slice(), &[9, 2, 0, 0]].concat());
    for (says, kind, code, reason) in [
        ([connect("c", true), leaves].concat(), "disconnected", 0x04, Some("lights out".into())),
        (bad, "refused", 0x84, None),
    ] {
        let place = come(&mut world, 0, &says);
        world.turn(0);
        world.gone(place);
        let (row_kind, number, said) = end(&mut world);
        assert_eq!((row_kind, number), (kind, Some(code)));
        assert!(reason.is_none() || said == reason, "{said:?}");
    }
}

/// 3.1.1 has no answer that says no: the row of the connection's end has the refusal's own reason, whatever else the turn published.
#[test]
fn a_publish_of_3_1_1_that_cannot_be_kept_ends_with_one_reason_alone_or_among_others() {
    let publish = |topic: &str, id| packet(0x32, &[&text(topic)[..], &[0, id], b"content"].concat());
    let ends = [vec![publish("a/*/b", 2)], vec![publish("good", 1), publish("a/*/b", 2)]].map(|packets| {
        let mut world = World::new(Settings { listeners: listeners(), ..journaling() }, 1, false);
        let place = come(&mut world, 0, &connect("c", false));
        world.turn_all();
        world.bytes(place, &packets.concat());
        world.turn_all();
        world.turn_all();
        world.gone(place);
        end(&mut world)
    });
    assert!(ends[0].0 == "disconnected" && ends[0].2.is_some() && ends[0] == ends[1], "{ends:?}");
}

/// What all rows say that were written, as text.
fn written(world: &mut World) -> String {
    world.settle();
    for _ in 0..20 {
        world.advance(500);
        world.turn_all();
    }
    format!("{:?}", world.take_rows(0))
}

#[test]
fn a_selector_whose_subjects_are_all_out_of_the_journal_is_in_no_row() {
    let off = |pattern: &str, journal| PatternSettings {
        pattern: pattern.into(),
        journal: Some(journal),
        ..PatternSettings::default()
    };
    let mut settings = journaling();
    settings.listeners = listeners();
    settings.patterns = vec![off("/off/**", false), off("/off/kept/*", true)];
    let is_in = |selector: &str, is_mqtt: bool| {
        let mut world = World::new(settings.clone(), 1, false);
        let publisher = world.connect(0);
        let place = if is_mqtt {
            let place = come(&mut world, 0, &connect("c", true));
            world.turn_all();
            let mut says = crate::mqtt::subscribe(&[(selector, 1)]);
            says.insert(4, 0);
            says[1] += 1;
            world.bytes(place, &says);
            place
        } else {
            let place = world.connect(0);
            world.ask(place, &format!(r#"{{"id":1,"subscribe":"{selector}"}}"#));
            place
        };
        world.turn_all();
        for subject in ["/off/a/name", "/off/kept/name", "/on/name"] {
            world.ask(publisher, &format!(r#"{{"publish":"{subject}","content":1}}"#));
        }
        let mut rows = written(&mut world);
        if is_mqtt {
            world.gone(place);
        } else {
            world.ask(place, &format!(r#"{{"id":2,"unsubscribe":"{selector}"}}"#));
        }
        rows += &written(&mut world);
        assert!(rows.contains("Connected"), "{rows}");
        let name = selector.trim_start_matches("$share/g/").trim_start_matches('/').replace('#', "**");
        rows.contains(&format!("{}/{name}", if selector.starts_with('$') { "$share/g" } else { "" }))
    };
    for (selector, expected) in [
        ("/off/a/name", false),
        ("/off/a/**", false),
        ("/off/kept", false),
        ("/off/kept/name", true),
        ("/off/kept/*", true),
        ("/off/**", true), // some of it is kept
        ("/on/**", true),
        ("/**", true),
    ] {
        assert_eq!(is_in(selector, false), expected, "{selector}");
    }
    for (filter, expected) in
        [("off/a/#", false), ("$share/g/off/a/#", false), ("$share/g/on/#", true), ("on/name", true)]
    {
        assert_eq!(is_in(filter, true), expected, "{filter}");
    }
}
