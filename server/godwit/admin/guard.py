"""Decides who may change something through the admin port: a caller with its token, and no foreign web page.

Every request except GET and HEAD needs `Authorization: Bearer` with the token of `admin.token` or `admin.token_file`,
also on loopback. Without a configured token nothing can be changed. A browser names the page that sends the request
(Origin, Sec-Fetch-Site): only pages of the admin port are accepted. Wrong tokens are counted by address; above a limit
the answer is 429.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from ..config.admin import AdminConfig
from ..errors import ConfigInvalid

TRIES_MAX, TRIES_WINDOW_S = 10, 60.0
ADDRESSES_MAX = 10_000
TOKEN_CHARACTERS_MIN = 16


class Refused(NamedTuple):
    """The HTTP status and a sentence."""

    status: int
    reason: str


class Guard:
    """The guard of one admin port; `now_s` is a monotonic clock."""

    def __init__(self, config: AdminConfig, *, now_s: Callable[[], float] = time.monotonic) -> None:
        self._digest: bytes | None = None
        self._token_for_reads = False
        self._now_s = now_s
        self._tries: OrderedDict[str, tuple[float, int]] = OrderedDict()
        self.configure(config, read_admin_token(config))

    def configure(self, config: AdminConfig, token: str | None) -> None:
        """Use this configuration, and the token that `read_admin_token` returned for it, from now on."""
        self._digest = hashlib.sha256(token.encode()).digest() if token else None
        self._token_for_reads = config.token_for_reads

    @property
    def has_token(self) -> bool:
        """Whether a token is configured, so that changes are possible."""
        return self._digest is not None

    def check(self, method: str, path: str, headers: Mapping[str, str], address: str) -> Refused | None:
        """Why a request must be refused; None if it is allowed. Health checks are always allowed."""
        is_read = method in ("GET", "HEAD", "OPTIONS")
        if not is_read and not is_own_page(headers):
            return Refused(403, "pages of other origins may not change anything here")
        if is_read and not (self._token_for_reads and tells_of_the_node(path)):
            return None
        return self._check_token(headers.get("Authorization", ""), address)

    def _check_token(self, authorization: str, address: str) -> Refused | None:
        if self._digest is None:
            return Refused(403, "nothing can be changed here: no admin.token or admin.token_file is set")
        scheme, _, token = authorization.partition(" ")
        shown = hashlib.sha256(token.strip().encode("utf-8", "surrogateescape")).digest()
        if scheme.lower() == "bearer" and hmac.compare_digest(shown, self._digest):
            return None  # others behind the same address may guess: a token of 16 characters is not found by trying
        since, tries = self._tries.get(address, (self._now_s(), 0))
        if self._now_s() - since >= TRIES_WINDOW_S:
            since, tries = self._now_s(), 0
        if tries >= TRIES_MAX:
            return Refused(429, "too many wrong tokens from this address; wait a minute")
        if authorization:  # a request without a token is not a guess
            self._tries[address] = (since, tries + 1)
            self._tries.move_to_end(address)
            if len(self._tries) > ADDRESSES_MAX:
                self._tries.popitem(last=False)
        return Refused(401, "this needs the admin token: Authorization: Bearer TOKEN")


def tells_of_the_node(path: str) -> bool:
    """Whether an answer contains data of the node. The console's files do not."""
    return path.startswith("/v1/") or path == "/metrics"


def is_own_page(headers: Mapping[str, str]) -> bool:
    """Whether the request comes from a program, or from a page of this port: a page cannot change the headers of the browser."""
    origin = headers.get("Origin")
    if origin is not None:
        _, is_one, host = origin.partition("://")
        if not is_one or host.lower() != headers.get("Host", "").lower():
            return False
    return headers.get("Sec-Fetch-Site", "same-origin") in ("same-origin", "none")


def read_admin_token(config: AdminConfig) -> str | None:
    """The token of the configuration or of its file, or None. Raises ConfigInvalid, also if a setting needs a token and none
    is set.
    """
    token, key = config.token, "admin.token"
    if config.token_file:
        key = "admin.token_file"
        if config.token:
            raise ConfigInvalid(key, config.token_file, "cannot be set together with admin.token")
        try:
            token = Path(config.token_file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigInvalid(key, config.token_file, f"cannot be read: {error}") from error
    elif not token:
        if config.token_for_reads:
            raise ConfigInvalid("admin.token_for_reads", True, "needs admin.token or admin.token_file")
        return None
    if len(token) < TOKEN_CHARACTERS_MIN or not token.isascii() or not token.isprintable() or " " in token:
        hint = "make one with: godwit token secret"
        bound = f"must be at least {TOKEN_CHARACTERS_MIN} printable ASCII characters without blanks"
        raise ConfigInvalid(key, "(secret)", bound, hint=hint)
    return token
