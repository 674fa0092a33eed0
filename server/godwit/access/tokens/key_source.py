"""The keys of an issuer: from a file, or from its JWK Set over HTTPS, with one request at a time and a cache.

One source for each configured issuer, so that no issuer's key ever verifies another's token. Only the configured address
is opened, never one that a token names. Without keys, or with keys that are too old, every token is refused. An unknown
key causes another fetch, at most one in `refresh_ms_min`, so that strangers cannot overload the issuer.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from ...config.tree import IssuerConfig
from ...errors import ConfigInvalid, KeysUnavailable
from ...logs import read_logger
from .keys import KeyRing, read_key_set, read_keys

KEY_SET_BYTES_MAX = 1_048_576
FETCH_TIMEOUT_S = 5.0
LOOKS_GONE = 2
"""After this many successful fetches in a row without a key, the key counts as withdrawn."""
Fetch = Callable[[str], Awaitable[bytes]]


class KeySource:
    """The keys of one issuer. `fetch` returns the body of a URL, `now_s` is a monotonic clock."""

    def __init__(
        self,
        issuer: IssuerConfig,
        *,
        fetch: Fetch | None = None,
        now_s: Callable[[], float] = time.monotonic,
        on_gone: Callable[[str], None] | None = None,
    ) -> None:
        self._issuer = issuer
        self._fetch = fetch or partial(fetch_url, trust=read_authorities(issuer))
        self._now_s = now_s
        self._ring: KeyRing | None = read_key_file(issuer) if issuer.keys_file else None
        self._content = b""
        self._fetched_s = float("-inf")
        self._tried_s = float("-inf")
        self._fetching: asyncio.Task[None] | None = None
        self._missed: dict[str, int] = {}
        self._confirming: asyncio.TimerHandle | None = None
        self.on_gone = on_gone
        """Called with the fingerprint of a key that two successful fetches in a row did not find."""
        self.fetches = 0

    async def keys(self, key_id: str | None) -> KeyRing:
        """Keys that are fresh enough; fetched again if `key_id` is not among them. Raises KeysUnavailable."""
        if self._issuer.keys_file:
            assert self._ring is not None
            return self._ring
        age_ms = (self._now_s() - self._fetched_s) * 1000
        is_stale = self._ring is None or age_ms >= self._issuer.keys_age_ms_max
        is_known = self._ring is not None and self._ring.knows(key_id)
        if is_stale or not is_known:
            has_looked = await self._refresh()
            if not (is_stale or is_known or has_looked):
                raise KeysUnavailable(
                    f"the keys of {self._issuer.issuer} were fetched a moment ago, without a key for this token: try again later"
                )
            age_ms = (self._now_s() - self._fetched_s) * 1000
        elif age_ms >= self._issuer.keys_age_ms_max / 2 and self._may_try():
            self._begin()  # in the background: tokens that arrive meanwhile are verified with the known keys
        if self._ring is None or age_ms >= self._issuer.keys_age_ms_max:
            raise KeysUnavailable(f"the keys of {self._issuer.issuer} cannot be fetched")
        return self._ring

    async def look_again(self, ring: KeyRing, looks: int) -> KeyRing | None:
        """Newer keys than these, if a fetch finds any; raises KeysUnavailable if it is too soon for one. `looks`: the
        number of `fetches` when the token arrived; a fetch since then is enough.
        """
        if self._issuer.keys_file or (self._ring is ring and self.fetches > looks):
            return None
        if self._ring is ring and not await self._refresh():
            raise KeysUnavailable(
                f"the keys of {self._issuer.issuer} were fetched a moment ago, without a key for this token: try again later"
            )
        return None if self._ring is ring else self._ring

    def list_fingerprints(self) -> list[str] | None:
        """The fingerprints of the keys in this issuer's file; None if its keys are fetched and may change."""
        return [key.fingerprint for key in self._ring.keys] if self._issuer.keys_file and self._ring else None

    def list_gone(self, other: KeySource) -> list[str]:
        """The fingerprints of keys in this issuer's file that are not in the other's."""
        if not (self._issuer.keys_file and other._issuer.keys_file and self._ring and other._ring):
            return []
        left = {key.fingerprint for key in other._ring.keys}
        return [key.fingerprint for key in self._ring.keys if key.fingerprint not in left]

    def configure(self, other: KeySource) -> KeySource:
        """The source to use after a reload with the settings of `other`, which has the same URL: this one, or `other` if the
        authorities changed. `other` then verifies nothing before its first fetch; a key that is not in it is withdrawn.
        """
        if self._issuer.keys_authorities_file == other._issuer.keys_authorities_file:
            self._issuer, self._fetch = other._issuer, other._fetch
            return self
        if self._confirming is not None:
            self._confirming.cancel()
        self.on_gone = None  # a fetch that still runs has the old authorities
        other._ring = self._ring
        other._missed = {key.fingerprint: LOOKS_GONE - 1 for key in (self._ring.keys if self._ring else ())}
        return other

    async def stop(self) -> None:
        """Cancel a running fetch."""
        if self._confirming is not None:
            self._confirming.cancel()
        if self._fetching is not None:
            self._fetching.cancel()
            await asyncio.gather(self._fetching, return_exceptions=True)

    def _may_try(self) -> bool:
        return (self._now_s() - self._tried_s) * 1000 >= self._issuer.refresh_ms_min

    async def _refresh(self) -> bool:
        """Fetch once for all callers: those that come during a fetch wait for it. False: it is too soon for another one."""
        if self._fetching is None and not self._may_try():
            return False
        # shielded: a client that gives up must not take the others' fetch with it
        await asyncio.shield(self._begin())
        return True

    def _begin(self) -> asyncio.Task[None]:
        if self._fetching is None:
            self._fetching = asyncio.get_running_loop().create_task(self._fetch_keys())
        return self._fetching

    async def _fetch_keys(self) -> None:
        self._tried_s = self._now_s()
        self.fetches += 1
        try:
            content = await self._fetch(self._issuer.keys_url)
            if (
                self._ring is None or content != self._content
            ):  # the same keys stay the same ring: what they verified, stays verified
                self._take(read_key_set(content), content)
            elif self._missed:
                self._take(read_key_set(content), content)
            self._fetched_s = self._now_s()
        except Exception as error:  # after any network error or invalid file the known keys stay until they are too old
            why = f"{type(error).__name__}: {error}"
            read_logger().warning("key_fetch_failed", issuer=self._issuer.issuer, url=self._issuer.keys_url, reason=why)
        finally:
            self._fetching = None

    def _take(self, shown: KeyRing, content: bytes) -> None:
        """Keep the keys of a fetch, and those that only this fetch misses: one incomplete set withdraws nothing."""
        found = {key.fingerprint for key in shown.keys}
        before = self._ring.keys if self._ring is not None else ()
        missing = [key for key in before if key.fingerprint not in found]
        counts = {key.fingerprint: self._missed.get(key.fingerprint, 0) + 1 for key in missing}
        kept = tuple(key for key in missing if counts[key.fingerprint] < LOOKS_GONE)
        self._missed = {key.fingerprint: counts[key.fingerprint] for key in kept}
        self._ring, self._content = KeyRing((*shown.keys, *kept)), content
        for key in missing:
            if counts[key.fingerprint] >= LOOKS_GONE and self.on_gone is not None:
                self.on_gone(key.fingerprint)
        if kept:
            delay_s = self._issuer.refresh_ms_min / 1000
            self._confirming = asyncio.get_running_loop().call_later(delay_s, self._begin)


