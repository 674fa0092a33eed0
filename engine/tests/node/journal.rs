//! Nodes whose journal is on a disk that loses what was not synced, fills up, fails, and bends bits: what was acknowledged from it is
//! there in the next life, no position is given twice, and who cannot be served is told.

use crate::client::{Client, Node};
use crate::disk::{Faults, SimulatedDisk};
use godwit_core::report::Report;
use godwit_journal::disk::Disk;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const SUBJECT: &str = "/power";
/// EMFILE.
const TOO_MANY_FILES: i32 = 24;
/// Lives on a disk that loses what was not synced, and how many there are where GODWIT_SEEDS asks for more than usual.
const LIVES: u64 = 12;
const LIVES_MANY: u64 = 200;
const PUBLISHERS: u64 = 3;
const IN_FLIGHT: u64 = 8;

/// What is known of all lives: which number stands at which position, and which of them a publisher was told to be on the disk.
#[derive(Default)]
struct Known {
    numbers: BTreeMap<String, u64>,
    promised: BTreeSet<String>,
}

impl Known {
    fn see(&mut self, at: &str, number: u64) {
        let known = *self.numbers.entry(at.to_owned()).or_insert(number);
        assert_eq!(known, number, "{at} was given twice");
    }
}

pub(crate) fn nothing_acknowledged_from_the_disk_is_lost_when_the_power_goes(driver: &str) {
    let seed = std::env::var("TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let mut chance = seed.unwrap_or_else(|| RandomState::new().hash_one(driver));
    println!("TEST_SEED={chance}");
    let mut disk = SimulatedDisk::default();
    let known = Mutex::new(Known::default());
    let number = AtomicU64::new(0);
    let lives = if std::env::var("GODWIT_SEEDS").is_ok_and(|seeds| !seeds.is_empty()) { LIVES_MANY } else { LIVES };
    for life in 1..=lives {
        let node = Node::start_on(driver, life, &disk);
        check_kept(&read_all(&node, life), &mut known.lock().unwrap());
        let is_over = AtomicBool::new(false);
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let wanted = known.lock().unwrap().promised.len() + (chance >> 33) as usize % 150;
        let after = std::thread::scope(|scope| {
            for publisher in 0..PUBLISHERS {
                let (node, known, number, is_over) = (&node, &known, &number, &is_over);
                // One of them needs no disk: its messages may go, and their positions must still not be given again.
                scope.spawn(move || publish(node.client(), publisher > 0, known, number, is_over));
            }
            node.until("messages are acknowledged", |_| known.lock().unwrap().promised.len() >= wanted);
            // All that was promised by now: what is promised later is a promise of a disk that is gone.
            let known = known.lock().unwrap();
            let after = if chance.is_multiple_of(4) { disk.kill() } else { disk.cut_power(chance) };
            is_over.store(true, Ordering::Relaxed);
            drop(known);
            after
        });
        node.engine.stop();
        disk = after;
    }
    let node = Node::start_on(driver, lives + 1, &disk);
    check_kept(&read_all(&node, lives + 1), &mut known.lock().unwrap());
    assert!(known.lock().unwrap().promised.len() > 100);
}

/// Some publishes at a time, each with a number of its own; what is answered after the power went does not count.
fn publish(mut client: Client, needs_disk: bool, known: &Mutex<Known>, number: &AtomicU64, is_over: &AtomicBool) {
    let ack = if needs_disk { "disk" } else { "cached" };
    while !is_over.load(Ordering::Relaxed) {
        for _ in 0..IN_FLIGHT {
            let number = number.fetch_add(1, Ordering::Relaxed) + 1;
            client.send(&format!(r#"{{"id":{number},"publish":"{SUBJECT}","content":{number},"ack":"{ack}"}}"#));
        }
        for _ in 0..IN_FLIGHT {
            let answer: Value = serde_json::from_str(&client.read()).unwrap();
            let (at, number) = (answer["at"].as_str().unwrap(), answer["id"].as_u64().unwrap());
            let mut known = known.lock().unwrap();
            if is_over.load(Ordering::Relaxed) {
                continue;
            }
            known.see(at, number);
            if needs_disk {
                assert_eq!(answer["ack"], Value::Null, "{answer}");
                known.promised.insert(at.to_owned());
            }
        }
    }
}

/// Every message that a node in this epoch has of the subject, and the gaps it tells on the way, in order; those of content 0 end such readings.
fn read_all(node: &Node, epoch: u64) -> Vec<Value> {
    let mut client = node.client();
    client.send(&format!(r#"{{"id":1,"subscribe":"{SUBJECT}","last":1000000}}"#));
    let reply = client.read();
    assert!(reply.contains(r#""ok":"subscribed""#), "{reply}");
    client.send(&format!(r#"{{"id":2,"publish":"{SUBJECT}","content":0}}"#));
    let mut all = Vec::new();
    loop {
        let message: Value = serde_json::from_str(&client.read()).unwrap();
        if message["content"] == 0 && message["at"].as_str().is_some_and(|at| at.starts_with(&format!("{epoch}."))) {
            return all;
        }
        if message["id"].is_null() && message["content"] != 0 {
            all.push(message);
        }
    }
}

fn numbers(messages: &[Value]) -> Vec<u64> {
    messages.iter().filter_map(|message| message["content"].as_u64()).collect()
}

fn check_kept(messages: &[Value], known: &mut Known) {
    let mut kept = BTreeSet::new();
    for message in messages.iter().filter(|message| message["message"].is_string()) {
        let at = message["at"].as_str().unwrap();
        assert!(kept.insert(at.to_owned()), "{at} is there twice");
        known.see(at, message["content"].as_u64().unwrap());
    }
    let numbers = numbers(messages);
    assert_eq!(numbers.iter().collect::<BTreeSet<_>>().len(), numbers.len(), "a message is there twice");
    let lost: Vec<&String> = known.promised.difference(&kept).collect();
    let gaps: Vec<&Value> = messages.iter().filter(|message| message["gap"].is_string()).collect();
    assert!(lost.is_empty(), "acknowledged from the disk, and lost: {lost:?}; {} came back, {gaps:?}", kept.len());
}

fn ask(client: &mut Client, command: &str) -> Value {
    client.send(command);
    serde_json::from_str(&client.read()).unwrap()
}

fn publish_one(client: &mut Client, number: u64, ack: &str) -> Value {
    ask(client, &format!(r#"{{"id":1,"publish":"{SUBJECT}","content":{number},"ack":"{ack}"}}"#))
}

fn is_failing(node: &Node) -> bool {
    node.engine.stats().journal.is_some_and(|journal| journal.is_failing)
}

/// What the node reports of its disk next: why it fails, or that it does no more.
fn await_alarm(node: &Node) -> Vec<Option<String>> {
    let mut heard = Vec::new();
    node.until("it is reported", |engine| {
        let reports = engine.reports().into_iter();
        heard.extend(
            reports.filter_map(|report| if let Report::Journal { reason } = report { Some(reason) } else { None }),
        );
        !heard.is_empty()
    });
    heard
}

pub(crate) fn a_failing_disk_refuses_who_needs_it_and_holds_nobody_else(driver: &str) {
    let kinds = [
        ("full", Faults { room: Some(700), ..Faults::default() }),
        ("sync", Faults { fails_syncs: true, ..Faults::default() }),
        ("read-only", Faults { is_read_only: true, ..Faults::default() }),
    ];
    for (kind, faults) in kinds {
        let disk = SimulatedDisk::default();
        let node = Node::start_on(driver, 1, &disk);
        let (mut client, mut reader) = (node.client(), node.client());
        assert!(ask(&mut reader, &format!(r#"{{"id":1,"subscribe":"{SUBJECT}"}}"#))["ok"] == "subscribed");
        for number in 1..=10 {
            assert_eq!(publish_one(&mut client, number, "disk")["at"], format!("1.{number}"));
        }
        disk.set_faults(faults);
        // Whoever is numbered before the disk is known to fail is told that its message only got as far as memory.
        let mut last = 10;
        loop {
            let answer = publish_one(&mut client, last + 1, "disk");
            if answer["error"] == 4119 {
                break;
            }
            last += 1;
            assert_eq!(answer["at"], format!("1.{last}"), "{kind}: {answer}");
        }
        assert!(is_failing(&node), "{kind}");
        for _ in 0..5 {
            last += 1;
            let answer = publish_one(&mut client, last, "cached");
            assert_eq!(answer["at"], format!("1.{last}"), "{kind}: a refused publish takes no number");
            assert_eq!(publish_one(&mut client, 0, "disk")["error"], 4119, "{kind}");
        }
        for number in 1..=last {
            let message: Value = serde_json::from_str(&reader.read()).unwrap();
            assert_eq!(message["content"], number, "{kind}: everybody else goes on");
        }
        // Whichever stream met the fault first: messages may still have room that was made ahead.
        let raised = await_alarm(&node);
        assert!(matches!(&raised[..], [Some(reason)] if !reason.is_empty()), "{kind}: {raised:?}");
        disk.set_faults(Faults::default());
        node.until("the disk is well", |_| !is_failing(&node));
        assert_eq!(await_alarm(&node), [None], "{kind}");
        last += 1;
        let answer = publish_one(&mut client, last, "disk");
        assert_eq!((&answer["at"], &answer["ack"]), (&Value::from(format!("1.{last}")), &Value::Null), "{kind}");
        // The disk has all of it now, also what was only in memory while it failed.
        let after = disk.cut_power(0);
        let next = Node::start_on(driver, 2, &after);
        assert_eq!(numbers(&read_all(&next, 2)), (1..=last).collect::<Vec<_>>(), "{kind}");
    }
}

pub(crate) fn what_cannot_be_sealed_is_reported_until_it_is(driver: &str) {
    let disk = SimulatedDisk::default();
    let node = Node::start_on(driver, 1, &disk);
    let mut client = node.client();
    let mut reported = Vec::new();
    let mut until = |what: &str, is_failing: bool| {
        node.until(what, |engine| {
            let reports = engine.reports().into_iter();
            reported.extend(
                reports.filter_map(|report| if let Report::Sealing { reason } = report { Some(reason) } else { None }),
            );
            reported.last().is_some_and(|reason| reason.is_some() == is_failing)
        });
        reported.clone()
    };
    disk.set_faults(Faults { open_errno: Some(TOO_MANY_FILES), ..Faults::default() });
    let content = "x".repeat(20_000);
    for _ in 0..4 {
        let answer = ask(&mut client, &format!(r#"{{"id":1,"publish":"{SUBJECT}","content":"{content}"}}"#));
        assert_eq!(answer["ok"], "published", "{answer}");
    }
    let raised = until("it is reported", true);
    assert!(matches!(&raised[..], [Some(reason)] if reason.contains("cannot be sealed")), "{raised:?}");
    disk.set_faults(Faults::default());
    assert_eq!(until("it is sealed", false)[1..], [None]);
}

pub(crate) fn a_flipped_bit_is_reported_and_its_message_told_as_missing(driver: &str) {
    for is_sealed in [false, true] {
        let disk = SimulatedDisk::default();
        let node = Node::start_on(driver, 1, &disk);
        let mut client = node.client();
        // None of them asks for the disk: no room is made ahead, for which the open segment would be sealed before it is looked at.
        for number in 1_000_001..=1_000_020u64 {
            publish_one(&mut client, number, "cached");
        }
        node.until("all of it is on the disk", |engine| {
            let stats = engine.stats();
            stats.journal.unwrap().synced_arrival == stats.totals.arrival
        });
        let disk = if is_sealed {
            node.engine.stop();
            disk
        } else {
            disk.kill()
        };
        let (path, place) = find(&disk, if is_sealed { ".arrow" } else { ".arrows" }, b"1000010");
        disk.flip(&path, place + 6, 0);
        let next = Node::start_on(driver, 2, &disk.kill());
        let resumed = next.started.resumed.as_ref().unwrap();
        let damaged = next.engine.stats().journal.unwrap().damaged;
        assert!(resumed.damaged > 0 || damaged > 0, "{resumed:?}");
        let mut reader = next.client();
        reader.send(&format!(r#"{{"id":1,"subscribe":"{SUBJECT}","after":"1.5","on_gap":"oldest"}}"#));
        assert!(reader.read().contains(r#""ok":"subscribed""#));
        let mut messages = Vec::new();
        publish_one(&mut next.client(), 1_000_021, "disk");
        while messages.last().is_none_or(|last: &Value| last["content"] != 1_000_021) {
            messages.push(serde_json::from_str(&reader.read()).unwrap());
        }
        let got = numbers(&messages);
        let whole: Vec<u64> = (1_000_006..=1_000_021).collect();
        assert!(
            got.iter().all(|number| whole.contains(number) && *number != 1_000_010),
            "a bent row was served: {got:?}"
        );
        assert!(
            messages.iter().any(|message| message["gap"].is_string() && message["missed"] != 0),
            "it is not told: {messages:?}"
        );
        assert!(got.ends_with(&(1_000_011..=1_000_021).collect::<Vec<_>>()), "more went than one row: {got:?}");
    }
}

/// The segment of messages that holds this, and where.
fn find(disk: &SimulatedDisk, ending: &str, text: &[u8]) -> (PathBuf, usize) {
    let is_meant = |path: &PathBuf| path.starts_with("/journal/messages") && path.to_string_lossy().ends_with(ending);
    let place_in = |path: &PathBuf| {
        let file = disk.open(path).unwrap();
        let mut bytes = vec![0; file.length().unwrap() as usize];
        file.read_at(0, &mut bytes).unwrap();
        bytes.windows(text.len()).position(|window| window == text)
    };
    disk.names()
        .into_iter()
        .filter(is_meant)
        .find_map(|path| Some((place_in(&path)?, path)))
        .map(|(at, path)| (path, at))
        .unwrap()
}
