//! Where a connection comes from, in 18 bytes.
use std::net::{IpAddr, SocketAddr};

/// The peer's address in 18 bytes.
#[derive(Clone, Copy, Debug)]
pub(in crate::shard) struct Peer {
    octets: [u8; 16],
    port: u16,
}

impl Peer {
    pub(in crate::shard) fn new(address: SocketAddr) -> Self {
        let octets = match address.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
            IpAddr::V6(ip) => ip.octets(),
        };
        Self { octets, port: address.port() }
    }

    pub(in crate::shard) fn address(self) -> SocketAddr {
        SocketAddr::new(IpAddr::from(self.octets).to_canonical(), self.port)
    }
}
