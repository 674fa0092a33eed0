//! More than one answer holds: after gaps with their snapshots, each answer begins after the one before it, and none is refused.

use super::{first_place, read_all, read_with};
use crate::world::past::Past;
use crate::world::{World, open_settings};
use godwit_core::node::PastRun;
use godwit_core::settings::JournalSettings;
use serde_json::{Value, json};

/// The gaps of a pattern's subjects and their snapshots may be more than one step holds: the next answer begins after all of them.
#[test]
fn an_answer_of_many_gaps_moves_its_place() {
    let mut settings = open_settings();
    settings.limits.log_messages_max = 2;
    let mut world = World::new(settings, 1, false);
    let place = first_place(&mut world, "subject=/a/*");
    let publisher = world.connect(0);
    let content = "x".repeat(3_000);
    for number in 0..400 {
        world.say(publisher, &format!("{{\"publish\":\"/a/{}\",\"content\":\"{content}\"}}", number % 40));
        world.turn(0);
    }
    let all = read_all(&mut world, "subject=/a/*&limit=7", place);
    let mut heads = std::collections::HashMap::new();
    for one in all.iter().filter(|one| one.get("message").is_some()) {
        heads.insert(one["message"].to_string(), one["at"].to_string());
    }
    assert_eq!(heads.len(), 40);
    assert!(heads.values().all(|at| at == "\"7.10\""), "{heads:?}");
}

/// A gap over thousands of subjects: the answer has as many snapshots as fit, and the next one continues.
#[test]
fn an_answer_of_a_lost_pattern_moves_its_place() {
    let mut settings = open_settings();
    settings.limits.log_messages_max = 1;
    settings.limits.index_entries_max = 1_000;
    settings.limits.reply_buffer_bytes_max = 1 << 20;
    let mut world = World::new(settings, 1, false);
    let place = first_place(&mut world, "subject=/a/*");
    let publisher = world.connect(0);
    let content = "x".repeat(7_000);
    for number in 0..5_500 {
        world.say(publisher, &format!("{{\"publish\":\"/a/{number}\",\"content\":\"{content}\"}}"));
        if number % 64 == 0 {
            world.turn(0);
        }
    }
    world.turn_all();
    let all = read_all(&mut world, "subject=/a/*", place);
    assert_eq!((&all[0]["gap"], &all[0]["missed"]), (&json!("/a/*"), &json!(null)));
    let snapshots = all.iter().filter(|one| one.get("message").is_some()).count();
    assert!((1_000..5_500).contains(&snapshots), "{snapshots}");
}

/// Snapshots of any size after a gap: an answer has a few of them, and the next one continues.
#[test]
fn an_answer_of_gaps_with_large_snapshots_is_not_too_large() {
    for subjects in [60, 200] {
        let mut settings = open_settings();
        settings.limits.log_messages_max = 1;
        settings.limits.logs_bytes_max = 1 << 30;
        let mut world = World::new(settings, 1, false);
        let place = first_place(&mut world, "subject=/a/*");
        let publisher = world.connect(0);
        let content = "x".repeat(1_000_000);
        for number in 0..2 * subjects {
            let content = if number < subjects { "small" } else { &content };
            world.say(publisher, &format!("{{\"publish\":\"/a/{}\",\"content\":\"{content}\"}}", number % subjects));
            world.turn(0);
        }
        let all = read_all(&mut world, "subject=/a/*", place);
        let messages = all.iter().filter(|one| one.get("message").is_some());
        let heads: std::collections::HashSet<String> = messages.map(|one| one["message"].to_string()).collect();
        assert_eq!(heads.len(), subjects);
    }
}

