//! What stands at which path, and what each method means there. The texts of the contract are served from here too.
use std::fmt::Write as _;
use std::sync::Arc;

use crate::codec;
use crate::codes::Code;
use crate::command::{MessageView, Push};
use crate::http::{self, Answer, Head, Method, Refused, Way};
use crate::message::Kind;
use crate::message::fields::Fields;
use crate::node::Snapshot;
use crate::rights::{Action, Verdict};
use crate::shard::session::Step;
use crate::shard::{Shard, lock};
use crate::subject::Selector;

/// The contract of this port, as served.
const OPENAPI: &[u8] = include_bytes!("../../../../protocol/openapi.json");
const INDEX: &[u8] = br#"{"service":"godwit","openapi":"/v1/openapi.json"}"#;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Path {
    Server,
    Index,
    OpenApi,
    Live,
    Messages,
    Snapshot,
    Stream,
}

impl Path {
    fn find(text: &str) -> Option<Self> {
        Some(match text {
            "" => Self::Server,
            "/" => Self::Index,
            "/v1/openapi.json" => Self::OpenApi,
            "/v1/live" => Self::Live,
            "/v1/messages" => Self::Messages,
            "/v1/snapshot" => Self::Snapshot,
            "/v1/stream" => Self::Stream,
            _ => return None,
        })
    }

    /// The methods that it takes, as header lines.
    const fn allow(self) -> &'static str {
        match self {
            Self::Live => "Allow: GET, OPTIONS\r\n",
            Self::Messages | Self::Stream | Self::Server => "Allow: GET, HEAD, POST, OPTIONS\r\n",
            Self::Snapshot => "Allow: GET, HEAD, DELETE, OPTIONS\r\n",
            _ => "Allow: GET, HEAD, OPTIONS\r\n",
        }
    }

    /// The same with what a page is told before it asks.
    const fn allow_pages(self) -> &'static str {
        match self {
            Self::Messages | Self::Stream | Self::Server => PAGES_MAY_POST,
            Self::Snapshot => PAGES_MAY_DELETE,
            _ => PAGES_MAY_GET,
        }
    }
}

const PAGES_MAY_POST: &str = "Allow: GET, HEAD, POST, OPTIONS\r\nAccess-Control-Allow-Methods: GET, HEAD, POST\r\n\
Access-Control-Allow-Headers: Authorization, Cache-Control, Content-Type, Idempotency-Key, Last-Event-ID\r\nAccess-Control-Max-Age: 7200\r\n";
const PAGES_MAY_DELETE: &str = "Allow: GET, HEAD, DELETE, OPTIONS\r\nAccess-Control-Allow-Methods: GET, HEAD, DELETE\r\n\
Access-Control-Allow-Headers: Authorization, Cache-Control, Idempotency-Key, Last-Event-ID\r\nAccess-Control-Max-Age: 7200\r\n";
const PAGES_MAY_GET: &str = "Allow: GET, HEAD, OPTIONS\r\nAccess-Control-Allow-Methods: GET, HEAD\r\n\
Access-Control-Allow-Headers: Authorization, Cache-Control, Last-Event-ID\r\nAccess-Control-Max-Age: 7200\r\n";

impl Shard {
    /// Does what a request asks; `done` of its publishes are done already.
    pub(super) fn route(&mut self, socket: u32, head: &Head<'_>, body: &[u8], done: usize) -> Result<Step, Refused> {
        let path = Path::find(head.path).ok_or_else(|| http::refuse(Code::PathUnknown, ""))?;
        match (path, head.method) {
            (_, Method::Options) => {
                self.commit();
                let lines = if head.asks_method && head.origin.is_some() { path.allow_pages() } else { path.allow() };
                self.answer(socket, &Answer { status: 204, lines, ..Answer::default() });
                return Ok(Step::Done);
            }
            (Path::Messages | Path::Stream, Method::Post | Method::Get | Method::Head) => {}
            (Path::Snapshot, Method::Delete) => {}
            (Path::Index | Path::OpenApi | Path::Snapshot, Method::Get | Method::Head) => {}
            _ => {
                return Err(Refused {
                    code: Code::MethodForbidden,
                    reason: String::new(),
                    lines: path.allow(),
                    after_ms: 0,
                });
            }
        }
        if let Path::Index | Path::OpenApi = path {
            self.commit();
            let body = if path == Path::Index { INDEX } else { OPENAPI };
            self.answer(socket, &Answer { status: 200, media: "application/json", lines: "", body });
            return Ok(Step::Done);
        }
        match self.admit(socket, head)? {
            Step::Done => {}
            step => return Ok(step),
        }
        let step = self.route_admitted(socket, head, path, body, done);
        if !matches!(step, Ok(Step::Again)) {
            // A stream that began has come as one already.
            self.announce_connection(socket);
        }
        step
    }

