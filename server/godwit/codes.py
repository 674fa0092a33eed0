"""Every code that a client can receive: number, name, may the client retry, HTTP status, one sentence.

Generated from protocol/codes.toml by `make generate`; change it there.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class Code(IntEnum):
    """Why a command failed, a connection closed or a request was refused."""

    CLOSED_NORMALLY = 1000
    GOING_AWAY = 1001
    PROTOCOL_BROKEN = 1002
    DATA_UNSUPPORTED = 1003
    TEXT_INVALID = 1007
    POLICY_VIOLATED = 1008
    MESSAGE_TOO_BIG = 1009
    PEER_INTERNAL_ERROR = 1011
    CLOSED_BY_OPERATOR = 4000
    CONNECT_MISSING = 4001
    TOKEN_INVALID = 4002
    TOKEN_EXPIRED = 4003
    CONNECT_REFUSED = 4004
    TOKEN_REVOKED = 4005
    TOKEN_MISSING = 4006
    COMMAND_MALFORMED = 4100
    SUBJECT_INVALID = 4101
    PATTERN_INVALID = 4102
    COMMAND_UNKNOWN = 4103
    FIELD_INVALID = 4104
    FIELD_UNKNOWN = 4105
    CONTENT_INVALID = 4106
    CONTENT_TOO_DEEP = 4107
    COMMANDS_TOO_MANY = 4108
    POSITION_INVALID = 4109
    RESUME_TOKEN_INVALID = 4110
    SUBSCRIPTION_UNKNOWN = 4111
    SUBSCRIPTIONS_TOO_MANY = 4112
    SUBSCRIBE_FORBIDDEN = 4113
    PUBLISH_FORBIDDEN = 4114
    WATCH_FORBIDDEN = 4115
    KEY_INVALID = 4116
    KEY_CONFLICT = 4117
    ACK_UNAVAILABLE = 4118
    DISK_FAILING = 4119
    SUBJECTS_TOO_MANY = 4120
    STREAMS_TOO_MANY = 4121
    RATE_EXCEEDED = 4122
    NODE_BUSY = 4123
    NODE_DRAINING = 4124
    AUTHORIZER_TIMEOUT = 4125
    NUMBER_TOO_OLD = 4128
    REPEAT_UNKNOWN = 4129
    SNAPSHOT_TOO_BIG = 4130
    SHARE_EXCEEDED = 4131
    FIELDS_TOO_MANY = 4132
    REQUEST_MALFORMED = 4150
    PATH_UNKNOWN = 4151
    METHOD_FORBIDDEN = 4152
    VERSION_UNSUPPORTED = 4153
    SUBPROTOCOL_UNSUPPORTED = 4154
    HEADER_TOO_BIG = 4155
    BODY_TOO_BIG = 4156
    MEDIA_UNSUPPORTED = 4157
    ORIGIN_FORBIDDEN = 4158
    REQUEST_TIMEOUT = 4159
    HTTP_UNSUPPORTED = 4160
    SNAPSHOT_MISSING = 4162
    EXPECTATION_FAILED = 4163
    TARGET_TOO_LONG = 4164
    METHOD_UNKNOWN = 4165
    CODING_UNSUPPORTED = 4166
    HANDSHAKE_BROKEN = 4167
    HOST_FORBIDDEN = 4168
    COMMAND_INTERNAL_ERROR = 4199
    DRAINING = 4200
    CONNECTIONS_TOO_MANY = 4201
    IDLE_TIMEOUT = 4202
    MESSAGE_TIMEOUT = 4203
    AUTHORIZER_UNAVAILABLE = 4204
    PARTIAL_BYTES_EXCEEDED = 4205
    CONNECTION_INTERNAL_ERROR = 4206
    MOVED_BY_OPERATOR = 4207
    CONNECTS_TOO_MANY = 4208
    RIGHTS_CHANGED = 4209
    KEYS_UNAVAILABLE = 4210


class CodeFacts(NamedTuple):
    """One row of codes.toml; `http` is 0 when HTTP never carries the code."""

    number: int
    name: str
    retry: bool
    http: int
    sentence: str


CODES: dict[int, CodeFacts] = {
    Code.CLOSED_NORMALLY: CodeFacts(
        1000, "ClosedNormally", True, 0,
        "The connection ended because one side asked for it.",
    ),
    Code.GOING_AWAY: CodeFacts(
        1001, "GoingAway", True, 503,
        "The peer is leaving: a page was closed, or a node stops.",
    ),
    Code.PROTOCOL_BROKEN: CodeFacts(
        1002, "ProtocolBroken", False, 400,
        "The peer broke RFC 6455.",
    ),
    Code.DATA_UNSUPPORTED: CodeFacts(
        1003, "DataUnsupported", False, 415,
        "A text frame arrived on a binary connection, or a binary frame on a JSON connection.",
    ),
    Code.TEXT_INVALID: CodeFacts(
        1007, "TextInvalid", False, 400,
        "A text frame or a close reason is not UTF-8.",
    ),
    Code.POLICY_VIOLATED: CodeFacts(
        1008, "PolicyViolated", False, 403,
        "The peer exceeded an allowance of the protocol, such as too many pings.",
    ),
    Code.MESSAGE_TOO_BIG: CodeFacts(
        1009, "MessageTooBig", False, 413,
        "A message is larger than message_bytes_max.",
    ),
    Code.PEER_INTERNAL_ERROR: CodeFacts(
        1011, "PeerInternalError", True, 500,
        "The peer had an internal error.",
    ),
    Code.CLOSED_BY_OPERATOR: CodeFacts(
        4000, "ClosedByOperator", False, 403,
        "An operator closed this connection; do not reconnect.",
    ),
    Code.CONNECT_MISSING: CodeFacts(
        4001, "ConnectMissing", False, 401,
        "This listener requires `connect` as the first command, within handshake_ms_max.",
    ),
    Code.TOKEN_INVALID: CodeFacts(
        4002, "TokenInvalid", False, 401,
        "The token or certificate is not valid on this node.",
    ),
    Code.TOKEN_EXPIRED: CodeFacts(
        4003, "TokenExpired", False, 401,
        "The token expired, or its key was withdrawn, and the client did not renew it in time.",
    ),
    Code.CONNECT_REFUSED: CodeFacts(
        4004, "ConnectRefused", False, 403,
        "The authorizer refused this client.",
    ),
    Code.TOKEN_REVOKED: CodeFacts(
        4005, "TokenRevoked", False, 401,
        "The token, or the identity it names, has been revoked.",
    ),
    Code.TOKEN_MISSING: CodeFacts(
        4006, "TokenMissing", False, 401,
        "This connection or request needs a token.",
    ),
    Code.COMMAND_MALFORMED: CodeFacts(
        4100, "CommandMalformed", False, 400,
        "Malformed command: invalid JSON, duplicate key, missing or multiple verbs, or invalid id.",
    ),
    Code.SUBJECT_INVALID: CodeFacts(
        4101, "SubjectInvalid", False, 400,
        "The name is not a valid subject.",
    ),
    Code.PATTERN_INVALID: CodeFacts(
        4102, "PatternInvalid", False, 400,
        "The name is not a valid subject or pattern.",
    ),
    Code.COMMAND_UNKNOWN: CodeFacts(
        4103, "CommandUnknown", False, 400,
        "The verb does not exist.",
    ),
    Code.FIELD_INVALID: CodeFacts(
        4104, "FieldInvalid", False, 400,
        "A field has the wrong type, is outside its bounds, or does not go with another.",
    ),
    Code.FIELD_UNKNOWN: CodeFacts(
        4105, "FieldUnknown", False, 400,
        "The verb has no such field.",
    ),
    Code.CONTENT_INVALID: CodeFacts(
        4106, "ContentInvalid", False, 400,
        "A publish has no content, more than one, or bytes that are not base64.",
    ),
    Code.CONTENT_TOO_DEEP: CodeFacts(
        4107, "ContentTooDeep", False, 400,
        "The content nests deeper than content_depth_max.",
    ),
    Code.COMMANDS_TOO_MANY: CodeFacts(
        4108, "CommandsTooMany", True, 429,
        "An array holds more commands than commands_in_flight_max; none of it was executed.",
    ),
    Code.POSITION_INVALID: CodeFacts(
        4109, "PositionInvalid", False, 400,
        "`after` is not a valid position or map of positions.",
    ),
    Code.RESUME_TOKEN_INVALID: CodeFacts(
        4110, "ResumeTokenInvalid", False, 400,
        "`since` is not a valid resume token of this server.",
    ),
    Code.SUBSCRIPTION_UNKNOWN: CodeFacts(
        4111, "SubscriptionUnknown", False, 404,
        "This subscription does not exist on this connection.",
    ),
    Code.SUBSCRIPTIONS_TOO_MANY: CodeFacts(
        4112, "SubscriptionsTooMany", False, 429,
        "The connection, or its address, identity or tenant, has as many subscriptions or watches as it may have.",
    ),
    Code.SUBSCRIBE_FORBIDDEN: CodeFacts(
        4113, "SubscribeForbidden", False, 403,
        "Not authorized to subscribe to this subject or pattern.",
    ),
    Code.PUBLISH_FORBIDDEN: CodeFacts(
        4114, "PublishForbidden", False, 403,
        "Not authorized to publish on this subject.",
    ),
    Code.WATCH_FORBIDDEN: CodeFacts(
        4115, "WatchForbidden", False, 403,
        "Not authorized to watch: this needs the right to publish on the whole pattern.",
    ),
    Code.KEY_INVALID: CodeFacts(
        4116, "KeyInvalid", False, 400,
        "The idempotency key is empty, too long, or too short for an anonymous client.",
    ),
    Code.KEY_CONFLICT: CodeFacts(
        4117, "KeyConflict", False, 409,
        "The idempotency key was used with other content.",
    ),
    Code.ACK_UNAVAILABLE: CodeFacts(
        4118, "AckUnavailable", False, 422,
        "The node cannot provide the requested level of acknowledgement.",
    ),
    Code.DISK_FAILING: CodeFacts(
        4119, "DiskFailing", True, 503,
        "The journal disk is failing; publishes with ack=disk are rejected.",
    ),
    Code.SUBJECTS_TOO_MANY: CodeFacts(
        4120, "SubjectsTooMany", True, 503,
        "The node has subjects_max subjects and cannot create another one now.",
    ),
    Code.STREAMS_TOO_MANY: CodeFacts(
        4121, "StreamsTooMany", True, 503,
        "The streams of a shard (streams_per_shard_max) or the patterns of the node (patterns_bytes_max) have reached their limit.",
    ),
    Code.RATE_EXCEEDED: CodeFacts(
        4122, "RateExceeded", True, 429,
        "Rate limit exceeded for this connection, address, identity, tenant or subject. Retry later.",
    ),
    Code.NODE_BUSY: CodeFacts(
        4123, "NodeBusy", True, 503,
        "A byte limit of the whole node is reached; the command was not executed.",
    ),
    Code.NODE_DRAINING: CodeFacts(
        4124, "NodeDraining", True, 503,
        "The node is shutting down and accepts no new publish or subscription.",
    ),
    Code.AUTHORIZER_TIMEOUT: CodeFacts(
        4125, "AuthorizerTimeout", True, 503,
        "The authorizer did not answer in time; the command was not executed. Retry it.",
    ),
    Code.NUMBER_TOO_OLD: CodeFacts(
        4128, "NumberTooOld", False, 409,
        "The publish number is older than those that the node remembers; it is unknown whether this was published.",
    ),
    Code.REPEAT_UNKNOWN: CodeFacts(
        4129, "RepeatUnknown", False, 409,
        "The node cannot know whether this repeated publish was published before; it was not published now.",
    ),
    Code.SNAPSHOT_TOO_BIG: CodeFacts(
        4130, "SnapshotTooBig", False, 413,
        "The merged snapshot would exceed `snapshot_bytes_max`; nothing was published.",
    ),
    Code.SHARE_EXCEEDED: CodeFacts(
        4131, "ShareExceeded", False, 507,
        "The node is nearly full; the rest is reserved for identities and addresses that use less than a hundredth of it.",
    ),
    Code.FIELDS_TOO_MANY: CodeFacts(
        4132, "FieldsTooMany", False, 413,
        "The message, or the snapshot that it makes, has more fields than the limit `fields_max`; nothing was published.",
    ),
    Code.REQUEST_MALFORMED: CodeFacts(
        4150, "RequestMalformed", False, 400,
        "The HTTP request is malformed or ambiguous.",
    ),
    Code.PATH_UNKNOWN: CodeFacts(
        4151, "PathUnknown", False, 404,
        "The path does not exist.",
    ),
    Code.METHOD_FORBIDDEN: CodeFacts(
        4152, "MethodForbidden", False, 405,
        "The path does not support this method.",
    ),
    Code.VERSION_UNSUPPORTED: CodeFacts(
        4153, "VersionUnsupported", False, 426,
        "Unsupported WebSocket version: expected 13.",
    ),
    Code.SUBPROTOCOL_UNSUPPORTED: CodeFacts(
        4154, "SubprotocolUnsupported", False, 400,
        "None of the requested subprotocols is supported.",
    ),
    Code.HEADER_TOO_BIG: CodeFacts(
        4155, "HeaderTooBig", False, 431,
        "The request's headers exceed header_bytes_max or headers_max.",
    ),
    Code.BODY_TOO_BIG: CodeFacts(
        4156, "BodyTooBig", False, 413,
        "The body exceeds message_bytes_max, or the request must not have one.",
    ),
    Code.MEDIA_UNSUPPORTED: CodeFacts(
        4157, "MediaUnsupported", False, 415,
        "The media type of the body is not supported.",
    ),
    Code.ORIGIN_FORBIDDEN: CodeFacts(
        4158, "OriginForbidden", False, 403,
        "Pages of this origin may not connect.",
    ),
    Code.REQUEST_TIMEOUT: CodeFacts(
        4159, "RequestTimeout", True, 408,
        "The request did not arrive within handshake_ms_max.",
    ),
    Code.HTTP_UNSUPPORTED: CodeFacts(
        4160, "HttpUnsupported", False, 505,
        "Unsupported HTTP version: expected HTTP/1.1.",
    ),
    Code.SNAPSHOT_MISSING: CodeFacts(
        4162, "SnapshotMissing", True, 404,
        "The subject has no snapshot.",
    ),
    Code.EXPECTATION_FAILED: CodeFacts(
        4163, "ExpectationFailed", False, 417,
        "The Expect header is not supported: send the request without it.",
    ),
    Code.TARGET_TOO_LONG: CodeFacts(
        4164, "TargetTooLong", False, 414,
        "The request line is longer than header_bytes_max.",
    ),
    Code.METHOD_UNKNOWN: CodeFacts(
        4165, "MethodUnknown", False, 501,
        "The method is not supported.",
    ),
    Code.CODING_UNSUPPORTED: CodeFacts(
        4166, "CodingUnsupported", False, 501,
        "Unsupported transfer coding: expected chunked.",
    ),
    Code.HANDSHAKE_BROKEN: CodeFacts(
        4167, "HandshakeBroken", False, 400,
        "This listener expects a TLS handshake or a PROXY header and received something else.",
    ),
    Code.HOST_FORBIDDEN: CodeFacts(
        4168, "HostForbidden", False, 403,
        "This host name is not allowed for a request without Origin and token; add it to client.hosts.",
    ),
    Code.COMMAND_INTERNAL_ERROR: CodeFacts(
        4199, "CommandInternalError", True, 500,
        "The server had an internal error while executing this.",
    ),
    Code.DRAINING: CodeFacts(
        4200, "Draining", True, 503,
        "The node stops or makes room; reconnect after reconnect_after_ms.",
    ),
    Code.CONNECTIONS_TOO_MANY: CodeFacts(
        4201, "ConnectionsTooMany", True, 503,
        "The node has connections_max connections. Retry later.",
    ),
    Code.IDLE_TIMEOUT: CodeFacts(
        4202, "IdleTimeout", True, 408,
        "The peer sent and accepted nothing for idle_ms_max.",
    ),
    Code.MESSAGE_TIMEOUT: CodeFacts(
        4203, "MessageTimeout", True, 408,
        "A message did not arrive within message_ms_max of its first byte.",
    ),
    Code.AUTHORIZER_UNAVAILABLE: CodeFacts(
        4204, "AuthorizerUnavailable", True, 503,
        "The authorizer did not answer in time. Retry later.",
    ),
    Code.PARTIAL_BYTES_EXCEEDED: CodeFacts(
        4205, "PartialBytesExceeded", True, 503,
        "Half-received messages use partial_bytes_max on this node.",
    ),
    Code.CONNECTION_INTERNAL_ERROR: CodeFacts(
        4206, "ConnectionInternalError", True, 500,
        "The server had an internal error and closed this connection.",
    ),
    Code.MOVED_BY_OPERATOR: CodeFacts(
        4207, "MovedByOperator", True, 503,
        "An operator asks this client to connect to another node.",
    ),
    Code.CONNECTS_TOO_MANY: CodeFacts(
        4208, "ConnectsTooMany", True, 429,
        "Connection limit or connection rate of this address or identity exceeded. Retry later.",
    ),
    Code.RIGHTS_CHANGED: CodeFacts(
        4209, "RightsChanged", True, 503,
        "The node's configuration grants this client less than before. Reconnect to get the rights that it grants now.",
    ),
    Code.KEYS_UNAVAILABLE: CodeFacts(
        4210, "KeysUnavailable", True, 503,
        "The keys of the token's issuer cannot be fetched now. Retry later.",
    ),
}


def is_close(number: int) -> bool:
    """Does this code end a connection, and not just one command?"""
    return not 4100 <= number <= 4199
