"""Removes a secret from a text before it is logged or sent, in any encoding in which the text may contain it.

Pure. A long secret is also found by its parts, because errors often shorten what they show. A short one is found only as
a whole word, so that the token `a` does not erase every line.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

HIDDEN = "(secret)"
PART_CHARACTERS = 12
"""This many consecutive characters of one form of a secret count as a part of it."""
CHUNK_CHARACTERS = PART_CHARACTERS // 2
"""Any such part contains one whole chunk of the text, so only chunks that occur in the form are compared. Tokens may be 64 KiB."""


def hide(text: str, secret: str | None) -> str:
    """The text without the secret."""
    if not secret or not text:
        return text
    forms = set(_list_forms(secret))
    marked = bytearray(len(text))
    for form in forms:
        _mark(marked, text, form)
    found = "".join("\0" if mark else one for mark, one in zip(marked, text, strict=True))
    return re.sub("\0+", HIDDEN, found)


def _list_forms(secret: str) -> Iterator[str]:
    raw = secret.encode(errors="surrogateescape")
    yield secret
    yield from (repr(secret)[1:-1], json.dumps(secret)[1:-1], quote(secret, safe=""), quote_plus(secret))
    yield from (raw.hex(), raw.hex().upper(), secret.swapcase(), secret[::-1])
    yield from ("".join(f"%{byte:02x}" for byte in raw), "".join(f"%{byte:02X}" for byte in raw))
    for encode, taken, given in ((base64.b32encode, 5, 8), (base64.b85encode, 4, 5), (base64.a85encode, 4, 5)):
        for shift in range(taken):
            written = encode(b"\0" * shift + raw).rstrip(b"=").decode()
            whole = (shift + len(raw)) // taken * given  # the groups that what follows the secret does not change
            yield from (written[given:whole], written[given:whole].lower()) if shift else (written, written.lower())
    for shift in range(3):
        # the text before it shifts its groups of six bits: without the characters that it shares with its neighbours
        shifted = base64.b64encode(b"\0" * shift + raw).rstrip(b"=").decode()[2 * (shift > 0) + (shift > 1) :]
        shifted = shifted[:-1] if len(shifted) > PART_CHARACTERS else shifted
        yield from (shifted, shifted.replace("+", "-").replace("/", "_"))


def _mark(marked: bytearray, text: str, form: str) -> None:
    """Mark the places of the text that are the form, or a long enough part of it."""
    if len(form) < PART_CHARACTERS:
        for found in re.finditer(rf"(?<!\w){re.escape(form)}(?!\w)", text):
            marked[found.start() : found.end()] = b"\1" * len(found.group())
        return
    # A form without blanks is inside one of the text's words: most texts have no word as long as that.
    has_blanks = re.search(r"\s", form) is not None
    for word in re.finditer(r"(?s).+" if has_blanks else rf"\S{{{PART_CHARACTERS},}}", text):
        _mark_parts(marked, text, form, word.span())


def _mark_parts(marked: bytearray, text: str, form: str, span: tuple[int, int]) -> None:
    begin, end = span
    for chunk in range(begin, end - CHUNK_CHARACTERS + 1, CHUNK_CHARACTERS):
        if text[chunk : chunk + CHUNK_CHARACTERS] not in form:
            continue
        for at in range(max(begin, chunk - CHUNK_CHARACTERS), min(chunk, end - PART_CHARACTERS) + 1):
            if text[at : at + PART_CHARACTERS] in form:
                marked[at : at + PART_CHARACTERS] = b"\1" * PART_CHARACTERS
