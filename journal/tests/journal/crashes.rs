//! Random writes, faults, crashes and restarts over a disk that lies: no synced row is lost, none comes twice, no offset is given twice.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::world::disk::{Faults, SimulatedDisk};
use crate::world::{EVERYTHING, content, message, quick, wait_until};
use godwit_journal::{Journal, Past, Settings};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Publish {
        count: u8,
        needs_disk: bool,
    },
    /// Wait until everything is on the disk.
    Await,
    /// A reader looks at all there is, synced or not.
    Read,
    Break(u8),
    Mend,
    Kill,
    CutPower(u64),
    Close,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (1..40u8, any::<bool>()).prop_map(|(count, needs_disk)| Step::Publish { count, needs_disk }),
        3 => Just(Step::Await),
        2 => Just(Step::Read),
        2 => (0..4u8).prop_map(Step::Break),
        2 => Just(Step::Mend),
        1 => Just(Step::Kill),
        2 => any::<u64>().prop_map(Step::CutPower),
        1 => Just(Step::Close),
    ];
    proptest::collection::vec(step, 1..40)
}

/// Small segments: a life of some steps seals a few.
fn settings(run: u64) -> Settings {
    Settings { segment_bytes_max: 20_000, ..quick(run) }
}

/// What is known to be true, beside the journal.
struct World {
    disk: SimulatedDisk,
    journal: Option<Journal>,
    run: u64,
    arrival: u64,
    /// What each offset was seen to hold, in whichever life.
    seen: BTreeMap<u64, (u64, String)>,
    /// Arrivals of rows that must come back, in order: those that were on the disk when a life ended, and are so in every later one.
    synced: u64,
    is_broken: bool,
    /// The last arrival that came from an earlier life.
    held: u64,
}

impl World {
    fn new() -> Self {
        let disk = SimulatedDisk::default();
        let mut world = Self {
            disk,
            journal: None,
            run: 0,
            arrival: 0,
            seen: BTreeMap::new(),
            synced: 0,
            is_broken: false,
            held: 0,
        };
        world.begin();
        world
    }

    fn journal(&self) -> &Journal {
        self.journal.as_ref().unwrap()
    }

    fn begin(&mut self) -> Past {
        self.run += 1;
        let (journal, past) = Journal::open(&settings(self.run), Arc::new(self.disk.clone()), || {}).unwrap();
        self.journal = Some(journal);
        self.is_broken = false;
        let last = self.read();
        assert!(last >= self.synced, "row {} was on the disk, and the last that came back is {last}", self.synced);
        if let Some(follows) = past.follows {
            assert_eq!(follows.run, self.run - 1);
            assert!(!follows.is_clean || last == self.arrival, "it ended in order and lacks rows");
        }
        // What was not synced and is not there was never acknowledged: a node goes on behind what its journal holds.
        (self.arrival, self.synced, self.held) = (last, last, last);
        past
    }

    /// Holds all rows against what is known; returns the last arrival.
    fn read(&mut self) -> u64 {
        let mut rows = Vec::new();
        let reader = self.journal().reader().clone();
        let loaded = reader.load(EVERYTHING, 2, &mut |messages| rows.extend(messages)).unwrap();
        assert_eq!(loaded.damaged, 0, "nothing is damaged where only what was not synced was lost");
        let mut last_offset = None;
        for (number, row) in (1..).zip(&rows) {
            assert_eq!(row.arrival, number, "rows come in order, each once");
            assert!(last_offset < Some(row.offset), "offsets rise");
            last_offset = Some(row.offset);
            let text = String::from_utf8(row.content().to_vec()).unwrap();
            let known = self.seen.entry(row.offset).or_insert_with(|| (row.arrival, text.clone()));
            assert_eq!(*known, (row.arrival, text), "offset {} was given twice", row.offset);
        }
        rows.len() as u64
    }

