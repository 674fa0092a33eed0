//! Lives over several restarts: a node that begins with what its journal kept, readers who resume by a resume token of the run before, with and
//! without the places they have beside it, on sockets that fill up. Whatever became of them, each row of the journal holds exactly the
//! messages of its range, or says that some were told missing.

use std::collections::{BTreeMap, HashMap};

use crate::ledger::{deliveries, journaling};
use crate::world::past::Past;
use crate::world::seeds::seeded;
use crate::world::{Place, World};
use godwit_core::journal::{DeliveryRow, KeptMessage, Range};
use godwit_core::node::PastRun;
use godwit_core::subject::Pattern;
use proptest::prelude::*;
use serde_json::{Value, json};

const SUBJECTS: [&str; 4] = ["/a", "/b", "/c/d", "/c/e"];
const SELECTORS: [&str; 5] = ["/a", "/*", "/**", "/c/*", "/b"];
const RUN: u64 = 0xa1;

struct Reader {
    place: Place,
    selector: &'static str,
    conflate_ms: u64,
    on_gap: &'static str,
    stands: BTreeMap<String, String>,
    resume_token: Option<String>,
}

impl Reader {
    fn hear(&mut self, heard: Vec<Value>) {
        for value in heard {
            if let Some(resume_token) = value["resume_token"].as_str() {
                self.resume_token = Some(resume_token.to_owned());
            }
            match (value["message"].as_str().or(value["gap"].as_str()), value["at"].as_str()) {
                (Some(subject), Some(at)) => drop(self.stands.insert(subject.to_owned(), at.to_owned())),
                (Some(_), None) => self.stands.clear(),
                _ => {}
            }
        }
    }

    fn subscribe(&self, names_places: bool) -> Value {
        let mut command = json!({"id": 1, "subscribe": self.selector, "on_gap": self.on_gap});
        if self.conflate_ms > 0 {
            command["conflate_ms"] = json!(self.conflate_ms);
        }
        if !self.selector.contains('*') {
            if let Some(at) = self.stands.get(self.selector) {
                command["after"] = json!(at);
            }
        } else if let Some(resume_token) = &self.resume_token {
            command["since"] = json!(resume_token);
            if names_places {
                command["after"] = json!(self.stands);
            }
        }
        command
    }
}

struct Life {
    world: World,
    log_messages_max: usize,
    is_pending: bool,
    publisher: Place,
    readers: Vec<Reader>,
    past: Past,
    runs: Vec<PastRun>,
    /// What was taken back: of each subject what was accepted up to an arrival.
    purges: BTreeMap<String, Option<String>>,
    has_purged: bool,
}

impl Life {
    fn new(log_messages_max: usize, is_pending: bool) -> Self {
        let past = Past { page_max: 7, ..Past::default() };
        let world = World::new(journaling(), 1, is_pending);
        let mut life = Self {
            world,
            log_messages_max,
            is_pending,
            publisher: (0, 0),
            readers: Vec::new(),
            past,
            runs: Vec::new(),
            purges: BTreeMap::new(),
            has_purged: false,
        };
        life.begin(0);
        life
    }

    /// A new run, which follows what is written down.
    fn begin(&mut self, began: u64) {
        let number = self.runs.len() as u64;
        let mut settings = journaling();
        settings.limits.log_messages_max = self.log_messages_max;
        settings.limits.resume_token_interval_ms = 100;
        (settings.run, settings.epoch, self.past.run) = (RUN + number, 7 + number, RUN + number);
        self.world = World::new(settings, 2, self.is_pending);
        let now = self.world.now;
        let mut began = began;
        if number > 0 {
            let mut node = self.world.node.lock().unwrap();
            node.begin_restore(self.runs.clone());
            for (name, text) in &self.purges {
                node.restore_note(name, text.as_deref().unwrap_or_default(), 0, now);
            }
            self.past.rows.iter().for_each(|row| node.restore(row.clone(), now));
            began = node.finish_restore(now).arrival + 1;
        }
        self.runs.push(PastRun { run: RUN + number, epoch: 7 + number, epoch_end: u64::MAX, began, last: began });
        self.publisher = self.world.connect(0);
    }

