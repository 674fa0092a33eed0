"""Checks a request's body and makes a notification of it: recipients, times and policy.

Pure. Whether receivers and groups exist, and the default of a category, is checked by the store when it accepts.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from ...config.dispatch_email import is_email
from ...config.dispatch_limits import DispatchLimits
from ..codes import DispatchCode
from ..content.personal import NOTHING, Filled, Form
from ..content.templates import Rendered
from ..errors import RequestRefused
from ..model import ADDRESS_PREFIX, Options, Priority, Step
from ..pure.quiet import EAST_MS, WEST_MS
from ..stores.sqlite.accept import Draft
from ..stores.sqlite.manage.pausing import TEMPLATE
from .bodies import EmailOverride, LocalTime, NewReceiver, NotificationBody, Override, Policy, Recipients
from .keys import check_receiver_name
from .receivers import check_receiver
from .requests import check_free, check_length

ATTACHMENTS_BYTES_MAX = 700_000


def make_draft(
    tenant: str,
    name: str,
    body: NotificationBody,
    fingerprint: bytes,
    *,
    limits: DispatchLimits,
    now_ms: int,
    is_test: bool = False,
    filled: Filled = NOTHING,
    channels: tuple[str, ...] = (),
) -> Draft:
    """The notification to accept; raises RequestRefused."""
    rendered, form, actions = filled
    email = None if body.override is None else body.override.email
    _check_shown(body)
    to = _read_recipients(body.to, limits)
    if is_test and isinstance(body.to.receiver, NewReceiver):
        check_receiver_name(body.to.receiver.id)
    if not to.is_single and email is not None and email.cc:
        detail = "copies need exactly one receiver or address: each e-mail of the notification would send them again"
        raise RequestRefused(DispatchCode.REQUEST_INVALID, detail, pointer="/override/email/cc")
    due_ms, last_ms, local = _read_time(body.send_at, limits, now_ms)
    begin_ms = last_ms or now_ms
    expires_ms = begin_ms + (limits.expires_ms if body.expires_s is None else body.expires_s * 1_000)
    options = Options(
        category=body.category or "",
        critical=body.critical,
        collapse_key=body.collapse_key or "",
        dedupe=body.dedupe,
        holds_doubt=body.if_in_doubt == "hold",
        local=local,
        is_test=is_test,
        channel="" if to.address is None else to.address[0],
        steps=_read_steps(body.policy),
        metadata=body.metadata,
        locales=tuple(one.locale for one in rendered[1:]),
        is_personal=form is not None,
        copies=() if email is None else tuple(email.cc),
        sender="" if email is None else email.from_ or "",
    )
    return Draft(
        tenant,
        name,
        fingerprint,
        rendered[0].content if rendered else msgspec.json.encode(body.content),
        to.names,
        to.new,
        to.is_single,
        expires_ms,
        to.group,
        due_ms,
        Priority[body.priority.upper()],
        options,
        begin_ms if body.expires_s is None else None,
        to.address,
        tuple(list_rows(rendered, body.override) if form is None else _list_kept(form, actions, body.override)),
        channels,
    )


def _check_shown(body: NotificationBody) -> None:
    """Raises RequestRefused where a receiver would get nothing at all, or two actions with one id."""
    email = None if body.override is None else body.override.email
    has_own = email is not None and any((email.subject, email.text, email.html, email.attachments))
    content = body.content
    names = [action.id for action in content.actions]
    if len(set(names)) != len(names):
        detail = "two actions have the same id: the page could not distinguish them"
        raise RequestRefused(DispatchCode.REQUEST_INVALID, detail, pointer="/content/actions")
    texts = (content.title, content.body, content.url, content.icon, content.template)
    if not (has_own or any(texts) or content.actions or content.data):
        detail = "the notification is empty: expected a title, body, url, icon, actions, data or template"
        raise RequestRefused(DispatchCode.REQUEST_INVALID, detail, pointer="/content")


class _Recipients(NamedTuple):
    names: tuple[str, ...]
    new: tuple[tuple[str, bytes], ...] = ()
    is_single: bool = False
    group: str | None = None
    address: tuple[str, str] | None = None


def _read_recipients(to: Recipients, limits: DispatchLimits) -> _Recipients:
    given = [one for one in (to.receiver, to.receivers, to.group, to.address) if one is not None]
    if len(given) != 1 or (to.except_ and to.group is None):
        detail = "expected exactly one of receiver, receivers, group and address; except needs a group"
        raise RequestRefused(DispatchCode.REQUEST_INVALID, detail, pointer="/to")
    if to.address is not None:
        address = (to.address.channel, to.address.value)
        name = ADDRESS_PREFIX + hashlib.sha256("\0".join(address).encode()).hexdigest()[:32]
        return _Recipients((name,), ((name, b"{}"),), is_single=True, address=address)
    if isinstance(to.receiver, NewReceiver):
        check_receiver(to.receiver, "/to/receiver")
        check_free(to.receiver.id, "/to/receiver/id")
        check_length(to.receiver.id, limits, "/to/receiver/id")
        attributes = msgspec.to_builtins(to.receiver)
        name = attributes.pop("id")
        return _Recipients((name,), ((name, msgspec.json.encode(attributes)),), is_single=True)
    if to.receiver is not None:
        return _Recipients((to.receiver,), is_single=True)
    names = tuple(to.receivers or to.except_)
    if len(names) > limits.receivers_per_notification_max:
        detail = f"expected at most {limits.receivers_per_notification_max:,} receivers"
        raise RequestRefused(DispatchCode.REQUEST_INVALID, detail, pointer="/to/receivers")
    return _Recipients(names, group=to.group)


def _read_time(send_at: str | LocalTime | None, limits: DispatchLimits, now_ms: int) -> tuple[int, int, str]:
    """When it is due, when it is due in every zone, and the local time, if it has one. 0: now."""
    if send_at is None:
        return 0, 0, ""
    text = send_at.local if isinstance(send_at, LocalTime) else send_at
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise _refuse_time("expected a time such as 2026-12-24T09:00:00Z") from error
    if isinstance(send_at, LocalTime):
        utc_ms = int(time.replace(tzinfo=UTC).timestamp()) * 1_000
        due_ms, last_ms, local = utc_ms - EAST_MS, utc_ms + WEST_MS, time.isoformat()
    elif time.tzinfo is None:
        raise _refuse_time('expected an offset or Z; for the time of each receiver\'s zone write {"local": …}')
    else:
        due_ms = last_ms = int(time.timestamp() * 1_000)
        local = ""
    if last_ms > now_ms + limits.send_at_ms_max:
        raise _refuse_time(f"is more than {limits.send_at_ms_max // 86_400_000} days in the future")
    if local:
        if last_ms < now_ms:
            raise RequestRefused(DispatchCode.SEND_TIME_PAST, pointer="/send_at")
        return max(due_ms, 1) if due_ms > now_ms else 0, last_ms, local
    return max(due_ms, 1), last_ms, ""


def _refuse_time(detail: str) -> RequestRefused:
    return RequestRefused(DispatchCode.REQUEST_INVALID, detail, pointer="/send_at")


def _read_steps(policy: str | Policy) -> tuple[Step, ...]:
    if isinstance(policy, str):
        return ()
    if (policy.first is None) == (policy.escalate is None):
        raise RequestRefused(
            DispatchCode.REQUEST_INVALID, "expected exactly one of first and escalate", pointer="/policy"
        )
    if policy.first is not None:
        steps = tuple(Step(channel, wait_s=policy.wait_s) for channel in policy.first)
    else:
        steps = tuple(Step(step.channel, step.until, step.wait_s) for step in policy.escalate or ())
    if len({step.channel for step in steps}) != len(steps):
        raise RequestRefused(DispatchCode.REQUEST_INVALID, "a channel is listed twice", pointer="/policy")
    return steps


def list_rows(rendered: Sequence[Rendered], override: Override | None) -> Iterator[tuple[str, str, bytes]]:
    """Channel, locale and content of what is stored in addition to the default content; raises RequestRefused."""
    own = _read_email(None if override is None else override.email)
    for number, one in enumerate(rendered):
        locale = one.locale if number else ""
        if number:
            yield "", locale, one.content
        if one.email or own:
            yield "email", locale, _join(one.email, own)
    if own and not rendered:
        yield "email", "", _join(b"", own)


def _list_kept(form: Form, actions: Sequence[Any], override: Override | None) -> Iterator[tuple[str, str, bytes]]:
    """What is stored for content of each receiver: its form, and once the parts that all receivers share."""
    yield TEMPLATE, "", msgspec.json.encode(form)
    shared = {**({"data": form.data} if form.data else {}), **({"actions": actions} if actions else {})}
    if shared:
        yield TEMPLATE, "content", msgspec.json.encode(shared)
    if own := _read_email(None if override is None else override.email):
        yield TEMPLATE, "email", msgspec.json.encode(own)


def _join(email: bytes, own: dict[str, Any]) -> bytes:
    return (
        msgspec.json.encode({**msgspec.json.decode(email), **own})
        if email and own
        else email or msgspec.json.encode(own)
    )


def _read_email(given: EmailOverride | None) -> dict[str, Any]:
    if given is None:
        return {}
    where = "/override/email"
    addresses = [(f"{where}/cc/{number}", value) for number, value in enumerate(given.cc)]
    addresses += [(f"{where}/reply_to", given.reply_to)] if given.reply_to is not None else []
    addresses += [(f"{where}/from", given.from_)] if given.from_ is not None else []
    for pointer, value in addresses:
        if not is_email(value):
            raise RequestRefused(
                DispatchCode.REQUEST_INVALID, f"{value!r:.100} is not an e-mail address", pointer=pointer
            )
    size = 0
    for number, attachment in enumerate(given.attachments):
        try:
            size += len(base64.b64decode(attachment.content, validate=True))
        except ValueError as error:
            pointer = f"{where}/attachments/{number}/content"
            raise RequestRefused(DispatchCode.REQUEST_INVALID, "the content is not base64", pointer=pointer) from error
    if size > ATTACHMENTS_BYTES_MAX:
        detail = f"the attachments have {size:,} bytes: expected at most {ATTACHMENTS_BYTES_MAX:,} together"
        raise RequestRefused(DispatchCode.REQUEST_TOO_BIG, detail, pointer=f"{where}/attachments")
    fields: dict[str, Any] = msgspec.to_builtins(given)
    return fields
