//! A node to test, and what is told to it.
use godwit_core::holder::Holder;
use godwit_core::message::{Batch, Draft, Kind};
use godwit_core::node::{Node, Outcome};
use godwit_core::position::{Now, Position};
use godwit_core::settings::Settings;
use godwit_core::subject::Pattern;
use proptest::test_runner::Config;

pub(crate) fn new_node(change: impl FnOnce(&mut Settings)) -> Node {
    let mut settings = Settings { run: 0xa1, seed: 7, epoch: 7, ..Settings::default() };
    change(&mut settings);
    Node::new(&settings)
}

pub(crate) fn at_ms(ms: u64) -> Now {
    Now { mono_ms: ms, wall_ms: 1_000_000 + ms }
}

pub(crate) fn draft(content: &str) -> Draft {
    Draft::new(Kind::Json, content.as_bytes(), "", Holder::new("", "basic", "me"), 1)
}

pub(crate) fn publish(node: &mut Node, subject: &str, draft: Draft, now: Now) -> Outcome {
    let (mut batch, mut outcomes) = (Batch::default(), Vec::new());
    batch.push(subject, draft);
    node.append(&mut batch, &mut outcomes, now);
    assert_eq!(outcomes.len(), 1);
    outcomes[0]
}

pub(crate) fn position(epoch: u64, sequence: u64) -> Position {
    Position { epoch, sequence }
}

pub(crate) fn pattern(text: &str) -> Pattern {
    Pattern::parse(text).unwrap_or_else(|refusal| panic!("{}", refusal.reason))
}

/// That many cases; what fails becomes an example, not a file of seeds.
pub(crate) fn cases(cases: u32) -> Config {
    Config { cases, failure_persistence: None, ..Config::default() }
}
