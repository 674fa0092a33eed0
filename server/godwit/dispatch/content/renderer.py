"""Renders Liquid and MJML in a child process, so that no template stops the server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..codes import DispatchCode
from ..errors import RequestRefused
from .process import RenderProcess

RENDER_S = 0.25
"""CPU time of the child for each text. CPU time, so that a busy machine does not fail a good template."""
SLICE_S = 0.1
"""CPU time after which the child ends a page of receivers early."""


class Source(NamedTuple):
    """One template text. `escapes`: values are escaped for HTML."""

    text: str
    escapes: bool = False


class RenderFailed(RequestRefused):
    """A template that could not be rendered."""

    def __init__(self, detail: str) -> None:
        super().__init__(DispatchCode.RENDER_FAILED, detail)


class Renderer:
    """Renders for one tenant. Those of other tenants may use the same child, and take turns at it."""

    def __init__(self, process: RenderProcess | None = None, tenant: str = "") -> None:
        self._process, self._tenant = RenderProcess() if process is None else process, tenant

    def of(self, tenant: str) -> Renderer:
        """A renderer for another tenant with the same child."""
        return Renderer(self._process, tenant)

    async def render(self, sources: Sequence[Source], data: Mapping[str, Any]) -> list[str]:
        """Render texts. Raises RenderFailed, or RenderInterrupted if another try may succeed."""
        results = await self._ask("render", sources, data)
        return [_take(result, "text") for result in results]

    async def render_receivers(
        self,
        sources: Mapping[str, Sequence[Source]],
        data: Mapping[str, Any],
        receivers: Sequence[tuple[str, Mapping[str, Any]]],
    ) -> list[list[str] | str]:
        """Render the texts of the first receivers, each given as locale and names; a string in the result is an error. At
        least one, and as many as fit into a slice of time. Raises RenderInterrupted.
        """
        packed = {locale: [source._asdict() for source in parts] for locale, parts in sources.items()}
        request = {"kind": "receivers", "sources": packed, "data": data, "receivers": receivers}
        results = await self._process.send(self._tenant, request, SLICE_S + RENDER_S)
        return [result["error"] if "error" in result else result["texts"] for result in results]

    async def list_variables(self, sources: Sequence[Source]) -> list[str]:
        """The names that the sources need; raises RenderFailed if one is not valid Liquid."""
        results = await self._ask("analyze", sources, {})
        return sorted({name for result in results for name in _take(result, "variables")})

    async def compile_mjml(self, text: str) -> str:
        """The HTML of an MJML document; raises RenderFailed if the text is not MJML or includes another file."""
        [result] = await self._ask("mjml", [Source(text)], {})
        return str(_take(result, "text"))

    async def close(self) -> None:
        """Ends the child."""
        await self._process.close()

    async def _ask(self, kind: str, sources: Sequence[Source], data: Mapping[str, Any]) -> list[dict[str, Any]]:
        request = {"kind": kind, "data": data, "sources": [source._asdict() for source in sources]}
        return await self._process.send(self._tenant, request, RENDER_S * max(1, len(sources)))


def _take(result: dict[str, Any], field: str) -> Any:
    if "error" in result:
        raise RenderFailed(result["error"])
    return result[field]
