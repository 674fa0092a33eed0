"""Certificates in DER, concatenated, as the engine passes those that a client sent."""

from __future__ import annotations

_SEQUENCE = 0x30


def split_certificates(der: bytes | None) -> tuple[bytes, ...]:
    """Split concatenated certificates. Raises ValueError if one is cut short. X.690, 8.1.3: a tag, a length of one or more
    bytes, the content.
    """
    found, at = [], 0
    shown = der or b""
    while at < len(shown):
        end = _find_end(shown, at)
        found.append(shown[at:end])
        at = end
    return tuple(found)


def _find_end(der: bytes, at: int) -> int:
    head = der[at : at + 2]
    if len(head) < 2 or head[0] != _SEQUENCE:
        raise ValueError("a certificate in DER begins with a sequence and its length")
    length, start = head[1], at + 2
    if length >= 0x80:
        start += length - 0x80
        length = int.from_bytes(der[at + 2 : start])
    if start + length > len(der):
        raise ValueError("a certificate in DER is cut")
    return start + length
