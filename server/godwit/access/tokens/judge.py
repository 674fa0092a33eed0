"""The authorizer of mode `jwt`: from a token to a grant.

Signatures are checked in batches on one thread of their own: a reconnect storm costs the event loop one wake-up for each
batch. The digest of a verified token is cached until it ends, its issuer's keys change, it was verified
`verified_tokens_ms_max` ago, or newer ones replace it at `verified_tokens_max` or `verified_tokens_bytes_max`. A storm of
known clients needs no signature checks.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from ...codes import Code
from ...config.tree import IssuerConfig
from ..authorizer import Authorizer, ConnectQuestion
from ..rights import Grant, Refusal
from ..templates import RuleTemplate
from .claims import ClaimsInvalid, list_rules, name_authority, name_source, read_grant
from .key_source import Fetch, KeySource
from .keys import KeyRing
from .verifier import TOKEN_BYTES_MAX, Outline, TokenRefused, read_outline, verify_by

BATCH_MAX = 64
GRANT_BYTES, RULE_BYTES = 1_000, 200
"""Memory of a cached grant, and of one rule, in addition to its text (at most four bytes for a character)."""


class _Work(NamedTuple):
    token: str
    outline: Outline
    issuer: IssuerConfig
    ring: KeyRing
    done: asyncio.Future[Grant]


class _Verified(NamedTuple):
    grant: Grant
    issuer: str
    ring: KeyRing
    until_ms: float
    size: int
    """The estimated memory in bytes; never too low."""


class TokenAuthorizer(Authorizer):
    """The authorizer of one node. `anonymous` is the grant of clients without a token; None: they are refused."""

    def __init__(
        self,
        issuers: tuple[IssuerConfig, ...],
        *,
        anonymous: Grant | None = None,
        verified_tokens_max: int = 100_000,
        verified_tokens_bytes_max: int = 268_435_456,
        verified_tokens_ms_max: int = 600_000,
        fetch: Fetch | None = None,
        now_ms: Callable[[], float] = lambda: time.time() * 1000,
    ) -> None:
        self._anonymous = anonymous
        self._now_ms = now_ms
        self._verified: OrderedDict[bytes, _Verified] = OrderedDict()
        self._verified_bytes = 0
        self._verified_tokens_max, self._verified_tokens_bytes_max = verified_tokens_max, verified_tokens_bytes_max
        self._verified_tokens_ms_max = verified_tokens_ms_max
        self._thread: ThreadPoolExecutor | None = None
        self._work: list[_Work] = []
        self._is_working = False
        self.on_withdrawn: Callable[[str], None] | None = None
        """Called with the source of grants whose key an issuer no longer has."""
        self._issuers = {
            issuer.issuer: (issuer, KeySource(issuer, fetch=fetch, on_gone=partial(self._withdraw_key, issuer.issuer)))
            for issuer in issuers
        }
        self._withdrawn: list[tuple[str, Code]] = []
        self.verifications = 0

    def adopt(self, other: TokenAuthorizer) -> list[str]:
        """Trust another's issuers from now on. Keys that were fetched are kept if they come from the same URL, so that a key
        that is withdrawn later is noticed.
        """
        self._withdrawn += _find_withdrawn(self._issuers, other._issuers)
        issuers = {}
        for name, (issuer, source) in other._issuers.items():
            known, kept = self._issuers.get(name, (None, None))
            if known is not None and kept is not None and issuer.keys_url and known.keys_url == issuer.keys_url:
                source = kept.configure(source)
            source.on_gone = partial(self._withdraw_key, name)
            issuers[name] = (issuer, source)
        self._issuers = issuers
        self._verified.clear()
        self._verified_bytes = 0
        return []

    def _withdraw_key(self, issuer: str, key: str) -> None:
        if self.on_withdrawn is not None and issuer in self._issuers:
            self.on_withdrawn(name_source(self._issuers[issuer][0], key))

    def list_trusted(self) -> list[str]:
        """The issuers in the engine's form, with the keys of those that have a key file."""
        trusted = []
        for issuer, source in self._issuers.values():
            keys = source.list_fingerprints()
            trusted += [name_source(issuer, key) for key in ([""] if keys is None else keys)]
        return trusted

    def list_rules(self) -> dict[str, list[RuleTemplate]]:
        """The rules that the configuration gives the holders of each issuer."""
        return {name_authority(issuer): list_rules(issuer) for issuer, _ in self._issuers.values()}

    def take_withdrawn(self) -> list[tuple[str, Code]]:
        """The issuers whose tokens grant less than before, since the last call: how the connections of each end."""
        taken, self._withdrawn = self._withdrawn, []
        return taken

    async def connect(self, question: ConnectQuestion) -> Grant | Refusal:
        if question.token is None:
            return self._anonymous or Refusal("this node requires a token", Code.TOKEN_MISSING)
        try:
            return await self.judge(question.token)
        except TokenRefused as refused:
            code = Code.TOKEN_EXPIRED if refused.is_expired else Code.TOKEN_INVALID
            return Refusal(str(refused), Code.AUTHORIZER_UNAVAILABLE if refused.is_early else code)

    async def judge(self, token: str) -> Grant:
        """The grant of a token; raises TokenRefused, or KeysUnavailable."""
        if len(token) > TOKEN_BYTES_MAX:
            raise TokenRefused(f"the token is longer than {TOKEN_BYTES_MAX:,} bytes")
        digest = hashlib.sha256(token.encode()).digest()
        known = self._recall(digest)
        outline = None if known else read_outline(token)
        found = self._issuers.get(known.issuer if known else outline.issuer if outline else "")
        if found is None:
            raise TokenRefused("the token's issuer is not one this node trusts")
        issuer, source = found
        if known is not None:
            if await source.keys(None) is known.ring:
                self._check_end(known.grant)
                self._verified.move_to_end(digest)
                return known.grant
            outline = read_outline(token)
        assert outline is not None
        if outline.algorithm not in issuer.algorithms:
            raise TokenRefused("the token's algorithm is not one of its issuer's")
        looks = source.fetches
        ring = await source.keys(outline.key_id)
        try:
            grant = await self._verify(token, outline, issuer, ring)
        except TokenRefused as refused:
            # keys without a name, or under the name of another, may have been changed
            newer = await source.look_again(ring, looks) if refused.may_be_key else None
            if newer is None:
                raise
            ring = newer
            grant = await self._verify(token, outline, issuer, ring)
        self._check_end(grant)
        self._remember(digest, grant, issuer.issuer, ring)
        return grant

    async def stop(self) -> None:
        for _, source in self._issuers.values():
            await source.stop()
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)

    @property
    def remembered(self) -> int:
        """The number of cached tokens."""
        return len(self._verified)

    def _recall(self, digest: bytes) -> _Verified | None:
        known = self._verified.get(digest)
        if known is not None and known.until_ms <= self._now_ms():
            self._forget(digest)
            return None
        return known

    def _remember(self, digest: bytes, grant: Grant, issuer: str, ring: KeyRing) -> None:
        """Cache a grant; the oldest are removed if the cache is full."""
        self._forget(digest)
        size = _measure(grant)
        self._verified[digest] = _Verified(grant, issuer, ring, self._now_ms() + self._verified_tokens_ms_max, size)
        self._verified_bytes += size
        while len(self._verified) > self._verified_tokens_max or self._verified_bytes > self._verified_tokens_bytes_max:
            self._forget(next(iter(self._verified)))

    def _forget(self, digest: bytes) -> None:
        known = self._verified.pop(digest, None)
        if known is not None:
            self._verified_bytes -= known.size

    def _check_end(self, grant: Grant) -> None:
        if grant.expires_ms is not None and grant.expires_ms <= self._now_ms():
            raise TokenRefused("the token has expired", is_expired=True)

    async def _verify(self, token: str, outline: Outline, issuer: IssuerConfig, ring: KeyRing) -> Grant:
        done: asyncio.Future[Grant] = asyncio.get_running_loop().create_future()
        self._work.append(_Work(token, outline, issuer, ring, done))
        if not self._is_working:
            self._begin_batch()
        return await done

    def _begin_batch(self) -> None:
        self._thread = self._thread or ThreadPoolExecutor(1, thread_name_prefix="godwit-tokens")
        batch, self._work = self._work[:BATCH_MAX], self._work[BATCH_MAX:]
        self._is_working = True
        running = asyncio.get_running_loop().run_in_executor(self._thread, verify_batch, batch)
        running.add_done_callback(lambda ran: self._finish_batch(batch, ran))

    def _finish_batch(self, batch: list[_Work], ran: asyncio.Future[list[Grant | Exception]]) -> None:
        self._is_working = False
        self.verifications += len(batch)
        error = asyncio.CancelledError() if ran.cancelled() else ran.exception()
        outcomes = [error] * len(batch) if error is not None else ran.result()
        for work, outcome in zip(batch, outcomes, strict=True):
            if work.done.done():
                continue
            if isinstance(outcome, Grant):
                work.done.set_result(outcome)
            elif isinstance(outcome, asyncio.CancelledError):
                work.done.cancel()
            else:
                work.done.set_exception(outcome)
        if self._work and not ran.cancelled():
            self._begin_batch()


