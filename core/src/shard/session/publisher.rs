//! The publisher that a connection names: known to the node from `connected` until the connection ends.
use std::sync::Arc;

use crate::codes::Code;
use crate::command::Refusal;
use crate::shard::connection::Publisher;
use crate::shard::{Shard, lock};

impl Shard {
    /// Notes the publisher that a `connect` names; it is known to the node once the client is.
    pub(in crate::shard) fn name_publisher(&mut self, socket: u32, name: &str, first: Option<u64>) {
        let Some(connection) = self.connections.get_mut(socket) else { return };
        let known = connection.papers().publisher.take();
        if known.as_ref().is_some_and(|known| *known.name == *name && known.scope.is_some()) {
            connection.papers().publisher = known;
            return;
        }
        connection.papers().publisher = Some(Box::new(Publisher { name: name.into(), first, scope: None }));
        self.detach(known.and_then(|known| known.scope));
    }

    /// Registers the client's publisher with the node. True: the client named one, but `publishers_max` is reached.
    pub(in crate::shard) fn attach_publisher(&mut self, socket: u32) -> bool {
        let origin = self.origin(socket);
        let Some(connection) = self.connections.get_mut(socket) else { return false };
        let Some(access) = connection.access.clone() else { return false };
        let Some(publisher) = connection.papers.as_mut().and_then(|papers| papers.publisher.as_mut()) else {
            return false;
        };
        let origin = if access.is_anonymous { origin } else { 0 };
        let mut node = lock(&self.node);
        // Who connects again as another is another publisher.
        let scope =
            node.attach_publisher(&access.holder, (self.index, origin), &publisher.name, publisher.first, self.now);
        if let Some(before) = std::mem::replace(&mut publisher.scope, scope) {
            node.detach_publisher(before, self.index, self.now);
        }
        publisher.scope.is_none()
    }

    /// The connection ends.
    pub(in crate::shard) fn detach_publisher(&mut self, socket: u32) {
        let papers = self.connections.get_mut(socket).and_then(|connection| connection.papers.as_mut());
        let publisher = papers.and_then(|papers| papers.publisher.take());
        self.detach(publisher.and_then(|publisher| publisher.scope));
    }

    /// Under whom a publish is numbered: over HTTP it names its publisher, on other connections `connect` has.
    pub(in crate::shard) fn publisher_of(&self, socket: u32, named: Option<&str>) -> Result<Arc<str>, Refusal> {
        if let Some(name) = named {
            return Ok(name.into());
        }
        let papers = self.connections.get(socket).and_then(|connection| connection.papers.as_ref());
        papers
            .and_then(|papers| papers.publisher.as_ref())
            .filter(|publisher| publisher.scope.is_some())
            .map(|publisher| Arc::clone(&publisher.name))
            .ok_or_else(|| {
                Refusal::new(Code::FieldInvalid, "number needs a publisher: of connect, or over HTTP beside it")
            })
    }

    fn detach(&mut self, scope: Option<u128>) {
        if let Some(scope) = scope {
            lock(&self.node).detach_publisher(scope, self.index, self.now);
        }
    }
}
