"""The document itself: every path, what it asks with, what it answers. Pure.

Owns the list of operations; a test holds that it names exactly the routes there are. What changes something carries the token.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ... import __version__
from ..subjects import SORTS
from .shapes import CONNECTION, COUNT, FLAG, SHAPES, TEXT, Schema, refer

JSON, PROBLEM = "application/json", "application/problem+json"


SUBJECT_SHAPE = "^(/[^/\\x00-\\x1f\\x7f-\\x9f]+)+$"


class Ask(NamedTuple):
    """A parameter."""

    name: str
    sentence: str
    schema: Schema
    place: str = "query"
    is_required: bool = False


class Operation(NamedTuple):
    """A route; `answer` is a shape's name, or a media type where it is not JSON."""

    method: str
    path: str
    sentence: str
    answer: str
    asks: tuple[Ask, ...] = ()
    errors: tuple[int, ...] = ()
    status: int = 200
    body: Schema | None = None
    media: str = JSON


LIMIT = Ask("limit", "Rows of a page.", {"type": "integer", "minimum": 1, "maximum": 1_000, "default": 100})
PATTERN = Ask("pattern", "Only subjects that it holds.", TEXT)
SUBJECT = Ask("subject", "The subject.", {**TEXT, "pattern": SUBJECT_SHAPE}, is_required=True)
ONE = Ask("connection", "The connection's number.", CONNECTION, "path", True)
REVOKED = (
    Ask("identity", "Whose.", TEXT),
    Ask("token_id", "Or of which token.", TEXT),
    Ask("tenant", "The tenant that the revocation names.", TEXT),
    Ask("authority", "The authority that the revocation names.", TEXT),
)
REVOCATION: Schema = {
    "type": "object",
    "properties": {
        "identity": TEXT,
        "token_id": TEXT,
        "tenant": TEXT,
        "authority": TEXT,
        "until_ms": {"type": "integer", "minimum": 0},
    },
    "minProperties": 1,
    "additionalProperties": False,
}

OPERATIONS: tuple[Operation, ...] = (
    Operation("get", "/health/live", "200 while the process works: restart it when this fails.", "Health", errors=(503,)),
    Operation("get", "/health/ready", "200 while new clients are welcome.", "Health", errors=(503,)),
    Operation("get", "/metrics", "Every figure in the OpenMetrics form.", "", media="application/openmetrics-text"),
    Operation("get", "/openapi.json", "This document.", "", media=JSON),
    Operation("get", "/v1/node", "Who this node is and how it is; small.", "Node"),
    Operation("get", "/v1/stats", "Every figure now, and over windows.", "Stats",
              (Ask("windows", "Names of windows, after commas, or `all`.", TEXT),), (400,)),
    Operation("get", "/v1/stats/schema", "The JSON Schema of /v1/stats.", "", media="application/schema+json"),
    Operation("get", "/v1/series", "The last quarter of an hour, second by second.", "Series",
              (Ask("after", "Only what came after this time of the node.", COUNT), Ask("shards", "Also shard by shard.", FLAG)), (400,)),
    Operation("get", "/v1/subjects", "Subjects: in the order of names, or sorted and searched.", "Subjects",
              (PATTERN, Ask("after", "In the order of names: begin behind this one.", TEXT), LIMIT,
               Ask("sort", "Sorts, from a survey that is at most seconds old.", {**TEXT, "enum": list(SORTS)}),
               Ask("order", "Rising or falling.", {**TEXT, "enum": ["asc", "desc"]}),
               Ask("search", "Words that the name must hold; small letters stand for capitals too.", {**TEXT, "maxLength": 1_024}),
               Ask("offset", "Where the page begins, when sorted or searched.", {"type": "integer", "minimum": 0, "maximum": 2**32 - 1})),
              (400, 503)),
    Operation("get", "/v1/subject", "One subject.", "Subject", (SUBJECT,), (400, 404)),
    Operation("get", "/v1/connections", "Connections, in the order of their places.", "Connections",
              (Ask("search", "In the address, identity, client name or number (hexadecimal), or the wire.", {**TEXT, "maxLength": 256}),
               Ask("behind", "Only those that are not at the head of all their streams.", FLAG),
               Ask("after", "`next` of the page before.", {**TEXT, "pattern": "^[0-9a-f]{0,16}$"}), LIMIT), (400, 503)),
    Operation("get", "/v1/connections/{connection}", "One connection, and where each of its subscriptions stands.", "Connection",
              (ONE,), (400, 404)),
    Operation("delete", "/v1/connections/{connection}", "Closes it, with code 4000: it does not come back by itself.", "",
              (ONE,), (400, 404), 204),
    Operation("get", "/v1/config", "The configuration in force, with where each value came from. Secrets are not told.", "Config"),
    Operation("get", "/v1/limits", "Every limit: its value, what is used of it, how often it was hit.", "Limits"),
    Operation("get", "/v1/refusals", "Who was refused last, and why.", "Refusals"),
    Operation("get", "/v1/revocations", "Whom the node lets in no more.", "Revocations"),
    Operation("post", "/v1/revocations", "Closes and keeps out an identity, or who shows a token.", "Revoked",
              errors=(400, 415, 507), status=201, body=REVOCATION),
    Operation("delete", "/v1/revocations", "Lifts a revocation.", "Lifted", REVOKED, (400, 404)),
    Operation("post", "/v1/purge", "Forgets a subject's messages and its snapshot.", "Purged", (SUBJECT,), (400, 404)),
    Operation("post", "/v1/reload", "Reads the configuration again, as SIGHUP does.", "Reloaded", errors=(409,)),
)  # fmt: skip

