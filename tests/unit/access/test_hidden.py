"""A secret in no encoding, and nothing else, is taken out of a text."""

import base64
import json
from urllib.parse import quote

import pytest

from godwit.access.hidden import HIDDEN, hide

SECRET = "eyJhbGciOiJIUzI1NiJ9.p/ay+lo ad=&.signature-of-it"


@pytest.mark.parametrize(
    "form",
    [
        SECRET,
        repr(SECRET),
        json.dumps({"token": SECRET}),
        quote(SECRET, safe=""),
        SECRET.encode().hex(),
        "".join(f"%{byte:02X}" for byte in SECRET.encode()),
        base64.b64encode(SECRET.encode()).decode(),
        base64.urlsafe_b64encode(f"u:{SECRET}".encode()).decode(),
        base64.b64encode(f"Ann:{SECRET}:x".encode()).decode(),
        base64.b32encode(SECRET.encode()).decode(),
        base64.b32encode(f"Ann:{SECRET}:x".encode()).decode().lower(),
        base64.b85encode(SECRET.encode()).decode(),
        base64.a85encode(f"u:{SECRET}".encode()).decode(),
        SECRET[::-1],
        SECRET[:24],
        SECRET.split(".")[2],
    ],
)
def test_no_form_of_a_secret_stays(form: str) -> None:
    shown = hide(f"the pool refused {form} at once", SECRET)
    assert HIDDEN in shown and shown.startswith("the pool refused ") and shown.endswith(" at once")
    forms = (SECRET, quote(SECRET, safe=""), SECRET.encode().hex(), base64.b64encode(SECRET.encode()).decode())
    assert not any(form[at : at + 12] in shown for form in forms for at in range(len(form) - 11))


def test_a_short_secret_is_hidden_where_it_stands_alone() -> None:
    assert hide("KeyError: 'a' is not a name", "a") == f"KeyError: '{HIDDEN}' is not {HIDDEN} name"
    assert hide("a pool that was not available", "pool") == f"a {HIDDEN} that was not available"
    assert hide("spool failed", "pool") == "spool failed"


@pytest.mark.parametrize("before", range(12))
def test_a_part_is_found_wherever_it_begins(before: int) -> None:
    shown = hide("-" * before + SECRET[7:19] + "-" * 5, SECRET)
    assert shown == "-" * before + HIDDEN + "-" * 5


def test_what_holds_no_secret_is_the_same() -> None:
    assert hide("TimeoutError: no answer", SECRET) == "TimeoutError: no answer"
    assert hide("text", None) == "text" and hide("", SECRET) == ""
