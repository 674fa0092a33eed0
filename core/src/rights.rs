//! What an identity may do, compiled: rules over patterns, the most specific decides, ties deny.
//! A pattern is granted whole or refused: any overlapping deny refuses it (protocol.md, rights).
//!
//! An answer to a question stands beside the rules: it decides that question, and no other, where the rules leave it to the server, so
//! that nothing is asked twice.
mod answers;
mod configured;
pub mod holder;
mod rules;

use std::sync::Arc;

use crate::codes::Code;
use crate::command::Refusal;
use crate::settings::RuleSettings;
use crate::subject::{Pattern, Selector, is_dispatch, names_owner};
use answers::Answers;
use rules::Rules;
pub use rules::SharedRules;

/// Who vouches for rights that come from a token of dispatch, which their source begins with; no configured issuer has this name.
pub const DISPATCH: &str = "jwt:godwit-dispatch";

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

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pub pattern: Pattern,
    pub subscribe: bool,
    pub publish: bool,
    pub verdict: Verdict,
    /// It comes from the configuration, not from a token or an authorizer.
    pub is_configured: bool,
}

/// What one connection may do.
#[derive(Clone, Debug, Default)]
pub struct Rights {
    rules: Arc<Rules>,
    /// Of one connection alone.
    answers: Arc<Answers>,
    /// Who vouched for them, as `Order::Withdraw` names it.
    pub source: Option<Arc<str>>,
}

impl Rights {
    /// Compiles rules as the settings or the server write them. What no rule holds is denied.
    pub fn compile(settings: &[RuleSettings]) -> Result<Self, Refusal> {
        Self::compile_grant(settings, 0)
    }

    /// The same for rules of which the first `configured` come from the configuration.
    pub fn compile_grant(settings: &[RuleSettings], configured: usize) -> Result<Self, Refusal> {
        let mut rules = settings.iter().map(Rule::compile).collect::<Result<Vec<_>, _>>()?;
        rules.iter_mut().take(configured).for_each(|rule| rule.is_configured = true);
        Ok(Self { rules: Arc::new(Rules::new(rules)?), ..Self::default() })
    }

    /// Holds the rules once with all who were granted the same.
    pub fn share(&mut self, shared: &mut SharedRules) {
        self.rules = shared.share(std::mem::take(&mut self.rules));
    }

    /// Whether both hold the same rules in the same place.
    pub fn has_same_rules(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.rules, &other.rules)
    }

    /// The same rules, for a connection that was asked nothing yet.
    #[must_use]
    pub fn unanswered(&self) -> Self {
        Self { rules: Arc::clone(&self.rules), source: self.source.clone(), ..Self::default() }
    }

    /// Keeps an answer, given now (monotonic ms).
    pub fn keep(&self, answer: &Rule, now_ms: u64, bytes_max: usize) {
        for action in [Action::Subscribe, Action::Publish].into_iter().filter(|&action| answer.concerns(action)) {
            self.answers.keep(action, answer.pattern.text(), answer.verdict, now_ms, bytes_max);
        }
    }

    /// Questions whose answers were given up to then (monotonic ms), and what was said; they are open again.
    pub fn take_until(&self, then_ms: u64) -> Vec<(Action, Box<str>, Verdict)> {
        if self.answers.is_empty() { Vec::new() } else { self.answers.take_until(then_ms) }
    }

    /// Of the rules that hold `subject`, what the most specific says; on a tie deny goes before ask, and ask before allow.
    pub fn judge_subject(&self, action: Action, subject: &str) -> Verdict {
        if self.is_closed(action, subject) {
            return Verdict::Deny;
        }
        let verdict = if is_dispatch(subject) {
            let mut rules = self.rules.of(action).filter(|rule| self.counts(rule));
            rules.find(|rule| rule.pattern.matches(subject)).map_or(Verdict::Deny, |rule| rule.verdict)
        } else {
            self.rules.judge(action, subject)
        };
        match verdict {
            Verdict::Ask => self.answer(action, subject),
            verdict => verdict,
        }
    }

    /// Of the rules that do not come from the configuration, the one that decides about publishing on a subject.
    pub fn own_rule(&self, subject: &str) -> Option<RuleSettings> {
        let counts = |rule: &&Rule| !rule.is_configured && (!is_dispatch(subject) || self.counts(rule));
        let rule = self.rules.of(Action::Publish).filter(counts).find(|rule| rule.pattern.matches(subject))?;
        let (pattern, actions) = (rule.pattern.text().to_owned(), "publish".to_owned());
        Some(RuleSettings { pattern, actions, verdict: rule.verdict.name().to_owned() })
    }

    /// Whether all of `pattern` may be had: no rule that denies overlaps it, and one that allows holds all of it and is more
    /// specific than any that asks. Where one that asks or allows holds all of it, the server can be asked.
    pub fn judge_pattern(&self, action: Action, pattern: &Pattern) -> Verdict {
        if !pattern.has_wildcard() {
            return self.judge_subject(action, pattern.text());
        }
        if self.is_closed(action, pattern.text()) {
            return Verdict::Deny;
        }
        let rules = || self.rules.of(action).filter(|rule| self.counts(rule));
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

    /// Whether no rule can grant this: subjects of dispatch are published on by its own tokens alone, and everybody else may
    /// subscribe only to those of a named owner.
    fn is_closed(&self, action: Action, selector: &str) -> bool {
        is_dispatch(selector) && !self.is_dispatch() && (action == Action::Publish || !names_owner(selector))
    }

    /// Whether a rule says something here. One that allows all inboxes at once says nothing, unless dispatch signed it.
    fn counts(&self, rule: &Rule) -> bool {
        let text = rule.pattern.text();
        rule.verdict != Verdict::Allow || !is_dispatch(text) || names_owner(text) || self.is_dispatch()
    }

    fn is_dispatch(&self) -> bool {
        let authority = self.source.as_deref().and_then(|source| source.split('\n').next());
        authority == Some(DISPATCH)
    }

    /// Whether the rules alone leave this to the server.
    pub fn leaves_open(&self, action: Action, selector: &Selector) -> bool {
        let asked = self.unanswered();
        let verdict = match selector {
            Selector::Subject(subject) => asked.judge_subject(action, subject),
            Selector::Pattern(pattern) => asked.judge_pattern(action, pattern),
        };
        verdict == Verdict::Ask
    }

    /// The last answer to exactly this question; without one, the question stands. What was said of a pattern says nothing of a
    /// subject in it: the authorizer may grant one and refuse the other.
    fn answer(&self, action: Action, selector: &str) -> Verdict {
        self.answers.find(action, selector).unwrap_or(Verdict::Ask)
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
        Ok(Self { pattern: Pattern::parse(&settings.pattern)?, subscribe, publish, verdict, is_configured: false })
    }

    pub fn concerns(&self, action: Action) -> bool {
        match action {
            Action::Subscribe => self.subscribe,
            Action::Publish => self.publish,
        }
    }
}

impl Verdict {
    /// As the settings write it.
    fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Ask => "ask",
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
