//! What an identity may do, compiled: rules over patterns, the most specific decides, ties deny.
//! A pattern is granted whole or refused: any overlapping deny refuses it (protocol.md, rights).
use crate::settings::RuleSettings;
use crate::subject::{Pattern, Selector};

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
    rules: Vec<Rule>,
}
