"""The OpenAPI document, generated from the application's routes and the types of their bodies, so that it is always current."""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Iterable
from functools import cache
from typing import Any

import msgspec
from aiohttp.web import AbstractRoute, Request

from ..codes import DISPATCH_CODES
from ..model import State
from ..pure.event_types import EVENT_TYPES
from . import bodies
from .operating.bodies import ProviderBody

BODIES: dict[tuple[str, str], type] = {
    ("POST", "/v1/notifications"): bodies.NotificationBody,
    ("PUT", "/v1/notifications/{id}"): bodies.NotificationBody,
    ("POST", "/v1/notifications/batch"): bodies.BatchItem,
    ("POST", "/v1/notifications/check"): bodies.NotificationBody,
    ("POST", "/v1/dead-letters/replay"): bodies.ReplayBody,
    ("PUT", "/v1/tenants/{tenant}"): bodies.TenantBody,
    ("POST", "/v1/keys"): bodies.KeyBody,
    ("PUT", "/v1/groups/{group}/version"): bodies.VersionBody,
    ("PUT", "/v1/receivers/{receiver}"): bodies.ReceiverBody,
    ("PATCH", "/v1/receivers/{receiver}"): bodies.ReceiverPatch,
    ("PUT", "/v1/receivers/{receiver}/addresses/{address}"): bodies.AddressBody,
    ("PUT", "/v1/receivers/{receiver}/preferences"): bodies.PreferencesBody,
    ("PUT", "/v1/inbox/preferences"): bodies.PreferencesBody,
    ("POST", "/v1/inbox/marks"): bodies.MarkBody,
    ("PUT", "/v1/categories/{category}"): bodies.CategoryBody,
    ("PUT", "/v1/suppressions/{channel}/{value}"): bodies.SuppressionBody,
    ("PUT", "/v1/webhooks/{webhook}"): bodies.WebhookBody,
    ("POST", "/v1/webhooks/{webhook}/replay"): bodies.ReplayEventsBody,
    ("PUT", "/v1/templates/{template}"): bodies.TemplateBody,
    ("POST", "/v1/templates/{template}/preview"): bodies.PreviewBody,
    ("PUT", "/v1/providers/{provider}"): ProviderBody,
}
"""The JSON body of each request that has one."""
BATCH = bodies.BatchItem
"""Its body is an array, or one object on each line."""
OPTIONAL = (
    bodies.ReplayBody,
    bodies.TenantBody,
    bodies.ReceiverBody,
    bodies.CategoryBody,
    bodies.SuppressionBody,
    bodies.PreviewBody,
)
"""Optional bodies."""
_TYPES = f"({'|'.join(EVENT_TYPES)})"
NUMBER = {"type": "integer", "minimum": 0, "maximum": 10**18 - 1}
QUERIES: dict[tuple[str, str], dict[str, dict[str, Any]]] = {
    ("GET", "/v1/events"): {
        "after": NUMBER,
        "limit": NUMBER,
        "wait": {**NUMBER, "description": "Seconds to wait for an event."},
        "types": {"type": "string", "pattern": f"^({_TYPES}(,{_TYPES})*)?$".replace(".", r"\.")},
        "detail": {"enum": ["counts", "deliveries"]},
    },
    ("GET", "/v1/notifications/{id}/deliveries"): {
        "after": NUMBER,
        "channel": {"enum": ["inbox", "webhook", "email"]},
        "state": {"enum": [state.label for state in State]},
    },
    ("GET", "/v1/notifications"): {
        "state": {"enum": ["accepted", "running", "paused", "settled", "cancelled"]},
        "group": {"type": "string"},
        "after": NUMBER,
        "limit": NUMBER,
    },
    ("GET", "/v1/receivers"): {"prefix": {"type": "string"}, "after": {"type": "string"}, "limit": NUMBER},
    ("GET", "/v1/dead-letters"): {"reason": {"type": "string"}, "after": {"type": "string"}},
    ("GET", "/v1/inbox"): {
        "after": {"type": "string"},
        "before": {"type": "string"},
        "limit": NUMBER,
        "wait": {**NUMBER, "description": "Seconds to wait for a change."},
        "state": {"type": "string"},
        "category": {"type": "string"},
    },
    ("GET", "/v1/templates/{template}"): {"version": NUMBER},
    ("POST", "/v1/groups/{group}/import"): {"version": NUMBER, "after_line": NUMBER},
    ("POST", "/v1/receivers/import"): {"after_line": NUMBER},
}
_KEYS = (
    "An API key. A test key sends to the sandbox only, sees and ends what test keys sent, and manages receivers `sandbox:…`; "
    "every other request is 403 (4331)."
)
OPEN = ("/v1/keys.json", "/health/live", "/health/ready", "/u/{token}")
"""Paths without an API key."""


