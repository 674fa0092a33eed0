//! Packets to a client. Every one of them knows its length before it is written; over WebSocket each is a binary frame of its
//! own, so that what is said to one client and what is said to many can be sent back to back.
use super::fields::{put_varint, varint_bytes};
use super::properties::{
    ASSIGNED_CLIENT_ID, MAXIMUM_PACKET_SIZE, MESSAGE_EXPIRY, REASON_STRING, RECEIVE_MAXIMUM, RESPONSE_TOPIC,
    SERVER_KEEP_ALIVE, SESSION_EXPIRY, SUBSCRIPTION_ID, TOPIC_ALIAS, TOPIC_ALIAS_MAXIMUM, USER,
};
use super::reason::Reason;
use super::{Qos, Version};
use crate::websocket;

/// How one connection's packets are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Writer {
    pub version: Version,
    pub is_websocket: bool,
}

/// What a CONNACK says beside its reason; 0, none and empty are left out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Connack<'a> {
    pub has_session: bool,
    pub session_expiry_s: Option<u32>,
    pub receive_max: u16,
    pub packet_bytes_max: u32,
    pub alias_max: u16,
    pub assigned_id: &'a str,
    pub keep_alive_s: Option<u16>,
    pub reason_string: &'a str,
    /// How many messages its session was owed and lost, or that nobody knows.
    pub missed: &'a str,
}

/// A message as one client is sent it.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    pub topic: &'a str,
    pub payload: &'a [u8],
    pub qos: Qos,
    pub packet_id: u16,
    pub is_duplicate: bool,
    pub is_retained: bool,
    /// 0: none. With an alias that the client knows, the topic is empty.
    pub alias: u16,
    /// 0: none.
    pub subscription_id: u32,
    /// Of further subscriptions that the same packet is for.
    pub further_ids: &'a [u32],
    pub expiry_s: Option<u32>,
    pub response_topic: Option<&'a str>,
    /// Properties that were carried along, as they are written.
    pub carried: &'a [u8],
}

impl Writer {
    /// One packet whose body of `length` bytes `fill` appends.
    #[inline]
    fn put(self, out: &mut Vec<u8>, first: u8, length: usize, fill: impl FnOnce(&mut Vec<u8>)) {
        let write = |out: &mut Vec<u8>| {
            out.push(first);
            put_varint(out, length as u32);
            let start = out.len();
            fill(out);
            debug_assert_eq!(out.len() - start, length, "a packet is as long as it says");
        };
        if self.is_websocket {
            websocket::binary(out, 1 + varint_bytes(length) + length, write);
        } else {
            write(out);
        }
    }

    fn put_vec(self, out: &mut Vec<u8>, first: u8, body: &[u8]) {
        self.put(out, first, body.len(), |out| out.extend_from_slice(body));
    }

    /// CONNACK; in 3.1.1 nothing, where that standard has no return code for the reason.
    pub fn connack(self, out: &mut Vec<u8>, reason: Reason, said: &Connack<'_>) {
        let reason = reason.in_connack();
        let mut body = vec![u8::from(said.has_session && !reason.is_failure())];
        if self.version == Version::V3 {
            let Some(code) = reason.return_code() else { return };
            body.push(code);
            return self.put_vec(out, 0x20, &body);
        }
        body.push(reason.0);
        let mut properties = Vec::new();
        if let Some(seconds) = said.session_expiry_s {
            put_four(&mut properties, SESSION_EXPIRY, seconds);
        }
        if said.receive_max > 0 {
            put_two(&mut properties, RECEIVE_MAXIMUM, said.receive_max);
        }
        if said.packet_bytes_max > 0 {
            put_four(&mut properties, MAXIMUM_PACKET_SIZE, said.packet_bytes_max);
        }
        if !said.assigned_id.is_empty() {
            put_string(&mut properties, ASSIGNED_CLIENT_ID, said.assigned_id);
        }
        if said.alias_max > 0 {
            put_two(&mut properties, TOPIC_ALIAS_MAXIMUM, said.alias_max);
        }
        if !said.reason_string.is_empty() {
            put_string(&mut properties, REASON_STRING, said.reason_string);
        }
        if let Some(seconds) = said.keep_alive_s {
            put_two(&mut properties, SERVER_KEEP_ALIVE, seconds);
        }
        if !said.missed.is_empty() {
            put_user_property(&mut properties, "godwit-missed", said.missed);
        }
        put_varint(&mut body, properties.len() as u32);
        body.extend_from_slice(&properties);
        self.put_vec(out, 0x20, &body);
    }

    /// PUBACK (4), PUBREC (5), PUBREL (6) or PUBCOMP (7). Success is left out, as the standard allows.
    pub fn acknowledge(self, out: &mut Vec<u8>, kind: u8, packet_id: u16, reason: Reason, text: &str) {
        let first = kind << 4 | if kind == 6 { 2 } else { 0 };
        let [high, low] = packet_id.to_be_bytes();
        if self.version == Version::V3 || reason == Reason::SUCCESS {
            return self.put_vec(out, first, &[high, low]);
        }
        if text.is_empty() {
            return self.put_vec(out, first, &[high, low, reason.0]);
        }
        let mut properties = Vec::new();
        put_string(&mut properties, REASON_STRING, text);
        let mut body = vec![high, low, reason.0];
        put_varint(&mut body, properties.len() as u32);
        body.extend_from_slice(&properties);
        self.put_vec(out, first, &body);
    }

