//! What a driver does when there is no more to have.

use crate::rig::Rig;
use godwit_engine::driver::{
    DriverOptions, Event, Preference, Sending, descriptor_limit, open, raise_descriptor_limit,
};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

pub(crate) fn clients_beyond_the_limit_are_refused_and_the_others_stay(preference: Preference) {
    let mut rig = Rig::with(DriverOptions { preference, sockets_max: 10, ..DriverOptions::default() });
    let mut held: Vec<_> = (0..10).map(|_| rig.client()).collect();
    for refused in 1..=20 {
        let mut client = TcpStream::connect(rig.address).unwrap();
        rig.until(|rig| rig.driver.counters().refused == refused);
        rig.turn(Duration::ZERO);
        assert!(matches!(client.read(&mut [0]), Ok(0) | Err(_)), "a refused client is closed");
    }
    for (client, socket) in &mut held {
        assert_eq!(rig.send(*socket, b"you stay"), Sending::Done(8));
        let mut heard = [0; 8];
        client.read_exact(&mut heard).unwrap();
    }
    let (client, socket) = held.swap_remove(0);
    drop(client);
    rig.close(socket);
    let (mut client, socket) = rig.client();
    client.write_all(b"room again").unwrap();
    rig.until(|rig| rig.received(socket) == b"room again");
}

const NAME: &str = "GODWIT_TEST_FEW_DESCRIPTORS";

/// The limit is the process's, so the case runs in a process of its own.
pub(crate) fn a_process_out_of_descriptors_does_not_spin(preference: Preference) {
    if std::env::var_os(NAME).is_some() {
        return out_of_descriptors(preference);
    }
    let module = if preference == Preference::Uring { "uring" } else { "readiness" };
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("{module}::a_process_out_of_descriptors_does_not_spin"), "--nocapture"])
        .env(NAME, "1")
        .status()
        .unwrap();
    assert!(status.success());
}

fn out_of_descriptors(preference: Preference) {
    let mut rig = Rig::new(preference);
    // Clients are made before the limit falls; they wait in the backlog.
    let mut clients: Vec<_> = (0..40).map(|_| TcpStream::connect(rig.address).unwrap()).collect();
    // A descriptor's number is below the limit, of which an eighth is kept for others than clients: room for five or six more.
    let next = std::os::fd::AsRawFd::as_raw_fd(&std::fs::File::open("/dev/null").unwrap()) as u64;
    let most = (next + 5) * 8 / 7 + 1;
    let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
    // SAFETY: the pointer is to a valid rlimit of this frame.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }, 0);
    let end = Instant::now() + crate::rig::DEADLINE;
    while rig.accepted().len() + rig.driver.counters().refused as usize != clients.len() {
        assert!(Instant::now() < end, "{} accepted, {:?}", rig.accepted().len(), rig.driver.counters());
        rig.turn(Duration::from_millis(200));
    }
    if preference == Preference::Readiness {
        let room = (most - most / 8 - next) as usize;
        assert!((5..=6).contains(&room));
        assert_eq!(rig.accepted().len(), room);
        let others: Vec<_> = std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()).collect();
        assert!(others.len() as u64 >= most / 8 - 1, "{} of {most} are left for others", others.len());
    }
    let before = rig.driver.counters().enters;
    let began = Instant::now();
    rig.turn(Duration::from_millis(300));
    rig.turn(Duration::from_millis(300));
    assert!(began.elapsed() >= Duration::from_millis(500), "turns without events end early");
    assert!(rig.driver.counters().enters - before <= 4);
    let first = rig.accepted()[0];
    assert_eq!(rig.send(first, b"served"), Sending::Done(6));
    let mut heard = [0; 6];
    clients[0].read_exact(&mut heard).unwrap();
}

/// A kernel asked to take everything back at once looks at each operation for each that it has taken back: 3 s for 16,000.
/// (A ring's descriptors are not the process's, so that this case takes nothing from those that run beside it.)
#[test]
fn the_end_of_very_many_connections_is_quick() {
    raise_descriptor_limit().unwrap();
    let count = descriptor_limit().unwrap().saturating_sub(1_000).min(14_000) as usize;
    let options = DriverOptions { preference: Preference::Uring, ..DriverOptions::default() };
    let (mut rig, mut clients) = (Rig::with(options), open(&options).unwrap().driver);
    let (mut begun, mut events, mut connected) = (0, Vec::new(), 0);
    while connected < count {
        while begun < count && begun < connected + 200 {
            let from = std::net::Ipv4Addr::new(127, 9, 1, 1 + (begun / 8_000) as u8);
            clients.connect(rig.address, Some(from.into())).unwrap();
            begun += 1;
        }
        clients.turn(&mut events, Some(Duration::from_millis(1))).unwrap();
        connected += events.iter().filter(|e| matches!(e, Event::Connected { errno: 0, .. })).count();
        rig.turn(Duration::ZERO);
    }
    rig.until(|rig| rig.driver.counters().sockets == count as u64);
    let before = cpu_time();
    drop(rig);
    let taken = cpu_time() - before;
    assert!(taken < Duration::from_micros(80) * count as u32, "{taken:?} for {count}");
}

/// What this thread has used: other tests do not count, and what the kernel does for it does.
fn cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a valid timespec of this frame.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) }, 0);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
