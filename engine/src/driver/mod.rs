//! The only interface to the kernel: sockets in a dense table, their bytes in and out, and the source that wakes a shard.
//! Two drivers pass the same tests: io_uring (`uring.rs`) and readiness (`readiness.rs`, epoll or kqueue through mio).
//! A driver knows nothing of frames, sessions or subjects, and belongs to one thread. What it lends and borrows is given
//! back within one turn: received bytes until `release`, bytes to send until `flush`.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::time::Duration;

mod buffers;
mod descriptors;
mod listen;
mod open;
mod pages;
mod readiness;
mod readiness_events;
mod slots;
#[cfg(target_os = "linux")]
mod uring;
#[cfg(target_os = "linux")]
mod uring_accept;
#[cfg(target_os = "linux")]
mod uring_buffers;
#[cfg(target_os = "linux")]
mod uring_completions;
#[cfg(target_os = "linux")]
mod uring_ring;
#[cfg(target_os = "linux")]
mod uring_slot;
#[cfg(target_os = "linux")]
mod uring_wake;
mod waker;

pub use buffers::ReceiveBuffer;
pub use descriptors::{descriptor_limit, raise_descriptor_limit};
pub use listen::{ListenOptions, bind, bind_shards};
pub use open::{DriverOptions, Opened, Preference, open};
pub use waker::Waker;

/// A connection's number: dense, below `DriverOptions::sockets_max`, and given to another connection after `close`.
pub type Socket = u32;

/// A listener's number, in the order of the calls to `listen`.
pub type Listener = u32;

/// A received buffer, lent by the driver until it is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer(pub(crate) u16);

/// What a turn brought. Events of one socket are in order; after `close(socket)` what is left of it in the same list is
/// stale, to be passed over (a `Data` is still to be released).
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// A client came; the driver reads from it at once.
    Accepted { listener: Listener, socket: Socket, peer: SocketAddr },
    /// The end of a `connect`: errno 0 is success, and the driver reads from it at once.
    Connected { socket: Socket, errno: i32 },
    /// Bytes arrived: `bytes(buffer)`, then `release(buffer)`, before the next turn.
    Data { socket: Socket, buffer: Buffer },
    /// The peer will send no more: errno 0 is an orderly end. Once for each socket; it still has to be closed.
    Gone { socket: Socket, errno: i32 },
    /// The answer to one `want_write`: a send is worth trying again.
    Writable { socket: Socket },
    /// A `Waker` was used since the last turn.
    Wake,
}

/// What became of a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sending {
    /// The kernel took this many bytes, perhaps not all.
    Done(usize),
    /// It took none: ask for `want_write`.
    Blocked,
    /// The connection is broken; a `Gone` event comes or came as well.
    Gone,
    /// The answer comes at the next `flush`.
    Pending,
}

/// The answer to a pending send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    pub token: u64,
    pub outcome: Sending,
}

/// One send of a batch: where to, what, and the token its answer carries.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    pub socket: Socket,
    pub bytes: &'a [u8],
    pub token: u64,
}

/// What a driver has counted since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Sockets held now.
    pub sockets: u64,
    /// Connections accepted and closed at once because no descriptor or slot was left.
    pub refused: u64,
    /// Receives that ended because all receive buffers were lent.
    pub starved: u64,
    /// System calls of the driver itself.
    pub enters: u64,
}

/// Sockets for one thread. See the module and [`Event`] for the rules of borrowing.
pub trait Driver {
    /// Accepts from a bound socket (see [`bind`]) until `stop_listening`.
    ///
    /// # Errors
    /// When the kernel refuses to watch it.
    fn listen(&mut self, listener: TcpListener) -> io::Result<Listener>;

    /// Stops accepting; what waits in the backlog is reset by the kernel.
    fn stop_listening(&mut self, listener: Listener);

    /// Begins a connection, from the address `from` where given (so that a load may spread over 127.0.0.0/8).
    /// `Connected` follows.
    ///
    /// # Errors
    /// When no socket could be made, or the address cannot be bound.
    fn connect(&mut self, to: SocketAddr, from: Option<IpAddr>) -> io::Result<Socket>;

    /// Clears `events`, and fills it with what has happened, waiting at most `wait` (`None`: until something happens).
    /// All sends must have been flushed.
    ///
    /// # Errors
    /// Only when the driver itself is broken; an interrupted wait is an empty turn.
    fn turn(&mut self, events: &mut Vec<Event>, wait: Option<Duration>) -> io::Result<()>;

    /// The bytes of a lent buffer.
    fn bytes(&mut self, buffer: Buffer) -> &mut [u8];

    /// Lends a buffer so that it borrows nothing of the driver; `take_back` releases it.
    fn lend(&mut self, buffer: Buffer) -> ReceiveBuffer;

    fn take_back(&mut self, lent: ReceiveBuffer);

    /// Gives a lent buffer back.
    fn release(&mut self, buffer: Buffer);

    /// Sends what the kernel takes now, without waiting. At most one send of a socket may be pending.
    ///
    /// # Safety
    /// When the answer is `Pending`, `bytes` must stay where they are, unchanged, until the next `flush` returned or the
    /// driver is dropped.
    unsafe fn send(&mut self, socket: Socket, bytes: &[u8], token: u64) -> Sending;

    /// Adds the answers to all pending sends; none is pending afterwards.
    ///
    /// # Errors
    /// Only when the driver itself is broken.
    fn flush(&mut self, sent: &mut Vec<Sent>) -> io::Result<()>;

    /// Sends a batch and adds an answer for each of it.
    ///
    /// # Errors
    /// Only when the driver itself is broken.
    fn send_all(&mut self, batch: &[Outgoing<'_>], sent: &mut Vec<Sent>) -> io::Result<()> {
        for outgoing in batch {
            // SAFETY: the batch is borrowed until this function returns, and the flush below ends every pending send; if
            // that fails the driver is broken and touches no memory any more.
            let outcome = unsafe { self.send(outgoing.socket, outgoing.bytes, outgoing.token) };
            if outcome != Sending::Pending {
                sent.push(Sent { token: outgoing.token, outcome });
            }
        }
        self.flush(sent)
    }

    /// Asks for one `Writable` as soon as a send is worth trying. Asking twice before the answer is asking once.
    fn want_write(&mut self, socket: Socket);

    /// Stops reading. What was received before may still be handed in.
    fn pause_read(&mut self, socket: Socket);

    /// Reads again after `pause_read`.
    fn resume_read(&mut self, socket: Socket);

    /// Ends the sending half: the peer sees the end after everything sent. The socket still has to be closed.
    fn finish(&mut self, socket: Socket);

    /// Closes. Every socket that was accepted or connected, and even one that is gone or failed to connect, has to be
    /// closed once; its number is used again in a later turn.
    fn close(&mut self, socket: Socket);

    /// Gives back memory that a rush of receives has touched, when there were few since the last call. Between turns only.
    fn rest(&mut self);

    /// Any thread may use it to end the wait of a turn.
    fn waker(&self) -> Waker;

    fn counters(&self) -> Counters;
}

impl Preference {
    /// The preference that the settings name.
    pub(crate) fn named(name: &str) -> Result<Self, String> {
        match name {
            "" | "auto" => Ok(Self::Probe),
            "io_uring" => Ok(Self::Uring),
            "readiness" => Ok(Self::Readiness),
            other => Err(format!("driver: {other:?} is none of auto, io_uring, readiness")),
        }
    }
}
