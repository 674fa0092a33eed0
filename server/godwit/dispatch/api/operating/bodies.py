"""Request bodies of operators, as types: a provider of e-mail. Pure."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from ..bodies import MailAddress, Name

Domain = Annotated[str, Meta(min_length=4, max_length=253)]


class DkimBody(Struct, forbid_unknown_fields=True):
    """A private key (PEM), and its name in the DNS of the From domains."""

    selector: Annotated[str, Meta(pattern=r"^[A-Za-z0-9._-]{1,63}\Z")]
    key: Annotated[str, Meta(max_length=10_000)]


class ProviderBody(Struct, forbid_unknown_fields=True):
    """A relay for e-mail. Secrets are never shown. Without `dkim` its key stays (null: none), without `password` that of the same login."""

    relay: Annotated[str, Meta(max_length=300)]
    sender: MailAddress
    security: Literal["starttls", "tls", "none"] = "starttls"
    user: Annotated[str, Meta(max_length=300)] = ""
    password: Annotated[str, Meta(max_length=1_000)] | None = None
    domains: Annotated[list[Domain], Meta(max_length=1_000)] = []
    tenants: Annotated[list[Name], Meta(max_length=10_000)] = []
    dkim: DkimBody | msgspec.UnsetType | None = msgspec.UNSET
    priority: Annotated[int, Meta(ge=0, le=1_000)] = 10
    weight: Annotated[int, Meta(ge=1, le=1_000)] = 1
    rate_per_s: Annotated[int, Meta(ge=0, le=100_000)] = 0
    sends_max: Annotated[int, Meta(ge=1, le=1_000)] = 16
    timeout_ms: Annotated[int, Meta(ge=100, le=300_000)] = 30_000
