"""/v1/config: every current value with its source, default, bounds and description. Secrets are hidden."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from ..config import Config
from ..config.changes import LIVE_KEYS
from ..config.option import Option
from ..config.tree import OPTIONS, SECTIONS, list_values, read_value
from .view import NodeView


def add_routes(router: web.UrlDispatcher, view: NodeView) -> None:
    """Add the route; it shows the current configuration."""

    async def show_config(_request: web.Request) -> web.Response:
        return web.json_response(describe(view.read_config()))

    router.add_get("/v1/config", show_config)


def describe(config: Config) -> dict[str, Any]:
    """The tree as JSON."""
    return {
        "sections": [
            {
                "name": name,
                "sentence": (section.__doc__ or "").strip(),
                "values": [_show(config, found) for found in OPTIONS.values() if found.key.startswith(f"{name}.")],
            }
            for name, section in SECTIONS.items()
        ],
        "patterns": [
            {key: _plain(value) for key, value in list_values(pattern).items() if value is not None}
            for pattern in config.patterns
        ],
        "issuers": [
            {key: _plain(value) for key, value in list_values(issuer).items() if value is not None}
            for issuer in config.issuers
        ],
    }


def _show(config: Config, found: Option) -> dict[str, Any]:
    value = read_value(config, found.key)
    source, _, where = config.sources[found.key].partition(" ")
    return {
        "key": found.key,
        "value": _hide(value) if found.is_secret else _plain(value),
        "default": _plain(found.default),
        "source": source,
        "where": where,
        "variable": found.environment,
        "bound": found.bound,
        "sentence": found.sentence,
        "is_secret": found.is_secret,
        "is_live": found.key in LIVE_KEYS,
    }


def _hide(value: object) -> str | None:
    return "(secret)" if value else None


def _plain(value: object) -> Any:
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return value if isinstance(value, int | str | bool) or value is None else str(value)
