// Every code a client can be told: number, name, may the client retry, one sentence.
//
// Generated from protocol/codes.toml by `make generate`; change it there.

/** Why a command failed, a connection closed or a request was refused. */
export const Code = Object.freeze({
  /** The connection ended because one side asked for it. */
  ClosedNormally: 1000,
  /** The peer is leaving: a page was closed, or a node stops. */
  GoingAway: 1001,
  /** The peer broke RFC 6455. */
  ProtocolBroken: 1002,
  /** A text frame came on the binary wire, or a binary frame on the JSON wire. */
  DataUnsupported: 1003,
  /** A text frame or a close reason is not UTF-8. */
  TextInvalid: 1007,
  /** The peer did something that is allowed once but not without end. */
  PolicyViolated: 1008,
  /** A message is larger than message_bytes_max. */
  MessageTooBig: 1009,
  /** The peer met a fault of its own. */
  PeerInternalError: 1011,
  /** An operator closed this connection and does not want it back. */
  ClosedByOperator: 4000,
  /** The first command was not `connect`, or none came within handshake_ms_max, where this listener asks for one. */
  ConnectMissing: 4001,
  /** The token is not one this node accepts. */
  TokenInvalid: 4002,
  /** The token expired and was not renewed in time. */
  TokenExpired: 4003,
  /** The authorizer refused this client. */
  ConnectRefused: 4004,
  /** The token, or the identity it names, has been revoked. */
  TokenRevoked: 4005,
  /** This connection or request needs a token. */
  TokenMissing: 4006,
  /** What came is no command: bad JSON, a repeated key, no verb or more than one, or a bad id. */
  CommandMalformed: 4100,
  /** The name is no subject that this wire can use. */
  SubjectInvalid: 4101,
  /** The name is neither a subject nor a pattern. */
  PatternInvalid: 4102,
  /** The verb is not known. */
  CommandUnknown: 4103,
  /** A field has the wrong type, is outside its bounds, or does not go with another. */
  FieldInvalid: 4104,
  /** The verb has no such field. */
  FieldUnknown: 4105,
  /** A publish has no content, more than one, or bytes that are not base64. */
  ContentInvalid: 4106,
  /** The content nests deeper than content_depth_max. */
  ContentTooDeep: 4107,
  /** An array holds more commands than commands_in_flight_max; none of it was executed. */
  CommandsTooMany: 4108,
  /** `after` is no position, or no map of positions. */
  PositionInvalid: 4109,
  /** `since` is no resume token of this server. */
  ResumeTokenInvalid: 4110,
  /** There is no such subscription on this connection. */
  SubscriptionUnknown: 4111,
  /** The connection, or its address, identity or tenant, has as many subscriptions or watches as it may have. */
  SubscriptionsTooMany: 4112,
  /** This identity may not subscribe to all of that, or no longer. */
  SubscribeForbidden: 4113,
  /** This identity may not publish there. */
  PublishForbidden: 4114,
  /** Watching needs the right to publish on the whole pattern. */
  WatchForbidden: 4115,
  /** The idempotency key is empty, too long, or too short for an anonymous client. */
  KeyInvalid: 4116,
  /** The idempotency key was used with other content. */
  KeyConflict: 4117,
  /** The node cannot reach the level of acknowledgement that was asked for. */
  AckUnavailable: 4118,
  /** The disk is known to fail, so a publish that asks for it was not numbered. */
  DiskFailing: 4119,
  /** The node holds subjects_max subjects; no new one can begin now. */
  SubjectsTooMany: 4120,
  /** The streams of a shard (streams_per_shard_max) or the patterns of the node (patterns_bytes_max) are at their limit; no new one can begin now. */
  StreamsTooMany: 4121,
  /** More was published or subscribed than a rate allows: of the connection, its address, its identity or tenant, or on the subject. */
  RateExceeded: 4122,
  /** A byte limit of the whole node is reached; the command was not executed. */
  NodeBusy: 4123,
  /** The node is draining and takes no new publish or subscription. */
  NodeDraining: 4124,
  /** The authorizer did not answer for this command: it was not executed, and may be sent again. */
  AuthorizerTimeout: 4125,
  /** The number of this publish is below those that the node remembers of its publisher: whether it was published is not known. */
  NumberTooOld: 4128,
  /** The node cannot know whether this publish, which is sent again, was published before: it was not published now. */
  RepeatUnknown: 4129,
  /** Merged with this publish the subject's snapshot would be larger than the limit `snapshot_bytes_max`; nothing was published. */
  SnapshotTooBig: 4130,
  /** The node is nearly full; what is left is kept for holders and addresses that use less than a hundredth of it. */
  ShareExceeded: 4131,
  /** The HTTP request is malformed or could be read in two ways. */
  RequestMalformed: 4150,
  /** There is nothing at this path. */
  PathUnknown: 4151,
  /** This path does not know the method. */
  MethodForbidden: 4152,
  /** Only version 13 of WebSocket is spoken here. */
  VersionUnsupported: 4153,
  /** None of the subprotocols asked for is spoken here. */
  SubprotocolUnsupported: 4154,
  /** The head of the request is larger than header_bytes_max, or has more fields than headers_max. */
  HeaderTooBig: 4155,
  /** The body is larger than message_bytes_max, or there should be none. */
  BodyTooBig: 4156,
  /** The media type of the body is not taken here. */
  MediaUnsupported: 4157,
  /** Pages of this origin may not connect. */
  OriginForbidden: 4158,
  /** The request did not arrive within handshake_ms_max. */
  RequestTimeout: 4159,
  /** Only HTTP/1.1 is spoken here. */
  HttpUnsupported: 4160,
  /** The subject has no snapshot. */
  SnapshotMissing: 4162,
  /** Expect is not met here: send the request without it. */
  ExpectationFailed: 4163,
  /** The request line is longer than header_bytes_max. */
  TargetTooLong: 4164,
  /** The method is not known here. */
  MethodUnknown: 4165,
  /** The transfer coding is not known here: only chunked is. */
  CodingUnsupported: 4166,
  /** What came is not the TLS, or the proxy's header, that this listener asks for. */
  HandshakeBroken: 4167,
  /** A request without Origin and token may not name this host; client.hosts lists the names it may. */
  HostForbidden: 4168,
  /** The server met a fault of its own while it did this. */
  CommandInternalError: 4199,
  /** The node stops or makes room; reconnect after reconnect_after_ms. */
  Draining: 4200,
  /** The node holds connections_max connections. */
  ConnectionsTooMany: 4201,
  /** Nothing came from the peer, and its socket took nothing, for idle_ms_max. */
  IdleTimeout: 4202,
  /** A message did not arrive within message_ms_max of its first byte. */
  MessageTimeout: 4203,
  /** The authorizer did not answer. */
  AuthorizerUnavailable: 4204,
  /** Half-received messages use partial_bytes_max on this node. */
  PartialBytesExceeded: 4205,
  /** The server met a fault of its own and gave this connection up. */
  ConnectionInternalError: 4206,
  /** An operator asks this client to connect to another node. */
  MovedByOperator: 4207,
  /** This address or identity connects, or fails to, more often than it may, or holds as many connections as it may. */
  ConnectsTooMany: 4208,
});

