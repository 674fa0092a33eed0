"""Answers of the API: JSON, and errors as application/problem+json with a code.

Owns the middleware that turns every error into one answer, so that no handler writes one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from aiohttp import web
from aiohttp.typedefs import Middleware

from ...logs import read_logger
from ..codes import DISPATCH_CODES, DispatchCode
from ..errors import RequestRefused, StoreFailed
from .openapi import list_queries

RETRY_S = {DispatchCode.ATTEMPTS_TOO_MANY: 60}
"""Seconds after which a request may succeed, where that is not the next second."""
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def answer(value: object, status: int = 200) -> web.Response:
    """A JSON answer."""
    return web.Response(body=msgspec.json.encode(value), status=status, content_type="application/json")


def show_problem(refused: RequestRefused, status: int = 0) -> dict[str, Any]:
    """A refusal as the body of a problem+json answer. `accepted` is null if it is not known; `status` 0: that of the code."""
    facts = DISPATCH_CODES[refused.code]
    body: dict[str, Any] = {
        "title": facts.name,
        "status": status or facts.http,
        "detail": refused.detail,
        "code": int(refused.code),
        "retry": facts.retry,
        "accepted": None if refused.code is DispatchCode.REQUEST_FAILED else False,
    }
    return {**body, "pointer": refused.pointer} if refused.pointer else body


def refuse(code: DispatchCode, detail: str = "", pointer: str = "", *, status: int = 0) -> web.Response:
    """A problem+json answer. `status` 0: that of the code."""
    facts = DISPATCH_CODES[code]
    headers = {"Retry-After": str(RETRY_S.get(code, 1))} if facts.retry else {}
    body = msgspec.json.encode(show_problem(RequestRefused(code, detail, pointer=pointer), status))
    return web.Response(
        body=body, status=status or facts.http, content_type="application/problem+json", headers=headers
    )


async def show_expectation(request: web.Request, response: web.StreamResponse) -> None:
    """The library's answer to an unknown `Expect` as a problem: it is made before any middleware runs."""
    if response.status == web.HTTPExpectationFailed.status_code and isinstance(response, web.Response):
        problem = refuse(DispatchCode.REQUEST_INVALID, "Expect must be 100-continue", status=response.status)
        response.body = problem.body
        response.headers["Content-Type"] = problem.headers["Content-Type"]


@web.middleware
async def answer_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Every error of a handler, as a problem."""
    try:
        _check_queries(request)
        return await handler(request)
    except RequestRefused as refused:
        return refuse(refused.code, refused.detail, refused.pointer)
    except StoreFailed as error:
        read_logger().error("dispatch_store_failed", reason=str(error))
        return refuse(DispatchCode.STORE_FAILING)
    except web.HTTPRequestEntityTooLarge:
        return refuse(DispatchCode.REQUEST_TOO_BIG)
    except web.RequestPayloadError:
        encoding = request.headers.get("Content-Encoding", "")
        given = f": it does not decode as {encoding[:40]!r}, which Content-Encoding names" if encoding else ""
        return refuse(DispatchCode.REQUEST_INVALID, f"the body cannot be read{given}")
    except web.HTTPMethodNotAllowed:
        return refuse(DispatchCode.VERB_FORBIDDEN)
    except web.HTTPNotFound:
        return refuse(DispatchCode.ROUTE_UNKNOWN)
    except (web.HTTPException, asyncio.CancelledError):
        raise
    except Exception as error:
        read_logger().error("dispatch_request_failed", path=request.path, reason=f"{type(error).__name__}: {error}")
        return refuse(DispatchCode.REQUEST_FAILED)


def _check_queries(request: web.Request) -> None:
    """Refuse unknown query parameters, because a misspelt filter would select everything; raises RequestRefused."""
    known = list_queries(request)
    if known is None or not (unknown := sorted(set(request.query) - set(known))):
        return
    expected = ", ".join(sorted(known)) or "none"
    raise RequestRefused(
        DispatchCode.REQUEST_INVALID, f"unknown query parameter {unknown[0][:40]!r}: expected {expected}"
    )


def allow_origins(origins: tuple[str, ...]) -> Middleware:
    """Middleware for CORS: answers preflights of these origins, and names the origin in every answer."""

    @web.middleware
    async def allow(request: web.Request, handler: Handler) -> web.StreamResponse:
        origin = request.headers.get("Origin", "")
        is_allowed = bool(origin) and origin in origins
        if is_allowed and request.method == "OPTIONS":
            response: web.StreamResponse = web.Response(status=204)
            response.headers["Access-Control-Allow-Methods"] = "GET, POST, PUT, PATCH, DELETE"
            response.headers["Access-Control-Allow-Headers"] = "Authorization, Content-Type, Idempotency-Key"
        else:
            response = await handler(request)
        if is_allowed:
            response.headers["Access-Control-Allow-Origin"] = origin
            response.headers["Vary"] = "Origin"
        return response

    return allow
