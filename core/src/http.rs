//! The HTTP/1.1 request head on the client port: strict parsing, the upgrade to WebSocket, refusals.
use crate::codes::Code;
use crate::limits::Limits;
use crate::wire::Wire;

/// What a request head asks for.
#[derive(Debug)]
pub struct Upgrade {
    /// Bytes of the head; what follows belongs to the WebSocket.
    pub head_bytes: usize,
    pub wire: Wire,
    /// A token from `Authorization: Bearer` or `token=`, to be judged as if `connect` had shown it.
    pub token: Option<String>,
    pub origin: Option<String>,
    /// The whole 101 answer.
    pub answer: Vec<u8>,
}

/// A request that is refused: the whole answer, after which the connection is closed.
#[derive(Debug)]
pub struct Refused {
    pub code: Code,
    pub answer: Vec<u8>,
}

/// Reads a request head from the front of `bytes`; none: it is not whole yet.
pub fn read_head(_bytes: &[u8], _limits: &Limits) -> Result<Option<Upgrade>, Refused> {
    Ok(None)
}
