//! The step from HTTP to WebSocket.
use std::borrow::Cow;

use super::Taken;
use crate::command::{Connect, Id};
use crate::http::{self, Head};
use crate::shard::connection::Phase;
use crate::shard::mqtt::Mqtt;
use crate::shard::{Shard, SocketOutput};

impl Shard {
    /// A request that becomes a WebSocket.
    pub(super) fn switch<O: SocketOutput>(
        &mut self,
        socket: u32,
        head: &Head<'_>,
        behind: &[u8],
        out: &mut O,
    ) -> Taken {
        self.commit();
        let upgrade = match http::upgrade(head, self.settings.compresses) {
            Ok(upgrade) => upgrade,
            Err(refused) => return self.refuse_all(socket, &refused),
        };
        let Some(connection) = self.connections.get_mut(socket) else { return Taken::End };
        let turned_away = connection.details.take().and_then(|details| details.turned_away);
        connection.clear_expiry();
        connection.phase = Phase::Open;
        connection.wire = upgrade.wire;
        connection.window_bits = upgrade.window_bits;
        if upgrade.wire.is_mqtt() {
            // Its CONNECT says who comes, and which MQTT it speaks.
            connection.mqtt = Some(Box::new(Mqtt::new(true, self.now.mono_ms)));
            if turned_away.is_some() {
                connection.details().turned_away = turned_away;
            }
        } else {
            self.counters.count_opened(connection, upgrade.wire);
            let anonymous = self.anonymous.clone();
            self.set_access(socket, anonymous);
        }
        if let Some(connection) = self.connections.get_mut(socket) {
            connection.private.extend_from_slice(&upgrade.answer);
        }
        self.make_ready(socket);
        if upgrade.token.is_some() || !upgrade.wire.is_mqtt() && self.is_known_by_certificate(socket) {
            let token = upgrade.token.as_deref().map(Cow::Borrowed);
            let step = self.connect(socket, &Id::None, &Connect { token, ..Connect::default() });
            self.after_step(socket, step, &[], 0);
        }
        if !behind.is_empty() {
            self.receive(socket, &mut behind.to_vec(), out);
        }
        Taken::End
    }
}
