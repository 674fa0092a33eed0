"""JSON Schemas of the admin port's answers, by the names that document.py uses. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..series import NODE_COLUMNS, SHARD_COLUMNS

Schema = dict[str, Any]
TEXT: Schema = {"type": "string"}
COUNT: Schema = {"type": "integer", "minimum": 0}
NUMBER: Schema = {"type": "number", "minimum": 0}
FLAG: Schema = {"type": "boolean"}
KEPT: Schema = {**FLAG, "description": "False if the disk is failing: a crash can undo this."}
TIME_MS: Schema = {**COUNT, "description": "Wall clock of the node, milliseconds since 1970."}
VALUE: Schema = {"type": ["string", "integer", "boolean", "array", "null"], "items": {}}
CONNECTION: Schema = {
    **TEXT,
    "pattern": "^[0-9a-f]{1,16}$",
    "description": "The connection's number in hexadecimal, as in logs and the console.",
}


def refer(name: str) -> Schema:
    """A reference to a shape."""
    return {"$ref": f"#/components/schemas/{name}"}


def maybe(schema: Mapping[str, Any]) -> Schema:
    """The shape, or null."""
    return {"anyOf": [schema, {"type": "null"}]}


def rows(item: Schema) -> Schema:
    """A list of a shape."""
    return {"type": "array", "items": item}


def shape(sentence: str, /, **properties: Schema) -> Schema:
    """An object with these members; an optional member's name ends in `_`."""
    return {
        "type": "object",
        "description": sentence,
        "properties": {name.removesuffix("_"): schema for name, schema in properties.items()},
        "required": [name for name in properties if not name.endswith("_")],
    }


def _columns(names: tuple[str, ...]) -> Schema:
    return shape("One value for each time; null if it is not known.", **{name: rows(maybe(NUMBER)) for name in names})


