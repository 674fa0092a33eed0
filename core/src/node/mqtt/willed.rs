//! Wills of MQTT clients as notes of the journal: what was to be published for a client that this node loses with itself is published when
//! it starts again, as both standards let a server do (3.1.2.5). Owns when: at once, or after its delay where the session came back too. A
//! will has come to the disk within the interval of the notes; a kill before that loses it. It is judged when it is published, as its client
//! would be then: by listener, address and who vouched for it. The will of a holder that was revoked meanwhile is withheld.
use std::net::IpAddr;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::super::Node;
use super::NOBODY;
use super::saved::SavedHolder;
use super::will_table::WillPlace;
use crate::command::Ack;
use crate::message::{Draft, FromMqtt, Kind};
use crate::mqtt::Qos;
use crate::position::Now;
use crate::report::ConnectionId;
use crate::rights::{Action, Rights, Verdict};
use crate::settings::{RuleSettings, Settings};
use crate::subject::Selector;

/// Before a client's identifier in the name of its will's note.
pub(in crate::node) const WILL: &str = "will ";

/// Published when a client is lost; its rights are judged again at that moment, by the configuration that is in force then.
#[derive(Debug)]
pub struct Will {
    pub subject: Box<str>,
    pub draft: Draft,
    /// Of its client's own rules, those that do not come from the configuration, the one that decides about the subject; what the
    /// configuration gives its client is looked up when it is published.
    pub own_rule: Option<RuleSettings>,
    /// Where its client came from, and by which listener: what they allow is judged when it is published.
    pub came: Came,
    /// Who vouched for its client (`Settings::trusts`); empty: it is not known.
    pub voucher: Arc<str>,
    /// The authorizer granted it when its client came: that question is not open any more.
    pub is_answered: bool,
    /// The name of its client's token, where that has one.
    pub token: Option<Arc<str>>,
    pub delay_ms: u64,
    /// What it takes of `mqtt_wills_bytes_max`; none: it is not counted yet.
    pub place: Option<WillPlace>,
}

impl Will {
    /// The memory that it takes.
    pub(super) fn held_bytes(&self) -> usize {
        let own_rule = self.own_rule.as_ref();
        let own_rule = own_rule.map_or(0, |rule| rule.pattern.len() + rule.actions.len() + rule.verdict.len());
        size_of::<Self>() + self.subject.len() + self.draft.bytes.len() + own_rule
    }

    /// Takes its client's rights, as they are when it comes and when it ends.
    pub fn take_rights(&mut self, rights: &Rights, voucher: Arc<str>) {
        self.own_rule = rights.own_rule(&self.subject);
        self.voucher = voucher;
        if rights.leaves_open(Action::Publish, &Selector::Subject(self.subject.clone())) {
            match rights.judge_subject(Action::Publish, &self.subject) {
                Verdict::Allow => self.is_answered = true,
                Verdict::Deny => self.is_answered = false,
                Verdict::Ask => {} // the answer that let it in has grown too old, and stands
            }
        }
        self.count_again();
    }

    /// The rights of its client now: its own, and those of the configuration that is in force. None: it would be refused.
    pub fn rights_now(&self, settings: &Settings) -> Option<Rights> {
        let mut rules = settings.rules_for(&self.voucher, &self.draft.holder)?;
        rules.extend(self.own_rule.clone());
        let mut rights = Rights::compile(&rules).ok()?;
        rights.source = Some(Arc::clone(&self.voucher));
        Some(rights)
    }
}

/// How a client came.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Came {
    /// The listener's name; empty: it is not known.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub listener: Box<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
}

/// The note of one will.
#[derive(Debug, Serialize, Deserialize)]
struct Willed {
    subject: Box<str>,
    delay_ms: u64,
    /// When it is due (wall clock); 0: the client is connected.
    due_ms: u64,
    kind: Kind,
    qos: u8,
    is_retained: Option<bool>,
    expiry_s: u32,
    /// Of the bytes, how many are content, the reply subject and fields; properties are the rest.
    content_bytes: u32,
    reply_bytes: u16,
    #[serde(default)]
    fields_bytes: u32,
    bytes: String,
    #[serde(flatten)]
    holder: SavedHolder,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token: Option<Box<str>>,
    #[serde(flatten)]
    came: Came,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    voucher: Box<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    own_rule: Option<RuleSettings>,
    #[serde(default)]
    is_answered: bool,
}

/// A will that is coming back, until the logs have.
#[derive(Debug)]
pub(in crate::node) struct PendingWill {
    pub(super) id: Arc<str>,
    pub(super) due_ms: u64,
    pub(super) will: Will,
}

impl Willed {
    fn of(will: &Will, due_ms: u64) -> Option<Self> {
        let draft = &will.draft;
        let FromMqtt { qos, expiry_s, .. } = draft.mqtt?;
        Some(Self {
            subject: will.subject.clone(),
            delay_ms: will.delay_ms,
            due_ms,
            kind: draft.kind,
            qos: qos as u8,
            is_retained: draft.is_retained,
            expiry_s,
            content_bytes: draft.content_bytes,
            reply_bytes: draft.reply_bytes,
            fields_bytes: draft.fields_bytes,
            bytes: STANDARD.encode(&draft.bytes),
            holder: SavedHolder::of(&draft.holder),
            token: will.token.as_deref().map(Box::from),
            came: will.came.clone(),
            voucher: Box::from(&*will.voucher),
            own_rule: will.own_rule.clone(),
            is_answered: will.is_answered,
        })
    }