    /// The node is killed: of its messages the journal has but so many; its rows are as they were then.
    fn restart(&mut self, lost: usize) -> Result<(), TestCaseError> {
        self.listen();
        self.purges.append(&mut self.world.take_notes());
        self.past.note(&self.world);
        self.check()?;
        let since = self.runs.last().map_or(0, |run| run.began);
        let own = self.past.rows.iter().filter(|row| row.arrival > since).count();
        self.past.rows.truncate(self.past.rows.len() - lost.min(own));
        let last = self.past.rows.last().map_or(0, |row| row.arrival).max(since);
        if let Some(run) = self.runs.last_mut() {
            run.last = last;
        }
        self.begin(last + 1);
        for reader in &mut self.readers {
            reader.place = self.world.connect(0);
        }
        Ok(())
    }

    fn listen(&mut self) {
        for index in 0..self.readers.len() {
            let heard = self.world.heard(self.readers[index].place);
            self.readers[index].hear(heard);
        }
    }

    fn publish(&mut self, which: usize, count: usize) {
        let content = "x".repeat(which * 20);
        for _ in 0..count {
            let subject = SUBJECTS[which % SUBJECTS.len()];
            self.world.say(self.publisher, &json!({"publish": subject, "content": content}).to_string());
        }
        self.world.turn(0);
    }

    fn join(&mut self, which: usize, conflate_ms: u64, is_oldest: bool) {
        let place = self.world.connect(which % 2);
        let (selector, on_gap) = (SELECTORS[which % SELECTORS.len()], if is_oldest { "oldest" } else { "snapshot" });
        self.readers.push(Reader { place, selector, conflate_ms, on_gap, stands: BTreeMap::new(), resume_token: None });
        self.say(self.readers.len() - 1, true);
    }

    fn say(&mut self, index: usize, names_places: bool) {
        let reader = &self.readers[index];
        self.world.say(reader.place, &reader.subscribe(names_places).to_string());
        self.world.turn(reader.place.0);
    }

    fn come_back(&mut self, index: usize, shard: usize, names_places: bool) {
        self.listen();
        self.world.gone(self.readers[index].place);
        self.readers[index].place = self.world.connect(shard);
        self.say(index, names_places);
    }

    fn end(mut self) -> Result<(), TestCaseError> {
        for index in 0..self.readers.len() {
            self.world.give_room(self.readers[index].place, usize::MAX / 2);
        }
        for _ in 0..8 {
            self.world.advance(150);
            self.past.serve(&mut self.world);
            self.world.turn_all();
        }
        self.listen();
        self.readers.iter().for_each(|reader| self.world.gone(reader.place));
        self.world.turn_all();
        self.past.note(&self.world);
        self.check()
    }

    /// The rows of this run so far, against all that it accepted and began with.
    fn check(&mut self) -> Result<(), TestCaseError> {
        let mut stands: HashMap<(u64, String), (u64, u64)> = HashMap::new();
        for shard in 0..2 {
            for row in deliveries(self.world.take_rows(shard)) {
                let lets_go = self.has_purged || self.log_messages_max < 1_000;
                check_row(&row, &self.past.rows, &mut stands, lets_go)?;
            }
        }
        Ok(())
    }
}

