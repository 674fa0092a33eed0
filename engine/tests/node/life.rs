//! A node begins, works, and ends without a trace.

use crate::client::{Client, Node, UPGRADE, settings};
use godwit_core::codes::Code;
use godwit_core::message::Kind;
use godwit_core::report::{ConnectionId, ConnectionList, Report};
use godwit_engine::{Engine, Question, Sort};
use std::io::Write;
use std::net::TcpListener;
use std::process::Command;
use std::time::{Duration, Instant};

pub(crate) fn a_message_reaches_the_subscribers_of_every_shard(driver: &str) {
    let node = Node::start(driver, 2, "");
    assert_eq!((node.started.driver.as_str(), node.started.driver_reason.as_str()), (driver, ""));
    let mut clients: Vec<Client> = (0..40).map(|_| node.client()).collect();
    for client in &mut clients {
        client.send(r#"{"id":1,"subscribe":"/a/b"}"#);
        assert!(client.read().contains(r#""ok":"subscribed""#));
    }
    let shards = node.engine.stats().shards;
    assert!(shards.iter().all(|figures| figures.shard.connections > 0), "the kernel spreads clients over the shards");
    let mut publisher = node.client();
    for round in 1..=20 {
        publisher.send(&format!(r#"{{"id":{round},"publish":"/a/b","content":{{"round":{round}}}}}"#));
        assert!(publisher.read().contains(&format!(r#""at":"7.{round}""#)));
    }
    for client in &mut clients {
        for round in 1..=20 {
            let message = client.read();
            assert!(message.contains(&format!(r#""at":"7.{round}""#)), "{message}");
        }
    }
}

pub(crate) fn every_shard_goes_by_other_limits_once_they_are_taken_over(driver: &str) {
    let node = Node::start(driver, 2, "");
    let held: Vec<Client> = (0..20).map(|_| node.client()).collect();
    let shards = node.engine.stats().shards;
    assert!(shards.iter().all(|figures| figures.shard.connections > 0), "they are counted on both shards");
    for round in 0..100 {
        for (limit, is_let_in) in [(held.len(), false), (0, true)] {
            let limits = format!(r#""connections_per_address_max":{limit}"#);
            node.engine.configure(&settings(driver, 2, &limits, "127.0.0.1:0")).unwrap();
            let mut client = Client::connect(node.address());
            // Who is refused may find the connection closed before it has said anything.
            let said = client.stream.write_all(UPGRADE);
            client.await_answer();
            assert_eq!(client.was_let_in(), is_let_in, "round {round}: {said:?}");
        }
    }
}

pub(crate) fn the_node_itself_publishes_and_says_what_it_refuses(driver: &str) {
    let node = Node::start(driver, 2, r#""message_bytes_max":1000"#);
    let mut client = node.client();
    client.send(r#"{"id":1,"subscribe":"/**"}"#);
    client.read();
    assert!(client.read().contains("resume_token"));
    let mut publications = node.engine.publications();
    publications.push("/a", b"{\"x\":1}", Kind::Json, true);
    publications.push("/a", b"{\"x\"", Kind::Json, true);
    publications.push("no slash", b"1", Kind::Json, true);
    publications.push("/a", &[0; 1001], Kind::Bytes, true);
    publications.push("/a", "caf\u{e9}".as_bytes(), Kind::Text, true);
    publications.push("/a", b"\xff", Kind::Text, true);
    let answers: Vec<_> = node.engine.publish(publications).into_iter().map(|a| a.map(|at| at.to_string())).collect();
    let (invalid, subject, big) = (Code::ContentInvalid, Code::SubjectInvalid, Code::MessageTooBig);
    let at = |text: &str| Ok(text.to_owned());
    assert_eq!(answers, [at("7.1"), Err(invalid), Err(subject), Err(big), at("7.2"), Err(invalid)]);
    assert!(client.read().contains(r#""content":{"x":1}"#));
    assert!(client.read().contains(r#""text":"café""#));
}

pub(crate) fn connections_and_subjects_are_listed_across_shards(driver: &str) {
    let node = Node::start(driver, 3, "");
    let clients: Vec<Client> = (0..30).map(|_| node.client()).collect();
    let (mut seen, mut after) = (Vec::new(), ConnectionId(0));
    loop {
        let (rows, next) = node.engine.connections(ConnectionList { after, limit: 7, search: None, is_behind: false });
        assert!(rows.len() <= 7);
        seen.extend(rows.iter().map(|row| row.connection));
        let Some(next) = next else { break };
        after = next;
    }
    let mut sorted = seen.clone();
    sorted.sort_unstable_by_key(|connection| connection.shard());
    sorted.dedup();
    assert_eq!((seen.len(), sorted.len()), (clients.len(), clients.len()), "each once");
    let mut publications = node.engine.publications();
    (0..50).for_each(|number| publications.push(&format!("/s/{number:02}"), b"1", Kind::Json, true));
    node.engine.publish(publications);
    let rows = node.engine.subjects("/s/09", 20, None);
    assert_eq!((rows.len(), &*rows[0].subject, &*rows[19].subject), (20, "/s/10", "/s/29"));
}

pub(crate) fn a_connection_is_shown_with_where_it_stands(driver: &str) {
    let node = Node::start(driver, 2, "");
    let mut client = node.client();
    client.send(r#"[{"id":1,"subscribe":"/a"},{"id":2,"subscribe":"/b/**","conflate_ms":500}]"#);
    client.read();
    let list = |search: &str| ConnectionList {
        after: ConnectionId(0),
        limit: 10,
        search: Some(search.to_owned()),
        is_behind: false,
    };
    node.until("both are subscribed", |_| node.engine.connections(list("127.0.0.1")).0[0].subscriptions == 2);
    let (rows, next) = node.engine.connections(list(&format!("{:x}", seen_id(&node))));
    assert_eq!((rows.len(), next), (1, None));
    assert!(rows[0].stands.is_empty(), "a list does not tell them");
    let mut stands = node.engine.connection(rows[0].connection).unwrap().stands;
    stands.sort_by(|a, b| a.selector.cmp(&b.selector));
    let rows: Vec<_> = stands.iter().map(|s| (&*s.selector, s.stand, s.lag_bytes, s.conflate_ms)).collect();
    assert_eq!(rows, [("/a", "live", 0, 0), ("/b/**", "live", 0, 500)]);
    assert!(node.engine.connection(ConnectionId::new(1, 4_000_000, 9)).is_none(), "another has its place");
    assert!(node.engine.connection(ConnectionId::new(63, 1, 0)).is_none(), "there is no such shard");
    let behind = ConnectionList { is_behind: true, search: None, ..list("") };
    assert!(node.engine.connections(behind).0.is_empty());
}

fn seen_id(node: &Node) -> u64 {
    let all = ConnectionList { after: ConnectionId(0), limit: 10, search: None, is_behind: false };
    node.engine.connections(all).0[0].connection.0
}

pub(crate) fn subjects_are_searched_and_sorted_as_they_were_a_moment_ago(driver: &str) {
    let node = Node::start(driver, 1, "");
    let publish = |range: std::ops::Range<usize>, times: usize| {
        let mut publications = node.engine.publications();
        for number in range {
            (0..times).for_each(|_| publications.push(&format!("/s/{number:04}"), b"1", Kind::Json, true));
        }
        node.engine.publish(publications);
    };
    publish(0..1000, 1);
    publish(500..510, 4);
    let ask = |search: &str, sort: Sort, is_descending: bool, offset: usize| {
        let search = search.to_owned();
        let found = node.engine.survey(&Question { pattern: None, search, sort, is_descending, offset, limit: 10 });
        let names: Vec<_> = found.rows.iter().map(|found| found.row.subject.to_string()).collect();
        (found, names)
    };
    let (found, names) = ask("", Sort::Messages, true, 0);
    assert_eq!((found.total, found.is_partial, found.rows[9].row.messages), (1000, false, 5));
    assert_eq!((names[0].as_str(), names[9].as_str()), ("/s/0500", "/s/0509"), "equal ones in the order of names");
    assert_eq!(ask("", Sort::Messages, true, 10).1[0], "/s/0000");
    assert_eq!(ask("", Sort::Subject, true, 990).1, (0..10).rev().map(|n| format!("/s/000{n}")).collect::<Vec<_>>());
    assert_eq!(ask("", Sort::Bytes, false, 995).1.len(), 5);
    assert!(ask("", Sort::Last, true, 2000).1.is_empty());
    assert_eq!(ask("S 099", Sort::Subject, false, 0).0.total, 0, "a capital is a capital");
    assert_eq!(ask("s 099", Sort::Subject, false, 0).0.total, 11, "all words, anywhere");
    publish(7..8, 100);
    node.until("a survey that saw the hundred", |_| ask("", Sort::Rate, true, 0).1[0] == "/s/0007");
    assert!(ask("", Sort::Rate, true, 0).0.rows[0].rate_per_s.is_some_and(|rate| rate > 1.0));
}

pub(crate) fn a_taken_port_is_an_error_and_leaves_nothing(driver: &str) {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for shards in [1, 2] {
        let engine = Engine::new(&settings(driver, shards, "", &address)).unwrap();
        assert_eq!(engine.start().unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
    }
    // Another node on the same port would share it, were the port not tried first.
    let node = Node::start(driver, 2, "");
    let engine = Engine::new(&settings(driver, 2, "", &node.address().to_string())).unwrap();
    assert_eq!(engine.start().unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
    node.engine.stop();
    engine.start().unwrap();
    assert!(engine.start().is_err(), "started twice");
}

const NAME: &str = "GODWIT_TEST_ALONE";

/// Threads and descriptors are the process's, so the case runs in a process of its own.
pub(crate) fn starting_and_stopping_leaves_no_thread_and_no_descriptor(driver: &str) {
    if std::env::var_os(NAME).is_some() {
        return start_and_stop(driver);
    }
    let module = if driver == "io_uring" { "uring" } else { "readiness" };
    let case = format!("{module}::starting_and_stopping_leaves_no_thread_and_no_descriptor");
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &case, "--nocapture", "--test-threads=1"])
        .env(NAME, "1")
        .status();
    assert!(status.unwrap().success());
}

fn start_and_stop(driver: &str) {
    let count = |what: &str| std::fs::read_dir(format!("/proc/self/{what}")).unwrap().count();
    let (threads, mut before) = (count("task"), None);
    for round in 0..12 {
        let node = Node::start(driver, 4, "");
        let mut clients: Vec<Client> = (0..20).map(|_| node.client()).collect();
        for client in &mut clients {
            client.send(r#"{"id":1,"subscribe":"/a/*"}"#);
            client.read();
        }
        node.engine.stop();
        node.engine.stop();
        assert!(
            clients.iter_mut().all(|client| {
                while client.next().is_some() {}
                true
            }),
            "all are closed"
        );
        drop((clients, node));
        // Who joins a thread goes on a little before the kernel has taken it off its list.
        let deadline = Instant::now() + Duration::from_secs(20);
        while count("task") != threads && Instant::now() < deadline {
            std::thread::yield_now();
        }
        assert_eq!(count("task"), threads, "threads after round {round}");
        let now = count("fd");
        if round >= 1 {
            assert_eq!(now, *before.get_or_insert(now), "descriptors after round {round}");
        }
    }
}

pub(crate) fn a_drain_tells_everybody_and_is_reported_once(driver: &str) {
    let node = Node::start(driver, 2, "");
    let mut clients: Vec<Client> = (0..10).map(|_| node.client()).collect();
    node.engine.drain(100, 1000);
    for client in &mut clients {
        assert!(client.read().contains("draining"));
        assert_eq!(client.next(), None);
    }
    drop(clients);
    let mut drained = 0;
    node.until("drained", |engine| {
        drained += engine.reports().iter().filter(|report| matches!(report, Report::Drained { .. })).count();
        drained > 0
    });
    assert_eq!(drained, 1);
    assert!(std::net::TcpStream::connect(node.address()).is_err(), "a draining node accepts nobody");
}
