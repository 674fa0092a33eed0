//! SUBSCRIBE and UNSUBSCRIBE: rights, limits, the stream that fits what is wanted, and where the cursor begins.
use std::sync::Arc;

use super::gaps::Own;
use super::inbound::{is_worded, reason_of};
use super::share::Share;
use crate::codec::Wire;
use crate::codes::Code;
use crate::command::{Outcome, Refusal};
use crate::cursor::CursorState;
use crate::mqtt::{
    Fault, Filter, Options, Qos, Reason, Selected, Subscribe, Unsubscribe, Version, select, shared_name,
};
use crate::node::Node;
use crate::report::Report;
use crate::rights::{Action, Verdict};

use crate::shard::session::Step;
use crate::shard::{Shard, lock};
use crate::subject::Selector;

/// Filters of one packet that the server is asked about.
const ANSWERS_MAX: usize = 1_000;

impl Shard {
    pub(super) fn take_subscribe(&mut self, socket: u32, packet: &Subscribe<'_>) -> Result<Step, Fault> {
        // All questions first: the packet is carried out as a whole, once.
        if let Some(step) = self.ask_next(socket, packet) {
            return Ok(step);
        }
        let chosen: Vec<_> = packet.filters.iter().map(|filter| (filter, self.choose(socket, filter))).collect();
        self.forget_unanswered(socket);
        let (mut codes, mut text) = (Vec::with_capacity(chosen.len()), String::new());
        for (filter, judged) in chosen {
            let outcome = match judged {
                Err(refusal) => Err(refusal),
                Ok(None) => Ok(Own::of(filter.filter)
                    .map_or(Qos::AtMostOnce, |own| self.tell_own(socket, own, packet.subscription_id))),
                Ok(Some((_, Verdict::Deny))) => Err(Code::SubscribeForbidden.into()),
                // Beyond what one packet may ask.
                Ok(Some((_, Verdict::Ask))) if codes.len() >= ANSWERS_MAX => {
                    let text = "the packet has more filters than one packet may ask the authorizer about (1,000)";
                    Err(Refusal::new(Code::SubscriptionsTooMany, text))
                }
                Ok(Some((_, Verdict::Ask))) => Err(Code::AuthorizerTimeout.into()),
                Ok(Some((selected, Verdict::Allow))) => self.subscribe_filter(socket, filter, packet, &selected),
            };
            codes.push(match outcome {
                Ok(qos) => Reason(qos as u8),
                Err(refusal) => {
                    self.tell_refusal(socket, refusal.code, &refusal.reason);
                    // The packet has one reason string: it is for the first filter whose code alone says too little.
                    if text.is_empty() && is_worded(refusal.code) {
                        text = refusal.reason;
                    }
                    reason_of(refusal.code).in_suback()
                }
            });
        }
        // A client that hears so may be away before the node is killed.
        self.await_subscribed(socket, packet.filters.iter().map(|filter| filter.filter));
        self.say(socket, |mqtt, out| {
            let is_plain = mqtt.writer.version == Version::V3;
            let code = |reason: &Reason| if is_plain && reason.is_failure() { 0x80 } else { reason.0 };
            let codes: Vec<u8> = codes.iter().map(code).collect();
            mqtt.writer.suback(out, packet.packet_id, &codes, mqtt.problem(&text));
        });
        self.hold_stands(socket);
        self.save_session(socket);
        Ok(Step::Done)
    }

    /// The packet's next question, if one is open. Those before it have had theirs: of a thousand filters no answer makes all be judged anew.
    fn ask_next(&mut self, socket: u32, packet: &Subscribe<'_>) -> Option<Step> {
        let asked = self.asked(socket);
        for (place, filter) in packet.filters.iter().enumerate().take(ANSWERS_MAX).skip(asked) {
            if let Ok(Some((selected, Verdict::Ask))) = self.choose(socket, filter)
                && !self.is_unanswered(socket, Action::Subscribe, selected.selector.text())
                && let Ok(step) = self.ask(socket, Action::Subscribe, selected.selector.text())
            {
                self.set_asked(socket, place);
                return Some(step);
            }
        }
        None
    }

    /// What a filter selects, and whether this client may have it; none where it is a subject that each client has of its own.
    fn choose(&self, socket: u32, filter: Filter<'_>) -> Result<Option<(Selected, Verdict)>, Refusal> {
        if Own::of(filter.filter).is_some() {
            return Ok(None);
        }
        let selected = select(filter.filter)?;
        let verdict = self.judge(socket, Action::Subscribe, &selected.selector);
        Ok(Some((selected, verdict)))
    }

