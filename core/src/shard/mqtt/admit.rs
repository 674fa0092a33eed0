//! What a resumed session still may. Its subscriptions and its messages in flight are judged as new ones would be, by the rights, the
//! listener and the quotas of the connection that resumes it. Owns the rule for each refusal: a lost right ends that subscription
//! alone, and so does a pattern that is too deep by now; a quota, a full table or a silent authorizer refuses the CONNECT, and the session stays whole for the client's next try.
use std::collections::HashMap;
use std::sync::Arc;

use super::arrive::Arriving;
use super::inbound::reason_of;
use super::share::Share;
use crate::codes::Code;
use crate::command::Refusal;
use crate::holder::Holder;
use crate::mqtt::{Fault, Options, Reason, Version, split_shared};
use crate::node::{Before, InFlight, Kept, KeptSubscription, Missed, Node};
use crate::report::Report;
use crate::rights::{Action, Verdict};
use crate::shard::access::ReplyRight;
use crate::shard::session::Step;
use crate::shard::{Shard, lock};
use crate::subject::{Pattern, Selector};

/// What the authorizer said of a session's subscriptions while its client arrives.
#[derive(Debug, Default)]
pub(super) struct SessionAnswers {
    by_selector: HashMap<Box<str>, bool>,
    /// The selector that it is being asked about.
    asking: Option<Box<str>>,
}

/// A session whose subscriptions have their seats again.
pub(super) struct Restored {
    pub(super) kept: Kept,
    /// One for each subscription; none for a group's member.
    pub(super) cursors: Vec<Option<u32>>,
    /// Selectors that rights no longer cover, or that are too deep for the limits there are now.
    pub(super) lost: Vec<(Box<str>, Code)>,
    /// What it was owed and is gone.
    pub(super) missed: Missed,
}

impl Shard {
    /// A will that awaits replies needs a right to do that, too.
    pub(super) fn judge_reply_of_will(&mut self, socket: u32) -> Result<Option<Step>, Fault> {
        let mqtt = self.connections.get(socket).and_then(|connection| connection.mqtt.as_ref());
        let reply_to = mqtt.and_then(|mqtt| mqtt.arriving.as_ref()?.reply_of_will());
        let Some(reply_to) = reply_to.filter(|reply_to| !reply_to.is_empty()) else { return Ok(None) };
        match self.judge_reply(socket, &reply_to) {
            Ok(ReplyRight::Granted { .. }) => Ok(None),
            Ok(ReplyRight::Asked(_)) => Ok(Some(Step::Wait)),
            Err(refusal) => Err(fault_of(refusal)),
        }
    }

    /// Asks the server about the next subscription of the session that its rules leave open; none when all are judged.
    pub(super) fn judge_session(&mut self, socket: u32, id: &str, holder: &Holder) -> Result<Option<Step>, Fault> {
        let selectors: Vec<Box<str>> = lock(&self.node).kept_selectors(id, holder).map(Box::from).collect();
        if let Some(asked) = self.answers(socket).and_then(|answers| answers.asking.take()) {
            let verdict = self.judge_restored(socket, &asked);
            if let Some(answers) = self.answers(socket).filter(|_| verdict != Verdict::Ask) {
                answers.by_selector.insert(asked, verdict == Verdict::Allow);
            }
        }
        for selector in selectors {
            if self.judge_restored(socket, &selector) == Verdict::Ask {
                let text = split_shared(&selector).map_or(&*selector, |(_, selector)| selector);
                let step = self.ask(socket, Action::Subscribe, text).map_err(fault_of)?;
                if let Some(answers) = self.answers(socket) {
                    answers.asking = Some(selector);
                }
                return Ok(Some(step).map(|_| Step::Wait));
            }
        }
        Ok(None)
    }

    pub(super) fn arriving(&mut self, socket: u32) -> Option<&mut Arriving> {
        self.connections.get_mut(socket)?.mqtt.as_mut()?.arriving.as_deref_mut()
    }

    fn answers(&mut self, socket: u32) -> Option<&mut SessionAnswers> {
        self.arriving(socket).map(|arriving| &mut arriving.answers)
    }

    /// Whether a session's subscription would be granted to this connection now.
    fn judge_restored(&self, socket: u32, selector: &str) -> Verdict {
        let text = split_shared(selector).map_or(selector, |(_, selector)| selector);
        let Ok(parsed) = Selector::parse(text) else { return Verdict::Deny };
        match self.judge(socket, Action::Subscribe, &parsed) {
            Verdict::Ask => {
                let mqtt = self.connections.get(socket).and_then(|connection| connection.mqtt.as_ref());
                let arriving = mqtt.and_then(|mqtt| mqtt.arriving.as_ref());
                match arriving.and_then(|arriving| arriving.answers.by_selector.get(selector)) {
                    Some(true) => Verdict::Allow,
                    Some(false) => Verdict::Deny,
                    None => Verdict::Ask,
                }
            }
            verdict => verdict,
        }
    }

