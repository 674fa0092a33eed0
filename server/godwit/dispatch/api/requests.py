"""Reads and checks a request: names in its path, numbers in its query, and its body.

A body must arrive in time. Only the client's time counts, not that of the store.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from aiohttp import web

from ...config.dispatch_limits import DispatchLimits
from ..codes import DispatchCode
from ..errors import RequestRefused
from ..model import ADDRESS_PREFIX
from ..pure.items import is_number

BODY_S = web.AppKey("body_s", float)
"""Seconds that a body may take, or that an import may pause."""


def read_name(request: web.Request, field: str, limits: DispatchLimits) -> str:
    """A name in the path; raises RequestRefused."""
    name = request.match_info[field]
    has_control = any(char < " " or char == "\x7f" for char in name)
    if not 1 <= len(name) <= limits.name_characters_max or has_control or "/" in name or name in (".", ".."):
        detail = f"{field} must be 1 to {limits.name_characters_max} printable characters without a slash"
        raise RequestRefused(DispatchCode.REQUEST_INVALID, detail)
    return name


def check_free(name: str, pointer: str = "") -> None:
    """Raises RequestRefused for the name of a receiver that only dispatch makes, for a bare address."""
    if name.startswith(ADDRESS_PREFIX):
        detail = f"names that begin with {ADDRESS_PREFIX} are reserved: to send to an address, give to.address"
        raise RequestRefused(DispatchCode.REQUEST_INVALID, detail, pointer=pointer)


def check_length(name: str, limits: DispatchLimits, pointer: str) -> None:
    """Raises RequestRefused for a name in a body that no path could name; the longest that a body may have is the default."""
    if len(name) > limits.name_characters_max:
        detail = f"a name may have {limits.name_characters_max} characters"
        raise RequestRefused(DispatchCode.REQUEST_INVALID, detail, pointer=pointer)


def read_number(request: web.Request, field: str, default: int = 0) -> int:
    """An integer in the query; raises RequestRefused."""
    text = request.query.get(field)
    if text is None:
        return default
    if not is_number(text):
        raise RequestRefused(DispatchCode.REQUEST_INVALID, f"{field} must be a whole number")
    return int(text)


def is_text(text: str) -> bool:
    """Whether a header or a part of it is UTF-8; other bytes of it are lone surrogates."""
    return not any("\ud800" <= char <= "\udfff" for char in text)


async def read_bytes(request: web.Request) -> bytes:
    """The whole body; raises RequestRefused if it does not arrive in time."""
    if request.content.is_eof():
        return await request.read()  # it came with its head, as most do
    try:
        async with asyncio.timeout(request.config_dict[BODY_S]):
            return await request.read()
    except TimeoutError as error:
        raise RequestRefused(DispatchCode.BODY_TIMEOUT) from error


async def read_parts(request: web.Request) -> AsyncIterator[bytes]:
    """The body as it arrives; raises RequestRefused if the next part does not arrive in time."""
    while True:
        try:
            async with asyncio.timeout(request.config_dict[BODY_S]):
                part = await request.content.readany()
        except TimeoutError as error:
            raise RequestRefused(DispatchCode.BODY_TIMEOUT) from error
        if not part:
            return
        yield part
