//! What is done beside the writer, for later: making room ahead, and sealing. Owns that it gives way: where shards, or whom publishers wait
//! for, want a processor too, they have it first.
pub(crate) mod room;
pub(crate) mod seal;

/// Some tenth of the share that a thread has beside it (sched(7)): enough to go on where every processor is busy.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;

/// This thread works for later. Where it cannot be said, nothing changes.
pub(crate) fn give_way() {
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
        let gave_way = std::thread::spawn(|| {
            super::give_way();
            getpriority_process(None).unwrap()
        });
        assert_eq!(gave_way.join().unwrap(), super::NICE.max(before));
        assert_eq!(getpriority_process(None).unwrap(), before);
    }
}
