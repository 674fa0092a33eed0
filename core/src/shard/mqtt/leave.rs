//! A connection ends: what of its client is kept, as positions, and what becomes of its will. Owns where each subscription
//! stands at that moment: everything before has been sent, or is in flight.
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use super::Stage;
use crate::codes::Code;
use crate::cursor::{CursorState, NONE};
use crate::holder::ANONYMOUS;
use crate::node::{Came, Entry, Kept, KeptSubscription, Will};
use crate::report::Report;
use crate::rights::{Action, Verdict};
use crate::shard::access::decide;
use crate::shard::connection::Access;
use crate::shard::{Shard, lock};
use crate::subject::Selector;

impl Shard {
    /// Lets go of a connection's client, once; its cursors are still seated.
    pub(in crate::shard) fn leave_client(&mut self, socket: u32) {
        let connection_id = self.connection_id(socket);
        let Some(connection) = self.connections.get_mut(socket) else { return };
        let Some(mqtt) = connection.mqtt.as_mut() else { return };
        let stage = std::mem::replace(&mut mqtt.stage, Stage::Left);
        mqtt.arriving = None; // with a will that was not taken: the peer may be slow to close
        let client_key = Arc::clone(mqtt.client_key());
        match stage {
            Stage::Fresh | Stage::Left => return,
            Stage::Arriving => {
                let mut node = lock(&self.node);
                node.stop_waiting(&client_key, connection_id);
                self.wakes |= node.take_wakes();
                return;
            }
            Stage::Open => {}
        }
        let (has_will, session_ms) = (std::mem::take(&mut mqtt.has_will), mqtt.session_ms);
        let access = connection.access.clone();
        let (mut in_flight, last_packet_id) = std::mem::take(&mut mqtt.flight).keep();
        let received = std::mem::take(&mut mqtt.received);
        let (gaps, notices) = mqtt.notified();
        let subscriptions = if session_ms > 0 { self.kept_subscriptions(socket) } else { Vec::new() };
        let node = Arc::clone(&self.node);
        let mut node = lock(&node);
        let is_taken_over = session_ms > 0 && node.is_awaited(&client_key);
        node.return_shared(&mut in_flight, is_taken_over);
        in_flight.iter_mut().for_each(|packet| node.pin(packet));
        let kept = (session_ms > 0).then(|| {
            let places = in_flight.iter().filter(|packet| packet.needs_message());
            let owed_after = node.before_in_flight(places.map(|packet| (packet.log, packet.sequence)));
            Kept {
                subscriptions,
                in_flight,
                received,
                last_packet_id,
                gaps,
                notices,
                owed_after,
                floor: 0,
                is_restored: false,
            }
        });
        let mut will = node.take_will(&client_key, connection_id).filter(|_| has_will);
        if let (Some(will), Some(access)) = (&mut will, &access) {
            // It is judged by what its client may do at the end, not by what it might when it came.
            will.take_rights(&access.rights, access.voucher());
        }
        node.release(&client_key, connection_id, kept, will, session_ms, self.now);
        let wills = node.take_wills();
        self.wakes |= node.take_wakes();
        drop(node);
        self.publish_wills(wills);
    }

    pub(super) fn kept_subscriptions(&self, socket: u32) -> Vec<KeptSubscription> {
        let mut kept = Vec::new();
        let mut id = self.connections.get(socket).map_or(NONE, |connection| connection.first_cursor);
        while let Some(cursor) = self.cursors.get(id) {
            if let Some(stream) = self.streams.get(cursor.stream) {
                let (arrival, is_joining) = self.arrival_of(id);
                kept.push(KeptSubscription {
                    selector: Box::from(&*stream.name),
                    options: cursor.options,
                    subscription_id: cursor.subscription_id,
                    arrival,
                    began: self.began(socket, id),
                    is_joining,
                    joined: cursor.job.as_ref().and_then(|job| Some(Box::from(&**job.join.as_ref()?.done.as_ref()?))),
                    inherited: self.inherited(socket, id),
                });
            }
            id = cursor.next;
        }
        // The list has the latest first.
        kept.reverse();
        kept
    }

