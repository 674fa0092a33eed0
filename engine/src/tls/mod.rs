//! TLS: certificates and rules read from files (`identity.rs`), one connection's records (`session.rs`). It knows no socket: bytes
//! in, bytes out. The unbuffered interface of rustls holds no buffers of its own, so that an idle connection costs its keys.

mod identity;
mod keys;
mod session;

pub(crate) use identity::Certificates;
pub(crate) use keys::rest;
pub(crate) use session::{Session, Turned};
