//! What waits for the disk is answered when it is there, and says what it reached where the disk fails.

use super::journaling;
use crate::world::{Place, World, open_settings};
use godwit_core::node::Progress;
use serde_json::{Value, json};

fn tell(world: &mut World, progress: Progress) {
    world.node.lock().unwrap().journaled(progress);
    world.turn(0);
    world.settle();
}

fn text(world: &mut World, place: Place) -> String {
    String::from_utf8(std::mem::take(&mut world.socket(place).taken)).unwrap()
}

fn statuses(text: &str) -> Vec<&str> {
    text.match_indices("HTTP/1.1 ").map(|(at, _)| &text[at + 9..at + 12]).collect()
}

fn post(query: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST /v1/messages{query} HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

const DELETE: &str = "DELETE /v1/snapshot?subject=/a HTTP/1.1\r\nHost: h\r\n\r\n";
const SHOW: &str = "GET /v1/snapshot?subject=/a HTTP/1.1\r\nHost: h\r\n\r\n";

#[test]
fn a_removal_by_delete_is_answered_once_the_disk_has_it() {
    let mut world = World::new(journaling(), 1, false);
    let place = world.accept(0);
    for number in 0..3 {
        world.bytes(place, post("?subject=/a", "1").as_bytes());
        tell(&mut world, Progress { synced: 2 * number + 1, ..Progress::default() });
        assert_eq!(statuses(&text(&mut world, place)), ["201"]);
        world.bytes(place, DELETE.as_bytes());
        world.turn(0);
        world.settle();
        assert!(world.socket(place).taken.is_empty(), "the disk does not have it yet");
        tell(&mut world, Progress { synced: 2 * number + 2, ..Progress::default() });
        let answer = text(&mut world, place);
        assert!(answer.ends_with(&format!("{{\"at\":\"7.{}\"}}", 2 * number + 2)), "{answer}");
        assert_eq!(statuses(&answer), ["201"]);
    }
    world.bytes(place, DELETE.as_bytes());
    tell(&mut world, Progress { synced: 6, ..Progress::default() });
    assert_eq!(statuses(&text(&mut world, place)), ["404"], "no snapshot is left");
}

#[test]
fn nothing_overtakes_a_removal_that_waits_for_the_disk() {
    let mut world = World::new(journaling(), 1, false);
    let place = world.accept(0);
    let requests = [&post("?subject=/a", "1"), DELETE, SHOW, &post("?subject=/a&ack=disk", "2"), DELETE, SHOW].concat();
    world.bytes(place, requests.as_bytes());
    world.turn(0);
    world.settle();
    assert_eq!(statuses(&text(&mut world, place)), ["201"]);
    tell(&mut world, Progress { synced: 2, ..Progress::default() });
    assert_eq!(statuses(&text(&mut world, place)), ["201", "404"]);
    tell(&mut world, Progress { synced: 3, ..Progress::default() });
    assert_eq!(statuses(&text(&mut world, place)), ["201"]);
    tell(&mut world, Progress { is_failing: true, ..Progress::default() });
    let rest = text(&mut world, place);
    assert_eq!(statuses(&rest), ["201", "404"]);
    assert!(rest.contains(r#"{"at":"7.4","ack":"cached"}"#), "{rest}");
    assert!(!world.socket(place).is_paused, "it is read again");
}

#[test]
fn a_removal_by_delete_is_one_message_for_its_number() {
    let mut world = World::new(journaling(), 1, false);
    let place = world.accept(0);
    world.bytes(place, post("?subject=/a", "1").as_bytes());
    let with = |query: &str| DELETE.replace("subject=/a", &format!("subject=/a&{query}"));
    let numbered = with("publisher=0123456789abcdef&number=7&ack=disk");
    world.bytes(place, [&numbered[..], &numbered].concat().as_bytes());
    tell(&mut world, Progress { synced: 2, ..Progress::default() });
    let answers = text(&mut world, place);
    assert_eq!(statuses(&answers), ["201"; 3]);
    assert_eq!(answers.matches(r#"{"at":"7.2"}"#).count(), 2, "{answers}");
    assert_eq!(answers.matches("Godwit-Duplicate: true").count(), 1, "{answers}");
    for (query, reason) in [
        ("number=8", "publisher"),
        ("publisher=0123456789abcdef", "number"),
        ("ack=soon", "ack"),
        ("ack=replicated", "replicated"),
        ("retain=true", "retain"),
    ] {
        world.bytes(place, with(query).as_bytes());
        world.turn(0);
        world.settle();
        let answer = text(&mut world, place);
        assert!(!answer.starts_with("HTTP/1.1 2") && answer.contains(reason), "{query} {answer}");
    }
}

#[test]
fn a_removal_over_websocket_is_answered_once_the_disk_has_it() {
    let mut world = World::new(journaling(), 1, false);
    let place = world.connect(0);
    world.ask(place, r#"{"publish":"/a","content":1}"#);
    let removal = r#"{"id":1,"publish":"/a","removed":true}"#;
    assert_eq!(world.ask(place, removal), [] as [Value; 0]);
    tell(&mut world, Progress { synced: 2, ..Progress::default() });
    assert_eq!(world.heard(place), [json!({"id":1,"ok":"published","at":"7.2"})]);
    let many = format!("[{{\"publish\":\"/a\",\"content\":1}},{removal}]");
    let place = world.accept(0);
    world.bytes(place, [&post("", &many), SHOW].concat().as_bytes());
    world.turn(0);
    world.settle();
    assert!(world.socket(place).taken.is_empty(), "nothing overtakes it");
    tell(&mut world, Progress { synced: 4, ..Progress::default() });
    assert_eq!(statuses(&text(&mut world, place)), ["200", "404"]);
}

#[test]
fn a_publish_that_waits_for_the_disk_is_answered_when_it_is_there_or_says_what_it_reached() {
    let mut world = World::new(journaling(), 1, false);
    let publisher = world.connect(0);
    let disk = |id: u32| json!({"id": id, "publish": "/a", "content": id, "ack": "disk"}).to_string();
    assert_eq!(world.ask(publisher, &disk(1)), [] as [Value; 0]);
    assert_eq!(
        world.ask(publisher, r#"{"id":2,"publish":"/a","content":2}"#),
        [json!({"id":2,"ok":"published","at":"7.2"})]
    );
    tell(&mut world, Progress { synced: 2, ..Progress::default() });
    assert_eq!(world.heard(publisher), [json!({"id":1,"ok":"published","at":"7.1"})]);
    world.ask(publisher, &disk(3));
    tell(&mut world, Progress { is_failing: true, ..Progress::default() });
    assert_eq!(world.heard(publisher), [json!({"id":3,"ok":"published","at":"7.3","ack":"cached"})]);
    let refused = world.ask(publisher, &disk(4));
    assert_eq!((refused[0]["error"].clone(), refused[0]["retry"].clone()), (json!(4119), json!(true)));
    let standard = r#"{"id":5,"publish":"/a","content":5,"ack":"disk","guaranteed":false}"#;
    assert_eq!(world.ask(publisher, standard)[0]["error"], json!(4118));
    let mut without = World::new(open_settings(), 1, false);
    let publisher = without.connect(0);
    assert_eq!(without.ask(publisher, &disk(1))[0]["error"], json!(4118));
}

#[test]
fn posts_that_wait_for_the_disk_are_answered_in_the_order_of_their_requests() {
    let mut world = World::new(journaling(), 1, false);
    let place = world.accept(0);
    let many = r#"[{"publish":"/a","content":1,"ack":"disk"},{"publish":"/a","content":2},{"publish":"/","content":3,"ack":"disk"}]"#;
    let requests = [post("?subject=/a&ack=disk", "1"), post("", many), post("?subject=/a", "3")].concat();
    world.bytes(place, requests.as_bytes());
    world.turn(0);
    world.settle();
    assert!(world.socket(place).taken.is_empty(), "nothing overtakes the first");
    tell(&mut world, Progress { synced: 1, ..Progress::default() });
    let first = text(&mut world, place);
    assert!(first.contains(" 201 ") && first.ends_with(r#"{"at":"7.1"}"#), "{first}");
    tell(&mut world, Progress { is_failing: true, ..Progress::default() });
    let rest = text(&mut world, place);
    assert!(rest.contains(r#""at":"7.2","ack":"cached"}"#), "{rest}");
    assert!(rest.contains(r#""at":"7.3"}"#) && rest.contains(r#""error":4101"#), "{rest}");
    assert!(rest.ends_with(r#"{"at":"7.4"}"#), "{rest}");
}
