//! Threads with low priority: preallocating segments, and sealing. Shards and the journal's writer come first on a busy machine.
pub(crate) mod preallocate;
pub(crate) mod seal;

use std::io;
use std::thread::{Builder, JoinHandle};

/// Some tenth of the share that a thread has beside it (sched(7)): enough to go on where every processor is busy.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;

/// Begins a thread that gives way.
pub(crate) fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    Builder::new().name(name.to_owned()).spawn(|| {
        give_way();
        run();
    })
}

/// This thread works for later. Where it cannot be said, nothing changes.
fn give_way() {
    #[cfg(target_os = "linux")] // elsewhere it would be said of the process
    if rustix::process::getpriority_process(None).is_ok_and(|nice| nice < NICE) {
        let _ = rustix::process::setpriority_process(None, NICE); // a filter may forbid it
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::process::getpriority_process;

    #[test]
    fn a_thread_gives_way_alone() {
        let before = getpriority_process(None).unwrap();
        let (sender, nice) = std::sync::mpsc::channel();
        let thread =
            super::spawn("background", move || sender.send(getpriority_process(None).unwrap()).unwrap()).unwrap();
        thread.join().unwrap();
        assert_eq!(nice.recv(), Ok(super::NICE.max(before)));
        assert_eq!(getpriority_process(None).unwrap(), before);
    }
}