def _measure(grant: Grant) -> int:
    texts = (grant.identity, grant.tenant, grant.token_id or "", grant.source or "")
    return (
        GRANT_BYTES
        + 4 * sum(map(len, texts))
        + sum(RULE_BYTES + (1 if rule.pattern.isascii() else 4) * len(rule.pattern) for rule in grant.rules)
    )


def _find_withdrawn(
    before: dict[str, tuple[IssuerConfig, KeySource]], after: dict[str, tuple[IssuerConfig, KeySource]]
) -> list[tuple[str, Code]]:
    """How the connections of each source end: for good if an issuer or key was removed (4002). If an issuer grants less they
    may reconnect with the same token, which is judged again (4209).
    """
    found = []
    for name, (issuer, source) in before.items():
        if name not in after:
            found.append((name_authority(issuer), Code.TOKEN_INVALID))
            continue
        found += [(name_source(issuer, key), Code.TOKEN_INVALID) for key in source.list_gone(after[name][1])]
        if _grants_less(issuer, after[name][0]):
            found.append((name_authority(issuer), Code.RIGHTS_CHANGED))
    return found


def _grants_less(before: IssuerConfig, after: IssuerConfig) -> bool:
    """Whether a token that was granted by one configuration might get less, or another name, by the other."""
    same = replace(
        before,
        subscribe=after.subscribe,
        publish=after.publish,
        keys_file=after.keys_file,
        keys_age_ms_max=after.keys_age_ms_max,
        refresh_ms_min=after.refresh_ms_min,
        keys_authorities_file=after.keys_authorities_file,
    )
    is_narrowed = set(before.subscribe) - set(after.subscribe) or set(before.publish) - set(after.publish)
    return same != after or bool(is_narrowed)


def verify_batch(batch: list[_Work]) -> list[Grant | Exception]:
    """On the thread: the grant of each token, or the error. Tokens whose caller gave up are skipped."""
    outcomes: list[Grant | Exception] = []
    for work in batch:
        try:
            if work.done.cancelled():
                raise TokenRefused("the client no longer waits for this")
            claims, key = verify_by(work.token, work.outline, work.issuer, work.ring)
            outcomes.append(read_grant(claims, work.issuer, key.fingerprint))
        except ClaimsInvalid as error:
            outcomes.append(TokenRefused(str(error)))
        except Exception as error:  # all of it is this token's: the others' answers must not be lost
            outcomes.append(error)
    return outcomes
