"""The bodies of API requests as types: unknown fields are refused, and so are repeated ones.

Pure. Reading takes two steps, so that the fingerprint is of the canonical JSON: the order of keys, and blanks, do not
change it.
"""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from ..codes import DispatchCode
from ..content.templates import Parts
from ..errors import RequestRefused
from ..model import Quotas
from ..pure import text_forms as forms
from .choices import add_choices

T = TypeVar("T")
Name = Annotated[str, Meta(min_length=1, max_length=128, pattern=forms.NAME)]
Text = Annotated[str, Meta(max_length=10_000)]
Clock = Annotated[str, Meta(pattern=forms.CLOCK)]
Channel = Literal["inbox", "webhook", "email"]
Link = Annotated[str, Meta(max_length=2_048)]
Wait = Annotated[int, Meta(ge=1, le=604_800)]
Expiry = Annotated[int, Meta(ge=1, le=2_592_000)]
DEPTH_MAX = 32


class Action(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A button of a notification."""

    id: Name
    label: Annotated[str, Meta(min_length=1, max_length=200)]
    url: Link | None = None


class Content(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """What is shown to the receiver."""

    title: Annotated[str, Meta(max_length=1_000)] | None = None
    body: Text | None = None
    url: Link | None = None
    icon: Link | None = None
    actions: Annotated[list[Action], Meta(max_length=3)] = []
    data: dict[str, Any] = {}
    template: Name | None = None
    version: Annotated[int, Meta(ge=1, le=2**31)] | None = None


class QuietHours(Struct, forbid_unknown_fields=True):
    """Local times between which only the inbox is used; the interval may cross midnight."""

    start: Clock
    end: Clock


class ReceiverBody(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A receiver without its name."""

    locale: Annotated[str, Meta(max_length=35)] | None = None
    zone: Annotated[str, Meta(max_length=64)] | None = None
    quiet: QuietHours | None = None
    attributes: dict[Annotated[str, Meta(max_length=128)], Annotated[str, Meta(max_length=1_000)]] = {}


class ReceiverPatch(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Fields of a receiver that change (RFC 7396): null removes one, also within `attributes`."""

    locale: Annotated[str, Meta(max_length=35)] | None = None
    zone: Annotated[str, Meta(max_length=64)] | None = None
    quiet: QuietHours | None = None
    attributes: dict[Annotated[str, Meta(max_length=128)], Annotated[str, Meta(max_length=1_000)] | None] | None = None


class NewReceiver(ReceiverBody, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """A receiver that is created or replaced before the notification is accepted."""

    id: Name


class RawAddress(Struct, forbid_unknown_fields=True):
    """An address that belongs to no receiver of the application."""

    channel: Literal["webhook", "email"]
    value: Link


class Recipients(Struct, forbid_unknown_fields=True):
    """Exactly one of receiver, receivers, group and address. `except` is allowed with a group only."""

    receiver: Name | NewReceiver | None = None
    receivers: Annotated[list[Name], Meta(min_length=1)] | None = None
    group: Name | None = None
    except_: list[Name] = msgspec.field(name="except", default_factory=list)
    address: RawAddress | None = None


class EscalationStep(Struct, forbid_unknown_fields=True):
    """A channel, the state that its delivery must reach, and the time to wait for it."""

    channel: Channel
    until: Literal["sent", "delivered", "seen", "read", "confirmed"] = "sent"
    wait_s: Wait = 300


class Policy(Struct, forbid_unknown_fields=True):
    """Channels that are tried one after the other: exactly one of `first` and `escalate`."""

    first: Annotated[list[Channel], Meta(min_length=1, max_length=10)] | None = None
    wait_s: Wait = 300
    escalate: Annotated[list[EscalationStep], Meta(min_length=1, max_length=10)] | None = None


class LocalTime(Struct, forbid_unknown_fields=True):
    """A wall-clock time in each receiver's zone."""

    local: Annotated[str, Meta(pattern=forms.LOCAL_TIME)]


HeaderName = Annotated[str, Meta(pattern=forms.HEADER_NAME)]
HeaderValue = Annotated[str, Meta(pattern=forms.HEADER_VALUE)]


class Attachment(Struct, forbid_unknown_fields=True):
    """A file of an e-mail; `content` is base64."""

    name: Annotated[str, Meta(min_length=1, max_length=200, pattern=forms.FILE)]
    content: Annotated[str, Meta(max_length=1_000_000, pattern=forms.BASE64)]
    type: Annotated[str, Meta(max_length=100, pattern=forms.MEDIA_TYPE)] = "application/octet-stream"


MailAddress = Annotated[str, Meta(min_length=3, max_length=254)]
MailHeader = Annotated[
    str,
    Meta(pattern=forms.MAIL_HEADER),
]


class EmailOverride(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Settings of an e-mail; `subject`, `text` and `html` override those of a template."""

    subject: Annotated[str, Meta(max_length=1_000)] | None = None
    text: Annotated[str, Meta(max_length=100_000)] | None = None
    html: Annotated[str, Meta(max_length=250_000)] | None = None
    cc: Annotated[list[MailAddress], Meta(max_length=10)] = []
    reply_to: MailAddress | None = None
    from_: MailAddress | None = msgspec.field(name="from", default=None)
    """The From address; its domain must be one that a provider of the tenant sends from."""
    headers: Annotated[dict[MailHeader, HeaderValue], Meta(max_length=20)] = {}
    attachments: Annotated[list[Attachment], Meta(max_length=10)] = []


class Override(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Settings of one channel."""

    email: EmailOverride | None = None


class NotificationBody(Struct, forbid_unknown_fields=True):
    """One notification."""

    to: Recipients
    content: Content
    override: Override | None = None
    policy: Literal["all"] | Policy = "all"
    category: Name | None = None
    critical: bool = False
    priority: Literal["high", "normal", "bulk"] = "normal"
    send_at: Annotated[str, Meta(max_length=40)] | LocalTime | None = None
    expires_s: Expiry | None = None
    collapse_key: Name | None = None
    dedupe: bool = False
    if_in_doubt: Literal["retry", "hold"] = "retry"
    metadata: dict[Annotated[str, Meta(max_length=128)], Annotated[str, Meta(max_length=1_000)]] = {}


class BatchItem(NotificationBody, forbid_unknown_fields=True):
    """One notification of a batch, with an id of the caller's choice."""

    id: Name | None = None


class WebhookBody(Struct, forbid_unknown_fields=True):
    """An event webhook: the types of events it receives (none: all), and whether each event lists its deliveries."""

    url: Link
    types: Annotated[list[str], Meta(max_length=50)] = []
    detail: Literal["counts", "deliveries"] = "counts"


class ReplayEventsBody(Struct, forbid_unknown_fields=True):
    """The number of an event; all events after it are sent again."""

    after: Annotated[int, Meta(ge=0, le=2**53)]


class CategoryBody(Struct, forbid_unknown_fields=True):
    """A category: `required` ignores preferences and unsubscribes; `expires_s` is its notifications' default."""

    required: bool = False
    expires_s: Expiry | None = None


class SuppressionBody(Struct, forbid_unknown_fields=True):
    """Why an address receives nothing: of one category, or of all."""

    category: Name | None = None
    reason: Name = "manual"


class PreferencesBody(Struct, forbid_unknown_fields=True):
    """A receiver's preferences: category → channel → whether to send; `*` matches all."""

    categories: Annotated[dict[Name, dict[Channel | Literal["*"], bool]], Meta(max_length=200)] = {}


class ImportedAddress(Struct, forbid_unknown_fields=True):
    """An address of an imported receiver."""

    id: Name
    channel: Literal["webhook", "email"]
    value: Link


class ImportedReceiver(NewReceiver, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """One line of an import of receivers."""

    addresses: Annotated[list[ImportedAddress], Meta(max_length=20)] = []


class ImportedSubscription(Struct, forbid_unknown_fields=True):
    """One line of an import of a group."""

    receiver: Name


class VersionBody(Struct, forbid_unknown_fields=True):
    """The version of a group to which notifications are sent from now on."""

    version: Annotated[int, Meta(ge=0, le=2**53)]


class KeyBody(Struct, forbid_unknown_fields=True):
    """A new API key; without `tenant` it belongs to the caller's."""

    scopes: Annotated[
        list[Literal["send", "read", "manage", "events", "admin", "operator"]], Meta(min_length=1, max_length=6)
    ]
    tenant: Name | None = None
    test: bool = False


class TenantBody(Struct, forbid_unknown_fields=True):
    """A tenant's quotas, and whether connections of its receivers are recorded. None: unchanged."""

    quotas: Quotas | None = None
    presence: bool | None = None


class ReplayBody(Struct, forbid_unknown_fields=True):
    """Which dead letters are sent again. Those whose outcome is unknown may have arrived, and are included only if `state` names it."""

    channel: Channel | None = None
    state: Literal["failed", "unknown"] = "failed"
    reason: Annotated[str, Meta(max_length=128)] | None = None
    notification: Name | None = None
    limit: Annotated[int, Meta(ge=1, le=10_000)] = 1_000
    dry_run: bool = False
    """Only count them."""


class FormatBody(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The form of a webhook's body: a preset with fields of the address, or a Liquid template with fixed headers."""

    preset: Literal["slack", "teams", "discord", "ntfy", "gotify"] | None = None
    fields: dict[Name, Annotated[str, Meta(max_length=1_000)] | int | bool] = {}
    body: Annotated[str, Meta(max_length=10_000)] | None = None
    headers: Annotated[dict[HeaderName, HeaderValue], Meta(max_length=20)] = {}


class AddressBody(Struct, forbid_unknown_fields=True):
    """An address of a receiver. `format` is allowed for webhooks; without it the body is a signed event."""

    channel: Literal["webhook", "email"]
    value: Link
    format: FormatBody | None = None


class TemplateBody(Struct, forbid_unknown_fields=True):
    """A template: its parts by locale; `default` is required."""

    locales: Annotated[dict[Annotated[str, Meta(pattern=forms.LOCALE)], Parts], Meta(min_length=1, max_length=50)]


class PreviewBody(Struct, forbid_unknown_fields=True):
    """The data for a preview of a template. `receiver` is the id of a receiver, whose locale and attributes are used."""

    data: dict[str, Any] = {}
    receiver: Name | None = None
    locale: Annotated[str, Meta(max_length=35)] = ""
    version: Annotated[int, Meta(ge=1, le=2**31)] | None = None


class MarkBody(Struct, forbid_unknown_fields=True):
    """What a receiver did with items: those at positions, those of notifications, or all up to a position."""

    mark: Literal["delivered", "seen", "read", "unread", "archived", "unarchived", "confirmed"]
    items: Annotated[list[str], Meta(max_length=1_000)] | None = None
    ids: Annotated[list[str], Meta(max_length=1_000)] | None = None
    up_to: str | None = None


def read_body(body: bytes, kind: type[T]) -> tuple[T, bytes]:
    """The body as a value, and its fingerprint; raises RequestRefused."""
    return read_value(read_json(body), kind)


def read_json(body: bytes) -> Any:
    """The body as JSON, without repeated keys and at most `DEPTH_MAX` levels deep; raises RequestRefused."""
    try:
        parsed = _DECODER.decode(body.decode(json.detect_encoding(body), "surrogatepass"))
    except (ValueError, RecursionError) as error:
        raise RequestRefused(DispatchCode.REQUEST_INVALID, f"the body is not valid JSON: {error!s:.200}") from error
    _check_depth(parsed, DEPTH_MAX)
    return parsed


def read_value(parsed: Any, kind: type[T]) -> tuple[T, bytes]:
    """JSON as a value, and its fingerprint; raises RequestRefused."""
    try:
        canonical = _ENCODER.encode(parsed).encode()
    except ValueError as error:  # UnicodeEncodeError: a lone surrogate
        raise RequestRefused(DispatchCode.REQUEST_INVALID, f"the body is not valid JSON: {error!s:.200}") from error
    try:
        return msgspec.convert(parsed, kind, strict=True), hashlib.sha256(canonical).digest()
    except msgspec.ValidationError as error:
        what, _, where = str(error).replace(" - at `key` in `$", " - at `$").partition(" - at `$")
        path = _point(where)
        raise RequestRefused(DispatchCode.REQUEST_INVALID, add_choices(what, kind, path), pointer=path) from error


def _take_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    taken = dict(pairs)
    if len(taken) != len(pairs):
        raise ValueError("an object has the same key twice")
    return taken


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


_DECODER = json.JSONDecoder(object_pairs_hook=_take_pairs, parse_constant=_refuse_constant)
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
"""Created once, because json.loads and json.dumps would create one for each body."""


def _check_depth(value: object, left: int) -> None:
    if left == 0:
        raise RequestRefused(DispatchCode.REQUEST_INVALID, f"the body nests deeper than {DEPTH_MAX} levels")
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for child in children:
        if isinstance(child, dict | list):
            _check_depth(child, left - 1)


def _point(where: str) -> str:
    """msgspec's path as a JSON pointer: `.to.receivers[0]` becomes /to/receivers/0. It does not name the keys of objects (`[...]`)."""
    return where.replace("[...]", "").rstrip("`").replace(".", "/").replace("[", "/").replace("]", "")
