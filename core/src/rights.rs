//! What an identity may do, compiled: rules over patterns, the most specific decides, ties deny.
//! A pattern is granted whole or refused: any overlapping deny refuses it (protocol.md, rights).
//!
//! An answer to a question stands beside the rules: it decides that question, and no other, where the rules leave it to the server, so
//! that nothing is asked twice.
pub mod holder;

use std::sync::Arc;

use crate::codes::Code;
use crate::command::Refusal;
use crate::settings::RuleSettings;
use crate::subject::{Pattern, Selector};

/// Answers one identity keeps; the oldest go, and are asked for again.
pub(crate) const ANSWERS_MAX: usize = 1_000;

/// What a rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    Subscribe,
    Publish,
}

/// What a rule, or all of them together, say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Allow,
    Deny,
    /// The server has to be asked; its answer becomes a rule.
    Ask,
}

#[derive(Clone, Debug)]
pub struct Rule {
    pub pattern: Pattern,
    pub subscribe: bool,
    pub publish: bool,
    pub verdict: Verdict,
}

/// All rules of one identity; shared by its connections.
#[derive(Clone, Debug, Default)]
pub struct Rights {
    /// The most specific first, of equally specific ones the strictest: the first that holds a subject decides.
    rules: Vec<Rule>,
    answers: Vec<Rule>,
    /// Who vouched for them, as `Order::Withdraw` names it.
    pub source: Option<Arc<str>>,
}

impl Rights {
    /// Compiles rules as the settings or the server write them. What no rule holds is denied.
    pub fn compile(settings: &[RuleSettings]) -> Result<Self, Refusal> {
        let mut rules = settings.iter().map(Rule::compile).collect::<Result<Vec<_>, _>>()?;
        rules.sort_by(|a, b| {
            let specificity = b.pattern.compare_specificity(&a.pattern);
            specificity.then(strictness(b.verdict).cmp(&strictness(a.verdict)))
        });
        Ok(Self { rules, answers: Vec::new(), source: None })
    }

    /// The same rights and one more answer.
    #[must_use]
    pub fn with(&self, answer: Rule) -> Self {
        let mut more = self.clone();
        if more.answers.len() >= ANSWERS_MAX {
            more.answers.remove(0);
        }
        more.answers.push(answer);
        more
    }

    /// Of the rules that hold `subject`, what the most specific says; on a tie deny goes before ask, and ask before allow.
    pub fn judge_subject(&self, action: Action, subject: &str) -> Verdict {
        let mut rules = self.rules.iter().filter(|rule| rule.concerns(action));
        match rules.find(|rule| rule.pattern.matches(subject)).map_or(Verdict::Deny, |rule| rule.verdict) {
            Verdict::Ask => self.answer(action, subject),
            verdict => verdict,
        }
    }

    /// Whether all of `pattern` may be had: no rule that denies overlaps it, and one that allows holds all of it and is more
    /// specific than any that asks. Where one that asks or allows holds all of it, the server can be asked.
    pub fn judge_pattern(&self, action: Action, pattern: &Pattern) -> Verdict {
        if !pattern.has_wildcard() {
            return self.judge_subject(action, pattern.text());
        }
        let rules = || self.rules.iter().filter(|rule| rule.concerns(action));
        if rules().any(|rule| rule.verdict == Verdict::Deny && rule.pattern.overlaps(pattern)) {
            return Verdict::Deny;
        }
        let mut holders = rules().filter(|rule| rule.pattern.covers(pattern)).peekable();
        if holders.peek().is_none() {
            return Verdict::Deny;
        }
        let asks = |allow: &Rule| {
            rules().any(|rule| {
                rule.verdict == Verdict::Ask
                    && rule.pattern.overlaps(pattern)
                    && !(rule.pattern.covers(&allow.pattern) && rule.pattern != allow.pattern)
            })
        };
        if holders.any(|rule| rule.verdict == Verdict::Allow && !asks(rule)) {
            return Verdict::Allow;
        }
        self.answer(action, pattern.text())
    }

    /// Whether the rules alone leave this to the server.
    pub fn leaves_open(&self, action: Action, selector: &Selector) -> bool {
        let asked = Self { rules: self.rules.clone(), answers: Vec::new(), source: None };
        let verdict = match selector {
            Selector::Subject(subject) => asked.judge_subject(action, subject),
            Selector::Pattern(pattern) => asked.judge_pattern(action, pattern),
        };
        verdict == Verdict::Ask
    }

    /// The last answer to exactly this question; without one, the question stands. What was said of a pattern says nothing of a
    /// subject in it: the authorizer may grant one and refuse the other.
    fn answer(&self, action: Action, selector: &str) -> Verdict {
        let mut answers = self.answers.iter().rev().filter(|rule| rule.concerns(action));
        answers.find(|rule| rule.pattern.text() == selector).map_or(Verdict::Ask, |rule| rule.verdict)
    }
}

impl Rule {
    /// Compiles one rule; refuses it where a word is not known.
    pub fn compile(settings: &RuleSettings) -> Result<Self, Refusal> {
        let (subscribe, publish) = match settings.actions.as_str() {
            "subscribe" => (true, false),
            "publish" => (false, true),
            "both" => (true, true),
            other => return Err(Refusal::new(Code::FieldInvalid, format!("no such action in a rule: {other}"))),
        };
        let verdict = match settings.verdict.as_str() {
            "allow" => Verdict::Allow,
            "deny" => Verdict::Deny,
            "ask" => Verdict::Ask,
            other => return Err(Refusal::new(Code::FieldInvalid, format!("no such verdict in a rule: {other}"))),
        };
        // MQTT has names with empty levels: they are asked about, and ruled on, as any other.
        Ok(Self { pattern: Pattern::parse_levels(&settings.pattern)?, subscribe, publish, verdict })
    }

    pub fn concerns(&self, action: Action) -> bool {
        match action {
            Action::Subscribe => self.subscribe,
            Action::Publish => self.publish,
        }
    }
}

fn strictness(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Allow => 0,
        Verdict::Ask => 1,
        Verdict::Deny => 2,
    }
}