    /// SUBACK (9), with one code for each filter; 3.1.1 has no place for a text.
    pub fn suback(self, out: &mut Vec<u8>, packet_id: u16, codes: &[u8], text: &str) {
        self.answer_filters(out, 0x90, packet_id, codes, text);
    }

    /// UNSUBACK (11), which in 3.1.1 has no codes.
    pub fn unsuback(self, out: &mut Vec<u8>, packet_id: u16, codes: &[u8]) {
        self.answer_filters(out, 0xb0, packet_id, if self.version == Version::V3 { &[] } else { codes }, "");
    }

    fn answer_filters(self, out: &mut Vec<u8>, first: u8, packet_id: u16, codes: &[u8], text: &str) {
        let mut properties = Vec::new();
        if self.version == Version::V5 {
            let mut inner = Vec::new();
            if !text.is_empty() {
                put_string(&mut inner, REASON_STRING, text);
            }
            put_varint(&mut properties, inner.len() as u32);
            properties.extend_from_slice(&inner);
        }
        self.put(out, first, 2 + properties.len() + codes.len(), |out| {
            out.extend_from_slice(&packet_id.to_be_bytes());
            out.extend_from_slice(&properties);
            out.extend_from_slice(codes);
        });
    }

    pub fn pingresp(self, out: &mut Vec<u8>) {
        self.put_vec(out, 0xd0, &[]);
    }

    /// DISCONNECT, which a server says in 5.0 only.
    pub fn disconnect(self, out: &mut Vec<u8>, reason: Reason, text: &str) {
        if self.version == Version::V3 {
            return;
        }
        let reason = reason.in_disconnect();
        if text.is_empty() {
            return self.put_vec(out, 0xe0, &[reason.0]);
        }
        let mut properties = Vec::new();
        put_string(&mut properties, REASON_STRING, text);
        let mut body = vec![reason.0];
        put_varint(&mut body, properties.len() as u32);
        body.extend_from_slice(&properties);
        self.put_vec(out, 0xe0, &body);
    }

    /// PUBLISH.
    #[inline]
    pub fn publish(self, out: &mut Vec<u8>, message: &Outgoing<'_>) {
        let id_bytes = if message.qos == Qos::AtMostOnce { 0 } else { 2 };
        let properties = if self.version == Version::V5 { message.properties_bytes() } else { 0 };
        let properties_all = if self.version == Version::V5 { varint_bytes(properties) + properties } else { 0 };
        let length = 2 + message.topic.len() + id_bytes + properties_all + message.payload.len();
        let first =
            0x30 | u8::from(message.is_duplicate) << 3 | (message.qos as u8) << 1 | u8::from(message.is_retained);
        self.put(out, first, length, |out| {
            out.extend_from_slice(&(message.topic.len() as u16).to_be_bytes());
            out.extend_from_slice(message.topic.as_bytes());
            if id_bytes > 0 {
                out.extend_from_slice(&message.packet_id.to_be_bytes());
            }
            if self.version == Version::V5 {
                put_varint(out, properties as u32);
                message.put_properties(out);
            }
            out.extend_from_slice(message.payload);
        });
    }

    /// How long a PUBLISH would be, without a WebSocket header.
    #[must_use]
    pub fn publish_bytes(self, message: &Outgoing<'_>) -> usize {
        let id_bytes = if message.qos == Qos::AtMostOnce { 0 } else { 2 };
        let properties = match self.version {
            Version::V3 => 0,
            Version::V5 => varint_bytes(message.properties_bytes()) + message.properties_bytes(),
        };
        let length = 2 + message.topic.len() + id_bytes + properties + message.payload.len();
        1 + varint_bytes(length) + length
    }
}

impl Outgoing<'_> {
    fn ids(&self) -> impl Iterator<Item = u32> {
        let first = Some(self.subscription_id).filter(|&id| id > 0);
        first.into_iter().chain(self.further_ids.iter().copied())
    }

    fn properties_bytes(&self) -> usize {
        let alias = if self.alias > 0 { 3 } else { 0 };
        let id: usize = self.ids().map(|id| 1 + varint_bytes(id as usize)).sum();
        let expiry = if self.expiry_s.is_some() { 5 } else { 0 };
        let response = self.response_topic.map_or(0, |topic| 3 + topic.len());
        alias + id + expiry + response + self.carried.len()
    }

    fn put_properties(&self, out: &mut Vec<u8>) {
        if self.alias > 0 {
            put_two(out, TOPIC_ALIAS, self.alias);
        }
        for id in self.ids() {
            out.push(SUBSCRIPTION_ID);
            put_varint(out, id);
        }
        if let Some(seconds) = self.expiry_s {
            put_four(out, MESSAGE_EXPIRY, seconds);
        }
        if let Some(topic) = self.response_topic {
            put_string(out, RESPONSE_TOPIC, topic);
        }
        out.extend_from_slice(self.carried);
    }
}

fn put_two(out: &mut Vec<u8>, id: u8, value: u16) {
    out.push(id);
    out.extend_from_slice(&value.to_be_bytes());
}

fn put_four(out: &mut Vec<u8>, id: u8, value: u32) {
    out.push(id);
    out.extend_from_slice(&value.to_be_bytes());
}

fn put_string(out: &mut Vec<u8>, id: u8, text: &str) {
    out.push(id);
    out.extend_from_slice(&(text.len() as u16).to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}

/// Appends a user property.
pub fn put_user_property(out: &mut Vec<u8>, name: &str, value: &str) {
    put_string(out, USER, name);
    out.extend_from_slice(&(value.len() as u16).to_be_bytes());
    out.extend_from_slice(value.as_bytes());
}
