//! The rights of a will when it is published: those that its client's token gives it, and those of the configuration that is in force then.
use std::sync::Arc;

use super::admit::{question, settings};
use super::end::{packet, text};
use crate::world::{Place, World};
use godwit_core::codes::Code;
use godwit_core::holder::Holder;
use godwit_core::node::PastRun;
use godwit_core::report::Order;
use godwit_core::rights::Rights;
use godwit_core::settings::{JournalSettings, RuleSettings, Settings};

const ISSUER: &str = "jwt:https://id";
const RUN: u64 = 0xd0;
/// A rule that a token of its own, or the configuration, gives.
const OWN: bool = false;
const CONFIGURED: bool = true;

fn rule(pattern: &str, verdict: &str) -> RuleSettings {
    RuleSettings { pattern: pattern.into(), actions: "publish".into(), verdict: verdict.into() }
}

fn world(run: u64, given: &[&str]) -> World {
    let mut settings = with_rules(given);
    settings.journal = Some(JournalSettings::default());
    (settings.run, settings.epoch) = (RUN + run, 7 + run);
    World::new(settings, 2, false)
}

/// Settings that give the issuer's holders these patterns.
fn with_rules(given: &[&str]) -> Settings {
    let rules = given.iter().map(|pattern| rule(pattern, "allow")).collect();
    Settings { authority_rules: [(ISSUER.to_owned(), rules)].into(), ..settings() }
}

/// Ann of acme comes with a retained will on `state`, which waits for so many seconds when she is lost.
fn come(world: &mut World, rules: &[(&str, &str, bool)], delay_s: u8) -> Place {
    come_of("acme", world, rules, delay_s)
}

fn come_of(tenant: &str, world: &mut World, rules: &[(&str, &str, bool)], delay_s: u8) -> Place {
    let place = world.accept_from(0, ([127, 0, 0, 1], 4000).into(), 1);
    let head = [&text("MQTT"), &[5, 0x80 | 0x20 | 0x04, 0, 0, 5, 0x11, 0, 0, 0xff, 0xff][..], &text("c")].concat();
    let will = [&[5, 0x18, 0, 0, 0, delay_s][..], &text("u/ann/state"), &text("gone")].concat();
    world.bytes(place, &packet(0x10, &[&head, &will[..], &text("token")].concat()));
    world.turn_all();
    let connection = question(world).expect("a question");
    let mut rules = rules.to_vec();
    rules.sort_by_key(|(_, _, is_configured)| !is_configured);
    let configured = rules.iter().filter(|(_, _, is_configured)| *is_configured).count();
    let rules: Vec<_> = rules.iter().map(|(pattern, verdict, _)| rule(pattern, verdict)).collect();
    let mut rights = Rights::compile_grant(&rules, configured).expect("rules");
    rights.source = Some(format!("{ISSUER}\nkey").into());
    let (holder, rights) = (Holder::new(tenant, ISSUER, "ann"), Arc::new(rights));
    world.order(0, Order::Grant { connection, holder, rights, expires_ms: None, token: None });
    world.turn_all();
    place
}

fn is_published(world: &mut World) -> bool {
    for _ in 0..3 {
        world.advance(2_000);
        world.turn_all();
    }
    let node = world.node.lock().unwrap();
    node.find("/u/ann/state").and_then(|log| node.snapshot(log, world.now)).is_some()
}

fn reload(world: &mut World, given: &[&str]) {
    let settings = Arc::new(Settings { journal: Some(JournalSettings::default()), ..with_rules(given) });
    for shard in 0..2 {
        world.order(shard, Order::Configure(Arc::clone(&settings)));
    }
}

fn cut(world: &mut World) {
    world.order(0, Order::Withdraw { source: ISSUER.into(), code: Code::TokenExpired, within_ms: 0 });
    world.turn_all();
}

/// Where a will meets the settings in force: at the cut of its connection by a reload, in its delay, and after a kill, connected or in its
/// delay.
const WAYS: [&str; 4] = ["cut", "delayed", "killed", "killed in its delay"];

/// Whether the will is published if the configuration gives these patterns at its end.
fn is_published_after(way: &str, rules: &[(&str, &str, bool)], given: &[&str]) -> bool {
    let mut world = world(0, &["/u/{identity}/**"]);
    let is_delayed = way.contains("delay");
    let place = come(&mut world, rules, if is_delayed { 3 } else { 0 });
    if is_delayed {
        world.gone(place);
        world.turn_all();
    }
    if !way.starts_with("killed") {
        reload(&mut world, given);
        cut(&mut world);
        return is_published(&mut world);
    }
    let notes = world.take_notes();
    let mut world = self::world(1, given);
    let now = world.now;
    {
        let mut node = world.node.lock().unwrap();
        node.begin_restore(vec![PastRun { run: RUN, epoch: 7, epoch_end: 8, began: 1, last: 1 }]);
        for name in ["session acme\0c", "will acme\0c"] {
            let note = notes.get(name).and_then(Option::as_deref).expect("a note");
            assert!(node.restore_note(name, note, 0, now));
        }
        node.finish_restore(now);
    }
    is_published(&mut world)
}

#[test]
fn a_will_whose_right_the_configuration_gave_is_published_while_it_gives_it() {
    for way in WAYS {
        let configured = [("/u/ann/**", "allow", CONFIGURED)];
        for given in [&["/u/{identity}/**"][..], &["/u/{identity}/state"], &["/u/**"], &["/other", "/u/*/state"]] {
            assert!(is_published_after(way, &configured, given), "{way}: {given:?}");
        }
        for given in [&[][..], &["/u/{identity}/other"], &["/u/{tenant}/**"], &["/other"]] {
            assert!(!is_published_after(way, &configured, given), "{way}: {given:?}");
        }
    }
}

#[test]
fn a_will_whose_right_its_token_gave_is_published_whatever_the_configuration_gives() {
    for way in WAYS {
        let own = [("/u/ann/**", "allow", OWN)];
        for given in [&[][..], &["/other"], &["/u/{identity}/**"]] {
            assert!(is_published_after(way, &own, given), "{way}: {given:?}");
        }
        let both = [("/u/ann/state", "allow", CONFIGURED), ("/u/**", "allow", OWN)];
        assert!(is_published_after(way, &both, &[]), "{way}: its token gives less specifically what was taken back");
    }
}

#[test]
fn what_a_token_denies_stays_denied_whatever_the_configuration_gives() {
    for way in WAYS {
        let denied = [("/u/ann/**", "allow", CONFIGURED), ("/u/*/**", "deny", OWN)];
        assert!(is_published_after(way, &denied, &["/u/{identity}/**"]), "{way}: the more specific rule decides");
        assert!(!is_published_after(way, &denied, &["/u/**"]), "{way}: its token's rule is the more specific one now");
    }
}

#[test]
fn a_will_is_withheld_where_its_holder_would_not_be_let_in() {
    for (tenant, is_let_in) in [("acme", true), ("a/b", false)] {
        let mut world = world(0, &[]);
        come_of(tenant, &mut world, &[("/u/ann/**", "allow", OWN)], 0);
        reload(&mut world, &["/t/{tenant}"]);
        cut(&mut world);
        assert_eq!(is_published(&mut world), is_let_in, "{tenant}");
    }
}
