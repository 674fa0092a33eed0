"""Names and numbers of a request's path and query, checked."""

from __future__ import annotations

from aiohttp import web

from ...config.dispatch_limits import DispatchLimits
from ..codes import DispatchCode
from ..errors import RequestRefused


def read_name(request: web.Request, field: str, limits: DispatchLimits) -> str:
    """A name of the path; raises RequestRefused."""
    name = request.match_info[field]
    has_control = any(char < " " or char == "\x7f" for char in name)
    if not 1 <= len(name) <= limits.name_characters_max or has_control or "/" in name or name in (".", ".."):
        detail = f"{field} must be 1 to {limits.name_characters_max} printable characters without a slash"
        raise RequestRefused(DispatchCode.REQUEST_INVALID, detail)
    return name


def read_number(request: web.Request, field: str, default: int = 0) -> int:
    """A whole number of the query; raises RequestRefused."""
    text = request.query.get(field)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise RequestRefused(DispatchCode.REQUEST_INVALID, f"{field} must be a whole number")
    return int(text)
