//! Interest as a publisher sees it: first the state, then changes; who falls behind is told the state again. Owns where each
//! watch stands; who listens to what is the node's to know.
use std::sync::Arc;

use super::session::Step;
use super::{Shard, lock};
use crate::codec;
use crate::codes::Code;
use crate::command::{Id, Push, Refusal, Reply};
use crate::rights::{Action, Verdict};
use crate::subject::{Pattern, Selector};

/// State rows told in one step.
const STATE_ROWS: usize = 256;

/// One connection's watch of one pattern.
#[derive(Debug)]
pub(super) struct Watch {
    socket: u32,
    pattern: Pattern,
    stand: WatchProgress,
}

#[derive(Debug, PartialEq)]
enum WatchProgress {
    /// Changes are told as they come.
    Current,
    /// The state is being told: selectors up to this one have been.
    State(Option<Arc<str>>),
}

impl Shard {
    pub(super) fn watch(&mut self, socket: u32, id: &Id, text: &str) -> Result<Step, Refusal> {
        let selector = Selector::parse(text)?;
        match self.judge(socket, Action::Publish, &selector) {
            Verdict::Allow => {}
            Verdict::Ask => return self.ask(socket, Action::Publish, text),
            Verdict::Deny => return Err(Code::WatchForbidden.into()),
        }
        let pattern = Pattern::parse(text)?;
        self.remove_watch(socket, text);
        let own = self.watches.iter().filter(|watch| watch.socket == socket).count();
        if own >= self.settings.limits.subscriptions_per_connection_max {
            return Err(Refusal::new(Code::SubscriptionsTooMany, "this connection has as many watches as it may have"));
        }
        let node = Arc::clone(&self.node);
        lock(&node).watch(self.index, &pattern)?;
        self.watches.push(Watch { socket, pattern, stand: WatchProgress::State(None) });
        if let Some(connection) = self.connections.get_mut(socket) {
            connection.is_watching = true;
        }
        self.reply_if_asked(socket, id, &Reply::Watching { pattern: text });
        self.make_ready(socket);
        Ok(Step::Done)
    }

    pub(super) fn unwatch(&mut self, socket: u32, id: &Id, text: &str) -> Result<Step, Refusal> {
        if !self.remove_watch(socket, text) {
            return Err(Refusal::new(Code::SubscriptionUnknown, "this connection does not watch that pattern"));
        }
        self.reply_if_asked(socket, id, &Reply::Unwatched { pattern: text });
        Ok(Step::Done)
    }

    pub(super) fn watched_by(&self, socket: u32) -> Vec<Pattern> {
        self.watches.iter().filter(|watch| watch.socket == socket).map(|watch| watch.pattern.clone()).collect()
    }

    pub(super) fn remove_watch(&mut self, socket: u32, text: &str) -> bool {
        let found = self.watches.iter().position(|w| w.socket == socket && w.pattern.text() == text);
        let Some(index) = found else { return false };
        let watch = self.watches.swap_remove(index);
        let node = Arc::clone(&self.node);
        lock(&node).unwatch(self.index, &watch.pattern);
        true
    }

    pub(super) fn unwatch_all(&mut self, socket: u32) {
        let node = Arc::clone(&self.node);
        let mut node = lock(&node);
        let index = self.index;
        self.watches.retain(|watch| {
            let is_kept = watch.socket != socket;
            if !is_kept {
                node.unwatch(index, &watch.pattern);
            }
            is_kept
        });
    }

    /// A change of interest came through the feed.
    pub(super) fn tell_watchers(&mut self, selector: &Arc<str>, has_subscribers: bool) {
        let bytes_max = self.settings.limits.reply_buffer_bytes_max;
        let mut told = Vec::new();
        for watch in &mut self.watches {
            let is_told_before = match &watch.stand {
                WatchProgress::Current => true,
                WatchProgress::State(done) => done.as_ref().is_some_and(|done| selector <= done),
            };
            if !is_told_before || !concerns(&watch.pattern, selector) {
                continue;
            }
            let Some(connection) = self.connections.get_mut(watch.socket) else { continue };
            if connection.private.len() > bytes_max {
                watch.stand = WatchProgress::State(None);
                continue;
            }
            let push = Push::Interest { selector, has_subscribers };
            codec::push(connection.wire, &mut connection.private, &push);
            told.push(watch.socket);
        }
        told.into_iter().for_each(|socket| self.make_ready(socket));
    }

    /// Changes of interest were lost with the feed: every watch is told the state again.
    pub(super) fn restate_watches(&mut self) {
        for watch in &mut self.watches {
            watch.stand = WatchProgress::State(None);
        }
        let sockets: Vec<u32> = self.watches.iter().map(|watch| watch.socket).collect();
        sockets.into_iter().for_each(|socket| self.make_ready(socket));
    }

    /// The connection's private bytes have left: its watches may be told more of the state in the next turn.
    pub(super) fn owe_state(&mut self, socket: u32) {
        if self.watches.iter().any(|watch| watch.socket == socket && watch.stand != WatchProgress::Current) {
            self.stating.push(socket);
        }
    }

    pub(super) fn tell_states(&mut self) {
        for socket in std::mem::take(&mut self.stating) {
            self.continue_watches(socket);
        }
    }

    fn continue_watches(&mut self, socket: u32) {
        let node = Arc::clone(&self.node);
        let owed = |w: &Watch| w.socket == socket && w.stand != WatchProgress::Current;
        let Some(index) = self.watches.iter().position(owed) else { return };
        let mut rows = Vec::new();
        let mut held = lock(&node);
        self.absorb_all(&mut held);
        let Some(watch) = self.watches.get_mut(index) else { return };
        let WatchProgress::State(done) = &watch.stand else { return };
        let next = held.interest_state(&watch.pattern, done.as_deref(), STATE_ROWS, &mut rows);
        drop(held);
        let pattern = watch.pattern.text();
        let begin = done.is_none().then_some(Push::InterestState { pattern, is_complete: false });
        let end = next.is_none().then_some(Push::InterestState { pattern, is_complete: true });
        let rows = rows.iter().map(|selector| Push::Interest { selector, has_subscribers: true });
        if let Some(connection) = self.connections.get_mut(socket) {
            for push in begin.into_iter().chain(rows).chain(end) {
                codec::push(connection.wire, &mut connection.private, &push);
            }
        }
        watch.stand = next.map_or(WatchProgress::Current, |selector| WatchProgress::State(Some(selector)));
        self.make_ready(socket);
    }
}

/// Whether a change of interest in `selector`, a subject or a pattern, is of what `pattern` names.
fn concerns(pattern: &Pattern, selector: &str) -> bool {
    pattern.matches(selector)
        || Pattern::parse(selector).is_ok_and(|other| other.has_wildcard() && other.overlaps(pattern))
}
