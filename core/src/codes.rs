//! Every code a client can be told, as an enum: number, name, may the client retry, HTTP status, one sentence.
//!
//! Generated from protocol/codes.toml by `make generate`; change it there.

/// Why a command failed, a connection closed or a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u16)]
pub enum Code {
    /// The connection ended because one side asked for it.
    ClosedNormally = 1000,
    /// The peer is leaving: a page was closed, or a node stops.
    GoingAway = 1001,
    /// The peer broke RFC 6455.
    ProtocolBroken = 1002,
    /// A text frame arrived on a binary connection, or a binary frame on a JSON connection.
    DataUnsupported = 1003,
    /// A text frame or a close reason is not UTF-8.
    TextInvalid = 1007,
    /// The peer exceeded an allowance of the protocol, such as too many pings.
    PolicyViolated = 1008,
    /// A message is larger than message_bytes_max.
    MessageTooBig = 1009,
    /// The peer had an internal error.
    PeerInternalError = 1011,
    /// An operator closed this connection; do not reconnect.
    ClosedByOperator = 4000,
    /// This listener requires `connect` as the first command, within handshake_ms_max.
    ConnectMissing = 4001,
    /// The token or certificate is not valid on this node.
    TokenInvalid = 4002,
    /// The token expired, or its key was withdrawn, and the client did not renew it in time.
    TokenExpired = 4003,
    /// The authorizer refused this client.
    ConnectRefused = 4004,
    /// The token, or the identity it names, has been revoked.
    TokenRevoked = 4005,
    /// This connection or request needs a token.
    TokenMissing = 4006,
    /// Malformed command: invalid JSON, duplicate key, missing or multiple verbs, or invalid id.
    CommandMalformed = 4100,
    /// The name is not a valid subject.
    SubjectInvalid = 4101,
    /// The name is not a valid subject or pattern.
    PatternInvalid = 4102,
    /// The verb does not exist.
    CommandUnknown = 4103,
    /// A field has the wrong type, is outside its bounds, or does not go with another.
    FieldInvalid = 4104,
    /// The verb has no such field.
    FieldUnknown = 4105,
    /// A publish has no content, more than one, or bytes that are not base64.
    ContentInvalid = 4106,
    /// The content nests deeper than content_depth_max.
    ContentTooDeep = 4107,
    /// An array holds more commands than commands_in_flight_max; none of it was executed.
    CommandsTooMany = 4108,
    /// `after` is not a valid position or map of positions.
    PositionInvalid = 4109,
    /// `since` is not a valid resume token of this server.
    ResumeTokenInvalid = 4110,
    /// This subscription does not exist on this connection.
    SubscriptionUnknown = 4111,
    /// The connection, or its address, identity or tenant, has as many subscriptions or watches as it may have.
    SubscriptionsTooMany = 4112,
    /// Not authorized to subscribe to this subject or pattern.
    SubscribeForbidden = 4113,
    /// Not authorized to publish on this subject.
    PublishForbidden = 4114,
    /// Not authorized to watch: this needs the right to publish on the whole pattern.
    WatchForbidden = 4115,
    /// The idempotency key is empty, too long, or too short for an anonymous client.
    KeyInvalid = 4116,
    /// The idempotency key was used with other content.
    KeyConflict = 4117,
    /// The node cannot provide the requested level of acknowledgement.
    AckUnavailable = 4118,
    /// The journal disk is failing; publishes with ack=disk are rejected.
    DiskFailing = 4119,
    /// The node has subjects_max subjects and cannot create another one now.
    SubjectsTooMany = 4120,
    /// The streams of a shard (streams_per_shard_max) or the patterns of the node (patterns_bytes_max) have reached their limit.
    StreamsTooMany = 4121,
    /// Rate limit exceeded for this connection, address, identity, tenant or subject. Retry later.
    RateExceeded = 4122,
    /// A byte limit of the whole node is reached; the command was not executed.
    NodeBusy = 4123,
    /// The node is shutting down and accepts no new publish or subscription.
    NodeDraining = 4124,
    /// The authorizer did not answer in time; the command was not executed. Retry it.
    AuthorizerTimeout = 4125,
    /// The publish number is older than those that the node remembers; it is unknown whether this was published.
    NumberTooOld = 4128,
    /// The node cannot know whether this repeated publish was published before; it was not published now.
    RepeatUnknown = 4129,
    /// The merged snapshot would exceed `snapshot_bytes_max`; nothing was published.
    SnapshotTooBig = 4130,
    /// The node is nearly full; the rest is reserved for identities and addresses that use less than a hundredth of it.
    ShareExceeded = 4131,
    /// The message, or the snapshot that it makes, has more fields than the limit `fields_max`; nothing was published.
    FieldsTooMany = 4132,
    /// The HTTP request is malformed or ambiguous.
    RequestMalformed = 4150,
    /// The path does not exist.
    PathUnknown = 4151,
    /// The path does not support this method.
    MethodForbidden = 4152,
    /// Unsupported WebSocket version: expected 13.
    VersionUnsupported = 4153,
    /// None of the requested subprotocols is supported.
    SubprotocolUnsupported = 4154,
    /// The request's headers exceed header_bytes_max or headers_max.
    HeaderTooBig = 4155,
    /// The body exceeds message_bytes_max, or the request must not have one.
    BodyTooBig = 4156,
    /// The media type of the body is not supported.
    MediaUnsupported = 4157,
    /// Pages of this origin may not connect.
    OriginForbidden = 4158,
    /// The request did not arrive within handshake_ms_max.
    RequestTimeout = 4159,
    /// Unsupported HTTP version: expected HTTP/1.1.
    HttpUnsupported = 4160,
    /// The subject has no snapshot.
    SnapshotMissing = 4162,
    /// The Expect header is not supported: send the request without it.
    ExpectationFailed = 4163,
    /// The request line is longer than header_bytes_max.
    TargetTooLong = 4164,
    /// The method is not supported.
    MethodUnknown = 4165,
    /// Unsupported transfer coding: expected chunked.
    CodingUnsupported = 4166,
    /// This listener expects a TLS handshake or a PROXY header and received something else.
    HandshakeBroken = 4167,
    /// This host name is not allowed for a request without Origin and token; add it to client.hosts.
    HostForbidden = 4168,
    /// The server had an internal error while executing this.
    CommandInternalError = 4199,
    /// The node stops or makes room; reconnect after reconnect_after_ms.
    Draining = 4200,
    /// The node has connections_max connections. Retry later.
    ConnectionsTooMany = 4201,
    /// The peer sent and accepted nothing for idle_ms_max.
    IdleTimeout = 4202,
    /// A message did not arrive within message_ms_max of its first byte.
    MessageTimeout = 4203,
    /// The authorizer did not answer in time. Retry later.
    AuthorizerUnavailable = 4204,
    /// Half-received messages use partial_bytes_max on this node.
    PartialBytesExceeded = 4205,
    /// The server had an internal error and closed this connection.
    ConnectionInternalError = 4206,
    /// An operator asks this client to connect to another node.
    MovedByOperator = 4207,
    /// Connection limit or connection rate of this address or identity exceeded. Retry later.
    ConnectsTooMany = 4208,
    /// The node's configuration grants this client less than before. Reconnect to get the rights that it grants now.
    RightsChanged = 4209,
    /// The keys of the token's issuer cannot be fetched now. Retry later.
    KeysUnavailable = 4210,
}