    fn subscribe_filter(
        &mut self,
        socket: u32,
        filter: Filter<'_>,
        packet: &Subscribe<'_>,
        selected: &Selected,
    ) -> Result<Qos, Refusal> {
        let options = filter.options;
        let is_known = selected.group.is_none() && self.cursor_of(socket, selected.selector.text()).is_some();
        let may = if is_known { self.may_change_subscription(socket) } else { self.may_subscribe(socket) };
        may?;
        if let Some(group) = &selected.group {
            let share = Share { group, selector: &selected.selector, options, subscription_id: packet.subscription_id };
            return self.subscribe_shared(socket, &share);
        }
        let text = selected.selector.text();
        let node = Arc::clone(&self.node);
        self.absorb_all(&mut lock(&node));
        if is_known {
            // What can fail comes first: a refusal leaves the subscription that is there.
            self.open_client_stream(socket, &selected.selector, options, packet.subscription_id, &mut lock(&node))?;
        }
        // Of a subscription that is replaced, what it was still to send is sent all the same [MQTT-3.8.4-3].
        let before = self.cursor_of(socket, text);
        let stood = before.map(|cursor| self.arrival_of(cursor));
        let replaced = before.map(|cursor| self.replaced(socket, cursor));
        self.unsubscribe(socket, text);
        let mut node = lock(&node);
        self.absorb_all(&mut node);
        let cursor = self.seat_client(socket, &selected.selector, options, packet.subscription_id, &mut node)?;
        self.wakes |= node.take_wakes();
        drop(node);
        let bound = stood.map_or(self.arrived, |(arrival, _)| arrival);
        let wants_retained = match options.retain_handling {
            0 => true,
            1 => stood.is_none_or(|(_, is_joining)| is_joining),
            _ => false,
        };
        if wants_retained {
            self.begin_retained(cursor, bound, None);
        } else if stood.is_some() {
            self.stand(cursor, CursorState::Behind(bound));
            self.queue_behind(cursor);
        } else {
            self.enter_head(cursor);
        }
        let node = Arc::clone(&self.node);
        self.settle_client_range(cursor, bound, &lock(&node));
        self.report_subscribed(socket, text, Outcome::Live, None, None);
        match replaced {
            Some(replaced) => self.replace_overlap(socket, cursor, &selected.selector, replaced),
            None => self.note_overlap(cursor, &selected.selector, bound),
        }
        Ok(options.qos)
    }

    /// Seats a cursor in the stream that fits what is wanted; where it stands is the caller's to say.
    pub(super) fn seat_client(
        &mut self,
        socket: u32,
        selector: &Selector,
        options: Options,
        subscription_id: u32,
        node: &mut Node,
    ) -> Result<u32, Refusal> {
        let stream = self.open_client_stream(socket, selector, options, subscription_id, node)?;
        // What is missing cannot be said in between: what is still kept follows.
        let id = self.seat_cursor(socket, stream, true);
        if let Some(cursor) = self.cursors.get_mut(id) {
            cursor.options = options.byte();
            cursor.subscription_id = subscription_id;
        }
        Ok(id)
    }

    /// The stream that fits what is wanted.
    fn open_client_stream(
        &mut self,
        socket: u32,
        selector: &Selector,
        options: Options,
        subscription_id: u32,
        node: &mut Node,
    ) -> Result<u32, Refusal> {
        let Some(mqtt) = self.connections.get(socket).and_then(|connection| connection.mqtt.as_ref()) else {
            return Err(Refusal::new(Code::CommandInternalError, "the connection speaks another protocol"));
        };
        let is_plain = options.qos == Qos::AtMostOnce
            && !options.is_not_local
            && !options.keeps_retain
            && subscription_id == 0
            && mqtt.wants_shared_packets();
        let wire = if is_plain { Wire::Mqtt(mqtt.writer) } else { Wire::MqttParts };
        self.ask_as(socket, node);
        match selector {
            Selector::Subject(subject) => Ok(self.open_subject_stream(subject, wire.into(), node)?.0),
            Selector::Pattern(pattern) => self.open_pattern_stream(pattern, wire.into(), node),
        }
    }

    pub(super) fn take_unsubscribe(&mut self, socket: u32, packet: &Unsubscribe<'_>) -> Step {
        let connection = self.connection_id(socket);
        let mut codes = Vec::new();
        for filter in packet.filters.iter() {
            let reason = match (Own::of(filter.filter), select(filter.filter)) {
                (Some(own), _) => self.hide_own(socket, own),
                (None, Err(_)) => Reason::NO_SUBSCRIPTION,
                (None, Ok(selected)) => {
                    let shared = selected.group.as_ref().map(|group| shared_name(group, &selected.selector));
                    let text = shared.as_deref().unwrap_or(selected.selector.text());
                    if let Some(leaving) = self.cursor_of(socket, text) {
                        self.hand_over_all(socket, leaving);
                    }
                    if self.unsubscribe(socket, text) {
                        self.note_unsubscribed(socket, text);
                        self.report(Report::Unsubscribed { connection, selector: text.to_owned() });
                        Reason::SUCCESS
                    } else {
                        Reason::NO_SUBSCRIPTION
                    }
                }
            };
            codes.push(reason.0);
        }
        self.await_subscribed(socket, packet.filters.iter().map(|filter| filter.filter));
        self.say(socket, |mqtt, out| mqtt.writer.unsuback(out, packet.packet_id, &codes));
        self.hold_stands(socket);
        self.save_session(socket);
        Step::Done
    }
}
