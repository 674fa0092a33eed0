//! How a load speaks to a server: one file for each wire. A dialect writes what a client asks and says what one unit of
//! the answer means; counting, timing and sockets are the worker's. Every dialect carries the same content.
mod baseline;
mod godwit_binary;
mod godwit_http;
mod godwit_json;
mod mqtt;
mod nats;
mod nchan;

/// Who a connection is in the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Listens to this subject.
    Subscriber(u32),
    /// Publishes on this subject, and on others where the wire allows it.
    Publisher(u32),
}

/// Where a subscriber stands, for the wires that can resume: epoch and sequence.
pub(crate) type Place = (u64, u64);

/// One message to publish.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing {
    pub(crate) subject: u32,
    pub(crate) number: u32,
    pub(crate) stamp_ns: u64,
    pub(crate) wants_ack: bool,
}

/// What one unit from the server means.
#[derive(Debug, PartialEq)]
pub(crate) enum Heard<'a> {
    Nothing,
    /// The server has accepted the connection.
    Ready,
    /// The subscription stands, at this place if the wire has places.
    Joined(Option<Place>),
    /// A message: its content, and what surrounds it for `Dialect::place` and `Dialect::is_snapshot`.
    Message {
        content: &'a [u8],
        head: &'a [u8],
    },
    /// So many more publishes are acknowledged.
    Acked(u32),
    /// Messages are missing and the server says so; how many, if it knows.
    Gap(Option<u64>),
    /// To be answered with these bytes.
    Echo(Vec<u8>),
    Fault(String),
}

/// A wire, from the client's side.
pub(crate) trait Dialect: Send + Sync {
    /// What a client says first, as soon as the socket is connected.
    fn greet(&self, role: Role, out: &mut Vec<u8>);

    /// Asks to listen, after `Ready`; nothing where the greeting said so already. `after` resumes.
    fn join(&self, subject: u32, after: Option<Place>, out: &mut Vec<u8>);

    /// True: `Ready` means joined.
    fn joins_by_greeting(&self) -> bool {
        false
    }

    /// What a publisher says after `Ready`, before it publishes.
    fn begin(&self, _subject: u32, _wants_acks: bool, _out: &mut Vec<u8>) {}

    fn publish(&self, message: Outgoing, out: &mut Vec<u8>);

    /// The next whole unit in `bytes` and how long it is; none when more must come first.
    fn next<'a>(&self, is_ready: bool, bytes: &'a [u8]) -> Option<(usize, Heard<'a>)>;

    /// What a subscriber answers to a message, read from its head.
    fn acknowledge(&self, _head: &[u8], _out: &mut Vec<u8>) {}

    /// Where a message stands, read from its head; epoch 0 is the epoch of the message before.
    fn place(&self, _head: &[u8]) -> Option<Place> {
        None
    }

    fn is_snapshot(&self, _head: &[u8]) -> bool {
        false
    }

    /// True: a publish can be acknowledged, so a window of unacknowledged ones can be kept.
    fn acks(&self) -> bool;

    /// True: one publisher serves one subject only.
    fn is_bound_to_subject(&self) -> bool {
        false
    }
}

/// The dialect of a name.
pub(crate) fn of_name(name: &str, host: &str, content_bytes: usize) -> Option<Box<dyn Dialect>> {
    let content = crate::content::blank(content_bytes);
    Some(match name {
        "godwit-json" => Box::new(godwit_json::GodwitJson::new(host, content)),
        "godwit-binary" => Box::new(godwit_binary::GodwitBinary::new(host, content)),
        "godwit-disk" => Box::new(godwit_binary::GodwitBinary::with_disk(host, content)),
        "godwit-http" => Box::new(godwit_http::GodwitHttp::new(host, content)),
        "baseline" => Box::new(baseline::Baseline::new(host, content)),
        "mqtt" => Box::new(mqtt::Mqtt::new(content, 0)),
        "mqtt-qos1" => Box::new(mqtt::Mqtt::new(content, 1)),
        "nchan" => Box::new(nchan::Nchan::new(host, content)),
        "nats" => Box::new(nats::Nats::new(content)),
        _ => return None,
    })
}

/// Appends `content` with its number and stamp filled in.
fn write_content(content: &[u8], message: Outgoing, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(content);
    if let Some(written) = out.get_mut(start..) {
        crate::content::write_hex(message.stamp_ns, &mut written[crate::content::STAMP_RANGE]);
        crate::content::write_hex(u64::from(message.number), &mut written[crate::content::NUMBER_RANGE]);
    }
}

/// Appends a decimal number.
fn write_decimal(mut value: u64, out: &mut Vec<u8>) {
    let mut digits = [0u8; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}

/// What stands between `before` and `end` in `text`, if `before` occurs.
fn between<'a>(text: &'a [u8], before: &[u8], end: u8) -> Option<&'a [u8]> {
    let start = text.windows(before.len()).position(|window| window == before)? + before.len();
    let rest = text.get(start..)?;
    rest.get(..rest.iter().position(|&byte| byte == end)?)
}

/// Bytes as a fault's text, cut short.
fn quote(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.get(..bytes.len().min(200)).unwrap_or(bytes)).into_owned()
}
