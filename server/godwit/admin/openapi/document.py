"""The OpenAPI document: every path, its parameters and its answers. Pure.

Owns the list of operations; a test checks that it names exactly the existing routes. Operations that change something
require the token.
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
    """A route; `answer` is the name of a shape, or a media type if it is not JSON."""

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
PATTERN = Ask("pattern", "Only subjects that match this pattern.", TEXT)
SUBJECT = Ask("subject", "The subject.", {**TEXT, "pattern": SUBJECT_SHAPE}, is_required=True)
ONE = Ask("connection", "The connection's number.", CONNECTION, "path", True)
REVOKED = (
    Ask("identity", "The revoked identity.", TEXT),
    Ask("token_id", "Or the revoked token's ID.", TEXT),
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
    Operation("get", "/health/ready", "200 while new clients are accepted.", "Health", errors=(503,)),
    Operation("get", "/metrics", "Every metric, as OpenMetrics.", "", media="application/openmetrics-text"),
    Operation("get", "/openapi.json", "This document.", "", media=JSON),
    Operation("get", "/v1/node", "The node: name, version, condition, ports and time. A small answer.", "Node"),
    Operation("get", "/v1/stats", "Every metric, now and over windows.", "Stats",
              (Ask("windows", "Names of windows, separated by commas, or `all`.", TEXT),), (400,)),
    Operation("get", "/v1/stats/schema", "The JSON Schema of /v1/stats.", "", media="application/schema+json"),
    Operation("get", "/v1/series", "The last 15 minutes, one value per second.", "Series",
              (Ask("after", "Only values after this time.", COUNT), Ask("shards", "Also the values of each shard.", FLAG)), (400,)),
    Operation("get", "/v1/subjects", "Subjects: by name, or sorted and searched.", "Subjects",
              (PATTERN, Ask("after", "By name: begin after this subject.", TEXT), LIMIT,
               Ask("sort", "Sort by this column, in a list that is at most seconds old.", {**TEXT, "enum": list(SORTS)}),
               Ask("order", "Ascending or descending.", {**TEXT, "enum": ["asc", "desc"]}),
               Ask("search", "Words that the name must contain; lower case matches upper case too.", {**TEXT, "maxLength": 1_024}),
               Ask("offset", "Number of rows to skip, when sorted or searched.", {"type": "integer", "minimum": 0, "maximum": 2**32 - 1})),
              (400, 503)),
    Operation("get", "/v1/subject", "One subject.", "Subject", (SUBJECT,), (400, 404)),
    Operation("get", "/v1/connections", "Connections, in a stable order.", "Connections",
              (Ask("search", "Text in the address, identity, client name, number (hexadecimal) or protocol.", {**TEXT, "maxLength": 256}),
               Ask("behind", "Only connections with a subscription that is behind the newest message.", FLAG),
               Ask("after", "`next` of the previous page.", {**TEXT, "pattern": "^[0-9a-f]{0,16}$"}), LIMIT), (400, 503)),
    Operation("get", "/v1/connections/{connection}", "One connection, with the progress of each of its subscriptions.", "Connection",
              (ONE,), (400, 404)),
    Operation("delete", "/v1/connections/{connection}", "Closes the connection with code 4000; Godwit's clients then do not reconnect.", "",
              (ONE,), (400, 404), 204),
    Operation("get", "/v1/config", "The configuration in force, with the source of each value. Secrets are hidden.", "Config"),
    Operation("get", "/v1/limits", "Every limit: its value, its use, and how often it was reached.", "Limits"),
    Operation("get", "/v1/refusals", "The last refusals, with their reasons.", "Refusals"),
    Operation("get", "/v1/revocations", "The revocations in force.", "Revocations"),
    Operation("post", "/v1/revocations", "Revokes an identity or a token: closes its connections and refuses it from now on.", "Revoked",
              errors=(400, 415, 507), status=201, body=REVOCATION),
    Operation("delete", "/v1/revocations", "Undoes a revocation.", "Lifted", REVOKED, (400, 404)),
    Operation("post", "/v1/purge", "Permanently deletes a subject's messages and snapshot.", "Purged", (SUBJECT,), (400, 404)),
    Operation("post", "/v1/reload", "Reads the configuration again, as SIGHUP does.", "Reloaded", errors=(409,)),
)  # fmt: skip

INTRODUCTION = (
    "Health, metrics, lists, and changes by operators while the node runs. The console uses only these operations. "
    "Operations that change something need the admin token (`admin.token`) and are refused for pages of other origins. With "
    "`admin.token_for_reads` everything under /v1 and /metrics needs the token. An error is application/problem+json."
)


def make_document() -> dict[str, Any]:
    """The OpenAPI 3.1 document."""
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
    described: dict[str, Any] = {
        "operationId": f"{operation.method}{operation.path.replace('/', '_').replace('{', '').replace('}', '').replace('.', '_')}",
        "summary": operation.sentence,
        "responses": {
            str(operation.status): _answer(operation),
            **{str(code): _problem(code, operation) for code in errors},
        },
    }
    if operation.asks:
        described["parameters"] = [
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
        described["requestBody"] = {"required": True, "content": {JSON: {"schema": operation.body}}}
    if guarded:
        described["security"] = [{"admin": []}] if changes else [{}, {"admin": []}]
    return described


def _answer(operation: Operation) -> dict[str, Any]:
    if operation.status == 204:
        return {"description": "Done."}
    schema = (
        refer(operation.answer) if operation.answer else ({"type": "object"} if "json" in operation.media else TEXT)
    )
    return {"description": operation.sentence, "content": {operation.media: {"schema": schema}}}


def _problem(code: int, operation: Operation) -> dict[str, Any]:
    if operation.answer == "Health" and code == 503:
        return {
            "description": "The process does not work, or accepts no clients.",
            "content": {JSON: {"schema": refer("Health")}},
        }
    return {"description": REASONS[code], "content": {PROBLEM: {"schema": refer("Problem")}}}


REASONS = {
    400: "The request is not valid; the title says what is expected.",
    401: "This needs the admin token.",
    403: "The Host or Origin is not allowed, or no admin token is set.",
    404: "It does not exist.",
    409: "The new configuration is not valid; nothing has changed.",
    415: "The body must be application/json.",
    429: "Too many wrong tokens from this address.",
    503: "Too many lists are requested at once. Retry later.",
    507: "It could not be written to the disk.",
}
