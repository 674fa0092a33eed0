//! Who a connection is: a name, who vouches for it, and whose customer it is. Two authorities may use the same name for two people, so what
//! a node keeps for somebody (quotas, idempotency keys, sessions, revocations) it keeps for all three together.
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use crate::settings::RevokedSettings;

/// The authority of clients that nobody vouches for.
pub const ANONYMOUS: &str = "anonymous";

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Holder {
    /// Empty: of no tenant.
    pub tenant: Arc<str>,
    /// `jwt:ISSUER`, `certificate`, `authorizer`, `basic` or `anonymous`.
    pub authority: Arc<str>,
    /// Empty: nobody in particular.
    pub identity: Arc<str>,
}

impl Holder {
    pub fn new(tenant: &str, authority: &str, identity: &str) -> Arc<Self> {
        Arc::new(Self { tenant: tenant.into(), authority: authority.into(), identity: identity.into() })
    }

    /// Nobody in particular.
    pub fn nobody() -> Arc<Self> {
        static NOBODY: OnceLock<Arc<Holder>> = OnceLock::new();
        Arc::clone(NOBODY.get_or_init(|| Self::new("", ANONYMOUS, "")))
    }

    pub fn is_anonymous(&self) -> bool {
        self.identity.is_empty() || &*self.authority == ANONYMOUS
    }

    /// What an MQTT client is kept under: to a tenant the node is a server of its own. No client identifier holds a NUL.
    pub fn client_key(&self, id: &Arc<str>) -> Arc<str> {
        if self.tenant.is_empty() { Arc::clone(id) } else { Arc::from(format!("{}\0{id}", self.tenant)) }
    }
}

/// What a group of shared subscriptions is kept under: each tenant has its own. No group name holds a NUL, and a slash would end it.
pub(crate) fn group_key<'a>(group: &'a str, tenant: &str) -> Cow<'a, str> {
    if tenant.is_empty() {
        return Cow::Borrowed(group);
    }
    Cow::Owned(format!("{group}\0{}", tenant.replace('\u{1}', "\u{1}1").replace('/', "\u{1}0")))
}

/// The group and the tenant of a key of `group_key`.
pub(crate) fn group_of(key: &str) -> (&str, Arc<str>) {
    let (group, tenant) = key.split_once('\0').unwrap_or((key, ""));
    (group, Arc::from(tenant.replace("\u{1}0", "/").replace("\u{1}1", "\u{1}")))
}

/// The client identifier within a key of `client_key`.
pub fn client_of(key: &str) -> &str {
    key.rsplit_once('\0').map_or(key, |(_, id)| id)
}

/// Whom a revocation means: every part that is given. An authority alone means everybody it vouched for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Revoked {
    pub identity: Option<Arc<str>>,
    /// Only of this tenant.
    pub tenant: Option<Arc<str>>,
    /// Only where this authority vouches for the identity.
    pub authority: Option<Arc<str>>,
    /// The name of a token.
    pub token: Option<Arc<str>>,
}

impl Revoked {
    /// Whether sessions end by it: another token may resume what one has opened.
    pub fn ends_sessions(&self) -> bool {
        self.token.is_none()
    }

    /// Whether it means who this is, or came with this token.
    pub fn covers(&self, holder: &Holder, token: Option<&str>) -> bool {
        let is_in = |asked: &Option<Arc<str>>, is: &Arc<str>| asked.as_ref().is_none_or(|asked| asked == is);
        let is_of_all = self.identity.is_none() && self.token.is_none() && self.authority.is_some();
        let is_named = is_of_all
            || self.identity.as_ref().is_some_and(|identity| *identity == holder.identity)
            || self.token.is_some() && self.token.as_deref() == token;
        is_named && is_in(&self.tenant, &holder.tenant) && is_in(&self.authority, &holder.authority)
    }
}

/// Revocations by the names that they mean, to be asked for very many holders.
#[derive(Debug, Default)]
pub struct RevokedNames {
    by_identity: HashMap<Arc<str>, Vec<Revoked>>,
    by_token: HashMap<Arc<str>, Vec<Revoked>>,
}

impl RevokedNames {
    pub fn new(all: &[RevokedSettings]) -> Self {
        let mut names = Self::default();
        for one in all {
            let [identity, tenant, authority, token] =
                [&one.identity, &one.tenant, &one.authority, &one.token].map(|name| name.as_deref().map(Arc::from));
            let revoked = Revoked { identity, tenant, authority, token };
            if let Some(name) = &revoked.identity {
                names.by_identity.entry(Arc::clone(name)).or_default().push(revoked);
            } else if let Some(name) = &revoked.token {
                names.by_token.entry(Arc::clone(name)).or_default().push(revoked);
            }
        }
        names
    }

    pub fn covers(&self, holder: &Holder, token: Option<&str>) -> bool {
        let named = self.by_identity.get(&holder.identity).into_iter();
        let mut all = named.chain(token.and_then(|token| self.by_token.get(token))).flatten();
        all.any(|revoked| revoked.covers(holder, token))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_identifier_belongs_to_its_tenant() {
        let id: Arc<str> = "pump".into();
        let keys = ["", "acme", "umbrella"].map(|tenant| Holder::new(tenant, "basic", "ann").client_key(&id));
        assert!(keys[0] != keys[1] && keys[1] != keys[2] && keys[0] != keys[2]);
        assert!(keys.iter().all(|key| client_of(key) == "pump"));
    }

    #[test]
    fn a_group_belongs_to_its_tenant() {
        let tenants = ["", "acme", "a/b", "a\u{1}0b", "a\u{1}b", "a\u{1}1b", "a\0b"];
        let keys = tenants.map(|tenant| group_key("g", tenant).into_owned());
        for (key, tenant) in keys.iter().zip(tenants) {
            assert_eq!(group_of(key), ("g", Arc::from(tenant)));
            assert!(!key.contains('/') && keys.iter().filter(|other| *other == key).count() == 1, "{key:?}");
        }
    }

    #[test]
    fn a_revocation_means_all_of_a_name_unless_it_says_whose() {
        let name = Some(Arc::from("ann"));
        let (all, one) = (
            Revoked { identity: name.clone(), ..Revoked::default() },
            Revoked { identity: name, authority: Some("certificate".into()), ..Revoked::default() },
        );
        let (by_token, by_certificate) =
            (Holder::new("", "jwt:https://id", "ann"), Holder::new("", "certificate", "ann"));
        assert!(all.covers(&by_token, None) && all.covers(&by_certificate, None));
        assert!(!one.covers(&by_token, None) && one.covers(&by_certificate, None));
        assert!(!all.covers(&Holder::new("", "certificate", "bob"), None));
        let token = Revoked { token: Some("t1".into()), ..Revoked::default() };
        assert!(
            token.covers(&by_token, Some("t1"))
                && !token.covers(&by_token, None)
                && !token.covers(&by_token, Some("t2"))
        );
    }
}