    /// A connection's cursor for a selector.
    pub(in crate::shard) fn cursor_of(&self, socket: u32, selector: &str) -> Option<u32> {
        let mut id = self.connections.get(socket).map_or(NONE, |connection| connection.first_cursor);
        while let Some(cursor) = self.cursors.get(id) {
            if self.streams.get(cursor.stream).is_some_and(|stream| &*stream.name == selector) {
                return Some(id);
            }
            id = cursor.next;
        }
        None
    }

    /// Up to which arrival a cursor's client has been sent everything, and whether retained messages are still to come.
    pub(super) fn arrival_of(&self, id: u32) -> (u64, bool) {
        let Some(cursor) = self.cursors.get(id) else { return (self.arrived, false) };
        let window = self.streams.get(cursor.stream).and_then(|stream| stream.window.as_ref());
        match cursor.stand {
            CursorState::Current => {
                // What was noted for this turn has not left yet.
                let noted = self.singles.iter().filter(|single| single.cursor == id);
                let first = noted.filter_map(|single| match self.entries.get(single.entry as usize) {
                    Some(Entry::Message(message)) => Some(message.arrival - 1),
                    _ => None,
                });
                (first.min().unwrap_or(self.arrived), false)
            }
            CursorState::Live(place) => {
                let here = window.and_then(|window| Some((window.head(), window.around(place)?.1)));
                match here {
                    Some((head, here)) if here.place < head => (here.arrival, false),
                    _ => (self.arrived, false),
                }
            }
            CursorState::Behind(arrival) | CursorState::Reading(arrival) => (arrival, false),
            CursorState::Joining => {
                let bound = cursor.job.as_ref().and_then(|job| Some(job.join.as_ref()?.bound));
                (bound.unwrap_or(self.arrived), true)
            }
        }
    }

    /// By which listener a connection came, and from where.
    pub(super) fn came(&self, socket: u32) -> Came {
        let Some(connection) = self.connections.get(socket) else { return Came::default() };
        let listener = self.settings.listeners.get(usize::from(connection.listener));
        Came {
            listener: listener.map(|listener| Box::from(&*listener.name)).unwrap_or_default(),
            address: Some(connection.peer.address().ip()),
        }
    }

    /// Publishes what lost clients have willed, where they might publish it themselves now.
    pub(in crate::shard) fn publish_wills(&mut self, wills: Vec<Will>) {
        for will in wills {
            let selector = Selector::Subject(will.subject.clone());
            if let Err(why) = self.judge_will(&will, &selector) {
                let address = SocketAddr::new(will.came.address.unwrap_or(Ipv4Addr::UNSPECIFIED.into()), 0);
                let reason = format!("the will of a lost client was not published: {why}");
                self.report(Report::Refused { address, code: Code::PublishForbidden, reason });
                continue;
            }
            self.push_draft(selector.text(), will.draft, crate::command::Id::None);
        }
    }

    /// The rights that its client's token or authorizer gave are those of its end; everything else, and what the configuration gives, is
    /// judged as it is now, after a reload or a restart as well.
    fn judge_will(&self, will: &Will, selector: &Selector) -> Result<(), &'static str> {
        let holder = &will.draft.holder;
        if !self.settings.trusts(&will.voucher) {
            return Err("the authority that vouched for the client is no longer trusted");
        }
        let door = self.doors.door_of(&will.came, &self.settings);
        let Some(rights) = will.rights_now(&self.settings) else {
            return Err("its client's name cannot be part of a subject that the configuration grants");
        };
        let own = Access::granted(Arc::clone(holder), Arc::new(rights), None);
        let access = if *holder.authority == *ANONYMOUS { self.anonymous.as_deref() } else { Some(&own) };
        match decide(access, door, Action::Publish, selector) {
            Verdict::Allow => Ok(()),
            Verdict::Ask if will.is_answered => Ok(()),
            _ if !door.may_publish() => Err("its listener or address does not allow publishing"),
            _ => Err("the client has no right to publish to its subject"),
        }
    }
}