/** @typedef {{ number: number, name: string, retry: boolean, sentence: string }} CodeFacts one row of codes.toml */

/** @type {ReadonlyMap<number, CodeFacts>} */
export const CODES = new Map([
  [1000, { number: 1000, name: "ClosedNormally", retry: true, sentence: "The connection ended because one side asked for it." }],
  [1001, { number: 1001, name: "GoingAway", retry: true, sentence: "The peer is leaving: a page was closed, or a node stops." }],
  [1002, { number: 1002, name: "ProtocolBroken", retry: false, sentence: "The peer broke RFC 6455." }],
  [1003, { number: 1003, name: "DataUnsupported", retry: false, sentence: "A text frame came on the binary wire, or a binary frame on the JSON wire." }],
  [1007, { number: 1007, name: "TextInvalid", retry: false, sentence: "A text frame or a close reason is not UTF-8." }],
  [1008, { number: 1008, name: "PolicyViolated", retry: false, sentence: "The peer did something that is allowed once but not without end." }],
  [1009, { number: 1009, name: "MessageTooBig", retry: false, sentence: "A message is larger than message_bytes_max." }],
  [1011, { number: 1011, name: "PeerInternalError", retry: true, sentence: "The peer met a fault of its own." }],
  [4000, { number: 4000, name: "ClosedByOperator", retry: false, sentence: "An operator closed this connection and does not want it back." }],
  [4001, { number: 4001, name: "ConnectMissing", retry: false, sentence: "The first command was not `connect`, or none came within handshake_ms_max, where this listener asks for one." }],
  [4002, { number: 4002, name: "TokenInvalid", retry: false, sentence: "The token is not one this node accepts." }],
  [4003, { number: 4003, name: "TokenExpired", retry: false, sentence: "The token expired and was not renewed in time." }],
  [4004, { number: 4004, name: "ConnectRefused", retry: false, sentence: "The authorizer refused this client." }],
  [4005, { number: 4005, name: "TokenRevoked", retry: false, sentence: "The token, or the identity it names, has been revoked." }],
  [4006, { number: 4006, name: "TokenMissing", retry: false, sentence: "This connection or request needs a token." }],
  [4100, { number: 4100, name: "CommandMalformed", retry: false, sentence: "What came is no command: bad JSON, a repeated key, no verb or more than one, or a bad id." }],
  [4101, { number: 4101, name: "SubjectInvalid", retry: false, sentence: "The name is no subject that this wire can use." }],
  [4102, { number: 4102, name: "PatternInvalid", retry: false, sentence: "The name is neither a subject nor a pattern." }],
  [4103, { number: 4103, name: "CommandUnknown", retry: false, sentence: "The verb is not known." }],
  [4104, { number: 4104, name: "FieldInvalid", retry: false, sentence: "A field has the wrong type, is outside its bounds, or does not go with another." }],
  [4105, { number: 4105, name: "FieldUnknown", retry: false, sentence: "The verb has no such field." }],
  [4106, { number: 4106, name: "ContentInvalid", retry: false, sentence: "A publish has no content, more than one, or bytes that are not base64." }],
  [4107, { number: 4107, name: "ContentTooDeep", retry: false, sentence: "The content nests deeper than content_depth_max." }],
  [4108, { number: 4108, name: "CommandsTooMany", retry: true, sentence: "An array holds more commands than commands_in_flight_max; none of it was executed." }],
  [4109, { number: 4109, name: "PositionInvalid", retry: false, sentence: "`after` is no position, or no map of positions." }],
  [4110, { number: 4110, name: "ResumeTokenInvalid", retry: false, sentence: "`since` is no resume token of this server." }],
  [4111, { number: 4111, name: "SubscriptionUnknown", retry: false, sentence: "There is no such subscription on this connection." }],
  [4112, { number: 4112, name: "SubscriptionsTooMany", retry: false, sentence: "The connection, or its address, identity or tenant, has as many subscriptions or watches as it may have." }],
  [4113, { number: 4113, name: "SubscribeForbidden", retry: false, sentence: "This identity may not subscribe to all of that, or no longer." }],
  [4114, { number: 4114, name: "PublishForbidden", retry: false, sentence: "This identity may not publish there." }],
  [4115, { number: 4115, name: "WatchForbidden", retry: false, sentence: "Watching needs the right to publish on the whole pattern." }],
  [4116, { number: 4116, name: "KeyInvalid", retry: false, sentence: "The idempotency key is empty, too long, or too short for an anonymous client." }],
  [4117, { number: 4117, name: "KeyConflict", retry: false, sentence: "The idempotency key was used with other content." }],
  [4118, { number: 4118, name: "AckUnavailable", retry: false, sentence: "The node cannot reach the level of acknowledgement that was asked for." }],
  [4119, { number: 4119, name: "DiskFailing", retry: true, sentence: "The disk is known to fail, so a publish that asks for it was not numbered." }],
  [4120, { number: 4120, name: "SubjectsTooMany", retry: true, sentence: "The node holds subjects_max subjects; no new one can begin now." }],
  [4121, { number: 4121, name: "StreamsTooMany", retry: true, sentence: "The streams of a shard (streams_per_shard_max) or the patterns of the node (patterns_bytes_max) are at their limit; no new one can begin now." }],
  [4122, { number: 4122, name: "RateExceeded", retry: true, sentence: "More was published or subscribed than a rate allows: of the connection, its address, its identity or tenant, or on the subject." }],
  [4123, { number: 4123, name: "NodeBusy", retry: true, sentence: "A byte limit of the whole node is reached; the command was not executed." }],
  [4124, { number: 4124, name: "NodeDraining", retry: true, sentence: "The node is draining and takes no new publish or subscription." }],
  [4125, { number: 4125, name: "AuthorizerTimeout", retry: true, sentence: "The authorizer did not answer for this command: it was not executed, and may be sent again." }],
  [4128, { number: 4128, name: "NumberTooOld", retry: false, sentence: "The number of this publish is below those that the node remembers of its publisher: whether it was published is not known." }],
  [4129, { number: 4129, name: "RepeatUnknown", retry: false, sentence: "The node cannot know whether this publish, which is sent again, was published before: it was not published now." }],
  [4130, { number: 4130, name: "SnapshotTooBig", retry: false, sentence: "Merged with this publish the subject's snapshot would be larger than the limit `snapshot_bytes_max`; nothing was published." }],
  [4131, { number: 4131, name: "ShareExceeded", retry: false, sentence: "The node is nearly full; what is left is kept for holders and addresses that use less than a hundredth of it." }],
  [4150, { number: 4150, name: "RequestMalformed", retry: false, sentence: "The HTTP request is malformed or could be read in two ways." }],
  [4151, { number: 4151, name: "PathUnknown", retry: false, sentence: "There is nothing at this path." }],
  [4152, { number: 4152, name: "MethodForbidden", retry: false, sentence: "This path does not know the method." }],
  [4153, { number: 4153, name: "VersionUnsupported", retry: false, sentence: "Only version 13 of WebSocket is spoken here." }],
  [4154, { number: 4154, name: "SubprotocolUnsupported", retry: false, sentence: "None of the subprotocols asked for is spoken here." }],
  [4155, { number: 4155, name: "HeaderTooBig", retry: false, sentence: "The head of the request is larger than header_bytes_max, or has more fields than headers_max." }],
  [4156, { number: 4156, name: "BodyTooBig", retry: false, sentence: "The body is larger than message_bytes_max, or there should be none." }],
  [4157, { number: 4157, name: "MediaUnsupported", retry: false, sentence: "The media type of the body is not taken here." }],
  [4158, { number: 4158, name: "OriginForbidden", retry: false, sentence: "Pages of this origin may not connect." }],
  [4159, { number: 4159, name: "RequestTimeout", retry: true, sentence: "The request did not arrive within handshake_ms_max." }],
  [4160, { number: 4160, name: "HttpUnsupported", retry: false, sentence: "Only HTTP/1.1 is spoken here." }],
  [4162, { number: 4162, name: "SnapshotMissing", retry: true, sentence: "The subject has no snapshot." }],
  [4163, { number: 4163, name: "ExpectationFailed", retry: false, sentence: "Expect is not met here: send the request without it." }],
  [4164, { number: 4164, name: "TargetTooLong", retry: false, sentence: "The request line is longer than header_bytes_max." }],
  [4165, { number: 4165, name: "MethodUnknown", retry: false, sentence: "The method is not known here." }],
  [4166, { number: 4166, name: "CodingUnsupported", retry: false, sentence: "The transfer coding is not known here: only chunked is." }],
  [4167, { number: 4167, name: "HandshakeBroken", retry: false, sentence: "What came is not the TLS, or the proxy's header, that this listener asks for." }],
  [4168, { number: 4168, name: "HostForbidden", retry: false, sentence: "A request without Origin and token may not name this host; client.hosts lists the names it may." }],
  [4199, { number: 4199, name: "CommandInternalError", retry: true, sentence: "The server met a fault of its own while it did this." }],
  [4200, { number: 4200, name: "Draining", retry: true, sentence: "The node stops or makes room; reconnect after reconnect_after_ms." }],
  [4201, { number: 4201, name: "ConnectionsTooMany", retry: true, sentence: "The node holds connections_max connections." }],
  [4202, { number: 4202, name: "IdleTimeout", retry: true, sentence: "Nothing came from the peer, and its socket took nothing, for idle_ms_max." }],
  [4203, { number: 4203, name: "MessageTimeout", retry: true, sentence: "A message did not arrive within message_ms_max of its first byte." }],
  [4204, { number: 4204, name: "AuthorizerUnavailable", retry: true, sentence: "The authorizer did not answer." }],
  [4205, { number: 4205, name: "PartialBytesExceeded", retry: true, sentence: "Half-received messages use partial_bytes_max on this node." }],
  [4206, { number: 4206, name: "ConnectionInternalError", retry: true, sentence: "The server met a fault of its own and gave this connection up." }],
  [4207, { number: 4207, name: "MovedByOperator", retry: true, sentence: "An operator asks this client to connect to another node." }],
  [4208, { number: 4208, name: "ConnectsTooMany", retry: true, sentence: "This address or identity connects, or fails to, more often than it may, or holds as many connections as it may." }],
]);

/**
 * May a client come back after it was closed with this code? Unknown codes outside 4000-4099: yes.
 * @param {number} number
 */
export function mayReconnect(number) {
  return CODES.get(number)?.retry ?? !(number >= 4000 && number <= 4099);
}
