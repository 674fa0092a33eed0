//! Who a connection is and what it may do, shared by all connections of one identity.
use std::sync::Arc;

use crate::report::ConnectionId;
use crate::rights::{Rights, Rule};
use crate::settings::Settings;

#[derive(Debug)]
pub(super) struct Access {
    pub identity: Arc<str>,
    pub rights: Arc<Rights>,
    pub is_anonymous: bool,
}

impl Access {
    /// What a connection has that showed no token; none where it must show one. Rules that do not compile grant nothing.
    pub(super) fn anonymous(settings: &Settings) -> Option<Arc<Self>> {
        let rules = settings.anonymous.as_ref()?;
        let rights = Rights::compile(rules).unwrap_or_default();
        Some(Arc::new(Self { identity: Arc::from(""), rights: Arc::new(rights), is_anonymous: true }))
    }

    pub(super) fn granted(identity: Arc<str>, rights: Arc<Rights>) -> Arc<Self> {
        Arc::new(Self { is_anonymous: identity.is_empty(), identity, rights })
    }

    /// The same identity with one more rule.
    pub(super) fn with(&self, rule: Rule) -> Arc<Self> {
        Arc::new(Self {
            identity: Arc::clone(&self.identity),
            rights: Arc::new(self.rights.with(rule)),
            is_anonymous: self.is_anonymous,
        })
    }
}

/// The session's public name: the connection's, in hexadecimal.
pub(super) fn session_name(connection: ConnectionId) -> String {
    format!("{:x}", connection.0)
}
