//! Other settings for a running node. Owns which of them it can take over: limits that are looked at when they are used, and what
//! patterns say. The sizes of feed and keys, and what names the node, stay as they were at its start.
use super::super::Node;
use crate::limits::Limits;
use crate::settings::Settings;

/// Subjects whose policy is found again, and sessions that are counted again, while the lock is held once.
const EACH: u32 = 4_096;

impl Node {
    /// Takes other limits and patterns; `resolve_again` brings them to the subjects and sessions there are.
    pub fn configure(&mut self, settings: &Settings) {
        let counts_away =
            |limits: &Limits| (limits.subscriptions_per_identity_max > 0, limits.subscriptions_per_tenant_max > 0);
        let is_counted_otherwise = counts_away(&self.limits) != counts_away(&settings.limits);
        let mut limits = settings.limits.clone();
        let old = &self.limits;
        limits.feed_entries_max = old.feed_entries_max;
        limits.feed_bytes_max = old.feed_bytes_max;
        limits.idempotency_keys_max = old.idempotency_keys_max;
        limits.idempotency_keys_age_ms_max = old.idempotency_keys_age_ms_max;
        limits.interest_debounce_ms = old.interest_debounce_ms;
        self.limits = limits;
        self.policies.replace(settings, &mut self.ages);
        if is_counted_otherwise {
            self.recount_away();
        }
    }

    /// Finds the policies of some subjects again, from a slot on, and counts some sessions; where to continue, none at the end.
    pub fn resolve_again(&mut self, from: u32) -> Option<u32> {
        let slots = self.names.slots();
        let end = slots.min(from.saturating_add(EACH));
        for slot in from..end {
            let Some(log) = self.names.log_at_mut(slot) else { continue };
            log.policy = self.policies.resolve(&log.subject, log.began_as_reply, &mut self.ages);
        }
        let is_counting = self.recount_some_away(EACH as usize);
        (end < slots || is_counting).then_some(end)
    }
}
