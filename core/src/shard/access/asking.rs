//! Questions to the server: what the rules leave open. Owns that each is paid for before it is asked, once for a command however often that
//! is executed; that an answer ages; and that a subscription which an answer granted is asked about again in the background while it lives.
use std::sync::Arc;

use crate::account::What;
use crate::codes::Code;
use crate::command::Refusal;
use crate::cursor::NONE;
use crate::mqtt;
use crate::report::Report;
use crate::rights::{Action, Rule, Verdict};
use crate::shard::Shard;
use crate::shard::session::Step;
use crate::subject::Selector;

/// So long, at least, an answer that is asked for again may take, where answers do not age.
const ANSWERS_AGE_MS_MIN: u64 = 60_000;

/// What a command under way has paid before it asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::shard) struct Prepaid {
    pub(in crate::shard) publishes: u32,
    pub(in crate::shard) subscribes: u32,
}

/// A subscription whose answer grew too old: it goes on until the new answer, or until it has waited too long for one.
#[derive(Debug)]
pub(in crate::shard) struct Reasked {
    selector: Box<str>,
    deadline_ms: u64,
}

impl Shard {
    /// Brings a question that the rules leave open to the server; the command is executed anew with the answer. Where there was
    /// none the command is refused, once: sent again, it is asked about again.
    pub(in crate::shard) fn ask(&mut self, socket: u32, action: Action, selector: &str) -> Result<Step, Refusal> {
        if self.is_unanswered(socket, action, selector) {
            self.forget_unanswered(socket);
            return Err(Code::AuthorizerTimeout.into());
        }
        self.prepay(socket, action)?;
        self.push_question(socket, action, selector, false);
        Ok(Step::Again)
    }

    fn push_question(&mut self, socket: u32, action: Action, selector: &str, is_background: bool) {
        let connection = self.connection_id(socket);
        let access = self.connections.get(socket).and_then(|c| c.access.clone());
        if let Some(access) = access {
            let (holder, selector) = (Arc::clone(&access.holder), selector.to_owned());
            self.reports.push(Report::Ask { connection, holder, action, selector, is_background });
        }
    }

    /// Rates bound what reaches the server. A session that is resumed has paid with its connect.
    fn prepay(&mut self, socket: u32, action: Action) -> Result<(), Refusal> {
        let Some(connection) = self.connections.get(socket) else { return Ok(()) };
        if connection.mqtt.as_ref().is_some_and(|mqtt| mqtt.is_arriving()) {
            return Ok(());
        }
        match action {
            Action::Publish => self.pay(socket, What::Publishes, 1)?,
            Action::Subscribe => self.pay(socket, What::Subscribes, 1)?,
        }
        if let Some(connection) = self.connections.get_mut(socket) {
            let prepaid = &mut connection.details().prepaid;
            match action {
                Action::Publish => prepaid.publishes += 1,
                Action::Subscribe => prepaid.subscribes += 1,
            }
        }
        Ok(())
    }

    /// The server's answer to a question: a rule, or one that leaves it open.
    pub(in crate::shard) fn take_answer(&mut self, socket: u32, rule: Rule, is_background: bool) {
        let (now_ms, bytes_max) = (self.now.mono_ms, self.settings.limits.answers_bytes_max);
        let Some(connection) = self.connections.get_mut(socket) else { return };
        if rule.verdict == Verdict::Ask {
            if !is_background {
                connection.details().unanswered.push(rule);
            }
            return;
        }
        if connection.access.as_ref().is_some_and(|access| access.is_basis) {
            connection.access = connection.access.as_ref().map(|access| access.alone());
        }
        if let Some(access) = &connection.access {
            access.rights.keep(&rule, now_ms, bytes_max);
        }
        if is_background {
            connection.details().reasked.retain(|one| *one.selector != *rule.pattern.text());
            if rule.verdict == Verdict::Deny {
                self.judge_again(socket);
            }
        }
    }

    /// Answers that are too old are forgotten. Those that a live subscription stands on are asked for again, and its silence is borne for one
    /// more age.
    pub(in crate::shard) fn look_at_answers(&mut self, socket: u32) {
        let (now_ms, age_ms) = (self.now.mono_ms, self.settings.limits.answers_age_ms);
        if age_ms > 0
            && let Some(then_ms) = now_ms.checked_sub(age_ms)
        {
            self.forget_answers(socket, then_ms);
        }
        let Some(details) = self.connections.get_mut(socket).and_then(|c| c.details.as_mut()) else { return };
        let silent: Vec<Box<str>> =
            details.reasked.extract_if(.., |one| now_ms >= one.deadline_ms).map(|one| one.selector).collect();
        for selector in silent {
            self.end_unanswered(socket, &selector);
        }
    }

