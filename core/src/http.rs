//! HTTP/1.1 on the client port, as values: request heads and bodies read strictly, queries, answers, the upgrade to WebSocket.
//! Owns what a request must be (RFC 9110, RFC 9112); what it asks for is the shard's, who may come from where the server's.
//! Invariant: a request that two parties could read in two ways is refused, nothing of it is echoed into a field, and no
//! input panics.

mod answer;
mod chunked;
mod commands;
mod content;
mod extensions;
mod fields;
mod head;
mod host;
mod produce;
mod query;
mod shown;
mod upgrade;

pub use answer::{Answer, Cors, Refused, Shape, refuse};
pub use chunked::Chunked;
pub use commands::{Asked, ListenMany, Wish, read_commands};
pub use content::{check_publishes, media_of};
pub use head::{Framing, Head, Method, read_head};
pub use produce::{read_produce, read_removal};
pub use query::{Listen, Way, find_token, has_subject, hint_at_plus, read_listen};
pub use shown::read_shown;
pub use upgrade::{Upgrade, is_mqtt_upgrade, is_upgrade, upgrade};
