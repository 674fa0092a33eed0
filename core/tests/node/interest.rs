//! Interest is a state: what a shard was told, the state first and then each change, is what is, as soon as the moment after
//! the last listener's leaving is over; and nothing is told that does not overlap what is watched.
use std::collections::BTreeSet;

use godwit_core::message::LogId;
use godwit_core::node::{Entry, Node};
use godwit_core::subject::{Pattern, Selector};
use proptest::prelude::*;

use crate::support::{at_ms, cases, new_node, pattern};

const SELECTORS: [&str; 7] = ["/a", "/a/x", "/a/*", "/b/x", "/b/**", "/**", "/$own"];
const WATCHED: [&str; 5] = ["/a", "/a/**", "/*/x", "/**", "/$own/**"];
const DEBOUNCE_MS: u64 = 1_000;

#[derive(Clone, Debug)]
enum Step {
    Open { shard: u8, selector: usize },
    Close { which: usize },
    Watch { watched: usize },
    Unwatch,
    Pass { ms: u64 },
    Sweep,
    Look,
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..3_u8, 0..SELECTORS.len()).prop_map(|(shard, selector)| Step::Open { shard, selector }),
        3 => any::<usize>().prop_map(|which| Step::Close { which }),
        2 => (0..WATCHED.len()).prop_map(|watched| Step::Watch { watched }),
        1 => Just(Step::Unwatch),
        2 => (1..1_500_u64).prop_map(|ms| Step::Pass { ms }),
        2 => Just(Step::Sweep),
        1 => Just(Step::Look),
    ]
}

/// Shard 9 watches one pattern at a time and believes what it is told.
struct World {
    node: Node,
    ms: u64,
    open: Vec<(u8, usize, Option<LogId>)>,
    watched: Option<Pattern>,
    believed: BTreeSet<String>,
}

impl World {
    fn step(&mut self, step: &Step) {
        let now = at_ms(self.ms);
        match *step {
            Step::Open { shard, selector } => {
                let log = match Selector::parse(SELECTORS[selector]).expect("legal") {
                    Selector::Subject(subject) => Some(self.node.open(shard, &subject, now).expect("opens")),
                    Selector::Pattern(pattern) => {
                        self.node.open_pattern(shard, &pattern, now).expect("opens");
                        None
                    }
                };
                self.open.push((shard, selector, log));
            }
            Step::Close { which } if !self.open.is_empty() => {
                let (shard, selector, log) = self.open.swap_remove(which % self.open.len());
                match log {
                    Some(log) => self.node.close(shard, log, now),
                    None => self.node.close_pattern(shard, &pattern(SELECTORS[selector]), now),
                }
            }
            Step::Watch { watched } => {
                self.unwatch();
                let watched = pattern(WATCHED[watched]);
                self.node.watch(9, &watched).expect("watches");
                let (mut state, mut after) = (Vec::new(), None);
                loop {
                    after = self.node.interest_state(&watched, after.as_deref(), 1, &mut state);
                    if after.is_none() {
                        break;
                    }
                }
                self.believed = state.iter().map(ToString::to_string).collect();
                assert_eq!(self.believed.len(), state.len());
                self.watched = Some(watched);
            }
            Step::Unwatch => self.unwatch(),
            Step::Pass { ms } => self.ms += ms,
            Step::Sweep => drop(self.node.sweep(now)),
            Step::Look => self.look(),
            Step::Close { .. } => {}
        }
    }

    fn unwatch(&mut self) {
        self.look();
        if let Some(watched) = self.watched.take() {
            self.node.unwatch(9, &watched);
        }
        self.believed.clear();
    }

    fn look(&mut self) {
        let mut entries = Vec::new();
        self.node.drain(9, &mut entries, usize::MAX);
        for entry in entries {
            let Entry::Interest { selector, has_subscribers, .. } = entry else { panic!("nobody publishes") };
            let watched = self.watched.as_ref().expect("nobody watches, nobody is told");
            assert!(pattern(&selector).overlaps(watched), "{selector} is not watched");
            let changes = if has_subscribers {
                self.believed.insert(selector.to_string())
            } else {
                self.believed.remove(&*selector)
            };
            assert!(changes, "{selector} is told {has_subscribers} twice");
        }
        if let Some(watched) = &self.watched {
            let present = self.present(watched);
            assert!(present.is_subset(&self.believed), "{present:?} is not in {:?}", self.believed);
        }
    }

    fn present(&self, watched: &Pattern) -> BTreeSet<String> {
        let open = self.open.iter().map(|(_, selector, _)| SELECTORS[*selector]);
        open.filter(|text| pattern(text).overlaps(watched)).map(str::to_owned).collect()
    }

    fn finish(&mut self) {
        self.ms += DEBOUNCE_MS;
        self.node.sweep(at_ms(self.ms));
        self.look();
        if let Some(watched) = &self.watched {
            assert_eq!(self.believed, self.present(watched));
        }
    }
}

proptest! {
    #![proptest_config(cases(2_000))]

    #[test]
    fn what_watchers_believe_is_what_is(steps in prop::collection::vec(any_step(), 1..80)) {
        let node = new_node(|settings| settings.limits.interest_debounce_ms = DEBOUNCE_MS);
        let mut world = World { node, ms: 0, open: Vec::new(), watched: None, believed: BTreeSet::new() };
        steps.iter().for_each(|step| world.step(step));
        world.finish();
    }
}
