"""Notifications over HTTP: accept one, show one with its counts, list its deliveries.

The id is in the path of a PUT. A POST with Idempotency-Key is a PUT with an id derived from tenant and key, so both use
one mechanism and one row. Invariant: 202 is sent after the commit, and a refused request has changed nothing.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable, Collection, Sequence
from typing import Any, get_args

import msgspec
from aiohttp import web

from ...config.dispatch_limits import DispatchLimits
from ..codes import DispatchCode
from ..content.personal import Form, render_people
from ..content.renderer import Renderer
from ..errors import RequestRefused
from ..model import ADDRESS_PREFIX, Person, State
from ..stores.sqlite.accept import Accepted, Draft, find_fingerprint, is_past, read_notification, show_counts
from ..stores.sqlite.manage.checking import check_draft
from ..stores.sqlite.manage.deliveries import Wanted, read_deliveries
from ..stores.sqlite.manage.pausing import TEMPLATE
from ..stores.sqlite.store import SqliteStore
from .answers import answer, show_problem
from .bodies import Channel, Name, NotificationBody, read_body, read_json, read_value
from .drafts import make_draft
from .keys import Caller, KeyRing, check_own
from .rates import AcceptRates
from .requests import check_length, is_text, read_bytes, read_name, read_number
from .templates import fill_content

DELIVERIES_PAGE = 500
FAILURES_SHOWN = 10


class NotificationApi:
    """The handlers; `wake` is called with the tenant of an accepted notification and the channels that have its jobs."""

    def __init__(
        self,
        store: SqliteStore,
        keys: KeyRing,
        limits: DispatchLimits,
        wake: Callable[[str, Collection[str]], None],
        check_address: Callable[[str, str], None],
        channels: Collection[str],
        may_send: Callable[[str, str], bool],
        renderer: Renderer,
        rates: AcceptRates,
        previews: AcceptRates,
    ) -> None:
        self._store, self._keys, self._limits, self._wake = store, keys, limits, wake
        self._check_address, self._channels, self._renderer = check_address, channels, renderer
        self._rates, self._previews, self._may_send = rates, previews, may_send

    def list_routes(self) -> list[web.RouteDef]:
        return [
            web.post("/v1/notifications", self.post),
            web.post("/v1/notifications/batch", self.post_batch),
            web.post("/v1/notifications/check", self.check),
            web.put("/v1/notifications/{id}", self.put),
            web.get("/v1/notifications/{id}", self.get, allow_head=False),
            web.get("/v1/notifications/{id}/deliveries", self.list_deliveries, allow_head=False),
        ]

    async def post(self, request: web.Request) -> web.Response:
        caller = await self._keys.read_request(request, "send")
        key = request.headers.get("Idempotency-Key")
        if key is not None and not (1 <= len(key) <= self._limits.name_characters_max and is_text(key)):
            detail = f"Idempotency-Key must have 1 to {self._limits.name_characters_max} characters in UTF-8"
            raise RequestRefused(DispatchCode.REQUEST_INVALID, detail)
        return await self._accept(request, caller, secrets.token_hex(12) if key is None else _name_by_key(key, caller))

    async def put(self, request: web.Request) -> web.Response:
        caller = await self._keys.read_request(request, "send")
        return await self._accept(request, caller, read_name(request, "id", self._limits))

    async def get(self, request: web.Request) -> web.Response:
        tenant, name = await self._read_own(request)
        row = await self._store.reader.run(lambda connection: read_notification(connection, tenant, name))
        if row is None:
            raise RequestRefused(DispatchCode.NOTIFICATION_UNKNOWN)
        shown: dict[str, Any] = {
            "id": row.id,
            "state": row.state,
            "accepted_ms": row.accepted_ms,
            "expires_ms": row.expires_ms,
        }
        if row.due_ms:
            shown["send_at_ms"] = row.due_ms
        if row.paused:
            shown["paused"] = row.paused
        if row.rest is not None:
            shown["rest"] = row.rest
        if row.options.metadata:
            shown["metadata"] = row.options.metadata
        return answer({**shown, "receivers": row.receivers, "counts": show_counts(row)})

    async def list_deliveries(self, request: web.Request) -> web.Response:
        tenant, name = await self._read_own(request)
        after, wanted = read_number(request, "after"), _read_wanted(request)
        found = await self._store.reader.run(
            lambda connection: read_deliveries(connection, tenant, name, wanted, after, DELIVERIES_PAGE)
        )
        if found is None:
            raise RequestRefused(DispatchCode.NOTIFICATION_UNKNOWN)
        rows, following = found
        return answer({"deliveries": [row._asdict() for row in rows], "after": following})

    async def _read_own(self, request: web.Request) -> tuple[str, str]:
        """Tenant and id of the notification of a request. Raises RequestRefused for a test key with another key's notification."""
        caller, name = await self._keys.read_request(request, "read"), request.match_info["id"]
        if caller.is_test:
            await check_own(self._store, caller.tenant, name)
        return caller.tenant, name

    async def _accept(self, request: web.Request, caller: Caller, name: str) -> web.Response:
        body, fingerprint = read_body(await read_bytes(request), NotificationBody)
        now_ms = time.time_ns() // 1_000_000
        await self._rates.take(caller.tenant)
        draft = await self._try_draft(caller, name, body, _mark_test(fingerprint, caller), now_ms)
        if draft is None:
            return answer(show_repeat(name), 202)
        accepted = await self._store.accept(draft, now_ms)
        shown = show_accepted(draft, accepted)
        self._wake(caller.tenant, accepted.channels)
        return answer(shown, 202)

    async def _try_draft(
        self, caller: Caller, name: str, body: NotificationBody, fingerprint: bytes, now_ms: int
    ) -> Draft | None:
        """The notification to accept; None if it was accepted before, and would be refused by now: its template was deleted,
        its time has passed. Raises RequestRefused.
        """
        try:
            return await self._make_draft(caller, name, body, fingerprint, now_ms)
        except RequestRefused:
            known = await self._store.reader.run(lambda connection: find_fingerprint(connection, caller.tenant, name))
            if known != fingerprint:
                raise
            return None

    async def _make_draft(
        self, caller: Caller, name: str, body: NotificationBody, fingerprint: bytes, now_ms: int
    ) -> Draft:
        filled = await fill_content(self._store, self._renderer.of(caller.tenant), caller.tenant, body.content)
        draft = make_draft(
            caller.tenant,
            name,
            body,
            fingerprint,
            limits=self._limits,
            now_ms=now_ms,
            is_test=caller.is_test,
            filled=filled,
            channels=tuple(self._channels),
        )
        self._check_channels(draft)
        self._check_sender(caller.tenant, body)
        if draft.address is not None:
            try:
                self._check_address(*draft.address)
            except RequestRefused as refused:
                raise RequestRefused(refused.code, refused.detail, pointer="/to/address/value") from refused
        return draft

    def _check_sender(self, tenant: str, body: NotificationBody) -> None:
        """Raises RequestRefused if no provider of the tenant sends from the From address."""
        email = None if body.override is None else body.override.email
        if email is not None and email.from_ is not None and not self._may_send(tenant, email.from_):
            raise RequestRefused(DispatchCode.SENDER_FORBIDDEN, pointer="/override/email/from")

    def _check_channels(self, draft: Draft) -> None:
        """Raises RequestRefused if none of the requested channels is set up, because nothing could be sent."""
        steps = [step.channel for step in draft.options.steps]
        wanted = [draft.options.channel] if draft.options.channel else steps
        if wanted and not set(wanted) & set(self._channels):
            pointer = "/to/address/channel" if draft.options.channel else "/policy"
            detail = f"{' and '.join(wanted)} cannot be used: expected one of {', '.join(self._channels)}"
            raise RequestRefused(DispatchCode.CHANNEL_MISSING, detail, pointer=pointer)

    async def post_batch(self, request: web.Request) -> web.Response:
        """A batch: an array, or one object on each line; the answer has a result for each, in order."""
        caller = await self._keys.read_request(request, "send")
        now_ms = time.time_ns() // 1_000_000
        results: list[Draft | dict[str, Any]] = []
        items = read_items(await read_bytes(request), self._limits.batch_notifications_max)
        await self._rates.take(caller.tenant, len(items))
        for item in items:
            try:
                results.append(await self._read_item(caller, item, now_ms))
            except RequestRefused as refused:
                results.append(show_problem(refused))
        drafts = [one for one in results if isinstance(one, Draft)]
        all_accepted = await self._store.accept_all(drafts, now_ms)
        accepted, shown = iter(all_accepted), []
        for one in results:
            try:
                shown.append(show_accepted(one, next(accepted)) if isinstance(one, Draft) else one)
            except RequestRefused as refused:
                shown.append(show_problem(refused))
        for channels in {one.channels for one in all_accepted}:
            self._wake(caller.tenant, channels)
        return answer({"results": shown}, 202)

    async def _read_item(self, caller: Caller, item: bytes | dict[str, Any], now_ms: int) -> Draft | dict[str, Any]:
        parsed = read_json(item) if isinstance(item, bytes) else item
        name = parsed.pop("id", None) if isinstance(parsed, dict) else None
        if name is not None:
            name = _read_id(name)
            check_length(name, self._limits, "/id")
        body, fingerprint = read_value(parsed, NotificationBody)
        name = name or secrets.token_hex(12)
        return await self._try_draft(caller, name, body, _mark_test(fingerprint, caller), now_ms) or show_repeat(name)

    async def check(self, request: web.Request) -> web.Response:
        """A dry run: what would happen."""
        caller = await self._keys.read_request(request, "send")
        body, fingerprint = read_body(await read_bytes(request), NotificationBody)
        now_ms = time.time_ns() // 1_000_000
        await self._previews.take(caller.tenant)
        draft = await self._make_draft(caller, "", body, fingerprint, now_ms)
        if is_past(draft, now_ms):
            raise RequestRefused(DispatchCode.SEND_TIME_PAST, pointer="/send_at")
        found = await self._store.reader.run(
            lambda connection: check_draft(connection, draft, tuple(self._channels), now_ms)
        )
        if draft.group is not None and found is None:
            raise RequestRefused(DispatchCode.GROUP_UNKNOWN, pointer="/to/group")
        counts, people = found or ({}, ())
        content = (
            {"content": await _try_content(self._renderer.of(caller.tenant), draft, people)}
            if draft.options.is_personal
            else {}
        )
        return answer({**counts, **content, "content_bytes": len(draft.body)})