    fn end(&mut self, disk: SimulatedDisk) {
        drop(self.journal.take());
        self.disk = disk;
        self.begin();
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Publish { count, needs_disk } => {
                let mut rows = Vec::new();
                for _ in 0..*count {
                    self.arrival += 1;
                    let mut row = message("/s", self.run, self.arrival, self.arrival);
                    row.needs_disk = *needs_disk;
                    rows.push(row);
                }
                self.journal().queue().push_messages(&mut rows, false);
            }
            Step::Await if self.is_broken || self.arrival == self.held => {}
            Step::Await => {
                let progress = self.journal().progress().clone();
                self.journal().queue().flush();
                wait_until("what was published is on the disk", || progress.synced_arrival() >= self.arrival);
            }
            Step::Read => drop(self.read()),
            Step::Break(kind) => {
                self.is_broken = true;
                self.disk.set_faults(match kind {
                    0 => Faults { room: Some(700), ..Faults::default() },
                    1 => Faults { fails_syncs: true, ..Faults::default() },
                    2 => Faults { is_read_only: true, ..Faults::default() },
                    _ => Faults { room: Some(5000), bytes_a_write: Some(13), ..Faults::default() },
                });
            }
            Step::Mend => {
                self.is_broken = false;
                self.disk.set_faults(Faults::default());
            }
            Step::Kill | Step::CutPower(_) => {
                // What is said to be synced now is so in whatever is left of the disk after.
                self.synced = self.synced.max(self.journal().progress().synced_arrival());
                let disk = match step {
                    Step::CutPower(chance) => self.disk.cut_power(*chance),
                    _ => self.disk.kill(),
                };
                self.end(disk);
            }
            Step::Close => {
                self.synced = self.synced.max(self.journal().progress().synced_arrival());
                let (journal, arrival) = (self.journal.take().unwrap(), self.arrival);
                if journal.close(arrival) {
                    self.synced = arrival;
                }
                let disk = self.disk.cut_power(7);
                self.end(disk);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, max_shrink_iters: 0, ..ProptestConfig::default() })]

    #[test]
    fn no_synced_row_is_lost_and_no_offset_given_twice(steps in steps()) {
        let mut world = World::new();
        for step in &steps {
            world.take(step);
        }
        world.take(&Step::Mend);
        world.take(&Step::Await);
        world.take(&Step::CutPower(3));
    }
}

#[test]
fn what_came_back_outlasts_a_power_cut_that_follows_at_once() {
    let disk = SimulatedDisk::default();
    let unhurried = |run| Settings { sync_interval_ms: 60_000, ..settings(run) };
    let (journal, _) = Journal::open(&unhurried(1), Arc::new(disk.clone()), || {}).unwrap();
    let mut rows = (1..=36).map(|arrival| message("/s", 1, arrival, arrival)).collect();
    journal.queue().push_messages(&mut rows, false);
    wait_until("it is written", || journal.progress().journaled_arrival() == 36);
    let disk = disk.kill();
    let (_second, past) = Journal::open(&unhurried(2), Arc::new(disk.clone()), || {}).unwrap();
    let cuts: Vec<_> = (0..8).map(|chance| disk.cut_power(chance << 60)).collect();
    assert_eq!(past.follows.map(|follows| follows.arrival), Some(36), "the second run goes on behind all of them");
    for disk in cuts {
        let (third, _) = Journal::open(&unhurried(3), Arc::new(disk), || {}).unwrap();
        assert_eq!(third.reader().last_arrival_of(1), Some(36));
    }
}

#[test]
fn the_test_itself_sees_a_journal_that_forgets() {
    // The same checks over a disk that loses what was synced: they must not pass.
    let caught = std::panic::catch_unwind(|| {
        let mut world = World::new();
        world.take(&Step::Publish { count: 30, needs_disk: true });
        world.take(&Step::Await);
        world.synced = world.journal().progress().synced_arrival();
        world.end(SimulatedDisk::default());
    });
    assert!(caught.is_err());
    assert_eq!(content("/s", 1, 1), "/s 1.1");
}
