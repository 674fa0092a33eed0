// Every code that a client can receive: number, name, may the client retry, one sentence.
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
  /** A text frame arrived on a binary connection, or a binary frame on a JSON connection. */
  DataUnsupported: 1003,
  /** A text frame or a close reason is not UTF-8. */
  TextInvalid: 1007,
  /** The peer exceeded an allowance of the protocol, such as too many pings. */
  PolicyViolated: 1008,
  /** A message is larger than message_bytes_max. */
  MessageTooBig: 1009,
  /** The peer had an internal error. */
  PeerInternalError: 1011,
  /** An operator closed this connection; do not reconnect. */
  ClosedByOperator: 4000,
  /** This listener requires `connect` as the first command, within handshake_ms_max. */
  ConnectMissing: 4001,
  /** The token or certificate is not valid on this node. */
  TokenInvalid: 4002,
  /** The token expired, or its key was withdrawn, and the client did not renew it in time. */
  TokenExpired: 4003,
  /** The authorizer refused this client. */
  ConnectRefused: 4004,
  /** The token, or the identity it names, has been revoked. */
  TokenRevoked: 4005,
  /** This connection or request needs a token. */
  TokenMissing: 4006,
  /** Malformed command: invalid JSON, duplicate key, missing or multiple verbs, or invalid id. */
  CommandMalformed: 4100,
  /** The name is not a valid subject. */
  SubjectInvalid: 4101,
  /** The name is not a valid subject or pattern. */
  PatternInvalid: 4102,
  /** The verb does not exist. */
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
  /** `after` is not a valid position or map of positions. */
  PositionInvalid: 4109,
  /** `since` is not a valid resume token of this server. */
  ResumeTokenInvalid: 4110,
  /** This subscription does not exist on this connection. */
  SubscriptionUnknown: 4111,
  /** The connection, or its address, identity or tenant, has as many subscriptions or watches as it may have. */
  SubscriptionsTooMany: 4112,
  /** Not authorized to subscribe to this subject or pattern. */
  SubscribeForbidden: 4113,
  /** Not authorized to publish on this subject. */
  PublishForbidden: 4114,
  /** Not authorized to watch: this needs the right to publish on the whole pattern. */
  WatchForbidden: 4115,
  /** The idempotency key is empty, too long, or too short for an anonymous client. */
  KeyInvalid: 4116,
  /** The idempotency key was used with other content. */
  KeyConflict: 4117,
  /** The node cannot provide the requested level of acknowledgement. */
  AckUnavailable: 4118,
  /** The journal disk is failing; publishes with ack=disk are rejected. */
  DiskFailing: 4119,
  /** The node has subjects_max subjects and cannot create another one now. */
  SubjectsTooMany: 4120,
  /** The streams of a shard (streams_per_shard_max) or the patterns of the node (patterns_bytes_max) have reached their limit. */
  StreamsTooMany: 4121,
  /** Rate limit exceeded for this connection, address, identity, tenant or subject. Retry later. */
  RateExceeded: 4122,
  /** A byte limit of the whole node is reached; the command was not executed. */
  NodeBusy: 4123,
  /** The node is shutting down and accepts no new publish or subscription. */
  NodeDraining: 4124,
  /** The authorizer did not answer in time; the command was not executed. Retry it. */
  AuthorizerTimeout: 4125,
  /** The publish number is older than those that the node remembers; it is unknown whether this was published. */
  NumberTooOld: 4128,
  /** The node cannot know whether this repeated publish was published before; it was not published now. */
  RepeatUnknown: 4129,
  /** The merged snapshot would exceed `snapshot_bytes_max`; nothing was published. */
  SnapshotTooBig: 4130,
  /** The node is nearly full; the rest is reserved for identities and addresses that use less than a hundredth of it. */
  ShareExceeded: 4131,
  /** The message, or the snapshot that it makes, has more fields than the limit `fields_max`; nothing was published. */
  FieldsTooMany: 4132,
  /** The HTTP request is malformed or ambiguous. */
  RequestMalformed: 4150,
  /** The path does not exist. */
  PathUnknown: 4151,
  /** The path does not support this method. */
  MethodForbidden: 4152,
  /** Unsupported WebSocket version: expected 13. */
  VersionUnsupported: 4153,
  /** None of the requested subprotocols is supported. */
  SubprotocolUnsupported: 4154,
  /** The request's headers exceed header_bytes_max or headers_max. */
  HeaderTooBig: 4155,
  /** The body exceeds message_bytes_max, or the request must not have one. */
  BodyTooBig: 4156,
  /** The media type of the body is not supported. */
  MediaUnsupported: 4157,
  /** Pages of this origin may not connect. */
  OriginForbidden: 4158,
  /** The request did not arrive within handshake_ms_max. */
  RequestTimeout: 4159,
  /** Unsupported HTTP version: expected HTTP/1.1. */
  HttpUnsupported: 4160,
  /** The subject has no snapshot. */
  SnapshotMissing: 4162,
  /** The Expect header is not supported: send the request without it. */
  ExpectationFailed: 4163,
  /** The request line is longer than header_bytes_max. */
  TargetTooLong: 4164,
  /** The method is not supported. */
  MethodUnknown: 4165,
  /** Unsupported transfer coding: expected chunked. */
  CodingUnsupported: 4166,
  /** This listener expects a TLS handshake or a PROXY header and received something else. */
  HandshakeBroken: 4167,
  /** This host name is not allowed for a request without Origin and token; add it to client.hosts. */
  HostForbidden: 4168,
  /** The server had an internal error while executing this. */
  CommandInternalError: 4199,
  /** The node stops or makes room; reconnect after reconnect_after_ms. */
  Draining: 4200,
  /** The node has connections_max connections. Retry later. */
  ConnectionsTooMany: 4201,
  /** The peer sent and accepted nothing for idle_ms_max. */
  IdleTimeout: 4202,
  /** A message did not arrive within message_ms_max of its first byte. */
  MessageTimeout: 4203,
  /** The authorizer did not answer in time. Retry later. */
  AuthorizerUnavailable: 4204,
  /** Half-received messages use partial_bytes_max on this node. */
  PartialBytesExceeded: 4205,
  /** The server had an internal error and closed this connection. */
  ConnectionInternalError: 4206,
  /** An operator asks this client to connect to another node. */
  MovedByOperator: 4207,
  /** Connection limit or connection rate of this address or identity exceeded. Retry later. */
  ConnectsTooMany: 4208,
  /** The node's configuration grants this client less than before. Reconnect to get the rights that it grants now. */
  RightsChanged: 4209,
  /** The keys of the token's issuer cannot be fetched now. Retry later. */
  KeysUnavailable: 4210,
});

