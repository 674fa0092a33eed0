"""Content in the embedded store: templates by version, and what was rendered for each locale."""

from __future__ import annotations

import sqlite3
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from ...pure.locales import choose_locale
from .deciding import find_category, read_options, read_profile
from .manage.pausing import TEMPLATE

VERSIONS_MAX = 100
"""How many versions of a template are kept; older ones are deleted."""


class LetterRow(NamedTuple):
    """A notification in one locale, in the form for channels."""

    notification: str
    accepted_ms: int
    content: bytes
    email: bytes
    """The e-mail parts; empty if there are none."""
    category: str
    is_required: bool


class TemplateRow(NamedTuple):
    """One version of a template: its locales and required names, both JSON."""

    name: str
    version: int
    body: bytes
    variables: bytes


def read_letter(connection: sqlite3.Connection, nid: int, locale: str, rid: int = 0) -> LetterRow | None:
    """A notification in a locale, or with `rid` as it was rendered for a receiver; None if it was deleted."""
    row = connection.execute(
        "SELECT id, accepted_ms, body, options, tenant FROM notification WHERE nid = ?", (nid,)
    ).fetchone()
    if row is None:
        return None
    if rid:
        personal = read_personal(connection, nid, rid)
        if personal is None:
            return None
        content, email = personal
    else:
        content = _find(connection, nid, "", locale) or bytes(row[2])
        email = _find(connection, nid, "email", locale) or b""
    category = read_options(row[3]).category
    known = find_category(connection, row[4], category) if category else None
    return LetterRow(row[0], row[1], content, email, category, known is not None and known[0])


def localize(connection: sqlite3.Connection, rid: int, nid: int, options: bytes | None, body: bytes) -> bytes:
    """The content of an item, in its receiver's locale, or as it was rendered for the receiver."""
    asked = read_options(options) if options else None
    if asked is not None and asked.is_personal:
        personal = read_personal(connection, nid, rid)
        return b"{}" if personal is None else personal[0]
    locales = () if asked is None else asked.locales
    if not locales:
        return body
    row = connection.execute("SELECT profile FROM receiver WHERE rid = ?", (rid,)).fetchone()
    locale = "" if row is None else choose_locale(read_profile(row[0]).locale, locales)
    return _find(connection, nid, "", locale) or body


def read_personal(connection: sqlite3.Connection, nid: int, rid: int) -> tuple[bytes, bytes] | None:
    """The content that was rendered for a receiver, and its e-mail parts; None if there is none."""
    row = connection.execute(
        "SELECT content, email FROM personal WHERE nid = ? AND rid = ? AND failure = ''", (nid, rid)
    ).fetchone()
    if row is None:
        return None
    return _merge(connection, nid, "content", bytes(row[0])), _merge(connection, nid, "email", bytes(row[1]))


def _merge(connection: sqlite3.Connection, nid: int, part: str, own: bytes) -> bytes:
    """Merge a receiver's part with the shared part."""
    row = connection.execute(
        "SELECT body FROM rendered WHERE nid = ? AND channel = ? AND locale = ?", (nid, TEMPLATE, part)
    ).fetchone()
    if row is None:
        return own
    return msgspec.json.encode({**(msgspec.json.decode(own) if own else {}), **_decode_shared(bytes(row[0]))})


@lru_cache(maxsize=16)
def _decode_shared(packed: bytes) -> dict[str, Any]:
    return msgspec.json.decode(packed, type=dict[str, Any])


def put_template(
    connection: sqlite3.Connection, tenant: str, name: str, body: bytes, variables: bytes, now_ms: int
) -> int:
    """Store the next version, unless it equals the last one; returns its number. The oldest is deleted if there are too many."""
    last = find_template(connection, tenant, name, None)
    if last is not None and last.body == body:
        return last.version
    version = 1 if last is None else last.version + 1
    row = (tenant, name, version, body, variables, now_ms)
    connection.execute("INSERT INTO template VALUES (?, ?, ?, ?, ?, ?)", row)
    connection.execute(
        "DELETE FROM template WHERE tenant = ? AND name = ? AND version <= ?", (tenant, name, version - VERSIONS_MAX)
    )
    return version


def find_template(connection: sqlite3.Connection, tenant: str, name: str, version: int | None) -> TemplateRow | None:
    """A version of a template; None for `version`: the last."""
    row = connection.execute(
        "SELECT name, version, body, variables FROM template WHERE tenant = ? AND name = ? AND (? IS NULL OR version = ?) "
        "ORDER BY version DESC LIMIT 1",
        (tenant, name, version, version),
    ).fetchone()
    return None if row is None else TemplateRow(*row)


def list_templates(connection: sqlite3.Connection, tenant: str) -> list[tuple[str, int]]:
    """Names and last versions of a tenant's templates."""
    return connection.execute(
        "SELECT name, max(version) FROM template WHERE tenant = ? GROUP BY name ORDER BY name", (tenant,)
    ).fetchall()


def delete_template(connection: sqlite3.Connection, tenant: str, name: str) -> bool:
    """Delete all versions; accepted notifications keep their content."""
    return connection.execute("DELETE FROM template WHERE tenant = ? AND name = ?", (tenant, name)).rowcount > 0


def _find(connection: sqlite3.Connection, nid: int, channel: str, locale: str) -> bytes | None:
    row = connection.execute(
        "SELECT body FROM rendered WHERE nid = ? AND channel = ? AND locale IN (?, '') ORDER BY length(locale) DESC LIMIT 1",
        (nid, channel, locale),
    ).fetchone()
    return None if row is None else bytes(row[0])
