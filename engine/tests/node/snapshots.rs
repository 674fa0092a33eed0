//! Snapshots whose rows the journal has let go: they come back after a kill, from a disk that was full, and from a file that is damaged as far as
//! it is whole.

use crate::client::{Client, Node, journaled_settings};
use crate::disk::{Faults, SimulatedDisk};
use godwit_journal::disk::{Disk, read_range};
use serde_json::{Value, json};
use std::path::Path;

const FILE: &str = "/journal/snapshots";

fn ask(client: &mut Client, command: &Value) -> Value {
    client.send(&command.to_string());
    serde_json::from_str(&client.read()).unwrap()
}

fn publish(client: &mut Client, subject: &str, options: &Value) -> Value {
    let mut command = json!({"id": 1, "publish": subject});
    command.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
    let answer = ask(client, &command);
    assert!(answer["ok"] == "published", "{command} {answer}");
    answer
}

/// A subject's snapshot as a new subscriber is shown it.
fn snapshot(node: &Node, subject: &str) -> Option<Value> {
    let mut client = node.client();
    let reply = ask(&mut client, &json!({"id": 1, "subscribe": subject}));
    assert_eq!(reply["ok"], "subscribed", "{reply}");
    (reply["outcome"] == "snapshot").then(|| serde_json::from_str(&client.read()).unwrap())
}

fn content(node: &Node, subject: &str) -> Option<Value> {
    snapshot(node, subject).map(|shown| shown["content"].clone())
}

fn segments(disk: &SimulatedDisk) -> Vec<String> {
    let names = disk.list(Path::new("/journal/messages")).unwrap_or_default();
    names.into_iter().filter(|name| name.contains("0000000000000000") && !name.contains("index")).collect()
}

/// Traffic that is no state, until the rows before it are in sealed segments.
fn fill(client: &mut Client) {
    for _ in 0..40 {
        let bulk = "x".repeat(3_000);
        publish(client, "/bulk", &json!({"content": bulk, "retain": false, "ack": "disk"}));
    }
}

