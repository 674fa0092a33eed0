"""The address for bounces of one delivery (VERP): it contains the delivery and a code that others cannot compute.

Pure. Mail servers change the case of addresses and allow 64 characters before the @. Therefore it is base32 of numbers of
variable length.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable
from typing import NamedTuple

from ..model import DeliveryKey

BOUNCE = "bounce-"
"""The prefix of the address."""
COMPLAINT = "complaint-"
"""The prefix of a Message-ID. Everyone who sees the message can read it, so its token authorizes complaints, not bounces."""
COMPLAINTS = "complaints"
"""The part before the @ of the address for complaints of feedback loops."""
MAC_BYTES = 10
CHECK_BYTES = 2
"""The length of the address's digest that fits; enough to detect that a receiver's address changed after the message was sent."""
MakeMac = Callable[[bytes], bytes]


class Token(NamedTuple):
    """The content of a token: the delivery, and the start of the digest of the address that it was sent to."""

    key: DeliveryKey
    check: bytes
    """Empty in tokens of earlier versions."""


def make_check(value: str) -> bytes:
    """The start of the digest of an e-mail address."""
    return hashlib.sha256(value.lower().encode()).digest()[:CHECK_BYTES]


def make_token(key: DeliveryKey, value: str, make_mac: MakeMac, kind: str = BOUNCE) -> str:
    """The token of an e-mail's delivery to the address `value`."""
    content = b"".join(_pack(number) for number in (key.nid, key.rid, key.aid)) + make_check(value)
    return base64.b32encode(content + make_mac(_signed(kind, content))).decode().rstrip("=").lower()


def read_token(token: str, make_mac: MakeMac, kind: str = BOUNCE) -> Token | None:
    """The content of a token; None if this dispatch did not make it."""
    try:
        packed = base64.b32decode(token.upper() + "=" * (-len(token) % 8))
    except ValueError:
        return None
    numbers: list[int] = []
    at = 0
    while len(numbers) < 3:
        value, at = _unpack(packed, at)
        if value is None:
            return None
        numbers.append(value)
    if base64.b32encode(packed).decode().rstrip("=").lower() != token:
        return None
    content, mac = packed[:-MAC_BYTES], packed[-MAC_BYTES:]
    if len(content) - at not in (0, CHECK_BYTES) or not hmac.compare_digest(mac, make_mac(_signed(kind, content))):
        return None
    return Token(DeliveryKey(numbers[0], numbers[1], "email", numbers[2]), content[at:])


def _signed(kind: str, content: bytes) -> bytes:
    return content if kind == BOUNCE else kind.encode() + content


def _pack(number: int) -> bytes:
    packed = bytearray()
    while number >= 0x80:
        packed.append(number & 0x7F | 0x80)
        number >>= 7
    packed.append(number)
    return bytes(packed)


def _unpack(packed: bytes, at: int) -> tuple[int | None, int]:
    value = shift = 0
    while at < len(packed) and shift < 63:
        byte = packed[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    return None, at
