//! A driver with one listener, and turns until something is seen. Waiting is for events; the deadline only ends a failure.

use godwit_engine::driver::{
    Driver, DriverOptions, Event, ListenOptions, Outgoing, Preference, Sending, Sent, Socket, bind, open,
};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

pub(crate) struct Rig {
    pub(crate) driver: Box<dyn Driver>,
    pub(crate) address: SocketAddr,
    pub(crate) seen: Vec<Event>,
    /// What arrived, by socket.
    pub(crate) received: Vec<Vec<u8>>,
}

impl Rig {
    pub(crate) fn new(preference: Preference) -> Self {
        Self::with(DriverOptions { preference, ..DriverOptions::default() })
    }

    pub(crate) fn with(options: DriverOptions) -> Self {
        let mut driver = open(&options).unwrap().driver;
        let listener = bind("127.0.0.1:0".parse().unwrap(), &ListenOptions::default()).unwrap();
        let address = listener.local_addr().unwrap();
        driver.listen(listener).unwrap();
        Self { driver, address, seen: Vec::new(), received: Vec::new() }
    }

    /// One turn; what arrived is taken into `received`, everything else into `seen`.
    pub(crate) fn turn(&mut self, wait: Duration) {
        let mut events = Vec::new();
        self.driver.turn(&mut events, Some(wait)).unwrap();
        for event in events {
            if let Event::Data { socket, buffer } = event {
                let at = socket as usize;
                if self.received.len() <= at {
                    self.received.resize(at + 1, Vec::new());
                }
                self.received[at].extend_from_slice(self.driver.bytes(buffer));
                self.driver.release(buffer);
            }
            self.seen.push(event);
        }
        // At any time between turns, and with nothing lost by it.
        self.driver.rest();
    }

    /// Turns until `done`, given all that was seen and received.
    pub(crate) fn until(&mut self, mut done: impl FnMut(&Self) -> bool) {
        let end = Instant::now() + DEADLINE;
        while !done(self) {
            assert!(Instant::now() < end, "nothing more came; seen last: {:?}", self.seen.last());
            self.turn(Duration::from_secs(1));
        }
    }

    pub(crate) fn count(&self, is_counted: impl Fn(&Event) -> bool) -> usize {
        self.seen.iter().filter(|event| is_counted(event)).count()
    }

    pub(crate) fn accepted(&self) -> Vec<Socket> {
        let of = |event: &Event| match event {
            Event::Accepted { socket, .. } => Some(*socket),
            _ => None,
        };
        self.seen.iter().filter_map(of).collect()
    }

    pub(crate) fn is_gone(&self, of: Socket) -> bool {
        self.seen.iter().any(|event| matches!(event, Event::Gone { socket, .. } if *socket == of))
    }

    pub(crate) fn received(&self, socket: Socket) -> &[u8] {
        self.received.get(socket as usize).map_or(&[], Vec::as_slice)
    }

    /// A client and its number here.
    pub(crate) fn client(&mut self) -> (TcpStream, Socket) {
        let before = self.accepted().len();
        let client = TcpStream::connect(self.address).unwrap();
        client.set_read_timeout(Some(DEADLINE)).unwrap();
        self.until(|rig| rig.accepted().len() > before);
        (client, self.accepted()[before])
    }

    pub(crate) fn send(&mut self, socket: Socket, bytes: &[u8]) -> Sending {
        let mut sent: Vec<Sent> = Vec::new();
        self.driver.send_all(&[Outgoing { socket, bytes, token: 7 }], &mut sent).unwrap();
        assert_eq!((sent.len(), sent[0].token), (1, 7));
        sent[0].outcome
    }

    /// Closes, and turns until nothing of it is held any more.
    pub(crate) fn close(&mut self, socket: Socket) {
        let before = self.driver.counters().sockets;
        self.driver.close(socket);
        self.until(|rig| rig.driver.counters().sockets < before);
    }
}