struct Row {
    code: Code,
    name: &'static str,
    retry: bool,
    http: u16,
    sentence: &'static str,
}

#[rustfmt::skip]
static ROWS: [Row; 76] = [
    Row { code: Code::ClosedNormally, name: "ClosedNormally", retry: true, http: 0, sentence: "The connection ended because one side asked for it." },
    Row { code: Code::GoingAway, name: "GoingAway", retry: true, http: 503, sentence: "The peer is leaving: a page was closed, or a node stops." },
    Row { code: Code::ProtocolBroken, name: "ProtocolBroken", retry: false, http: 400, sentence: "The peer broke RFC 6455." },
    Row { code: Code::DataUnsupported, name: "DataUnsupported", retry: false, http: 415, sentence: "A text frame arrived on a binary connection, or a binary frame on a JSON connection." },
    Row { code: Code::TextInvalid, name: "TextInvalid", retry: false, http: 400, sentence: "A text frame or a close reason is not UTF-8." },
    Row { code: Code::PolicyViolated, name: "PolicyViolated", retry: false, http: 403, sentence: "The peer exceeded an allowance of the protocol, such as too many pings." },
    Row { code: Code::MessageTooBig, name: "MessageTooBig", retry: false, http: 413, sentence: "A message is larger than message_bytes_max." },
    Row { code: Code::PeerInternalError, name: "PeerInternalError", retry: true, http: 500, sentence: "The peer had an internal error." },
    Row { code: Code::ClosedByOperator, name: "ClosedByOperator", retry: false, http: 403, sentence: "An operator closed this connection; do not reconnect." },
    Row { code: Code::ConnectMissing, name: "ConnectMissing", retry: false, http: 401, sentence: "This listener requires `connect` as the first command, within handshake_ms_max." },
    Row { code: Code::TokenInvalid, name: "TokenInvalid", retry: false, http: 401, sentence: "The token or certificate is not valid on this node." },
    Row { code: Code::TokenExpired, name: "TokenExpired", retry: false, http: 401, sentence: "The token expired, or its key was withdrawn, and the client did not renew it in time." },
    Row { code: Code::ConnectRefused, name: "ConnectRefused", retry: false, http: 403, sentence: "The authorizer refused this client." },
    Row { code: Code::TokenRevoked, name: "TokenRevoked", retry: false, http: 401, sentence: "The token, or the identity it names, has been revoked." },
    Row { code: Code::TokenMissing, name: "TokenMissing", retry: false, http: 401, sentence: "This connection or request needs a token." },
    Row { code: Code::CommandMalformed, name: "CommandMalformed", retry: false, http: 400, sentence: "Malformed command: invalid JSON, duplicate key, missing or multiple verbs, or invalid id." },
    Row { code: Code::SubjectInvalid, name: "SubjectInvalid", retry: false, http: 400, sentence: "The name is not a valid subject." },
    Row { code: Code::PatternInvalid, name: "PatternInvalid", retry: false, http: 400, sentence: "The name is not a valid subject or pattern." },
    Row { code: Code::CommandUnknown, name: "CommandUnknown", retry: false, http: 400, sentence: "The verb does not exist." },
    Row { code: Code::FieldInvalid, name: "FieldInvalid", retry: false, http: 400, sentence: "A field has the wrong type, is outside its bounds, or does not go with another." },
    Row { code: Code::FieldUnknown, name: "FieldUnknown", retry: false, http: 400, sentence: "The verb has no such field." },
    Row { code: Code::ContentInvalid, name: "ContentInvalid", retry: false, http: 400, sentence: "A publish has no content, more than one, or bytes that are not base64." },
    Row { code: Code::ContentTooDeep, name: "ContentTooDeep", retry: false, http: 400, sentence: "The content nests deeper than content_depth_max." },
    Row { code: Code::CommandsTooMany, name: "CommandsTooMany", retry: true, http: 429, sentence: "An array holds more commands than commands_in_flight_max; none of it was executed." },
    Row { code: Code::PositionInvalid, name: "PositionInvalid", retry: false, http: 400, sentence: "`after` is not a valid position or map of positions." },
    Row { code: Code::ResumeTokenInvalid, name: "ResumeTokenInvalid", retry: false, http: 400, sentence: "`since` is not a valid resume token of this server." },
    Row { code: Code::SubscriptionUnknown, name: "SubscriptionUnknown", retry: false, http: 404, sentence: "This subscription does not exist on this connection." },
    Row { code: Code::SubscriptionsTooMany, name: "SubscriptionsTooMany", retry: false, http: 429, sentence: "The connection, or its address, identity or tenant, has as many subscriptions or watches as it may have." },
    Row { code: Code::SubscribeForbidden, name: "SubscribeForbidden", retry: false, http: 403, sentence: "Not authorized to subscribe to this subject or pattern." },
    Row { code: Code::PublishForbidden, name: "PublishForbidden", retry: false, http: 403, sentence: "Not authorized to publish on this subject." },
    Row { code: Code::WatchForbidden, name: "WatchForbidden", retry: false, http: 403, sentence: "Not authorized to watch: this needs the right to publish on the whole pattern." },
    Row { code: Code::KeyInvalid, name: "KeyInvalid", retry: false, http: 400, sentence: "The idempotency key is empty, too long, or too short for an anonymous client." },
    Row { code: Code::KeyConflict, name: "KeyConflict", retry: false, http: 409, sentence: "The idempotency key was used with other content." },
    Row { code: Code::AckUnavailable, name: "AckUnavailable", retry: false, http: 422, sentence: "The node cannot provide the requested level of acknowledgement." },
    Row { code: Code::DiskFailing, name: "DiskFailing", retry: true, http: 503, sentence: "The journal disk is failing; publishes with ack=disk are rejected." },
    Row { code: Code::SubjectsTooMany, name: "SubjectsTooMany", retry: true, http: 503, sentence: "The node has subjects_max subjects and cannot create another one now." },
    Row { code: Code::StreamsTooMany, name: "StreamsTooMany", retry: true, http: 503, sentence: "The streams of a shard (streams_per_shard_max) or the patterns of the node (patterns_bytes_max) have reached their limit." },
    Row { code: Code::RateExceeded, name: "RateExceeded", retry: true, http: 429, sentence: "Rate limit exceeded for this connection, address, identity, tenant or subject. Retry later." },
    Row { code: Code::NodeBusy, name: "NodeBusy", retry: true, http: 503, sentence: "A byte limit of the whole node is reached; the command was not executed." },
    Row { code: Code::NodeDraining, name: "NodeDraining", retry: true, http: 503, sentence: "The node is shutting down and accepts no new publish or subscription." },
    Row { code: Code::AuthorizerTimeout, name: "AuthorizerTimeout", retry: true, http: 503, sentence: "The authorizer did not answer in time; the command was not executed. Retry it." },
    Row { code: Code::NumberTooOld, name: "NumberTooOld", retry: false, http: 409, sentence: "The publish number is older than those that the node remembers; it is unknown whether this was published." },
    Row { code: Code::RepeatUnknown, name: "RepeatUnknown", retry: false, http: 409, sentence: "The node cannot know whether this repeated publish was published before; it was not published now." },
    Row { code: Code::SnapshotTooBig, name: "SnapshotTooBig", retry: false, http: 413, sentence: "The merged snapshot would exceed `snapshot_bytes_max`; nothing was published." },
    Row { code: Code::ShareExceeded, name: "ShareExceeded", retry: false, http: 507, sentence: "The node is nearly full; the rest is reserved for identities and addresses that use less than a hundredth of it." },
    Row { code: Code::FieldsTooMany, name: "FieldsTooMany", retry: false, http: 413, sentence: "The message, or the snapshot that it makes, has more fields than the limit `fields_max`; nothing was published." },
    Row { code: Code::RequestMalformed, name: "RequestMalformed", retry: false, http: 400, sentence: "The HTTP request is malformed or ambiguous." },
    Row { code: Code::PathUnknown, name: "PathUnknown", retry: false, http: 404, sentence: "The path does not exist." },
    Row { code: Code::MethodForbidden, name: "MethodForbidden", retry: false, http: 405, sentence: "The path does not support this method." },
    Row { code: Code::VersionUnsupported, name: "VersionUnsupported", retry: false, http: 426, sentence: "Unsupported WebSocket version: expected 13." },
    Row { code: Code::SubprotocolUnsupported, name: "SubprotocolUnsupported", retry: false, http: 400, sentence: "None of the requested subprotocols is supported." },
    Row { code: Code::HeaderTooBig, name: "HeaderTooBig", retry: false, http: 431, sentence: "The request's headers exceed header_bytes_max or headers_max." },
    Row { code: Code::BodyTooBig, name: "BodyTooBig", retry: false, http: 413, sentence: "The body exceeds message_bytes_max, or the request must not have one." },
    Row { code: Code::MediaUnsupported, name: "MediaUnsupported", retry: false, http: 415, sentence: "The media type of the body is not supported." },
    Row { code: Code::OriginForbidden, name: "OriginForbidden", retry: false, http: 403, sentence: "Pages of this origin may not connect." },
    Row { code: Code::RequestTimeout, name: "RequestTimeout", retry: true, http: 408, sentence: "The request did not arrive within handshake_ms_max." },
    Row { code: Code::HttpUnsupported, name: "HttpUnsupported", retry: false, http: 505, sentence: "Unsupported HTTP version: expected HTTP/1.1." },
    Row { code: Code::SnapshotMissing, name: "SnapshotMissing", retry: true, http: 404, sentence: "The subject has no snapshot." },
    Row { code: Code::ExpectationFailed, name: "ExpectationFailed", retry: false, http: 417, sentence: "The Expect header is not supported: send the request without it." },
    Row { code: Code::TargetTooLong, name: "TargetTooLong", retry: false, http: 414, sentence: "The request line is longer than header_bytes_max." },
    Row { code: Code::MethodUnknown, name: "MethodUnknown", retry: false, http: 501, sentence: "The method is not supported." },
    Row { code: Code::CodingUnsupported, name: "CodingUnsupported", retry: false, http: 501, sentence: "Unsupported transfer coding: expected chunked." },
    Row { code: Code::HandshakeBroken, name: "HandshakeBroken", retry: false, http: 400, sentence: "This listener expects a TLS handshake or a PROXY header and received something else." },
    Row { code: Code::HostForbidden, name: "HostForbidden", retry: false, http: 403, sentence: "This host name is not allowed for a request without Origin and token; add it to client.hosts." },
    Row { code: Code::CommandInternalError, name: "CommandInternalError", retry: true, http: 500, sentence: "The server had an internal error while executing this." },
    Row { code: Code::Draining, name: "Draining", retry: true, http: 503, sentence: "The node stops or makes room; reconnect after reconnect_after_ms." },
    Row { code: Code::ConnectionsTooMany, name: "ConnectionsTooMany", retry: true, http: 503, sentence: "The node has connections_max connections. Retry later." },
    Row { code: Code::IdleTimeout, name: "IdleTimeout", retry: true, http: 408, sentence: "The peer sent and accepted nothing for idle_ms_max." },
    Row { code: Code::MessageTimeout, name: "MessageTimeout", retry: true, http: 408, sentence: "A message did not arrive within message_ms_max of its first byte." },
    Row { code: Code::AuthorizerUnavailable, name: "AuthorizerUnavailable", retry: true, http: 503, sentence: "The authorizer did not answer in time. Retry later." },
    Row { code: Code::PartialBytesExceeded, name: "PartialBytesExceeded", retry: true, http: 503, sentence: "Half-received messages use partial_bytes_max on this node." },
    Row { code: Code::ConnectionInternalError, name: "ConnectionInternalError", retry: true, http: 500, sentence: "The server had an internal error and closed this connection." },
    Row { code: Code::MovedByOperator, name: "MovedByOperator", retry: true, http: 503, sentence: "An operator asks this client to connect to another node." },
    Row { code: Code::ConnectsTooMany, name: "ConnectsTooMany", retry: true, http: 429, sentence: "Connection limit or connection rate of this address or identity exceeded. Retry later." },
    Row { code: Code::RightsChanged, name: "RightsChanged", retry: true, http: 503, sentence: "The node's configuration grants this client less than before. Reconnect to get the rights that it grants now." },
    Row { code: Code::KeysUnavailable, name: "KeysUnavailable", retry: true, http: 503, sentence: "The keys of the token's issuer cannot be fetched now. Retry later." },
];

impl Code {
    /// The number on the wire.
    #[must_use]
    pub const fn number(self) -> u16 {
        self as u16
    }

    /// The code of a number, if there is one.
    #[must_use]
    pub fn from_number(number: u16) -> Option<Self> {
        let row = ROWS.iter().find(|row| row.code as u16 == number)?;
        Some(row.code)
    }

    /// The name on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// May the same thing succeed later, unchanged?
    #[must_use]
    pub fn is_retryable(self) -> bool {
        self.row().retry
    }

    /// The HTTP status that goes with it; 0 when HTTP never carries it.
    #[must_use]
    pub fn http_status(self) -> u16 {
        self.row().http
    }

    /// One sentence for a person.
    #[must_use]
    pub fn sentence(self) -> &'static str {
        self.row().sentence
    }

    /// All of them, by number.
    pub fn all() -> impl Iterator<Item = Self> {
        ROWS.iter().map(|row| row.code)
    }

    fn row(self) -> &'static Row {
        let place = ROWS.partition_point(|row| row.code < self);
        &ROWS[place]
    }
}