/** @typedef {{ number: number, name: string, retry: boolean, sentence: string }} CodeFacts one row of codes.toml */

/** @type {ReadonlyMap<number, CodeFacts>} */
export const CODES = new Map([
  [1000, { number: 1000, name: "ClosedNormally", retry: true, sentence: "The connection ended because one side asked for it." }],
  [1001, { number: 1001, name: "GoingAway", retry: true, sentence: "The peer is leaving: a page was closed, or a node stops." }],
  [1002, { number: 1002, name: "ProtocolBroken", retry: false, sentence: "The peer broke RFC 6455." }],
  [1003, { number: 1003, name: "DataUnsupported", retry: false, sentence: "A text frame arrived on a binary connection, or a binary frame on a JSON connection." }],
  [1007, { number: 1007, name: "TextInvalid", retry: false, sentence: "A text frame or a close reason is not UTF-8." }],
  [1008, { number: 1008, name: "PolicyViolated", retry: false, sentence: "The peer exceeded an allowance of the protocol, such as too many pings." }],
  [1009, { number: 1009, name: "MessageTooBig", retry: false, sentence: "A message is larger than message_bytes_max." }],
  [1011, { number: 1011, name: "PeerInternalError", retry: true, sentence: "The peer had an internal error." }],
  [4000, { number: 4000, name: "ClosedByOperator", retry: false, sentence: "An operator closed this connection; do not reconnect." }],
  [4001, { number: 4001, name: "ConnectMissing", retry: false, sentence: "This listener requires `connect` as the first command, within handshake_ms_max." }],
  [4002, { number: 4002, name: "TokenInvalid", retry: false, sentence: "The token or certificate is not valid on this node." }],
  [4003, { number: 4003, name: "TokenExpired", retry: false, sentence: "The token expired, or its key was withdrawn, and the client did not renew it in time." }],
  [4004, { number: 4004, name: "ConnectRefused", retry: false, sentence: "The authorizer refused this client." }],
  [4005, { number: 4005, name: "TokenRevoked", retry: false, sentence: "The token, or the identity it names, has been revoked." }],
  [4006, { number: 4006, name: "TokenMissing", retry: false, sentence: "This connection or request needs a token." }],
  [4100, { number: 4100, name: "CommandMalformed", retry: false, sentence: "Malformed command: invalid JSON, duplicate key, missing or multiple verbs, or invalid id." }],
  [4101, { number: 4101, name: "SubjectInvalid", retry: false, sentence: "The name is not a valid subject." }],
  [4102, { number: 4102, name: "PatternInvalid", retry: false, sentence: "The name is not a valid subject or pattern." }],
  [4103, { number: 4103, name: "CommandUnknown", retry: false, sentence: "The verb does not exist." }],
  [4104, { number: 4104, name: "FieldInvalid", retry: false, sentence: "A field has the wrong type, is outside its bounds, or does not go with another." }],
  [4105, { number: 4105, name: "FieldUnknown", retry: false, sentence: "The verb has no such field." }],
  [4106, { number: 4106, name: "ContentInvalid", retry: false, sentence: "A publish has no content, more than one, or bytes that are not base64." }],
  [4107, { number: 4107, name: "ContentTooDeep", retry: false, sentence: "The content nests deeper than content_depth_max." }],
  [4108, { number: 4108, name: "CommandsTooMany", retry: true, sentence: "An array holds more commands than commands_in_flight_max; none of it was executed." }],
  [4109, { number: 4109, name: "PositionInvalid", retry: false, sentence: "`after` is not a valid position or map of positions." }],
  [4110, { number: 4110, name: "ResumeTokenInvalid", retry: false, sentence: "`since` is not a valid resume token of this server." }],
  [4111, { number: 4111, name: "SubscriptionUnknown", retry: false, sentence: "This subscription does not exist on this connection." }],
  [4112, { number: 4112, name: "SubscriptionsTooMany", retry: false, sentence: "The connection, or its address, identity or tenant, has as many subscriptions or watches as it may have." }],
  [4113, { number: 4113, name: "SubscribeForbidden", retry: false, sentence: "Not authorized to subscribe to this subject or pattern." }],
  [4114, { number: 4114, name: "PublishForbidden", retry: false, sentence: "Not authorized to publish on this subject." }],
  [4115, { number: 4115, name: "WatchForbidden", retry: false, sentence: "Not authorized to watch: this needs the right to publish on the whole pattern." }],
  [4116, { number: 4116, name: "KeyInvalid", retry: false, sentence: "The idempotency key is empty, too long, or too short for an anonymous client." }],
  [4117, { number: 4117, name: "KeyConflict", retry: false, sentence: "The idempotency key was used with other content." }],
  [4118, { number: 4118, name: "AckUnavailable", retry: false, sentence: "The node cannot provide the requested level of acknowledgement." }],
  [4119, { number: 4119, name: "DiskFailing", retry: true, sentence: "The journal disk is failing; publishes with ack=disk are rejected." }],
  [4120, { number: 4120, name: "SubjectsTooMany", retry: true, sentence: "The node has subjects_max subjects and cannot create another one now." }],
  [4121, { number: 4121, name: "StreamsTooMany", retry: true, sentence: "The streams of a shard (streams_per_shard_max) or the patterns of the node (patterns_bytes_max) have reached their limit." }],
  [4122, { number: 4122, name: "RateExceeded", retry: true, sentence: "Rate limit exceeded for this connection, address, identity, tenant or subject. Retry later." }],
  [4123, { number: 4123, name: "NodeBusy", retry: true, sentence: "A byte limit of the whole node is reached; the command was not executed." }],
  [4124, { number: 4124, name: "NodeDraining", retry: true, sentence: "The node is shutting down and accepts no new publish or subscription." }],
  [4125, { number: 4125, name: "AuthorizerTimeout", retry: true, sentence: "The authorizer did not answer in time; the command was not executed. Retry it." }],
  [4128, { number: 4128, name: "NumberTooOld", retry: false, sentence: "The publish number is older than those that the node remembers; it is unknown whether this was published." }],
  [4129, { number: 4129, name: "RepeatUnknown", retry: false, sentence: "The node cannot know whether this repeated publish was published before; it was not published now." }],
  [4130, { number: 4130, name: "SnapshotTooBig", retry: false, sentence: "The merged snapshot would exceed `snapshot_bytes_max`; nothing was published." }],
  [4131, { number: 4131, name: "ShareExceeded", retry: false, sentence: "The node is nearly full; the rest is reserved for identities and addresses that use less than a hundredth of it." }],
  [4132, { number: 4132, name: "FieldsTooMany", retry: false, sentence: "The message, or the snapshot that it makes, has more fields than the limit `fields_max`; nothing was published." }],
  [4150, { number: 4150, name: "RequestMalformed", retry: false, sentence: "The HTTP request is malformed or ambiguous." }],
  [4151, { number: 4151, name: "PathUnknown", retry: false, sentence: "The path does not exist." }],
  [4152, { number: 4152, name: "MethodForbidden", retry: false, sentence: "The path does not support this method." }],
  [4153, { number: 4153, name: "VersionUnsupported", retry: false, sentence: "Unsupported WebSocket version: expected 13." }],
  [4154, { number: 4154, name: "SubprotocolUnsupported", retry: false, sentence: "None of the requested subprotocols is supported." }],
  [4155, { number: 4155, name: "HeaderTooBig", retry: false, sentence: "The request's headers exceed header_bytes_max or headers_max." }],
  [4156, { number: 4156, name: "BodyTooBig", retry: false, sentence: "The body exceeds message_bytes_max, or the request must not have one." }],
  [4157, { number: 4157, name: "MediaUnsupported", retry: false, sentence: "The media type of the body is not supported." }],
  [4158, { number: 4158, name: "OriginForbidden", retry: false, sentence: "Pages of this origin may not connect." }],
  [4159, { number: 4159, name: "RequestTimeout", retry: true, sentence: "The request did not arrive within handshake_ms_max." }],
  [4160, { number: 4160, name: "HttpUnsupported", retry: false, sentence: "Unsupported HTTP version: expected HTTP/1.1." }],
  [4162, { number: 4162, name: "SnapshotMissing", retry: true, sentence: "The subject has no snapshot." }],
  [4163, { number: 4163, name: "ExpectationFailed", retry: false, sentence: "The Expect header is not supported: send the request without it." }],
  [4164, { number: 4164, name: "TargetTooLong", retry: false, sentence: "The request line is longer than header_bytes_max." }],
  [4165, { number: 4165, name: "MethodUnknown", retry: false, sentence: "The method is not supported." }],
  [4166, { number: 4166, name: "CodingUnsupported", retry: false, sentence: "Unsupported transfer coding: expected chunked." }],
  [4167, { number: 4167, name: "HandshakeBroken", retry: false, sentence: "This listener expects a TLS handshake or a PROXY header and received something else." }],
  [4168, { number: 4168, name: "HostForbidden", retry: false, sentence: "This host name is not allowed for a request without Origin and token; add it to client.hosts." }],
  [4199, { number: 4199, name: "CommandInternalError", retry: true, sentence: "The server had an internal error while executing this." }],
  [4200, { number: 4200, name: "Draining", retry: true, sentence: "The node stops or makes room; reconnect after reconnect_after_ms." }],
  [4201, { number: 4201, name: "ConnectionsTooMany", retry: true, sentence: "The node has connections_max connections. Retry later." }],
  [4202, { number: 4202, name: "IdleTimeout", retry: true, sentence: "The peer sent and accepted nothing for idle_ms_max." }],
  [4203, { number: 4203, name: "MessageTimeout", retry: true, sentence: "A message did not arrive within message_ms_max of its first byte." }],
  [4204, { number: 4204, name: "AuthorizerUnavailable", retry: true, sentence: "The authorizer did not answer in time. Retry later." }],
  [4205, { number: 4205, name: "PartialBytesExceeded", retry: true, sentence: "Half-received messages use partial_bytes_max on this node." }],
  [4206, { number: 4206, name: "ConnectionInternalError", retry: true, sentence: "The server had an internal error and closed this connection." }],
  [4207, { number: 4207, name: "MovedByOperator", retry: true, sentence: "An operator asks this client to connect to another node." }],
  [4208, { number: 4208, name: "ConnectsTooMany", retry: true, sentence: "Connection limit or connection rate of this address or identity exceeded. Retry later." }],
  [4209, { number: 4209, name: "RightsChanged", retry: true, sentence: "The node's configuration grants this client less than before. Reconnect to get the rights that it grants now." }],
  [4210, { number: 4210, name: "KeysUnavailable", retry: true, sentence: "The keys of the token's issuer cannot be fetched now. Retry later." }],
]);

/**
 * May a client come back after it was closed with this code? Unknown codes outside 4000-4099: yes.
 * @param {number} number
 */
export function mayReconnect(number) {
  return CODES.get(number)?.retry ?? !(number >= 4000 && number <= 4099);
}
