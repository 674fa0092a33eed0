"""Changes by an operator while the node runs: revocations, a purge, and a reload of the configuration.

POST /v1/revocations {"identity": NAME} or {"token_id": ID}, with either "until_ms", "tenant", "authority" · GET
/v1/revocations · DELETE /v1/revocations?identity=NAME or ?token_id=ID, with &tenant= and &authority= as it was made ·
POST /v1/purge?subject=S · POST /v1/reload. The guard has checked the token.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from ..access.revocation import Revocation, Revocations
from ..access.revoker import Revoker
from ..errors import ConfigInvalid, NodeFailed, SubjectInvalid
from ..subject import check_subject

REVOCATIONS_SHOWN_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes that the server offers to the admin port. `revoker` also closes connections. `purge` returns the number of
    deleted messages, None if the subject does not exist, and False if the journal could not write it. `reload` returns
    the applied settings and those that need a restart; if it raises ConfigInvalid, nothing has changed.
    """

    revocations: Revocations
    revoker: Revoker
    purge: Callable[[str], tuple[int | None, bool]]
    reload: Callable[[], Awaitable[dict[str, Any]]]


NAMES = ("identity", "token_id", "tenant", "authority")
"""The parameters of a revocation."""


def add_routes(router: web.UrlDispatcher, changes: Changes) -> None:
    """Add the routes. Answers are JSON; a wrong request is answered with 400 and a sentence."""

    async def list_revocations(_request: web.Request) -> web.Response:
        rows = [one.describe() for one in changes.revocations.list()]
        return web.json_response({"rows": rows[:REVOCATIONS_SHOWN_MAX], "count": len(rows)})

    async def revoke(request: web.Request) -> web.Response:
        body = await _read_object(request)
        _refuse_unknown(body, (*NAMES, "until_ms"))
        try:
            revocation = Revocation(**body)
        except (TypeError, ValueError, AttributeError) as error:
            raise web.HTTPBadRequest(reason=_line(str(error))) from error
        try:
            return web.json_response(await changes.revoker.revoke(revocation), status=201)
        except ValueError as error:
            raise web.HTTPBadRequest(reason=_line(str(error))) from error
        except NodeFailed as error:
            raise web.HTTPInsufficientStorage(reason=_line(str(error))) from error

    async def lift(request: web.Request) -> web.Response:
        _refuse_unknown(request.query, NAMES)
        named = {name: request.query[name] for name in NAMES if name in request.query}
        if ("identity" in named) == ("token_id" in named):
            raise web.HTTPBadRequest(reason="name either identity or token_id")
        lifted = await changes.revoker.lift(named)
        if lifted is None:
            raise web.HTTPNotFound(reason="the revocation does not exist")
        return web.json_response(lifted)

    async def purge(request: web.Request) -> web.Response:
        subject = request.query.get("subject", "")
        try:
            check_subject(subject)
        except SubjectInvalid as error:
            raise web.HTTPBadRequest(reason=f"subject {error.reason}") from error
        purged, is_kept = await asyncio.to_thread(changes.purge, subject)
        if purged is None:
            raise web.HTTPNotFound(reason="the subject does not exist")
        return web.json_response({"subject": subject, "purged": purged, "kept": is_kept})

    async def reload(_request: web.Request) -> web.Response:
        try:
            return web.json_response(await changes.reload())
        except ConfigInvalid as error:
            raise web.HTTPConflict(reason=_line(str(error))) from error

    router.add_get("/v1/revocations", list_revocations)
    router.add_post("/v1/revocations", revoke)
    router.add_delete("/v1/revocations", lift)
    router.add_post("/v1/purge", purge)
    router.add_post("/v1/reload", reload)


def _refuse_unknown(given: Iterable[str], known: tuple[str, ...]) -> None:
    """Refuse unknown parameters: with a misspelt `tenant`, a revocation would apply to all tenants."""
    unknown = next((name for name in given if name not in known), None)
    if unknown is not None:
        raise web.HTTPBadRequest(reason=_line(f"unknown field {unknown!a}: expected {', '.join(known)}"))


async def _read_object(request: web.Request) -> dict[str, Any]:
    if request.content_type != "application/json":
        raise web.HTTPUnsupportedMediaType(reason="the body must be application/json")
    try:
        body = json.loads(await request.read())
    except (ValueError, RecursionError) as error:
        raise web.HTTPBadRequest(reason="the body is not JSON") from error
    if not isinstance(body, dict):
        raise web.HTTPBadRequest(reason="the body must be an object")
    return body


def _line(text: str) -> str:
    """The reason on one line."""
    return " ".join(text.split())[:500]
