//! What an operator changes while the node runs: a subject that is taken back, whoever is revoked. Owns that the answer says what happened.
use godwit_core::codes::Code;
use godwit_core::holder::Revoked;
use godwit_core::node::Ended;
use godwit_core::report::Order;

use super::{Engine, lock};

impl Engine {
    /// Takes back what a subject keeps, up to now. Returns how many messages went, none where there is no such subject, and false if
    /// the journal's disk does not take that, so that a crash may undo it.
    pub fn purge(&self, subject: &str) -> (Option<usize>, bool) {
        let (removed, mut gone) = {
            let mut node = lock(&self.node);
            (node.list_removed_fields(subject), node.purge(subject, None))
        };
        let log = gone.as_ref().map(|purged| purged.log);
        let mut messages = gone.as_ref().map(|purged| purged.messages);
        while let Some(purged) = gone.filter(|purged| purged.has_more) {
            gone = lock(&self.node).purge(subject, Some(purged.end));
            messages = messages.map(|count| count + gone.as_ref().map_or(0, |more| more.messages));
        }
        // A shard that takes no orders sends nothing either.
        let _ = log.map(|log| self.order(vec![Order::Purge { subject: subject.into(), log }]));
        // Who listens learns that what it has of the subject is gone.
        if log.is_some() {
            let mut publications = self.publications();
            publications.push_removal(subject, &removed);
            self.publish(publications);
        }
        (messages, self.node_shared.journaling().is_none_or(|journaling| journaling.keep_notes()))
    }

    /// Closes whom a revocation means, and ends what is kept of who is away; what of each there was. A shard that takes long is not
    /// waited for: it does its part later, and that is not counted.
    pub fn revoke(&self, revoked: Revoked, code: Code) -> Ended {
        let _alone = lock(&self.revoking);
        let before = lock(&self.node).ended();
        // A shard that takes no orders serves nobody either.
        let _ = self.order(vec![Order::Revoke { revoked, code }]);
        self.node_shared.settle();
        let after = lock(&self.node).ended();
        Ended {
            connections: after.connections - before.connections,
            sessions: after.sessions - before.sessions,
            wills: after.wills - before.wills,
        }
    }
}