def read_key_file(issuer: IssuerConfig) -> KeyRing:
    """The keys of an issuer's file; raises ConfigInvalid."""
    key = f'issuers."{issuer.issuer}".keys_file'
    try:
        ring = read_keys(Path(issuer.keys_file).read_bytes())
    except OSError as error:
        raise ConfigInvalid(key, issuer.keys_file, f"cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ConfigInvalid(key, issuer.keys_file, str(error)) from error
    if not any(found.algorithms & set(issuer.algorithms) for found in ring.keys):
        hint = "name the algorithm that the keys are for in algorithms"
        raise ConfigInvalid(key, issuer.keys_file, f"holds no key for {', '.join(issuer.algorithms)}", hint=hint)
    return ring


def read_authorities(issuer: IssuerConfig) -> ssl.SSLContext | None:
    """The authorities that may sign the certificate of an issuer's server, if configured; raises ConfigInvalid."""
    file = issuer.keys_authorities_file
    if not file:
        return None
    key = f'issuers."{issuer.issuer}".keys_authorities_file'
    try:
        return ssl.create_default_context(cafile=file)
    except ssl.SSLError as error:  # an OSError, too
        raise ConfigInvalid(key, file, "holds no certificate (PEM)") from error
    except OSError as error:
        raise ConfigInvalid(key, file, f"cannot be read: {error.strerror}") from error


async def fetch_url(url: str, trust: ssl.SSLContext | None = None) -> bytes:
    """The body of a URL, at most KEY_SET_BYTES_MAX, without redirects; raises the error of the request. `trust` replaces
    this machine's authorities.
    """
    import aiohttp

    timeout = aiohttp.ClientTimeout(total=FETCH_TIMEOUT_S)
    connector = aiohttp.TCPConnector(ssl=trust or True)
    session = aiohttp.ClientSession(timeout=timeout, connector=connector)
    async with session as http, http.get(url, allow_redirects=False) as answer:
        if answer.status != 200:
            raise ValueError(f"answered {answer.status}")
        body = bytearray()
        async for chunk in answer.content.iter_chunked(65_536):
            body += chunk
            if len(body) > KEY_SET_BYTES_MAX:
                raise ValueError(f"answered more than {KEY_SET_BYTES_MAX:,} bytes")
        return bytes(body)