fn set_retention(node: &Node, life: u64) {
    let settings = journaled_settings("readiness", life);
    let bound = r#""journal":{"retention":{"messages":[0,1]},"#;
    node.engine.configure(&settings.replacen(r#""journal":{"#, bound, 1)).unwrap();
}

/// The number of the first segment: one that is being sealed takes another name, but not another number.
fn first_segment(disk: &SimulatedDisk) -> Option<String> {
    let number = |name: String| name.split(['-', '.']).next().unwrap_or_default().to_owned();
    segments(disk).into_iter().map(number).min()
}

/// Lets the sealed rows go.
fn let_go(node: &Node, disk: &SimulatedDisk, life: u64) {
    let first = || first_segment(disk);
    let before = first();
    node.until("the first rows are gone", |_| {
        set_retention(node, life);
        first() != before
    });
}

fn read_file(disk: &SimulatedDisk) -> String {
    let file = disk.open(Path::new(FILE)).unwrap();
    String::from_utf8(read_range(&*file, 0, usize::MAX).unwrap()).unwrap()
}

/// Waits until everything that changed is on the disk: the snapshots are written before the second purge is answered.
fn flush(node: &Node) {
    assert!(node.engine.purge("/none").1 && node.engine.purge("/none").1);
}

pub(crate) fn a_snapshot_outlives_its_rows_and_a_kill(driver: &str) {
    let mut disk = SimulatedDisk::default();
    let states = [
        ("/whole", Some(json!({"on": true}))),
        ("/patched", Some(json!({"a": 1, "b": 2}))),
        ("/standard", Some(json!("at most once"))),
        ("/standard/patched", Some(json!({"x": 1, "y": 2}))),
        ("/removed", None),
        ("/purged", None),
    ];
    for life in 1..=3 {
        let node = Node::start_on(driver, life, &disk);
        let mut client = node.client();
        if life == 1 {
            publish(&mut client, "/whole", &json!({"content": {"on": true}}));
            publish(&mut client, "/patched", &json!({"content": {"a": 1, "c": 3}, "merge": true}));
            publish(&mut client, "/standard", &json!({"content": "at most once", "guaranteed": false, "retain": true}));
            publish(
                &mut client,
                "/standard/patched",
                &json!({"content": {"x": 1}, "guaranteed": false, "retain": true}),
            );
            publish(&mut client, "/standard/patched", &json!({"content": {"y": 2}, "merge": true}));
            publish(&mut client, "/removed", &json!({"content": 1}));
            publish(&mut client, "/purged", &json!({"content": 1}));
        }
        fill(&mut client);
        if life == 1 {
            publish(&mut client, "/patched", &json!({"content": {"b": 2}, "merge": true}));
        } else {
            // It is in the file by now, and what follows it in the rows.
            publish(&mut client, "/patched", &json!({"content": {"c": null}, "merge": true, "ack": "disk"}));
        }
        let_go(&node, &disk, life);
        if life == 1 {
            publish(&mut client, "/removed", &json!({"removed": true}));
            node.engine.purge("/purged");
        }
        flush(&node);
        disk = disk.kill();
        node.engine.stop();
        let after = Node::start_on(driver, 10 + life, &disk.kill());
        for (subject, expected) in &states {
            let expected = match (*subject, life) {
                ("/patched", 1) => Some(json!({"a": 1, "b": 2, "c": 3})),
                _ => expected.clone(),
            };
            assert_eq!(content(&after, subject), expected, "{subject} after life {life}: {}", read_file(&disk));
        }
    }
}

pub(crate) fn rows_stay_on_a_full_disk_as_long_as_their_snapshots_have_no_room(driver: &str) {
    let disk = SimulatedDisk::default();
    let node = Node::start_on(driver, 1, &disk);
    let mut client = node.client();
    publish(&mut client, "/state", &json!({"content": "kept", "ack": "disk"}));
    fill(&mut client);
    disk.set_faults(Faults { room: Some(0), ..Faults::default() });
    let before = first_segment(&disk);
    set_retention(&node, 1);
    // What the journal lets go of itself leaves a little room, for some notes.
    node.until("the disk takes nothing", |_| !node.engine.purge("/state/other").1);
    let full = disk.kill();
    disk.set_faults(Faults::default());
    let_go(&node, &disk, 1);
    let gone = disk.kill();
    node.engine.stop();
    for (after, had_rows) in [(full, true), (gone, false)] {
        // Room that the journal's own end of a segment leaves may have been enough for the snapshot.
        let is_saved = read_file(&after).contains("/state");
        assert!(if had_rows { first_segment(&after) == before || is_saved } else { first_segment(&after) != before });
        assert_eq!(content(&Node::start_on(driver, 2, &after), "/state"), Some(json!("kept")));
    }
}

pub(crate) fn patches_whose_base_is_lost_are_not_shown_as_the_whole(driver: &str) {
    let disk = SimulatedDisk::default();
    let node = Node::start_on(driver, 1, &disk);
    let mut client = node.client();
    publish(&mut client, "/patched", &json!({"content": {"a": 1}, "merge": true}));
    publish(&mut client, "/whole", &json!({"content": 1}));
    publish(&mut client, "/bent", &json!({"content": 1}));
    fill(&mut client);
    let_go(&node, &disk, 1);
    publish(&mut client, "/patched", &json!({"content": {"b": 2}, "merge": true, "ack": "disk"}));
    let after = disk.kill();
    node.engine.stop();
    let text = read_file(&after);
    let bent = text.replace(r#"{\"a\":1}"#, r#"{\"a\":7}"#);
    assert_ne!(text, bent);
    after.remove(Path::new(FILE)).unwrap();
    let mut file = after.create(Path::new(FILE)).unwrap();
    godwit_journal::disk::write_all(&mut *file, bent.as_bytes()).unwrap();
    let node = Node::start_on(driver, 2, &after);
    assert_eq!(content(&node, "/patched"), None);
    assert_eq!((content(&node, "/whole"), content(&node, "/bent")), (Some(json!(1)), Some(json!(1))));
    let said = &node.started.resumed.as_ref().unwrap().said;
    assert!(said.iter().any(|sentence| sentence.contains("dropped 1 merged snapshots")), "{said:?}");
    // A patch makes no state of its own until somebody says what the whole is, after another start, too.
    publish(&mut node.client(), "/patched", &json!({"content": {"c": 3}, "merge": true, "ack": "disk"}));
    assert_eq!(content(&node, "/patched"), None);
    flush(&node);
    let again = after.kill();
    node.engine.stop();
    let node = Node::start_on(driver, 3, &again);
    assert_eq!(content(&node, "/patched"), None);
    let mut client = node.client();
    publish(&mut client, "/patched", &json!({"content": {"d": 4}}));
    publish(&mut client, "/patched", &json!({"content": {"e": 5}, "merge": true}));
    assert_eq!(content(&node, "/patched"), Some(json!({"d": 4, "e": 5})));
}

pub(crate) fn fields_of_several_messages_outlive_their_rows(driver: &str) {
    let mut disk = SimulatedDisk::default();
    let steps = [
        (json!({"content": 1, "fields": {"a": "1", "b": "1"}}), json!({"a": "1", "b": "1"})),
        (json!({"content": 2, "fields": {"c": "2"}}), json!({"a": "1", "b": "1", "c": "2"})),
        (json!({"content": 3, "fields": {"b": null}}), json!({"a": "1", "c": "2"})),
        (json!({"content": {"x": 1}, "merge": true}), json!({"a": "1", "c": "2"})),
        (json!({"removed": true}), Value::Null),
        (json!({"content": 4, "fields": {"d": "4"}}), json!({"d": "4"})),
    ];
    for (number, (step, expected)) in (1..).zip(steps) {
        let node = Node::start_on(driver, number, &disk);
        let mut client = node.client();
        publish(&mut client, "/a", &step);
        flush(&node);
        publish(&mut client, "/bulk", &json!({"content": 0, "ack": "disk"}));
        // Once with the rows of this life, and once without.
        let kept = disk.kill();
        fill(&mut client);
        let_go(&node, &disk, number);
        disk = disk.kill();
        node.engine.stop();
        for (life, after) in [(100, kept), (101, disk.kill())] {
            let shown = snapshot(&Node::start_on(driver, life, &after), "/a");
            let fields = shown.map_or(Value::Null, |shown| shown["fields"].clone());
            assert_eq!(fields, expected, "after {step}, in life {life}: {}", read_file(&after));
        }
    }
}
