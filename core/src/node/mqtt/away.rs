//! Sessions whose clients are away count with their holder and tenant, where these have a quota of subscriptions: else one identity would
//! hold as many as it makes sessions. The count ends with the session, or when its client is back and counts itself.
use std::sync::Arc;

use super::Kept;
use crate::account::{Away, Key};
use crate::holder::Holder;
use crate::node::Node;

impl Node {
    /// What is kept of a client, counted where a quota asks for that.
    pub(super) fn count_kept_away(&self, id: &str, kept: &Kept, mono_ms: u64) -> Option<Away> {
        let holder = &self.clients.by_id.get(id)?.holder;
        let count = u32::try_from(kept.subscriptions.len()).unwrap_or(u32::MAX);
        let keys = self.keys_of_away(holder);
        if count == 0 || keys.iter().all(Option::is_none) {
            return None;
        }
        let now_ns = mono_ms.saturating_mul(1_000_000);
        let open = |key| self.accounts.open(key, self.limits.rate_limit_entries_max, now_ns);
        Some(Away::new(keys.into_iter().flatten().map(open).collect(), count))
    }

    /// The same of one of which something is kept already.
    pub(super) fn count_again_away(&mut self, id: &str, mono_ms: u64) {
        let kept = self.clients.by_id.get(id).and_then(|client| client.kept.as_ref());
        let away = kept.and_then(|kept| self.count_kept_away(id, kept, mono_ms));
        if let Some(client) = self.clients.by_id.get_mut(id) {
            client.away = away.map(Box::new);
        }
    }

    /// Quotas are in force that were not, or no longer: all who are away are to be counted again.
    pub(in crate::node) fn recount_away(&mut self) {
        let away = self.clients.by_id.iter().filter(|(_, client)| client.kept.is_some());
        self.clients.uncounted = away.map(|(id, _)| Arc::clone(id)).collect();
    }

    /// Counts at most `count` of them. True when more remain.
    pub(in crate::node) fn recount_some_away(&mut self, count: usize) -> bool {
        let uncounted = &mut self.clients.uncounted;
        let rest = uncounted.len().saturating_sub(count);
        let some = uncounted.split_off(rest);
        if uncounted.is_empty() {
            uncounted.shrink_to_fit();
        }
        some.iter().for_each(|id| self.count_again_away(id, 0));
        rest > 0
    }

    fn keys_of_away(&self, holder: &Arc<Holder>) -> [Option<Key>; 2] {
        let (limits, tenant) = (&self.limits, &holder.tenant);
        let is_counted = limits.subscriptions_per_identity_max > 0 && !holder.is_anonymous();
        let tenant_counts = limits.subscriptions_per_tenant_max > 0 && !tenant.is_empty();
        [is_counted.then(|| Key::Holder(Arc::clone(holder))), tenant_counts.then(|| Key::Tenant(Arc::clone(tenant)))]
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::account::Key;
    use crate::holder::Holder;
    use crate::node::Node;
    use crate::node::mqtt::{Client, Kept, KeptSubscription};
    use crate::settings::Settings;

    #[test]
    fn sessions_are_counted_again_some_at_a_time() {
        let mut settings = Settings::default();
        let mut node = Node::new(&settings);
        let holder = Holder::new("", "authorizer", "ann");
        let subscription = KeptSubscription::new("/a");
        for number in 0..10_000 {
            let mut client = Client::new(number, Arc::clone(&holder));
            client.kept = Some(Box::new(Kept { subscriptions: vec![subscription.clone()], ..Kept::default() }));
            node.clients.by_id.insert(Arc::from(format!("{number}")), Box::new(client));
        }
        settings.limits.subscriptions_per_identity_max = 1_000_000;
        node.configure(&settings);
        let account = node.accounts.open(Key::Holder(holder), settings.limits.rate_limit_entries_max, 0);
        let (mut before, mut from) = (0, Some(0));
        while let Some(slot) = from {
            from = node.resolve_again(slot);
            let counted = account.away();
            assert!(counted > before && counted - before <= 4_096, "{counted} after {before}");
            before = counted;
        }
        assert_eq!(before, 10_000);
    }
}