    /// The same of a request that is known to be somebody's.
    fn route_admitted(
        &mut self,
        socket: u32,
        head: &Head<'_>,
        path: Path,
        body: &[u8],
        done: usize,
    ) -> Result<Step, Refused> {
        let begins_something =
            path == Path::Stream || matches!(head.method, Method::Post | Method::Delete) && done == 0;
        if begins_something && self.drain.is_some() {
            return Err(http::refuse(Code::NodeDraining, ""));
        }
        match path {
            Path::Messages if head.method == Method::Post && http::has_subject(head) => {
                self.produce_one(socket, head, body)
            }
            Path::Messages if head.method == Method::Post => self.produce_many(socket, head, body, done),
            Path::Snapshot if head.method == Method::Delete => self.remove_snapshot(socket, head),
            Path::Snapshot => self.show_snapshot(socket, head),
            Path::Stream if head.method == Method::Post => self.listen_many(socket, head, body),
            Path::Stream => self.listen(socket, head, Way::Stream),
            _ => self.listen(socket, head, Way::Consume),
        }
    }

    /// Whether the connection may listen to a selector; `Again`: the server is asked.
    pub(super) fn may_listen(&mut self, socket: u32, selector: &Selector) -> Result<Step, Refused> {
        match self.judge(socket, Action::Subscribe, selector) {
            Verdict::Allow => Ok(Step::Done),
            Verdict::Ask => Ok(self.ask(socket, Action::Subscribe, selector.text())?),
            Verdict::Deny => Err(http::refuse(Code::SubscribeForbidden, self.why_not(socket, Action::Subscribe))),
        }
    }

    fn show_snapshot(&mut self, socket: u32, head: &Head<'_>) -> Result<Step, Refused> {
        let (name, is_whole) = http::read_shown(head)?;
        let selector = Selector::parse(&name)?;
        if let Selector::Pattern(_) = selector {
            return Err(http::refuse(Code::SubjectInvalid, "a snapshot is of one subject"));
        }
        match self.may_listen(socket, &selector)? {
            Step::Done => {}
            step => return Ok(step),
        }
        self.commit();
        let node = Arc::clone(&self.node);
        let held = lock(&node);
        let snapshot = held.find(&name).and_then(|log| held.snapshot(log, self.now));
        drop(held);
        let Some(snapshot) = snapshot else {
            return Err(http::refuse(Code::SnapshotMissing, http::hint_at_plus(head)));
        };
        let mut lines = format!(
            "Godwit-Position: {}\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n",
            snapshot.at
        );
        let count = Fields(snapshot.fields()).count();
        if count > 0 {
            let _ = write!(lines, "Godwit-Fields: {count}\r\n"); // a String takes everything
        }
        let mut body = Vec::new();
        if is_whole {
            codec::object(&mut body, &Push::Message(view_of(&name, &snapshot)));
        }
        let (media, body) = if is_whole {
            (http::media_of(Kind::Json), body.as_slice())
        } else {
            (http::media_of(snapshot.kind()), snapshot.content())
        };
        self.answer(socket, &Answer { status: 200, media, lines: &lines, body });
        Ok(Step::Done)
    }
}

/// A snapshot as its reader is pushed it.
fn view_of<'a>(subject: &'a str, snapshot: &'a Snapshot) -> MessageView<'a> {
    MessageView {
        number: 0,
        base_time_ms: 0,
        subject,
        at: Some(snapshot.at),
        after: None,
        time_ms: snapshot.time_ms(),
        kind: snapshot.kind(),
        content: snapshot.content(),
        fields: snapshot.fields(),
        reply_to: snapshot.reply_to(),
        conflated: 0,
        pattern: None,
        is_snapshot: true,
        is_patch: false,
        is_removal: false,
    }
}