    /// Seats the subscriptions of a session that was claimed. None: what it is owed is gone, and a pattern asks that the
    /// session then ends.
    pub(super) fn restore_client(
        &mut self,
        socket: u32,
        mut kept: Kept,
        (id, before): (&Arc<str>, Before),
        node: &mut Node,
    ) -> Result<Option<Restored>, Fault> {
        let whole = kept.clone();
        let mut lost = Vec::new();
        // An answer is missing only where the session changed since it was judged: the next try finds it.
        let is_judged = kept.subscriptions.iter().all(|one| self.judge_restored(socket, &one.selector) != Verdict::Ask);
        kept.subscriptions.retain(|one| {
            let code = match self.judge_restored(socket, &one.selector) {
                Verdict::Allow if !is_too_deep(&one.selector, node) => return true,
                Verdict::Allow => Code::PatternInvalid,
                _ => Code::SubscribeForbidden,
            };
            lost.push((one.selector.clone(), code));
            false
        });
        self.withdraw_lost(socket, &mut kept, node);
        let missed = node.missed_by(&kept);
        if is_judged && missed.ends_session {
            node.return_shared(&mut kept.in_flight, false);
            return Ok(None);
        }
        let mut cursors = Vec::with_capacity(kept.subscriptions.len());
        let mut refusal = (!is_judged).then(|| Code::AuthorizerTimeout.into());
        for subscription in kept.subscriptions.iter().take_while(|_| is_judged) {
            match self.seat_restored(socket, subscription, node) {
                Ok(cursor) => cursors.push(cursor),
                Err(refused) => {
                    refusal = Some(refused);
                    break;
                }
            }
        }
        match refusal {
            Some(refusal) => {
                node.put_back(id, self.connection_id(socket), whole, before, self.now);
                self.wakes |= node.take_wakes();
                Err(fault_of(refusal))
            }
            None => {
                node.return_withdrawn(&mut kept.in_flight);
                Ok(Some(Restored { kept, cursors, lost, missed }))
            }
        }
    }

    fn seat_restored(&mut self, socket: u32, kept: &KeptSubscription, node: &mut Node) -> Result<Option<u32>, Refusal> {
        let options = Options::read(kept.options, Version::V5)
            .map_err(|_| Refusal::new(Code::ConnectionInternalError, "the session's options cannot be read"))?;
        let subscription_id = kept.subscription_id;
        if let Some((group, text)) = split_shared(&kept.selector) {
            let selector = Selector::parse(text)?;
            self.seat_member(socket, &Share { group, selector: &selector, options, subscription_id }, node)?;
            return Ok(None);
        }
        self.may_hold(socket)?;
        let selector = Selector::parse(&kept.selector)?;
        self.seat_client(socket, &selector, options, subscription_id, node).map(Some)
    }

    /// Messages in flight that the client may not have any more are not sent again; their identifiers stay taken.
    fn withdraw_lost(&self, socket: u32, kept: &mut Kept, node: &Node) {
        let text = |selector: &str| split_shared(selector).map_or(selector, |(_, text)| text).to_owned();
        let granted: Vec<Pattern> =
            kept.subscriptions.iter().filter_map(|one| Pattern::parse(&text(&one.selector)).ok()).collect();
        for packet in kept.in_flight.iter_mut().filter(|packet| packet.needs_message()) {
            let Some(subject) = node.subject_of(packet.log) else { continue };
            let may_have = match self.judge_subject(socket, Action::Subscribe, subject) {
                Verdict::Allow => true,
                Verdict::Deny => false,
                Verdict::Ask => granted.iter().any(|pattern| pattern.matches(subject)),
            };
            if !may_have {
                packet.flags |= InFlight::WITHDRAWN;
                packet.message = None;
            }
        }
    }

    /// A subscription of the session was not restored: the client, the log and the audit learn of it.
    pub(super) fn tell_lost(&mut self, socket: u32, selector: &str, code: Code) {
        self.tell_ended(socket, selector, code);
        let why = match code {
            Code::PatternInvalid => "it has more segments than limits.pattern_segments_max",
            _ => "rights no longer cover it",
        };
        let reason = format!("the resumed session's subscription to {selector} has ended: {why}");
        self.tell_refusal(socket, code, &reason);
        if self.settings.reports_sessions {
            let connection = self.connection_id(socket);
            self.report(Report::Unsubscribed { connection, selector: selector.to_owned() });
        }
    }
}

/// Whether a subscription that was granted once has more segments than are granted now.
fn is_too_deep(selector: &str, node: &Node) -> bool {
    let text = split_shared(selector).map_or(selector, |(_, selector)| selector);
    Pattern::parse(text).is_ok_and(|pattern| node.check_depth(&pattern).is_err())
}

fn fault_of(refusal: Refusal) -> Fault {
    let reason = if refusal.code == Code::AuthorizerTimeout { Reason::UNAVAILABLE } else { reason_of(refusal.code) };
    Fault::refused(refusal, reason)
}
