//! What the server under test has used, read from the kernel's own accounts of its processes: CPU as the scheduler counts
//! it for each thread (`/proc/PID/task/*/schedstat`, nanoseconds, kernel work on the process's behalf included), memory as
//! PSS (`smaps_rollup`), the send queues of its sockets (`/proc/net/tcp`); and what the kernel itself has used, which it
//! counts for the whole machine. Linux only: elsewhere everything reads as zero.
use std::fs;

use serde::Serialize;

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Reading {
    pub(crate) cpu_ns: u64,
    /// How often a thread went to sleep because it had nothing to do: each is one wake-up to come.
    pub(crate) rests: u64,
    pub(crate) pss_kb: u64,
    #[serde(flatten)]
    pub(crate) machine: Machine,
}

/// The whole machine's memory: what both ends of every connection hold in the kernel is only counted here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Machine {
    /// Kernel objects (sockets, files, operations that wait), page tables, stacks, and bytes in TCP's queues.
    pub(crate) kernel_kb: u64,
    /// What could still be given to programs.
    pub(crate) available_kb: u64,
}

/// CPU and memory of these processes together, and the machine's.
pub(crate) fn read(pids: &[u32]) -> Reading {
    let mut reading = Reading { machine: machine(), ..Reading::default() };
    for &pid in pids {
        reading.cpu_ns += cpu_ns(pid);
        reading.rests += rests(pid);
        reading.pss_kb += pss_kb(pid);
    }
    reading
}

pub(crate) fn cpu_ns(pid: u32) -> u64 {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return 0 };
    threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("schedstat")).ok())
        .filter_map(|line| line.split(' ').next()?.parse::<u64>().ok())
        .sum()
}

fn rests(pid: u32) -> u64 {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return 0 };
    let told = threads.flatten().filter_map(|thread| fs::read_to_string(thread.path().join("status")).ok());
    told.filter_map(|text| text.lines().find_map(|line| count(line.strip_prefix("voluntary_ctxt_switches:")?))).sum()
}

fn pss_kb(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    text.lines().find_map(|line| line.strip_prefix("Pss:")?.trim().strip_suffix(" kB")?.parse().ok()).unwrap_or(0)
}

fn machine() -> Machine {
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let of = |name: &str| memory.lines().find_map(|line| count(line.strip_prefix(name)?)).unwrap_or(0);
    let sockets = fs::read_to_string("/proc/net/sockstat").unwrap_or_default();
    let pages = sockets.lines().find_map(|line| count(line.strip_prefix("TCP:")?.split_once("mem")?.1)).unwrap_or(0);
    Machine {
        kernel_kb: of("Slab:") + of("PageTables:") + of("KernelStack:") + pages * page_kb(),
        available_kb: of("MemAvailable:"),
    }
}

/// The first number of a line's rest.
fn count(rest: &str) -> Option<u64> {
    rest.split_whitespace().next()?.parse().ok()
}

fn page_kb() -> u64 {
    // SAFETY: asks for a constant of the system.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096) / 1024
}

/// Unsent bytes of the sockets whose peers have these local ports, largest first.
pub(crate) fn send_queues(server_port: u16, peer_ports: &[u16]) -> Vec<u64> {
    let table = fs::read_to_string("/proc/net/tcp").unwrap_or_default();
    let mut queues: Vec<u64> =
        table.lines().skip(1).filter_map(|line| send_queue(line, server_port, peer_ports)).collect();
    queues.sort_unstable_by(|a, b| b.cmp(a));
    queues
}

/// A line is `sl local:port remote:port state tx:rx …`, numbers in hexadecimal.
fn send_queue(line: &str, server_port: u16, peer_ports: &[u16]) -> Option<u64> {
    let mut fields = line.split_whitespace().skip(1);
    let port = |field: &str| u16::from_str_radix(field.rsplit(':').next()?, 16).ok();
    let (local, remote) = (port(fields.next()?)?, port(fields.next()?)?);
    let queued = fields.nth(1)?.split(':').next()?;
    (local == server_port && peer_ports.contains(&remote)).then_some(u64::from_str_radix(queued, 16).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_used_something() {
        let mut sum = 0u64;
        for n in 0..3_000_000u64 {
            sum = std::hint::black_box(sum.wrapping_add(n * n));
        }
        let reading = read(&[std::process::id()]);
        assert!(reading.cpu_ns > 0 && reading.pss_kb > 0, "{reading:?} {sum}");
        let rests = reading.rests;
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert!(rests > 0 && read(&[std::process::id()]).rests > rests, "sleeping is resting");
        assert!(reading.machine.kernel_kb > 0 && reading.machine.available_kb > 0, "{reading:?}");
    }

    #[test]
    fn a_line_of_the_kernels_table_is_read() {
        let line = "   1: 0100007F:2260 0100017F:C001 01 0000D5B2:00000000 01:00000015 00000000     0        0 1234";
        assert_eq!(send_queue(line, 0x2260, &[0xc001]), Some(0xd5b2));
        assert_eq!(send_queue(line, 0x2261, &[0xc001]), None);
        assert_eq!(send_queue(line, 0x2260, &[0xc002]), None);
    }
}
