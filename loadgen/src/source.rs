//! From which address a connection of a load comes: one address has 28,000 ports, and is slow long before they are used up.
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Connections begun from one source address; half of an address's ports makes `connect` slow.
const PER_ADDRESS: u32 = 8_000;

/// An address of 127.0.0.0/8 for the connection of this number, if the server is on loopback.
pub(crate) fn source_address(server: SocketAddr, round: u8, number: u32) -> Option<IpAddr> {
    if !cfg!(target_os = "linux") || server.ip() != IpAddr::V4(Ipv4Addr::LOCALHOST) {
        return None;
    }
    let block = number / PER_ADDRESS;
    Some(IpAddr::V4(Ipv4Addr::new(127, 1 + round % 250, (block / 250) as u8, 1 + (block % 250) as u8)))
}
