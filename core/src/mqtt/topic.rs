//! Topics and subjects: topic `a/b` is subject `/a/b`, `+` is `*`, `#` is `**`. Owns what a well-formed topic or filter is
//! (4.7); which of them are legal subjects is `subject`'s. Levels may be empty here, as they may in no other wire's names.
use super::fields::Fault;
use super::reason::Reason;
use crate::subject::Selector;

/// A topic to publish on: not empty, no wildcard [MQTT-3.3.2-2], no control character.
pub(super) fn check(topic: &str) -> Result<(), Fault> {
    if topic.is_empty() {
        return Err(Fault::malformed("the topic is empty"));
    }
    if topic.contains(char::is_control) {
        return Err(Fault::malformed("the topic holds a control character"));
    }
    if topic.contains(['+', '#']) {
        return Err(Fault::new(Reason::TOPIC_INVALID, "the topic holds a wildcard"));
    }
    Ok(())
}

/// A filter: not empty, `+` and `#` whole levels, `#` last [MQTT-4.7.1-1, MQTT-4.7.1-2].
pub(super) fn check_filter(filter: &str) -> Result<(), Fault> {
    if filter.is_empty() {
        return Err(Fault::malformed("a topic filter is empty"));
    }
    if filter.contains(char::is_control) {
        return Err(Fault::malformed("a topic filter holds a control character"));
    }
    let mut levels = filter.split('/').peekable();
    while let Some(level) = levels.next() {
        let is_wildcard = level.contains(['+', '#']);
        if is_wildcard && level.len() > 1 || level == "#" && levels.peek().is_some() {
            return Err(Fault::malformed("a wildcard of a topic filter is not where it may be"));
        }
    }
    if let Some(rest) = filter.strip_prefix("$share/") {
        let is_whole = rest
            .split_once('/')
            .is_some_and(|(group, shared)| !group.is_empty() && !group.contains(['+', '#']) && !shared.is_empty());
        if !is_whole {
            return Err(Fault::protocol("a shared subscription names no group or no filter"));
        }
    }
    Ok(())
}

/// The subject of a topic.
#[must_use]
pub fn subject_of(topic: &str) -> String {
    let mut subject = String::with_capacity(topic.len() + 1);
    subject.push('/');
    subject.push_str(topic);
    subject
}

/// Whether a topic is where bridges between brokers say whether they are connected: only the broker itself would keep that.
#[must_use]
pub fn is_bridge_state(topic: &str) -> bool {
    topic.starts_with("$SYS/broker/connection/")
}

/// The topic of a subject; none where it has no name in MQTT, which keeps `+` and `#` for itself.
#[must_use]
pub fn topic_of(subject: &str) -> Option<&str> {
    let topic = subject.get(1..)?;
    (!topic.is_empty() && topic.len() <= usize::from(u16::MAX) && !topic.contains(['+', '#'])).then_some(topic)
}

/// What a filter selects: a subject or a pattern, perhaps shared by a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selected {
    pub group: Option<Box<str>>,
    pub selector: Selector,
}

/// Turns a well-formed filter into what it selects; an error: it names nothing that this node has.
pub fn select(filter: &str) -> Result<Selected, crate::command::Refusal> {
    let shared = filter.strip_prefix("$share/").and_then(|rest| rest.split_once('/'));
    let (group, filter) = shared.map_or((None, filter), |(group, filter)| (Some(Box::from(group)), filter));
    let mut text = String::with_capacity(filter.len() + 2);
    for level in filter.split('/') {
        text.push('/');
        text.push_str(match level {
            "+" => "*",
            "#" => "**",
            // A level that is a wildcard of ours would select what was not asked for.
            "*" | "**" => return Err(crate::subject::refuse_levels(filter)),
            level => level,
        });
    }
    Ok(Selected { group, selector: Selector::parse(&text)? })
}

const SHARED: &str = "$share/";

/// The name of a group's stream: the filter, with the selector for what it selects.
#[must_use]
pub fn shared_name(group: &str, selector: &Selector) -> String {
    shared_of(group, selector.text())
}

pub(crate) fn shared_of(group: &str, selector: &str) -> String {
    format!("{SHARED}{group}{selector}")
}

/// The group and the selector of such a name.
#[must_use]
pub fn split_shared(name: &str) -> Option<(&str, &str)> {
    let rest = name.strip_prefix(SHARED)?;
    let at = rest.find('/')?;
    Some((rest.get(..at)?, rest.get(at..)?))
}
