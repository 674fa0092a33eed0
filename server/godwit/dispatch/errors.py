"""Errors of dispatch: each names what was wrong, what was expected, and its code."""

from __future__ import annotations

from ..errors import GodwitError
from .codes import DISPATCH_CODES, DispatchCode


class DispatchError(GodwitError):
    """The base class of errors of dispatch."""


class RequestRefused(DispatchError):
    """A request that is answered with a code. `pointer` names the field (RFC 6901)."""

    def __init__(self, code: DispatchCode, detail: str = "", *, pointer: str = "") -> None:
        self.code, self.pointer = code, pointer
        self.detail = detail or DISPATCH_CODES[code].sentence
        super().__init__(self.detail)


class RenderInterrupted(RequestRefused):
    """A rendering took too long, or had no process to run in: the next try may succeed."""

    def __init__(self, detail: str) -> None:
        super().__init__(DispatchCode.RENDER_FAILED, detail)


class StoreFailed(DispatchError):
    """The store refused a unit of work; nothing of it was stored."""


class NotSent(DispatchError):
    """A delivery could not be prepared, and nothing of it left: it is tried again, and is not in doubt."""


class DispatchDatabaseInvalid(DispatchError):
    """The database file cannot be used."""
