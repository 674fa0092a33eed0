//! Bound sockets for the shards: each shard listens on a socket of its own on one port, and the kernel spreads the clients.
//! Options set here are inherited by every accepted socket, so that none has to be set per connection.

use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};

#[derive(Clone, Copy, Debug)]
pub struct ListenOptions {
    /// Clients that may wait to be accepted; the system's own bound applies as well.
    pub backlog: u16,
    /// Unsent bytes the kernel keeps for a socket before it calls it full: without it, it was seen to keep 4.2 MB for one
    /// client that never reads; with it, 54 kB. 0 leaves the system's default.
    pub unsent_bytes_max: u32,
    /// The kernel's send buffer; 0 leaves it to the kernel's tuning.
    pub send_buffer_bytes: u32,
}

impl Default for ListenOptions {
    fn default() -> Self {
        Self { backlog: 4096, unsent_bytes_max: 32 * 1024, send_buffer_bytes: 0 }
    }
}

/// One bound and listening socket.
///
/// # Errors
/// When the address is taken or not ours.
pub fn bind(address: SocketAddr, options: &ListenOptions) -> io::Result<TcpListener> {
    bind_one(address, options, false)
}

/// As many listening sockets on one port as there are shards; port 0 is chosen once for all of them.
///
/// # Errors
/// When the address is taken, by this program's like as well, or not ours.
pub fn bind_shards(address: SocketAddr, shards: usize, options: &ListenOptions) -> io::Result<Vec<TcpListener>> {
    if shards == 1 {
        return bind_one(address, options, false).map(|listener| vec![listener]);
    }
    // Sockets that share a port share it with any other process of the same user: a plain bind finds that out first.
    // (For port 0 the kernel chooses one that nobody has.)
    if address.port() != 0 {
        drop(bind_one(address, options, false)?);
    }
    let first = bind_one(address, options, true)?;
    let bound = first.local_addr()?;
    let mut listeners = vec![first];
    for _ in 1..shards {
        listeners.push(bind_one(bound, options, true)?);
    }
    Ok(listeners)
}

/// A socket about to connect, bound to the address it is to come from.
pub(super) fn outgoing(to: SocketAddr, from: Option<IpAddr>) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_tcp_nodelay(true)?;
    if let Some(from) = from {
        // The port is chosen at the connect, where both ends are known, so that one address serves 28,000 connections to
        // each port, and no search for a free one is made here.
        #[cfg(target_os = "linux")]
        set_port_later(&socket)?;
        socket.bind(&SocketAddr::new(from, 0).into())?;
    }
    Ok(socket)
}

#[cfg(target_os = "linux")]
fn set_port_later(socket: &Socket) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let on: libc::c_int = 1;
    let length = size_of::<libc::c_int>() as libc::socklen_t;
    let (level, name) = (libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT);
    // SAFETY: the value is an int of this frame, of the length said.
    match unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const on).cast(), length) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn bind_one(address: SocketAddr, options: &ListenOptions, shared: bool) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    if shared {
        socket.set_reuse_port(true)?;
    }
    socket.set_tcp_nodelay(true)?;
    if options.send_buffer_bytes > 0 {
        socket.set_send_buffer_size(options.send_buffer_bytes as usize)?;
    }
    #[cfg(target_os = "linux")]
    if options.unsent_bytes_max > 0 {
        socket.set_tcp_notsent_lowat(options.unsent_bytes_max)?;
    }
    socket.bind(&address.into())?;
    socket.listen(i32::from(options.backlog))?;
    Ok(socket.into())
}