def _name_by_key(key: str, caller: Caller) -> str:
    """The id of the notification that a request with an Idempotency-Key makes. Keys of test and of live requests do not meet."""
    kind = "test\0" if caller.is_test else ""
    return hashlib.sha256(f"{kind}{caller.tenant}\0{key}".encode()).hexdigest()[:32]


def _mark_test(fingerprint: bytes, caller: Caller) -> bytes:
    """The fingerprint of a body that a test key sent is another: with the same id a live one is a conflict, never a repeat."""
    return hashlib.sha256(b"test" + fingerprint).digest() if caller.is_test else fingerprint


async def _try_content(renderer: Renderer, draft: Draft, people: Sequence[Person]) -> dict[str, Any]:
    """For how many receivers the template renders, of those that one page's time is enough for; and why not for others."""
    form = next(msgspec.json.decode(body, type=Form) for channel, _, body in draft.rendered if channel == TEMPLATE)
    results = await render_people(renderer, form, people) if people else []
    failed = [(person, one.failure) for person, one in zip(people, results, strict=False) if one.failure]
    # the receiver that represents a bare address has a reserved name
    names = [None if person.name.startswith(ADDRESS_PREFIX) else person.name for person, _ in failed]
    shown = [
        {"receiver": name, "detail": detail} for name, (_, detail) in zip(names[:FAILURES_SHOWN], failed, strict=False)
    ]
    return {"rendered": len(results) - len(failed), "failed": len(failed), "failures": shown}


