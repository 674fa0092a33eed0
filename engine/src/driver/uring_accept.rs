//! Listeners on io_uring: several single accepts wait at once, each with an address and a direct descriptor of its own, so
//! that a client's address costs nothing (a multishot accept has room for only one).

use super::pages::Pages;
use super::uring_ring::Operation;
use super::{Listener, Socket};
use socket2::{SockAddr, SockAddrStorage};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, RawFd};

/// Accepts waiting at once: what one enter can bring in.
pub(super) const ACCEPTS: u32 = 32;

#[repr(C)]
struct Peer {
    address: libc::sockaddr_in6,
    length: libc::socklen_t,
}

pub(super) struct Listening {
    listener: TcpListener,
    peers: Pages,
    /// The slot each accept was promised; `None` while it is not armed.
    promised: Vec<Option<Socket>>,
    pub(super) is_stopping: bool,
}

impl Listening {
    pub(super) fn new(listener: TcpListener, accepts: u32) -> io::Result<Self> {
        listener.set_nonblocking(false)?;
        let peers = Pages::map(accepts as usize * size_of::<Peer>())?;
        Ok(Self { listener, peers, promised: vec![None; accepts as usize], is_stopping: false })
    }

    pub(super) fn descriptor(&self) -> RawFd {
        self.listener.as_raw_fd()
    }

    pub(super) fn accepts(&self) -> u32 {
        self.promised.len() as u32
    }

    /// The tags of the accepts that wait; `listener` is this one's number.
    pub(super) fn armed(&self, listener: Listener) -> impl Iterator<Item = u64> {
        let waiting = (0..).zip(&self.promised).filter(|(_, promised)| promised.is_some());
        waiting.map(move |(accept, _)| Operation::Accept.tag(0, index(listener, accept)))
    }

    pub(super) fn is_idle(&self) -> bool {
        self.promised.iter().all(Option::is_none)
    }

    /// Promises a slot to an accept; returns where the kernel writes the address and its length.
    pub(super) fn promise(&mut self, accept: u32, socket: Socket) -> (*mut libc::sockaddr, *mut libc::socklen_t) {
        self.promised[accept as usize] = Some(socket);
        let peer = self.peers.start().cast::<Peer>();
        // SAFETY: `accept` was just used as an index of `promised`, which has as many entries as the mapping.
        unsafe {
            let peer = peer.add(accept as usize);
            (*peer).length = size_of::<libc::sockaddr_in6>() as libc::socklen_t;
            ((&raw mut (*peer).address).cast(), &raw mut (*peer).length)
        }
    }

    /// An accept completed: the slot it was promised.
    pub(super) fn fulfil(&mut self, accept: u32) -> Option<Socket> {
        self.promised.get_mut(accept as usize)?.take()
    }

    /// The address that the kernel wrote for a completed accept.
    pub(super) fn peer(&self, accept: u32) -> SocketAddr {
        let mut storage = SockAddrStorage::zeroed();
        let peer = self.peers.start().cast::<Peer>();
        // SAFETY: the index is one of the mapping's; the accept is complete, so the kernel writes there no more; the storage is
        // larger than an address, whose family and length the kernel has set.
        let address = unsafe {
            let peer = peer.add((accept as usize).min(self.promised.len() - 1));
            let length = (*peer).length.min(size_of::<libc::sockaddr_in6>() as libc::socklen_t);
            std::ptr::copy_nonoverlapping(
                (&raw const (*peer).address).cast::<u8>(),
                (&raw mut storage).cast::<u8>(),
                length as usize,
            );
            SockAddr::new(storage, length)
        };
        address.as_socket().unwrap_or_else(|| SocketAddr::from(([0, 0, 0, 0], 0)))
    }
}

/// Which accept of which listener, in the 32 bits of a tag.
pub(super) fn index(listener: Listener, accept: u32) -> u32 {
    listener << 16 | accept
}

pub(super) fn of_index(index: u32) -> (Listener, u32) {
    (index >> 16, index & 0xffff)
}