fn check_row(
    row: &DeliveryRow,
    rows: &[KeptMessage],
    stands: &mut HashMap<(u64, String), (u64, u64)>,
    is_loose: bool,
) -> Result<(), TestCaseError> {
    let stand = stands.entry((row.peer.connection.0, row.selector.to_string())).or_insert((0, u64::MAX));
    let pattern = Pattern::parse(&row.selector).ok();
    let of = |kept: &KeptMessage| pattern.as_ref().is_some_and(|pattern| pattern.matches(&kept.subject));
    let count = |range: std::ops::RangeInclusive<u64>| {
        rows.iter().filter(|kept| range.contains(&kept.arrival) && of(kept)).count() as u64
    };
    let (run, from, to, whole) = match row.range {
        Range::Subject { epoch, from: Some(from), to } => (epoch, from, to, to + 1 - from),
        Range::Pattern { run, from: Some(from), to } => (run, from, to, count(from..=to)),
        Range::Subject { .. } | Range::Pattern { .. } => return Ok(()),
    };
    // A pattern's rows pass over what it does not hold.
    let is_apart = pattern.is_some() && stand.1 < from && count(stand.1 + 1..=from - 1) == 0;
    prop_assert!(stand.0 != run || stand.1 + 1 == from || is_apart || row.gaps > 0, "{stand:?} then {row:?}");
    *stand = (run, to);
    let given = row.count + row.conflated;
    let missing = if row.gaps == 0 { Some(0) } else { row.gap_count };
    prop_assert!(missing.is_none_or(|missing| given + missing >= whole), "{row:?} of {whole}");
    // What a log lets go of within a window comes with the whole window.
    let given = if is_loose && row.conflated > 0 { row.count } else { given };
    prop_assert!(given <= whole, "{row:?} of {whole}");
    Ok(())
}

proptest! {
    #![proptest_config(seeded(192))]

    #[test]
    fn over_restarts_each_row_holds_exactly_its_messages_or_tells_of_a_gap(
        is_pending in any::<bool>(),
        log_messages_max in prop::sample::select(vec![3_usize, 12, 1_000]),
        steps in prop::collection::vec((0..11_u8, 0..12_usize, 0..5_usize, any::<bool>(), any::<bool>()), 1..70),
    ) {
        let mut life = Life::new(log_messages_max, is_pending);
        for (what, which, size, one, other) in steps {
            let index = which % life.readers.len().max(1);
            match what {
                0..=2 => life.publish(which, 1 + size),
                3 if life.readers.len() < 6 => life.join(which, [0, 0, 0, 100, 300][size], one),
                4 if !life.readers.is_empty() => life.come_back(index, usize::from(one), other),
                5 => {
                    life.world.advance([10, 60, 110, 240, 1_100][size]);
                    life.world.turn_all();
                }
                6 if !life.readers.is_empty() => {
                    let place = life.readers[index].place;
                    life.world.socket(place).room = size * 90;
                }
                7 if !life.readers.is_empty() => life.world.give_room(life.readers[index].place, size * 300),
                8 => life.past.serve(&mut life.world),
                10 => {
                    life.has_purged = true;
                    life.world.purge(SUBJECTS[which % SUBJECTS.len()]);
                }
                9 if which < 4 => {
                    life.restart(if one { size * 3 } else { 0 })?;
                    life.publish(which, size);
                    (0..life.readers.len()).for_each(|index| life.say(index, other || index % 2 == 0));
                }
                _ => {}
            }
        }
        life.end()?;
    }
}

#[test]
fn a_gap_that_is_told_beside_a_resume_token_stands_in_the_row() {
    let mut life = Life::new(1_000, false);
    life.join(2, 0, false);
    life.publish(0, 3);
    life.world.advance(1_000);
    life.world.turn_all();
    life.publish(0, 4);
    life.publish(1, 2);
    life.restart(3).unwrap();
    life.publish(0, 5);
    life.say(0, true);
    life.world.turn_all();
    life.readers.iter().for_each(|reader| life.world.gone(reader.place));
    let rows = deliveries(life.world.take_rows(0));
    let unconfirmed: Vec<_> =
        rows.iter().filter(|row| !row.is_confirmed).map(|row| (row.gaps, row.gap_count)).collect();
    assert_eq!(unconfirmed, [(1, None)], "it had seen more of /a than the journal: {rows:?}");
}

#[test]
fn what_was_purged_before_a_restart_stands_in_the_row() {
    let mut life = Life::new(3, false);
    life.join(1, 100, false);
    life.publish(9, 4);
    life.has_purged = true;
    life.world.purge(SUBJECTS[1]);
    life.publish(0, 1);
    life.publish(0, 2);
    life.restart(0).unwrap();
    life.say(0, true);
    life.publish(0, 1);
    life.end().unwrap();
}
