//! Whose request it is: the token of each request, judged once for as long as the connection shows the same.
use crate::codes::Code;
use crate::http::{self, Head, Refused};
use crate::report::Report;
use crate::shard::Shard;
use crate::shard::connection::Connection;
use crate::shard::session::Step;

impl Shard {
    /// Gives the connection the access of this request's token; `Wait`: the server is asked.
    pub(super) fn admit(&mut self, socket: u32, head: &Head<'_>) -> Result<Step, Refused> {
        let token = http::find_token(head)?;
        let is_judged = self.is_asked(socket, token.is_some());
        let (anonymous, wall_ms) = (self.anonymous.clone(), self.now.wall_ms);
        let connection_id = self.connection_id(socket);
        let Some(connection) = self.connections.get_mut(socket) else { return Ok(Step::Done) };
        if !is_judged {
            connection.clear_expiry();
            if connection.access.is_none() || connection.exchange().token.take().is_some() {
                self.set_access(socket, anonymous);
            }
            if self.connections.get(socket).is_none_or(|connection| connection.access.is_none()) {
                return Err(http::refuse(Code::TokenMissing, ""));
            }
            return Ok(Step::Done);
        }
        let expires_ms = connection.papers.as_ref().and_then(|papers| papers.expires_ms);
        let is_fresh = expires_ms.is_none_or(|expires_ms| wall_ms < expires_ms);
        let is_same = connection.exchange().token.as_deref() == token.as_deref();
        if connection.access.is_some() && is_same && is_fresh {
            return Ok(Step::Done);
        }
        // Publishes that came before were another's.
        self.commit();
        // The first is paid with the connection itself.
        let is_another = connection_shows(self.connections.get_mut(socket));
        let mut paid = if is_another { self.spend_login(socket) } else { Ok(()) };
        let before = self.connections.get(socket).and_then(|connection| connection.access.clone());
        let before = before.filter(|access| !access.is_basis);
        if let Some(token) = token.as_deref() {
            let is_renewal = before.is_some();
            let may_show = if is_renewal { Self::may_renew } else { Self::may_show_token };
            paid = paid.and_then(|()| may_show(self, socket, token));
        }
        self.set_access(socket, None);
        if let Err(excess) = paid {
            return Err(excess.refusal().into());
        }
        let Some(connection) = self.connections.get_mut(socket) else { return Ok(Step::Done) };
        let exchange = connection.exchange();
        exchange.before = before.filter(|_| !is_same);
        exchange.token = token.as_deref().map(Box::from);
        connection.clear_expiry();
        let report = Report::Authorize {
            connection: connection_id,
            token,
            client: None,
            address: connection.peer.address(),
            is_renewal: false,
            certificate: connection.certificate(),
        };
        self.reports.push(report);
        Ok(Step::Wait)
    }
}

/// Whether a connection has shown a token, or been let in, before.
fn connection_shows(connection: Option<&mut Connection>) -> bool {
    connection.is_some_and(|connection| connection.access.is_some() || connection.exchange().token.is_some())
}
