//! Which pages may ask. A browser says whose page asks with `Origin`, and cannot be made to lie about it by that page; other programs say
//! nothing. A plain request of a page to its own server carries no `Origin`: a page whose name was pointed here (DNS rebinding) is known by
//! its `Host` alone.
use std::net::IpAddr;

use crate::codes::Code;
use crate::http::{self, Cors, Head, Method, Refused};
use crate::shard::Shard;

impl Shard {
    /// How the page that asks may see the answers, or why it may ask nothing here.
    pub(super) fn judge_page(&self, socket: u32, head: &Head<'_>) -> Result<Cors, Refused> {
        let origins = &self.settings.origins;
        let Some(cors) = find_cors(origins, head.origin) else { return Err(http::refuse(Code::OriginForbidden, "")) };
        // With all other methods, and with a WebSocket, a browser says whose page it is.
        let may_be_page = matches!(head.method, Method::Get | Method::Head) && !head.asks_for_websocket();
        let is_judged = !origins.is_empty() && head.origin.is_none() && may_be_page;
        if is_judged && self.is_reached_by_name(socket) {
            let has_token = http::find_token(head).is_ok_and(|token| token.is_some());
            let is_ours = head.host.is_none_or(|host| self.is_own_host(host));
            if !has_token && !is_ours {
                return Err(http::refuse(Code::HostForbidden, ""));
            }
        }
        Ok(cors)
    }

    /// Whether a page could have reached the connection by a name of its own: TLS would have shown it a certificate of another, and a
    /// proxy answers for the names that it passes on.
    fn is_reached_by_name(&self, socket: u32) -> bool {
        let Some(connection) = self.connections.get(socket) else { return false };
        let listener = self.settings.listeners.get(usize::from(connection.listener));
        let is_plain = listener.is_none_or(|listener| !listener.is_tls && !listener.proxy_protocol);
        is_plain && !connection.is_forwarded && !self.doors.proxies.contains(connection.peer.address().ip())
    }

    /// An address cannot be pointed elsewhere, and `localhost` is nobody else's.
    fn is_own_host(&self, host: &str) -> bool {
        let name = match host.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or(""),
            None => host.split(':').next().unwrap_or(""),
        };
        let name = name.strip_suffix('.').unwrap_or(name);
        let is_known = |known: &String| known.eq_ignore_ascii_case(name);
        name.parse::<IpAddr>().is_ok()
            || name.eq_ignore_ascii_case("localhost")
            || self.settings.hosts.iter().any(is_known)
    }
}

/// How the pages of an origin may see an answer; none: they may ask nothing here.
fn find_cors(origins: &[String], origin: Option<&str>) -> Option<Cors> {
    let bare = |origin: &str| -> String { without_port(origin).to_owned() };
    match origin {
        None => Some(Cors::None),
        Some(_) if origins.is_empty() => Some(Cors::Any),
        Some(origin) => {
            let asks = bare(origin);
            origins.iter().position(|known| bare(known) == asks).map(|index| Cors::Of(index as u16))
        }
    }
}

/// The scheme's own port says nothing.
fn without_port(origin: &str) -> &str {
    let port = if origin.starts_with("https://") { ":443" } else { ":80" };
    origin.strip_suffix(port).unwrap_or(origin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_port_says_nothing_and_any_other_does() {
        let origins = ["https://a.example:443", "http://b.example", "http://c.example:8080"].map(String::from);
        let of = |origin| match find_cors(&origins, Some(origin)) {
            Some(Cors::Of(index)) => Some(index),
            _ => None,
        };
        assert_eq!(
            (of("https://a.example"), of("https://a.example:443"), of("http://b.example:80")),
            (Some(0), Some(0), Some(1))
        );
        assert_eq!(
            (of("http://c.example:8080"), of("http://c.example"), of("http://a.example:443")),
            (Some(2), None, None)
        );
        assert_eq!((of("https://b.example"), of("https://a.example:80"), of("null")), (None, None, None));
    }
}
