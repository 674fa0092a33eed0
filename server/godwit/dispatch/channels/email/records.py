"""The DNS records that e-mail of a domain needs, and whether they exist: DKIM, SPF, DMARC, and the MX of bounces.

Pure: looking up is the caller's.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from .dkim import DkimKey

Lookup = Callable[[str, str], list[str]]
"""The texts of a name's records of a type (TXT, MX); empty if there are none."""


@dataclass(frozen=True, slots=True)
class Record:
    """A required record. `state`: ok, missing or wrong; `found` is the existing text."""

    name: str
    type: str
    needed: str
    state: str
    found: tuple[str, ...] = ()
    hint: str = ""


def check_domain(
    domain: str, bounce_domain: str, relay_host: str, selector: str, key: DkimKey | None, look_up: Lookup
) -> list[Record]:
    """All records of a From domain."""
    return [*_check_dkim(domain, selector, key, look_up), *_check_policies(domain, bounce_domain, relay_host, look_up)]


def make_dkim_record(key: DkimKey) -> str:
    """The TXT record of a signing key."""
    public = key.public_key()
    if isinstance(key, Ed25519PrivateKey):
        kind, packed = "ed25519", public.public_bytes(Encoding.Raw, PublicFormat.Raw)
    else:
        kind, packed = "rsa", public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return f"v=DKIM1; k={kind}; p={base64.b64encode(packed).decode()}"


def _check_dkim(domain: str, selector: str, key: DkimKey | None, look_up: Lookup) -> Iterator[Record]:
    name = f"{selector}._domainkey.{domain}"
    if key is None:
        yield Record(name, "TXT", "", "missing", hint="set dispatch_email.dkim_key_file: e-mail is not signed")
        return
    needed, found = make_dkim_record(key), look_up(name, "TXT")
    wanted = _read_tags(needed)
    is_there = any(_read_tags(text).get("p") == wanted["p"] for text in found)
    hint = "" if is_there else "the record shows another key" if found else ""
    yield Record(name, "TXT", needed, _judge(is_there, found), tuple(found), hint)


def _check_policies(domain: str, bounce_domain: str, relay_host: str, look_up: Lookup) -> Iterator[Record]:
    envelope = bounce_domain or domain
    found = [text for text in look_up(envelope, "TXT") if text.lower().startswith("v=spf1")]
    is_strict = len(found) == 1 and _lets_some_send(found[0])
    hint = (
        "" if is_strict else "expected one record that ends with -all or ~all and lets the relay send" if found else ""
    )
    yield Record(envelope, "TXT", f"v=spf1 a:{relay_host} -all", _judge(is_strict, found), tuple(found), hint)
    name = f"_dmarc.{domain}"
    found = [text for text in look_up(name, "TXT") if text.lower().startswith("v=dmarc1")]
    is_there = len(found) == 1 and _read_tags(found[0]).get("p", "") in ("none", "quarantine", "reject")
    yield Record(
        name, "TXT", f"v=DMARC1; p=quarantine; rua=mailto:dmarc@{domain}", _judge(is_there, found), tuple(found)
    )
    if bounce_domain:
        found = look_up(bounce_domain, "MX")
        hint = "name the host whose port 25 leads to dispatch_email.bounce_address"
        yield Record(
            bounce_domain, "MX", f"10 HOST.{domain}", _judge(bool(found), found), tuple(found), "" if found else hint
        )


def _lets_some_send(record: str) -> bool:
    """Whether an SPF record allows some senders and forbids others: `-all` alone allows no sender, `?all` allows every sender."""
    terms = record.lower().split()[1:]
    if any(term.startswith("redirect=") for term in terms):
        return True
    allowed = [term for term in terms if term[0] not in "-~?" and "=" not in term and term.lstrip("+") != "all"]
    return bool(allowed) and terms[-1] in ("-all", "~all")


def _judge(is_there: bool, found: list[str]) -> str:
    return "ok" if is_there else "wrong" if found else "missing"


def _read_tags(text: str) -> dict[str, str]:
    pairs = (part.partition("=") for part in text.split(";"))
    return {name.strip().lower(): re.sub(r"\s", "", value) for name, _, value in pairs}
