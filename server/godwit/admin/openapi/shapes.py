"""The shapes of the admin port's answers as JSON Schema. Pure; each is named, and document.py refers to it by that name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..series import NODE_COLUMNS, SHARD_COLUMNS

Schema = dict[str, Any]
TEXT: Schema = {"type": "string"}
COUNT: Schema = {"type": "integer", "minimum": 0}
NUMBER: Schema = {"type": "number", "minimum": 0}
FLAG: Schema = {"type": "boolean"}
KEPT: Schema = {**FLAG, "description": "False: the disk is failing, and a crash may undo this."}
TIME_MS: Schema = {**COUNT, "description": "Wall clock of the node, milliseconds since 1970."}
VALUE: Schema = {"type": ["string", "integer", "boolean", "array", "null"], "items": {}}
CONNECTION: Schema = {
    **TEXT,
    "pattern": "^[0-9a-f]{1,16}$",
    "description": "A connection's number, hexadecimal, as logs and the console show it.",
}


def refer(name: str) -> Schema:
    """A shape by its name."""
    return {"$ref": f"#/components/schemas/{name}"}


def maybe(schema: Mapping[str, Any]) -> Schema:
    """The shape, or null."""
    return {"anyOf": [schema, {"type": "null"}]}


def rows(item: Schema) -> Schema:
    """A list of a shape."""
    return {"type": "array", "items": item}


def shape(sentence: str, /, **properties: Schema) -> Schema:
    """An object that has all of these; the name of an optional one ends in `_`."""
    return {
        "type": "object",
        "description": sentence,
        "properties": {name.removesuffix("_"): schema for name, schema in properties.items()},
        "required": [name for name in properties if not name.endswith("_")],
    }


def _columns(names: tuple[str, ...]) -> Schema:
    return shape("One value for each time; null: not told.", **{name: rows(maybe(NUMBER)) for name in names})


SHAPES: dict[str, Schema] = {
    "Problem": shape("Why a request was refused.", status=COUNT, title={**TEXT, "description": "One sentence."}),
    "Health": shape("The node's condition.", condition=TEXT, reason_=TEXT, journal_=TEXT, extensions_=TEXT),
    "Node": shape(
        "Who this node is and how it is.",
        node=TEXT,
        version=TEXT,
        condition={**TEXT, "enum": ["starting", "ready", "draining", "failed", "stopped"]},
        uptime_ms=COUNT,
        authorizer=shape("Questions to the authorizer since the start; `waiting` now.", waiting=COUNT),
        audits=shape("What audits took, lost and failed at since the start; `behind` now.", behind=COUNT),
        client={**TEXT, "description": "Where the client port listens."},
        driver={**TEXT, "description": "How sockets are driven."},
        shards=COUNT,
        cores=maybe(COUNT),
        time_ms=TIME_MS,
        has_demo={**FLAG, "description": "It publishes its host's telemetry on /host/**."},
        journal={**TEXT, "description": "What the journal's disk says while it fails; else empty."},
        can_change={**FLAG, "description": "An admin token is set: who shows it may change something here."},
    ),
    "Stats": shape(
        "Every figure; its own JSON Schema, with each figure's meaning, is at /v1/stats/schema.",
        node=TEXT,
        version=TEXT,
        condition=TEXT,
        uptime_ms=COUNT,
        client=TEXT,
        time=TIME_MS,
        now={"type": "object", "description": "Each figure's value of the last second."},
        windows={"type": "object", "description": "Of each window asked for: max, mean and deviation of every figure."},
        engine={"type": "object", "description": "The engine's counters since the start; no contract."},
    ),
    "Series": shape(
        "The last minutes, second by second, as columns: as many values in each as there are times.",
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
            "description": "Subscriptions to the subject itself of clients that are connected; those to patterns that hold it are not "
            "counted. Who left may count for a second or so.",
        },
        has_snapshot=FLAG,
        last_ms={**TIME_MS, "description": "When its last known message came; 0: none is known."},
        rate_per_s_=maybe({**NUMBER, "description": "Messages a second lately; null at its first sight."}),
    ),
    "Subjects": shape(
        "A page. In the order of names `next` is `after` of the next page, null on the last; sorted or searched, `total` tells how many.",
        rows=rows(refer("Subject")),
        next_=maybe(TEXT),
        total_=COUNT,
        taken_ms_={**TIME_MS, "description": "When the survey was finished that this is from; at most seconds ago."},
        took_ms_=COUNT,
        is_partial_={**FLAG, "description": "There are more subjects than a survey takes (a million)."},
    ),
    "Stand": shape(
        "Where one subscription stands.",
        selector=TEXT,
        stand={**TEXT, "enum": ["live", "behind", "joining"]},
        lag_bytes={**COUNT, "description": "Encoded bytes between it and the head of its stream's window."},
        lag_arrivals={**COUNT, "description": "Messages the node accepted since the one it stands at."},
        lag_messages=maybe(
            {**COUNT, "description": "Messages of its subject it has not been sent; null: not known without counting."}
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
        authority={**TEXT, "description": "Who vouches for the identity."},
        client={**TEXT, "description": "What the client calls itself."},
        protocol=TEXT,
        connected_ms=COUNT,
        subscriptions=COUNT,
        behind={**COUNT, "description": "Subscriptions that are not at the head of their stream."},
        lag_bytes=COUNT,
        lag_arrivals=COUNT,
        stands_=rows(refer("Stand")),
    ),
    "Connections": shape(
        "A page. `next` is `after` of the next one, null on the last; a page may be empty with more to be searched behind it.",
        rows=rows(refer("Connection")),
        next=maybe(TEXT),
    ),
    "Config": shape(
        "Every value in force, by section.",
        sections=rows(shape("A section.", name=TEXT, sentence=TEXT, values=rows(refer("ConfigValue")))),
        patterns=rows(shape("What differs for the subjects of a pattern.", pattern=TEXT)),
        issuers=rows(shape("Whose signed tokens are taken.", issuer=TEXT)),
    ),
    "ConfigValue": shape(
        "A value and where it came from.",
        key=TEXT,
        value={**VALUE, "description": "`(secret)` where it is one and is set."},
        default=VALUE,
        source={**TEXT, "enum": ["default", "file", "environment", "flag"]},
        where={**TEXT, "description": "The file or the variable."},
        variable=TEXT,
        bound={**TEXT, "description": "What is accepted."},
        sentence=TEXT,
        is_secret=FLAG,
        is_live={**FLAG, "description": "A running node takes it over when it is reloaded."},
    ),
    "Limits": shape("Every limit.", limits=rows(refer("Limit"))),
    "Limit": shape(
        "A limit, how much of it is used, and how often it was hit.",
        name=TEXT,
        value=COUNT,
        default=COUNT,
        minimum=COUNT,
        maximum=COUNT,
        scope={
            **TEXT,
            "enum": ["node", "shard", "connection", "subject", "address", "identity", "tenant", "session", "message"],
        },
        code=maybe({**TEXT, "description": "What a client is told at it."}),
        code_number=maybe(COUNT),
        sentence=TEXT,
        source=TEXT,
        used=maybe({**COUNT, "description": "Now; of a shard's limit, the fullest shard's."}),
        hits=maybe({**COUNT, "description": "Since the start; null: nothing counts it."}),
        counted_by=maybe({**TEXT, "description": "The counter, or the code that several limits may share."}),
        is_ordinary={**FLAG, "description": "What is counted are old messages that went as they should: no hit."},
    ),
    "Refusals": shape("The last refusals, newest first.", rows=rows(refer("Refusal"))),
    "Refusal": shape(
        "Somebody was told no.",
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
        "Whom the node lets in no more.",
        identity_=TEXT,
        token_id_=TEXT,
        tenant_=TEXT,
        authority_=TEXT,
        until_ms_=maybe(COUNT),
    ),
    "Revoked": shape(
        "What a revocation ended.",
        identity_=TEXT,
        token_id_=TEXT,
        tenant_=TEXT,
        authority_=TEXT,
        until_ms_=maybe(COUNT),
        connections=COUNT,
        sessions={**COUNT, "description": "MQTT sessions; of a token id none."},
        wills={**COUNT, "description": "Wills that will not be published."},
        kept=KEPT,
        warning={**TEXT, "description": "Empty: none."},
    ),
    "Revocations": shape("Those in force.", rows=rows(refer("Revocation")), count=COUNT),
    "Lifted": shape(
        "A revocation that is no more.",
        identity_=TEXT,
        token_id_=TEXT,
        tenant_=TEXT,
        authority_=TEXT,
        lifted=FLAG,
        kept=KEPT,
    ),
    "Purged": shape("A subject whose messages went.", subject=TEXT, purged=COUNT, kept=KEPT),
    "Reloaded": {"type": "object", "description": "What was taken over and what waits for a restart."},
}