def _read_wanted(request: web.Request) -> Wanted:
    """The filter for listed deliveries; raises RequestRefused."""
    channel, state = request.query.get("channel"), request.query.get("state")
    for field, given, known in (
        ("channel", channel, get_args(Channel)),
        ("state", state, tuple(state.label for state in State)),
    ):
        if given is not None and given not in known:
            detail = f"unknown {field} {given[:40]!r}: expected one of {', '.join(known)}"
            raise RequestRefused(DispatchCode.REQUEST_INVALID, detail)
    return Wanted(channel, None if state is None else State[state.upper()])


def read_items(body: bytes, count_max: int) -> list[bytes] | list[dict[str, Any]]:
    """The items of a batch: of an array, or of lines; raises RequestRefused."""
    items: Any = read_json(body) if body.lstrip()[:1] == b"[" else [line for line in body.split(b"\n") if line.strip()]
    if len(items) > count_max:
        raise RequestRefused(DispatchCode.BATCH_TOO_BIG, f"expected at most {count_max:,} notifications")
    return list(items)


def _read_id(given: Any) -> str:
    try:
        return read_value(given, Name)[0]
    except RequestRefused as refused:
        raise RequestRefused(refused.code, refused.detail, pointer="/id") from refused


def show_repeat(name: str) -> dict[str, Any]:
    """The answer for a notification that was accepted before."""
    return {"id": name, "state": "accepted", "repeat": True}


def show_accepted(draft: Draft, accepted: Accepted) -> dict[str, Any]:
    """The answer for an accepted notification; raises RequestRefused for a refused one."""
    if accepted.is_conflict:
        raise RequestRefused(DispatchCode.NOTIFICATION_CONFLICT)
    if accepted.is_past:
        raise RequestRefused(DispatchCode.SEND_TIME_PAST, pointer="/send_at")
    if accepted.quota:
        raise RequestRefused(DispatchCode.QUOTA_EXCEEDED, accepted.quota)
    if accepted.lacks_group:
        raise RequestRefused(DispatchCode.GROUP_UNKNOWN, pointer="/to/group")
    if accepted.unknown and draft.is_single:
        raise RequestRefused(DispatchCode.RECEIVER_UNKNOWN, pointer="/to/receiver")
    if accepted.is_duplicate:
        return show_repeat(draft.id)
    shown: dict[str, Any] = {"id": draft.id, "state": "accepted"}
    if accepted.unknown:
        shown["unknown"] = accepted.unknown
    return shown
