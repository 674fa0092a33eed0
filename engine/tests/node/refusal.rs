//! What the system may refuse a node: descriptors, and io_uring as a whole. Each case runs in a process of its own.

use crate::client::{Client, Node, settings};
use godwit_engine::Engine;
use std::process::Command;

const NAME: &str = "GODWIT_TEST_REFUSED";

/// Runs a case of this program in a process of its own; true in that process.
fn is_alone(case: &str) -> bool {
    if std::env::var_os(NAME).is_some() {
        return true;
    }
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", case, "--nocapture", "--test-threads=1"])
        .env(NAME, "1")
        .status();
    assert!(status.unwrap().success(), "{case}");
    false
}

pub(crate) fn a_node_out_of_descriptors_serves_those_it_has(driver: &str) {
    let module = if driver == "io_uring" { "uring" } else { "readiness" };
    if !is_alone(&format!("{module}::a_node_out_of_descriptors_serves_those_it_has")) {
        return;
    }
    // The clients' descriptors are this process's too: 40 sockets have to do for both ends.
    let limit = libc::rlimit { rlim_cur: 64, rlim_max: 64 };
    // SAFETY: the pointer is to a valid rlimit of this frame.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }, 0);
    let node = Node::start(driver, 1, "");
    assert_eq!(node.started.descriptors_max, 64);
    let mut first = node.client();
    let mut others = Vec::new();
    while let Ok(stream) = std::net::TcpStream::connect(node.address()) {
        others.push(stream);
    }
    first.send(r#"{"id":1,"ping":true}"#);
    assert!(first.read().contains("pong"), "with no descriptor left");
    let came = 1 + others.len() as u64;
    drop(others);
    node.until("the others were accepted or refused, and are gone", |engine| {
        let shards = engine.stats().shards;
        let seen: u64 = shards.iter().map(|figures| figures.shard.accepted + figures.driver.refused).sum();
        seen == came && node.connections() == 1
    });
    let mut last = node.client();
    last.send(r#"{"id":1,"ping":true}"#);
    assert!(last.read().contains("pong"));
}

/// Makes these system calls fail in this thread and those it starts.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn forbid(calls: &[libc::c_long], errno: i32) {
    use libc::{BPF_ABS, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, sock_filter, sock_fprog};
    let instruction = |code: u32, k: u32, jt: u8| sock_filter { code: code as u16, jt, jf: 0, k };
    let mut filter = vec![instruction(BPF_LD | BPF_W | BPF_ABS, 0, 0)];
    for (index, &call) in calls.iter().enumerate() {
        filter.push(instruction(BPF_JMP | BPF_JEQ | BPF_K, call as u32, (calls.len() - index) as u8));
    }
    filter.push(instruction(BPF_RET | BPF_K, libc::SECCOMP_RET_ALLOW, 0));
    filter.push(instruction(BPF_RET | BPF_K, libc::SECCOMP_RET_ERRNO | errno as u32, 0));
    let program = sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the program points to the filter above, which the kernel copies during the call.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program), 0);
    }
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn falls_back(calls: &[libc::c_long], errno: i32) {
    forbid(calls, errno);
    let node = Node::start("auto", 2, "");
    assert_eq!(node.started.driver, "readiness");
    assert!(node.started.driver_reason.contains(&format!("os error {errno}")), "{}", node.started.driver_reason);
    let mut client = Client::open(node.address());
    client.send(r#"{"id":1,"ping":true}"#);
    assert!(client.read().contains("pong"));
    let demanding = Engine::new(&settings("io_uring", 2, "", "127.0.0.1:0")).unwrap();
    assert_eq!(demanding.start().unwrap_err().raw_os_error(), Some(errno), "who asks for io_uring is told");
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn a_node_forbidden_to_set_up_io_uring_uses_readiness_and_says_why() {
    if is_alone("refusal::a_node_forbidden_to_set_up_io_uring_uses_readiness_and_says_why") {
        falls_back(&[libc::SYS_io_uring_setup], libc::EPERM);
    }
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn a_node_forbidden_to_enter_io_uring_uses_readiness_and_says_why() {
    if is_alone("refusal::a_node_forbidden_to_enter_io_uring_uses_readiness_and_says_why") {
        falls_back(&[libc::SYS_io_uring_enter, libc::SYS_io_uring_register], libc::ENOSYS);
    }
}