def list_queries(request: Request) -> Collection[str] | None:
    """The query parameters of a request; None if any are allowed: in links that others forward."""
    resource = request.match_info.route.resource
    path = "" if resource is None else show_path(resource.canonical)
    return QUERIES.get((request.method, path), ()) if path.startswith("/v1/") else None


@cache
def show_path(canonical: str) -> str:
    """A route's path without the patterns of its parts."""
    return re.sub(r"\{(\w+):[^}]*\}", r"{\1}", canonical)


def make_document(routes: Iterable[AbstractRoute]) -> dict[str, Any]:
    """The document of OpenAPI 3.1."""
    types = sorted(set(BODIES.values()), key=lambda kind: kind.__name__)
    _, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    components["Problem"] = {
        "type": "object",
        "required": ["title", "status", "detail", "code", "retry", "accepted"],
        "properties": {
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "detail": {"type": "string"},
            "code": {"enum": [int(code) for code in DISPATCH_CODES]},
            "retry": {"type": "boolean"},
            "accepted": {
                "enum": [False, None],
                "description": "null: it is not known; repeat the request with the same id.",
            },
            "pointer": {"type": "string"},
        },
    }
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        path = "" if route.resource is None else show_path(route.resource.canonical)
        if path and route.method != "*":
            paths.setdefault(path, {})[route.method.lower()] = _describe(route, path)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Godwit dispatch", "version": "1"},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer", "description": _KEYS}},
        },
    }


def _describe(route: AbstractRoute, path: str) -> dict[str, Any]:
    text = inspect.getdoc(route.handler) or route.handler.__name__.strip("_").replace("_", " ").capitalize()
    problem = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    shown: dict[str, Any] = {
        "summary": text.splitlines()[0],
        "responses": {
            **{str(status): {"description": "Done.", **_content(path, status)} for status in (200, 201, 202, 204)},
            "default": {"description": "The problem, with its code.", "content": problem},
        },
    }
    if path not in OPEN:
        shown["security"] = [{"key": []}]
    names = re.findall(r"\{(\w+)\}", path)
    parameters = [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names]
    queries = QUERIES.get((route.method, path), {})
    parameters += [{"name": name, "in": "query", "schema": schema} for name, schema in queries.items()]
    if parameters:
        shown["parameters"] = parameters
    kind = BODIES.get((route.method, path))
    if kind is not None:
        schema: dict[str, Any] = {"$ref": f"#/components/schemas/{kind.__name__}"}
        content = {"application/json": {"schema": schema}}
        if kind is BATCH:
            content["application/json"] = {"schema": {"type": "array", "items": schema}}
            content["application/x-ndjson"] = {"schema": {"type": "string"}}
        shown["requestBody"] = {"required": kind not in OPTIONAL, "content": content}
    return shown


def _content(path: str, status: int) -> dict[str, Any]:
    if status == 204:
        return {}
    if path == "/u/{token}":
        return {"content": {"text/html": {}}}
    if path == "/metrics":
        return {"content": {"text/plain": {}}}
    return {"content": {"application/json": {"schema": {"type": "object"}}}}