/// A run that ended with less than a client saw, and more messages since than one answer holds: answers go on to the end.
#[test]
fn an_answer_after_a_run_that_lost_messages_moves_its_place() {
    for asked in ["subject=/a/*", "subject=/a/*&subject=/b/*", "subject=/a/*&subject=/a/0&subject=/**"] {
        let mut settings = open_settings();
        settings.limits.log_messages_max = 1_000;
        settings.limits.logs_bytes_max = 1 << 30;
        let mut world = World::new(settings, 1, false);
        let now = world.now;
        {
            let mut node = world.node.lock().expect("unpoisoned");
            node.begin_restore(vec![PastRun { run: 0xb0, epoch: 7, epoch_end: u64::MAX, began: 1, last: 6 }]);
            node.finish_restore(now);
        }
        let place = first_place(&mut world, asked);
        let digest = place.rsplit('.').next().expect("a digest");
        let publisher = world.connect(0);
        let content = "x".repeat(500_000);
        for number in 0..100 {
            let subject = format!("/{}/{}", ["a", "b"][number % 2], number / 2 % 4);
            world.say(publisher, &format!("{{\"publish\":\"{subject}\",\"content\":\"{number} {content}\"}}"));
            world.turn(0);
        }
        let all = read_all(&mut world, asked, format!("b0.9.0.{digest}"));
        assert_eq!((&all[0]["reason"], &all[0]["missed"]), (&json!("epoch"), &json!(null)));
        let number = |one: &Value| one["content"].as_str()?.split(' ').next()?.parse::<u64>().ok();
        let found: std::collections::BTreeSet<u64> = all.iter().filter_map(number).collect();
        let wants_b = asked.contains("/b") || asked.contains("/**");
        assert_eq!(found, (0..100).filter(|number| wants_b || number % 2 == 0).collect());
    }
}

/// Only what follows a gap is left out of a full answer: another pattern's snapshots were asked for, and nothing says that they are missing.
#[test]
fn an_answer_of_a_lost_pattern_has_all_snapshots_of_another() {
    let mut settings = open_settings();
    settings.limits.log_messages_max = 1;
    settings.limits.index_entries_max = 1_000;
    settings.limits.logs_bytes_max = 1 << 30;
    let mut world = World::new(settings, 1, false);
    let place = first_place(&mut world, "subject=/a/*");
    let publisher = world.connect(0);
    for number in 0..1_060 {
        let (subject, bytes) =
            if number < 1_000 { (format!("/b/{number}"), 1_000) } else { (format!("/a/{}", number % 30), 900_000) };
        let content = "x".repeat(bytes);
        world.say(publisher, &format!("{{\"publish\":\"{subject}\",\"content\":\"{content}\"}}"));
        world.turn(0);
    }
    for number in 0..1_000 {
        world.say(publisher, &format!("{{\"publish\":\"/other\",\"content\":{number}}}"));
        world.turn(0);
    }
    let asked = "subject=/a/*&subject=/b/*&snapshot=true";
    let all = read_all(&mut world, asked, place);
    assert_eq!((&all[0]["gap"], &all[0]["reason"]), (&json!("/a/*"), &json!("overrun")));
    let of = |part: &str| all.iter().filter(|one| one["message"].as_str().is_some_and(|m| m.starts_with(part))).count();
    assert_eq!(of("/b/"), 1_000);
    assert!((15..30).contains(&of("/a/")), "{}", of("/a/"));
}

/// While a pattern is read back from the journal, the others of the answer advance with it: no answer grows beyond what it may hold, and
/// each message comes about once.
#[test]
fn an_answer_that_waits_for_the_journal_is_bounded() {
    for (limit, asked) in [(1_000, "subject=/a/*&subject=/b/*"), (1, "subject=/b/*&subject=/a/*")] {
        let mut settings = open_settings();
        settings.journal = Some(JournalSettings::default());
        settings.limits.log_messages_max = 200;
        settings.limits.logs_bytes_max = 1 << 30;
        let mut world = World::new(settings, 1, false);
        let place = first_place(&mut world, asked);
        let publisher = world.connect(0);
        let content = "x".repeat(100_000);
        for number in 0..300 {
            world.say(publisher, &format!("{{\"publish\":\"/a/0\",\"content\":{number}}}"));
            if number % 3 == 0 {
                world.say(publisher, &format!("{{\"publish\":\"/b/{}\",\"content\":\"{content}\"}}", number % 2));
            }
            world.turn(0);
        }
        let mut past = Past { page_max: 8, ..Past::default() };
        past.serve(&mut world);
        let all = read_with(&mut world, &format!("{asked}&limit={limit}"), place, |world| {
            // The disk is slow: what memory holds of the others is read meanwhile if anything lets it.
            (0..100).for_each(|_| world.turn(0));
            past.serve(world);
        });
        let at = |one: &Value| Some((one.get("message")?.to_string(), one["at"].to_string()));
        let sent: Vec<_> = all.iter().filter_map(at).collect();
        let distinct: std::collections::BTreeSet<_> = sent.iter().collect();
        assert_eq!(distinct.len(), 400);
        assert!(sent.len() <= 2 * distinct.len(), "{} messages sent for {}", sent.len(), distinct.len());
    }
}