SHAPES: dict[str, Schema] = {
    "Problem": shape("Why a request was refused.", status=COUNT, title={**TEXT, "description": "One sentence."}),
    "Health": shape("The node's condition.", condition=TEXT, reason_=TEXT, journal_=TEXT, extensions_=TEXT),
    "Node": shape(
        "The node and its condition.",
        node=TEXT,
        version=TEXT,
        condition={**TEXT, "enum": ["starting", "ready", "draining", "failed", "stopped"]},
        uptime_ms=COUNT,
        authorizer=shape(
            "Calls of the authorizer since the start; `waiting`: calls without an answer yet.", waiting=COUNT
        ),
        audits=shape(
            "Events that audits received, lost and failed to process since the start; `lag`: events that wait.",
            lag=COUNT,
        ),
        client={**TEXT, "description": "Address of the client port."},
        driver={**TEXT, "description": "How the node uses the kernel: `io_uring` or `readiness` (epoll)."},
        shards=COUNT,
        cores=maybe(COUNT),
        time_ms=TIME_MS,
        has_demo={**FLAG, "description": "The node publishes the telemetry of its host on /host/**."},
        journal={**TEXT, "description": "The error of the journal's disk while it fails; otherwise empty."},
        can_change={**FLAG, "description": "An admin token is set; with it this port accepts changes."},
    ),
    "Stats": shape(
        "Every metric. The JSON Schema at /v1/stats/schema has the meaning of each.",
        node=TEXT,
        version=TEXT,
        condition=TEXT,
        uptime_ms=COUNT,
        client=TEXT,
        time=TIME_MS,
        now={"type": "object", "description": "The value of each metric in the last second."},
        windows={
            "type": "object",
            "description": "For each requested window: max, mean and deviation of every metric.",
        },
        engine={
            "type": "object",
            "description": "The engine's counters since the start. They can change in any version.",
        },
    ),
    "Series": shape(
        "The last minutes, one value per second, as columns. Each column has one value for each time.",
        interval_ms=COUNT,
        samples_max=COUNT,
        time_ms=rows(TIME_MS),
        node=_columns(NODE_COLUMNS),
        shards=rows(_columns(SHARD_COLUMNS)),
    ),
    "Subject": shape(
        "A subject and its log.",
        subject=TEXT,
        at={**TEXT, "description": "The position of its last message."},
        messages={**COUNT, "description": "Messages kept."},
        bytes=COUNT,
        subscribers={
            **COUNT,
            "description": "Subscriptions of connected clients to the subject itself, without those to patterns. A client that has left "
            "can still be counted for a second.",
        },
        has_snapshot=FLAG,
        last_ms={**TIME_MS, "description": "Time of its last known message; 0 if there is none."},
        rate_per_s_=maybe(
            {**NUMBER, "description": "Messages per second in the last seconds; null when the subject is first listed."}
        ),
    ),
    "Subjects": shape(
        "A page. By name, `next` is the `after` of the next page, null on the last. Sorted or searched, `total` is the number of rows.",
        rows=rows(refer("Subject")),
        next_=maybe(TEXT),
        total_=COUNT,
        taken_ms_={**TIME_MS, "description": "When the list was made, at most seconds ago."},
        took_ms_=COUNT,
        is_partial_={**FLAG, "description": "There are more subjects than the list can hold (a million)."},
    ),
    "Stand": shape(
        "The progress of one subscription.",
        selector=TEXT,
        stand={**TEXT, "enum": ["live", "behind", "joining"]},
        lag_bytes={
            **COUNT,
            "description": "Encoded bytes that it has not been sent, while they are in the stream's window.",
        },
        lag_arrivals={
            **COUNT,
            "description": "Messages that the node has accepted since the last one it was sent, on all subjects.",
        },
        lag_messages=maybe(
            {
                **COUNT,
                "description": "Messages of its subject that it has not been sent; null if they would have to be counted.",
            }
        ),
        conflate_ms=COUNT,
    ),
    "Connection": shape(
        "A connection.",
        connection=CONNECTION,
        shard=COUNT,
        address=TEXT,
        identity={**TEXT, "description": "Empty: anonymous."},
        tenant={**TEXT, "description": "Empty: none."},
        authority={**TEXT, "description": "What vouches for the identity, such as `jwt:ISSUER` or `certificate`."},
        client={**TEXT, "description": "The name that the client gave."},
        protocol=TEXT,
        connected_ms=COUNT,
        subscriptions=COUNT,
        behind={**COUNT, "description": "Subscriptions that are behind the newest message."},
        lag_bytes=COUNT,
        lag_arrivals=COUNT,
        stands_=rows(refer("Stand")),
    ),
    "Connections": shape(
        "A page. `next` is the `after` of the next page, null on the last. A page can be empty although later pages have rows.",
        rows=rows(refer("Connection")),
        next=maybe(TEXT),
    ),
    "Config": shape(
        "Every value in force, by section.",
        sections=rows(shape("A section.", name=TEXT, sentence=TEXT, values=rows(refer("ConfigValue")))),
        patterns=rows(shape("Settings of the subjects of one pattern.", pattern=TEXT)),
        issuers=rows(shape("An issuer whose tokens are accepted.", issuer=TEXT)),
    ),
    "ConfigValue": shape(
        "A value and its source.",
        key=TEXT,
        value={**VALUE, "description": "`(secret)` for a secret that is set."},
        default=VALUE,
        source={**TEXT, "enum": ["default", "file", "environment", "flag"]},
        where={**TEXT, "description": "The file, or the environment variable."},
        variable=TEXT,
        bound={**TEXT, "description": "Accepted values."},
        sentence=TEXT,
        is_secret=FLAG,
        is_live={**FLAG, "description": "A reload changes it; otherwise it needs a restart."},
    ),
    "Limits": shape("Every limit.", limits=rows(refer("Limit"))),
    "Limit": shape(
        "A limit, its use, and how often it was reached.",
        name=TEXT,
        value=COUNT,
        default=COUNT,
        minimum=COUNT,
        maximum=COUNT,
        scope={
            **TEXT,
            "enum": ["node", "shard", "connection", "subject", "address", "identity", "tenant", "session", "message"],
        },
        code=maybe({**TEXT, "description": "The error code that a client receives at it."}),
        code_number=maybe(COUNT),
        sentence=TEXT,
        source=TEXT,
        used=maybe({**COUNT, "description": "Current use; for a limit of each shard, that of the fullest one."}),
        hits=maybe({**COUNT, "description": "How often it was reached since the start; null if this is not counted."}),
        counted_by=maybe(
            {**TEXT, "description": "The metric that counts it, or the error code, which several limits can share."}
        ),
        is_ordinary={**FLAG, "description": "The count is of old messages that expired as intended, not of refusals."},
    ),
    "Refusals": shape("The last refusals, newest first.", rows=rows(refer("Refusal"))),
    "Refusal": shape(
        "A refused client, request or command.",
        number=COUNT,
        time_ms=TIME_MS,
        code=COUNT,
        name=TEXT,
        reason=TEXT,
        address=TEXT,
        connection=maybe(CONNECTION),
        identity=TEXT,
        tenant=TEXT,
        authority=TEXT,
    ),
    "Revocation": shape(
        "A revoked identity or token.",
        identity_=TEXT,
        token_id_=TEXT,
        tenant_=TEXT,
        authority_=TEXT,
        until_ms_=maybe(COUNT),
    ),
    "Revoked": shape(
        "The effect of a revocation.",
        identity_=TEXT,
        token_id_=TEXT,
        tenant_=TEXT,
        authority_=TEXT,
        until_ms_=maybe(COUNT),
        connections=COUNT,
        sessions={**COUNT, "description": "MQTT sessions that ended; 0 for a token ID."},
        wills={**COUNT, "description": "Wills that will not be published."},
        kept=KEPT,
        warning={**TEXT, "description": "Empty if there is none."},
    ),
    "Revocations": shape("The revocations in force.", rows=rows(refer("Revocation")), count=COUNT),
    "Lifted": shape(
        "A revocation that was undone.",
        identity_=TEXT,
        token_id_=TEXT,
        tenant_=TEXT,
        authority_=TEXT,
        lifted=FLAG,
        kept=KEPT,
    ),
    "Purged": shape("A purged subject.", subject=TEXT, purged=COUNT, kept=KEPT),
    "Reloaded": {"type": "object", "description": "The settings that took effect, and those that need a restart."},
}
