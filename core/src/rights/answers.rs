//! What the server answered to questions of one connection: each answer decides exactly its question, for as long as it is kept. Owns the
//! bound in bytes (the oldest go, and are asked about anew) and the age.
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Action, Verdict};

/// What an answer costs beside its text, kept twice.
const ANSWER_BYTES: usize = 96;

#[derive(Debug, Default)]
pub(super) struct Answers(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    all: HashMap<(Action, Box<str>), Answer>,
    /// Oldest first; one that was given anew stands here twice, and only its last place counts.
    order: VecDeque<(u64, Action, Box<str>)>,
    bytes: usize,
    last: u64,
}

#[derive(Clone, Copy, Debug)]
struct Answer {
    verdict: Verdict,
    number: u64,
    /// When it was given (monotonic ms).
    given_ms: u64,
}

impl Answers {
    pub(super) fn find(&self, action: Action, selector: &str) -> Option<Verdict> {
        let kept = self.lock();
        if kept.all.is_empty() {
            return None;
        }
        kept.all.get(&(action, Box::from(selector))).map(|answer| answer.verdict)
    }

    pub(super) fn keep(&self, action: Action, selector: &str, verdict: Verdict, given_ms: u64, bytes_max: usize) {
        let mut kept = self.lock();
        kept.last += 1;
        let answer = Answer { verdict, number: kept.last, given_ms };
        kept.all.insert((action, Box::from(selector)), answer);
        kept.order.push_back((answer.number, action, Box::from(selector)));
        kept.bytes += cost(selector);
        while kept.bytes > bytes_max && kept.order.len() > 1 {
            kept.pop();
        }
    }

    /// Takes the questions out whose answers were given up to then, with what was said.
    pub(super) fn take_until(&self, then_ms: u64) -> Vec<(Action, Box<str>, Verdict)> {
        let mut kept = self.lock();
        let mut old = Vec::new();
        while let Some((number, action, selector)) = kept.order.front() {
            let answer = kept.all.get(&(*action, selector.clone())).copied();
            let is_outdated = answer.is_none_or(|answer| answer.number != *number);
            if !is_outdated && answer.is_some_and(|answer| answer.given_ms > then_ms) {
                break;
            }
            if let Some((action, selector)) = kept.pop()
                && let Some(answer) = answer
            {
                old.push((action, selector, answer.verdict));
            }
        }
        old
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().all.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    /// Lets the oldest place go; its question, where it was that one's last answer.
    fn pop(&mut self) -> Option<(Action, Box<str>)> {
        let (number, action, selector) = self.order.pop_front()?;
        self.bytes = self.bytes.saturating_sub(cost(&selector));
        let key = (action, selector);
        let is_last = self.all.get(&key).is_some_and(|answer| answer.number == number);
        is_last.then(|| self.all.remove(&key))?;
        Some(key)
    }
}

fn cost(selector: &str) -> usize {
    ANSWER_BYTES + 2 * selector.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_short_answers_are_kept_and_bytes_bound_them() {
        let answers = Answers::default();
        for number in 0..2_000 {
            answers.keep(Action::Publish, &format!("/d/{number}"), Verdict::Allow, 1, 262_144);
        }
        assert!((0..2_000).all(|number| answers.find(Action::Publish, &format!("/d/{number}")).is_some()));
        for number in 0..1_000 {
            answers.keep(Action::Publish, &format!("/d/{number}/{}", "x".repeat(900)), Verdict::Deny, 1, 262_144);
        }
        assert!(answers.lock().bytes <= 262_144 && answers.lock().all.len() < 300);
        assert_eq!(answers.find(Action::Publish, "/d/1"), None, "the oldest have gone");
    }

    #[test]
    fn an_answer_ages_and_one_given_anew_does_not_age_by_the_first() {
        let answers = Answers::default();
        answers.keep(Action::Subscribe, "/a", Verdict::Allow, 100, 10_000);
        answers.keep(Action::Subscribe, "/b", Verdict::Deny, 150, 10_000);
        answers.keep(Action::Subscribe, "/a", Verdict::Allow, 300, 10_000);
        assert!(answers.take_until(99).is_empty());
        assert_eq!(answers.take_until(150), [(Action::Subscribe, "/b".into(), Verdict::Deny)]);
        assert_eq!(answers.find(Action::Subscribe, "/a"), Some(Verdict::Allow));
        assert_eq!(answers.take_until(300), [(Action::Subscribe, "/a".into(), Verdict::Allow)]);
        assert!(answers.is_empty() && answers.lock().bytes == 0);
    }
}