INTRODUCTION = (
    "Health, figures, lists, and what an operator changes while the node runs. The console shows nothing that is not from here. "
    "Whatever changes something asks for the admin token (`admin.token`), and pages of other origins may not; with "
    "`admin.token_for_reads` everything under /v1 and /metrics does. An error is application/problem+json."
)


def make_document() -> dict[str, Any]:
    """OpenAPI 3.1."""
    paths: dict[str, Any] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = _describe(operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Godwit admin port", "version": __version__, "description": INTRODUCTION},
        "paths": paths,
        "components": {
            "schemas": SHAPES,
            "securitySchemes": {"admin": {"type": "http", "scheme": "bearer", "description": "The admin token."}},
        },
    }


def _describe(operation: Operation) -> dict[str, Any]:
    changes = operation.method != "get"
    guarded = changes or operation.path.startswith("/v1/") or operation.path == "/metrics"
    errors = sorted({*operation.errors, 403, *((401, 429) if guarded else ())})
    told: dict[str, Any] = {
        "operationId": f"{operation.method}{operation.path.replace('/', '_').replace('{', '').replace('}', '').replace('.', '_')}",
        "summary": operation.sentence,
        "responses": {
            str(operation.status): _answer(operation),
            **{str(code): _problem(code, operation) for code in errors},
        },
    }
    if operation.asks:
        told["parameters"] = [
            {
                "name": ask.name,
                "in": ask.place,
                "required": ask.is_required,
                "description": ask.sentence,
                "schema": ask.schema,
            }
            for ask in operation.asks
        ]
    if operation.body is not None:
        told["requestBody"] = {"required": True, "content": {JSON: {"schema": operation.body}}}
    if guarded:
        told["security"] = [{"admin": []}] if changes else [{}, {"admin": []}]
    return told


def _answer(operation: Operation) -> dict[str, Any]:
    if operation.status == 204:
        return {"description": "Done."}
    schema = (
        refer(operation.answer) if operation.answer else ({"type": "object"} if "json" in operation.media else TEXT)
    )
    return {"description": operation.sentence, "content": {operation.media: {"schema": schema}}}


def _problem(code: int, operation: Operation) -> dict[str, Any]:
    if operation.answer == "Health" and code == 503:
        return {"description": "It is not.", "content": {JSON: {"schema": refer("Health")}}}
    return {"description": REASONS[code], "content": {PROBLEM: {"schema": refer("Problem")}}}


REASONS = {
    400: "What was asked does not fit; the title says what would.",
    401: "This needs the admin token.",
    403: "This port does not go by that name, or another origin's page asked, or no admin token is set.",
    404: "There is no such thing.",
    409: "The new configuration is wrong; nothing has changed.",
    415: "The body must be application/json.",
    429: "Too many wrong tokens from this address.",
    503: "Too many lists are asked for at once.",
    507: "It could not be kept on disk.",
}