    /// Answers given up to then are open questions again; those that a live subscription stands on are asked at once.
    fn forget_answers(&mut self, socket: u32, then_ms: u64) {
        let deadline_ms = self.now.mono_ms.saturating_add(self.settings.limits.answers_age_ms.max(ANSWERS_AGE_MS_MIN));
        let access = self.connections.get(socket).and_then(|connection| connection.access.as_ref());
        let old = access.map(|access| access.rights.take_until(then_ms)).unwrap_or_default();
        for (action, selector, verdict) in old {
            if action == Action::Subscribe && verdict == Verdict::Allow && self.has_subscription(socket, &selector) {
                self.ask_again(socket, selector, deadline_ms);
            }
        }
    }

    /// The server's answers about an identity may have changed, or about everybody: none of them is kept.
    pub(in crate::shard) fn forget_all_answers(&mut self, identity: Option<&str>, tenant: Option<&str>) {
        let sockets: Vec<u32> = self.connections.indices_from(0).collect();
        for socket in sockets {
            let access = self.connections.get(socket).and_then(|connection| connection.access.as_ref());
            let is_meant = access.is_some_and(|access| {
                identity.is_none_or(|identity| *access.holder.identity == *identity)
                    && tenant.is_none_or(|tenant| *access.holder.tenant == *tenant)
            });
            if is_meant {
                self.forget_answers(socket, u64::MAX);
            }
        }
    }

    /// Other rights are in force: subscriptions that they leave to the server are asked about again.
    pub(in crate::shard) fn ask_all_again(&mut self, socket: u32) {
        let deadline_ms = self.now.mono_ms.saturating_add(self.settings.limits.answers_age_ms.max(1));
        let mut open: Vec<Box<str>> = Vec::new();
        let mut id = self.connections.get(socket).map_or(NONE, |connection| connection.first_cursor);
        while let Some(cursor) = self.cursors.get(id) {
            id = cursor.next;
            let Some(stream) = self.streams.get(cursor.stream) else { continue };
            let text = mqtt::split_shared(&stream.name).map_or(&*stream.name, |(_, selector)| selector);
            let verdict = Selector::parse(text)
                .map_or(Verdict::Deny, |selector| self.judge(socket, Action::Subscribe, &selector));
            if verdict == Verdict::Ask && !open.iter().any(|known| **known == *text) {
                open.push(text.into());
            }
        }
        for selector in open {
            self.ask_again(socket, selector, deadline_ms);
        }
    }

    fn ask_again(&mut self, socket: u32, selector: Box<str>, deadline_ms: u64) {
        self.push_question(socket, Action::Subscribe, &selector, true);
        if let Some(connection) = self.connections.get_mut(socket) {
            let reasked = &mut connection.details().reasked;
            if !reasked.iter().any(|one| one.selector == selector) {
                reasked.push(Reasked { selector, deadline_ms });
            }
        }
    }

    fn has_subscription(&self, socket: u32, selector: &str) -> bool {
        !self.cursors_of_selector(socket, selector).is_empty()
    }

    /// Names of the streams of a connection that stand on the answer to a selector: its own, and groups'.
    fn cursors_of_selector(&self, socket: u32, selector: &str) -> Vec<(u32, Arc<str>)> {
        let mut found = Vec::new();
        let mut id = self.connections.get(socket).map_or(NONE, |connection| connection.first_cursor);
        while let Some(cursor) = self.cursors.get(id) {
            if let Some(stream) = self.streams.get(cursor.stream) {
                let text = mqtt::split_shared(&stream.name).map_or(&*stream.name, |(_, selector)| selector);
                if text == selector {
                    found.push((id, Arc::clone(&stream.name)));
                }
            }
            id = cursor.next;
        }
        found
    }

    /// Nobody answered for as long as an answer holds: what was granted by the last one ends.
    fn end_unanswered(&mut self, socket: u32, selector: &str) {
        for (cursor, name) in self.cursors_of_selector(socket, selector) {
            self.hand_over_all(socket, cursor);
            self.unsubscribe(socket, &name);
            self.tell_ended(socket, &name, Code::SubscribeForbidden);
        }
    }

    /// Whether the command under way has asked this already, and nobody answered.
    pub(in crate::shard) fn is_unanswered(&self, socket: u32, action: Action, selector: &str) -> bool {
        let details = self.connections.get(socket).and_then(|connection| connection.details.as_ref());
        details.is_some_and(|details| {
            let mut open = details.unanswered.iter();
            open.any(|rule| rule.concerns(action) && rule.pattern.text() == selector)
        })
    }

    /// The command that asked is answered.
    pub(in crate::shard) fn forget_unanswered(&mut self, socket: u32) {
        if let Some(details) = self.connections.get_mut(socket).and_then(|connection| connection.details.as_mut()) {
            details.unanswered = Vec::new();
            details.asked = 0;
            details.prepaid = Prepaid::default();
        }
    }

    /// How many parts of the command under way need not be asked about again.
    pub(in crate::shard) fn asked(&self, socket: u32) -> usize {
        let details = self.connections.get(socket).and_then(|connection| connection.details.as_ref());
        details.map_or(0, |details| details.asked)
    }

    pub(in crate::shard) fn set_asked(&mut self, socket: u32, count: usize) {
        if let Some(connection) = self.connections.get_mut(socket) {
            connection.details().asked = count;
        }
    }
}