    fn read(self) -> Option<Will> {
        let bytes = STANDARD.decode(self.bytes).ok()?;
        let length = self.content_bytes as usize + usize::from(self.reply_bytes);
        if bytes.len() < length.saturating_add(self.fields_bytes as usize) {
            return None;
        }
        let publisher = 0; // nobody's: its client comes as another
        let draft = Draft {
            subject: 0..0,
            kind: self.kind,
            is_retained: self.is_retained,
            merge: None,
            is_removal: self.is_retained == Some(true) && self.content_bytes == 0,
            is_guaranteed: true,
            content_bytes: self.content_bytes,
            reply_bytes: self.reply_bytes,
            fields_bytes: self.fields_bytes,
            bytes: bytes.into(),
            mqtt: Some(FromMqtt { qos: Qos::from_bits(self.qos)?, publisher, expiry_s: self.expiry_s }),
            key: None,
            numbered: None,
            ack: Ack::Cached,
            owns_reply: false,
            origin: 0,
            holder: self.holder.read(),
            connection: NOBODY,
        };
        Some(Will {
            own_rule: self.own_rule,
            came: self.came,
            voucher: self.voucher.into(),
            is_answered: self.is_answered,
            token: self.token.map(Arc::from),
            subject: self.subject,
            delay_ms: self.delay_ms,
            draft,
            place: None,
        })
    }
}

impl Node {
    /// A client has come, with this will.
    pub fn save_will(&mut self, id: &str, connection: ConnectionId, will: Will) {
        if self.clients.by_id.get(id).is_some_and(|client| client.owner() == Some(connection)) {
            self.note_will(id, Some((&will, 0)));
            if let Some(client) = self.clients.by_id.get_mut(id) {
                client.connected_will = Some(Box::new(will));
            }
        }
    }

    /// The will of a connection that ends.
    pub fn take_will(&mut self, id: &str, connection: ConnectionId) -> Option<Will> {
        let client = self.clients.by_id.get_mut(id).filter(|client| client.owner() == Some(connection))?;
        client.connected_will.take().map(|will| *will)
    }

    /// Writes a will and its due time to the journal, or that the will was removed. A will on a subject outside the journal is not written.
    pub(super) fn note_will(&mut self, id: &str, will: Option<(&Will, u64)>) {
        let will = will.filter(|(will, _)| !self.policies.has_unjournaled() || self.policy(&will.subject).journals);
        let Some(client) = self.clients.by_id.get_mut(id) else { return };
        client.connected_will = None;
        let Some(journal) = self.journal.as_mut() else { return };
        let had_note = std::mem::replace(&mut client.has_will_note, will.is_some());
        let willed = will.and_then(|(will, due_ms)| Willed::of(will, due_ms));
        let text = willed.and_then(|willed| serde_json::to_string(&willed).ok());
        if had_note || text.is_some() {
            journal.note(format!("{WILL}{id}"), text);
        }
    }

    /// A will of an earlier run. None: it is none.
    pub(in crate::node) fn restore_will(&self, id: &str, text: &str) -> Option<PendingWill> {
        let willed: Willed = serde_json::from_str(text).ok()?;
        let due_ms = willed.due_ms;
        let mut will = willed.read()?;
        let owner = self.owner_of(&will.draft.holder, will.draft.origin);
        self.place_kept_will(&mut will, owner);
        Some(PendingWill { id: Arc::from(id), due_ms, will })
    }

    /// The sessions are back: a will waits for its delay where its client's session is among them, and is due now elsewhere.
    pub(in crate::node) fn settle_will(&mut self, pending: PendingWill, now: Now) {
        let PendingWill { id, due_ms, will } = pending;
        if self.revoked.covers(&will.draft.holder, will.token.as_deref()) {
            self.end_with_will(will);
            if let Some(journal) = &mut self.journal {
                journal.note(format!("{WILL}{id}"), None);
            }
            return;
        }
        let client = self.clients.by_id.get_mut(&id).filter(|client| client.kept.is_some());
        let left_ms = match &client {
            None => 0,
            Some(_) if due_ms > 0 => due_ms.saturating_sub(now.wall_ms),
            Some(client) => will.delay_ms.min(client.expires_ms.saturating_sub(now.mono_ms)),
        };
        match client {
            Some(client) if left_ms > 0 => {
                let due_ms = now.mono_ms + left_ms;
                client.has_will_note = true;
                client.will = Some(Box::new((due_ms, will)));
                self.clients.timers.insert((due_ms, client.serial), id);
            }
            _ => {
                self.end_with_will(will);
                if let Some(journal) = &mut self.journal {
                    journal.note(format!("{WILL}{id}"), None);
                }
            }
        }
    }

    /// A will is due now; that of a holder that was revoked meanwhile is withheld, and counted.
    pub(super) fn end_with_will(&mut self, will: Will) {
        if self.revoked.covers(&will.draft.holder, will.token.as_deref()) {
            self.ended.wills += 1;
        } else {
            self.due_wills.push(will);
        }
    }
}
