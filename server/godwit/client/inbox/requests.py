"""Requests to dispatch with a receiver's token: each has a time limit."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias, TypeVar

import aiohttp
import msgspec

from ...errors import PositionInvalid
from ..arguments import check_token
from ..errors import ClientClosed, ClientError, Unauthorized

Answer = TypeVar("Answer")
TokenSource: TypeAlias = str | Callable[[], Awaitable[str] | str]
TIMEOUT_S = 15
SERVER_ERROR = 500
RECEIVER_MISSING = 4310
RETRY = (408, 425, 429)  # as a proxy in between may answer, too


class DispatchRefused(ClientError):
    """Dispatch refused a request. `code` is 0 if the answer is not dispatch's."""

    def __init__(self, path: str, status: int, code: int = 0, title: str = "", detail: str = "") -> None:
        self.status, self.code, self.title = status, code, title
        number = f" ({code})" if code else ""
        reason = detail or "no reason was given"
        super().__init__(f"dispatch refused {path.split('?')[0]} with {status} {title}{number}: {reason}")


class DispatchUnreachable(ClientError):
    """Dispatch did not answer, or something else answered: the same request may succeed later."""


class _Problem(msgspec.Struct):
    code: int = 0
    title: str = ""
    detail: str = ""


class DispatchRequests:
    """Requests of one receiver to one dispatch. `async with` opens the connections."""

    def __init__(self, url: str, token: TokenSource) -> None:
        if not callable(token):
            check_token(token)
        self._url, self._token = url.rstrip("/"), token
        self._http: aiohttp.ClientSession | None = None
        self._has_answered = False

    async def open(self) -> None:
        """Open the connections; needs a running event loop."""
        self._http = aiohttp.ClientSession()

    async def close(self) -> None:
        """Ends the connections."""
        if self._http is not None:
            await self._http.close()

    async def ask(self, method: str, path: str, kind: type[Answer], body: Any = None, *, wait_s: float = 0) -> Answer:
        """Send a request and return the answer as `kind`. `wait_s`: how many seconds dispatch may wait before it answers.

        Raises DispatchRefused, DispatchUnreachable, ClientClosed, or Unauthorized if the token function raises it.
        """
        if self._http is None:
            raise ClientError("the inbox is not open: use `async with`")
        if self._http.closed:
            raise ClientClosed("the inbox")
        try:
            async with asyncio.timeout(TIMEOUT_S + wait_s):
                status, text = await self._send(self._http, method, path, body)
        except (aiohttp.ClientError, TimeoutError, OSError, RuntimeError) as error:
            if self._http.closed:
                raise ClientClosed("the inbox") from error
            if isinstance(error, RuntimeError):
                raise
            raise _unreachable(path, "did not answer", error) from error
        if status != 200:
            raise _refusal(path, status, text)
        try:
            answer = msgspec.json.decode(text, type=kind)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise _unreachable(path, "gave no answer that can be read to", error) from error
        self._has_answered = True
        return answer

    async def _send(self, http: aiohttp.ClientSession, method: str, path: str, body: Any) -> tuple[int, bytes]:
        headers = {"Authorization": f"Bearer {await self._read_token(path)}"}
        data = None if body is None else msgspec.json.encode(body)
        no_limit = aiohttp.ClientTimeout(total=None)  # the caller's has the token function, too
        async with http.request(method, self._url + path, data=data, headers=headers, timeout=no_limit) as got:
            return got.status, await got.read()

    def may_retry(self, error: Exception) -> bool:
        """Whether the same request may succeed later: the server may recover, or the token function may return another token."""
        if not isinstance(error, DispatchRefused):
            return isinstance(error, DispatchUnreachable | PositionInvalid)  # the latter: not of dispatch
        if error.code == RECEIVER_MISSING:
            return self._has_answered  # deleted, and perhaps created again
        return error.status >= SERVER_ERROR or error.status in RETRY or (error.status == 401 and callable(self._token))

    async def _read_token(self, path: str) -> str:
        if not callable(self._token):
            return self._token
        try:
            given = self._token()
            token = await given if inspect.isawaitable(given) else given
            check_token(token)
        except (Unauthorized, TimeoutError):
            raise
        except Exception as error:  # the user's own code
            raise _unreachable(path, "was not asked: the token function failed for", error) from error
        return token


def _unreachable(path: str, what: str, error: Exception) -> DispatchUnreachable:
    return DispatchUnreachable(f"dispatch {what} {path.split('?')[0]}: {str(error) or type(error).__name__}")


def _refusal(path: str, status: int, text: bytes) -> DispatchRefused:
    try:
        problem = msgspec.json.decode(text, type=_Problem)
    except msgspec.MsgspecError:
        problem = _Problem()  # of a proxy
    return DispatchRefused(path, status, problem.code, problem.title, problem.detail)
