"""The tables of the embedded store, and the settings of a connection.

Times are wall-clock milliseconds. `number` is the one counter that orders accepting and subscribing, instead of a clock.
Keys of large tables are clustered, so that fan-out inserts in order and retention deletes ranges.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from ...errors import DispatchDatabaseInvalid
from ...vault import Vault
from .migrations import OLDEST, VERSION, migrate

TABLES = """
CREATE TABLE number (one INTEGER PRIMARY KEY CHECK (one = 1), value INTEGER NOT NULL) STRICT;
INSERT INTO number VALUES (1, 0);
CREATE TABLE tenant (
  name TEXT PRIMARY KEY, quotas BLOB NOT NULL, receivers INTEGER NOT NULL, stored_bytes INTEGER NOT NULL, day INTEGER NOT NULL,
  deliveries INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE api_key (digest BLOB PRIMARY KEY, tenant TEXT NOT NULL, scopes TEXT NOT NULL, is_test INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE receiver (
  rid INTEGER PRIMARY KEY AUTOINCREMENT, tenant TEXT NOT NULL, name TEXT NOT NULL, epoch INTEGER NOT NULL,
  since INTEGER NOT NULL, attributes BLOB NOT NULL,
  profile BLOB NOT NULL, preferences BLOB NOT NULL, UNIQUE (tenant, name)
) STRICT;
CREATE TABLE address (
  aid INTEGER PRIMARY KEY AUTOINCREMENT, rid INTEGER NOT NULL, channel TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL,
  secret TEXT NOT NULL, state TEXT NOT NULL, since INTEGER NOT NULL, reason TEXT NOT NULL,
  format TEXT NOT NULL, UNIQUE (rid, channel, name)
) STRICT;
CREATE TABLE receiver_group (
  gid INTEGER PRIMARY KEY AUTOINCREMENT, tenant TEXT NOT NULL, name TEXT NOT NULL, version INTEGER NOT NULL, UNIQUE (tenant, name)
) STRICT;
CREATE TABLE subscription (
  gid INTEGER NOT NULL, version INTEGER NOT NULL, rid INTEGER NOT NULL, since INTEGER NOT NULL, PRIMARY KEY (gid, version, rid)
) STRICT, WITHOUT ROWID;
CREATE INDEX subscription_receiver ON subscription (rid);
CREATE TABLE notification (
  nid INTEGER PRIMARY KEY AUTOINCREMENT, tenant TEXT NOT NULL, id TEXT NOT NULL, fingerprint BLOB NOT NULL, body BLOB NOT NULL,
  targets BLOB NOT NULL, gid INTEGER NOT NULL, version INTEGER NOT NULL, state TEXT NOT NULL, accepted INTEGER NOT NULL,
  accepted_ms INTEGER NOT NULL, due_ms INTEGER NOT NULL, expires_ms INTEGER NOT NULL, priority INTEGER NOT NULL,
  options BLOB NOT NULL, collapse_key TEXT NOT NULL, UNIQUE (tenant, id)
) STRICT;
CREATE INDEX notification_old ON notification (expires_ms);
CREATE INDEX notification_group ON notification (gid, version) WHERE gid > 0;
CREATE INDEX notification_accepted ON notification (due_ms) WHERE state = 'accepted';
CREATE TABLE job (
  nid INTEGER NOT NULL, channel TEXT NOT NULL, tenant TEXT NOT NULL, cursor INTEGER NOT NULL, fence INTEGER NOT NULL,
  lease_end_ms INTEGER NOT NULL, is_done INTEGER NOT NULL, priority INTEGER NOT NULL, step INTEGER NOT NULL,
  PRIMARY KEY (nid, channel)
) STRICT, WITHOUT ROWID;
CREATE INDEX job_due ON job (channel, tenant, priority, nid) WHERE is_done = 0;
CREATE INDEX job_order ON job (channel, priority, nid) WHERE is_done = 0;
CREATE INDEX job_put_off ON job (channel, lease_end_ms) WHERE is_done = 2;
CREATE TABLE job_render (
  nid INTEGER NOT NULL, channel TEXT NOT NULL, renders INTEGER NOT NULL, failed INTEGER NOT NULL, is_paused INTEGER NOT NULL,
  PRIMARY KEY (nid, channel)
) STRICT, WITHOUT ROWID;
CREATE TABLE delivery (
  nid INTEGER NOT NULL, rid INTEGER NOT NULL, channel TEXT NOT NULL, aid INTEGER NOT NULL, state INTEGER NOT NULL,
  attempt INTEGER NOT NULL, due_ms INTEGER NOT NULL, doubt INTEGER NOT NULL, reason TEXT NOT NULL, ref TEXT NOT NULL,
  PRIMARY KEY (nid, rid, channel, aid)
) STRICT, WITHOUT ROWID;
CREATE TABLE attempt (
  nid INTEGER NOT NULL, rid INTEGER NOT NULL, channel TEXT NOT NULL, aid INTEGER NOT NULL, number INTEGER NOT NULL,
  state INTEGER NOT NULL, reason TEXT NOT NULL, ref TEXT NOT NULL, time_ms INTEGER NOT NULL,
  PRIMARY KEY (nid, rid, channel, aid, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX delivery_due ON delivery (channel, due_ms) WHERE state IN (1, 2, 3);
CREATE TABLE route (
  nid INTEGER NOT NULL, rid INTEGER NOT NULL, step INTEGER NOT NULL, due_ms INTEGER NOT NULL, deadline_ms INTEGER NOT NULL,
  PRIMARY KEY (nid, rid)
) STRICT, WITHOUT ROWID;
CREATE INDEX route_due ON route (due_ms);
CREATE TABLE latest (
  rid INTEGER NOT NULL, key TEXT NOT NULL, channel TEXT NOT NULL, nid INTEGER NOT NULL, PRIMARY KEY (rid, key, channel)
) STRICT, WITHOUT ROWID;
CREATE INDEX latest_notification ON latest (nid);
CREATE TABLE sent_value (
  nid INTEGER NOT NULL, channel TEXT NOT NULL, value TEXT NOT NULL, rid INTEGER NOT NULL, aid INTEGER NOT NULL,
  PRIMARY KEY (nid, channel, value)
) STRICT, WITHOUT ROWID;
CREATE INDEX sent_value_owner ON sent_value (nid, rid, aid);
CREATE TABLE category (
  tenant TEXT NOT NULL, name TEXT NOT NULL, is_required INTEGER NOT NULL, expires_s INTEGER, PRIMARY KEY (tenant, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE suppression (
  tenant TEXT NOT NULL, channel TEXT NOT NULL, value TEXT NOT NULL, category TEXT NOT NULL, reason TEXT NOT NULL,
  since_ms INTEGER NOT NULL, PRIMARY KEY (tenant, channel, value, category)
) STRICT, WITHOUT ROWID;
CREATE TABLE event (
  eid INTEGER PRIMARY KEY AUTOINCREMENT, tenant TEXT NOT NULL, type TEXT NOT NULL, nid INTEGER NOT NULL, channel TEXT NOT NULL,
  reason TEXT NOT NULL, time_ms INTEGER NOT NULL, count INTEGER NOT NULL, members BLOB NOT NULL
) STRICT;
CREATE INDEX event_tenant ON event (tenant, eid);
CREATE INDEX event_old ON event (time_ms);
CREATE TABLE template (
  tenant TEXT NOT NULL, name TEXT NOT NULL, version INTEGER NOT NULL, body BLOB NOT NULL, variables BLOB NOT NULL,
  time_ms INTEGER NOT NULL, PRIMARY KEY (tenant, name, version)
) STRICT, WITHOUT ROWID;
CREATE TABLE rendered (
  nid INTEGER NOT NULL, channel TEXT NOT NULL, locale TEXT NOT NULL, body BLOB NOT NULL, PRIMARY KEY (nid, channel, locale)
) STRICT, WITHOUT ROWID;
CREATE TABLE personal (
  nid INTEGER NOT NULL, rid INTEGER NOT NULL, content BLOB NOT NULL, email BLOB NOT NULL, failure TEXT NOT NULL,
  is_again INTEGER NOT NULL, PRIMARY KEY (nid, rid)
) STRICT, WITHOUT ROWID;
CREATE INDEX personal_receiver ON personal (rid);
CREATE INDEX personal_again ON personal (nid, rid) WHERE is_again = 1;
CREATE TABLE provider (
  pid INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, settings BLOB NOT NULL, password TEXT NOT NULL, dkim_key TEXT NOT NULL
) STRICT;
CREATE TABLE webhook (
  wid INTEGER PRIMARY KEY AUTOINCREMENT, tenant TEXT NOT NULL, name TEXT NOT NULL, url TEXT NOT NULL, secret TEXT NOT NULL,
  old_secret TEXT NOT NULL, old_until_ms INTEGER NOT NULL, types TEXT NOT NULL, detail TEXT NOT NULL, cursor INTEGER NOT NULL,
  state TEXT NOT NULL, failures INTEGER NOT NULL, failing_since_ms INTEGER NOT NULL, due_ms INTEGER NOT NULL, reason TEXT NOT NULL,
  UNIQUE (tenant, name)
) STRICT;
CREATE TABLE webhook_letter (
  wid INTEGER NOT NULL, eid INTEGER NOT NULL, part TEXT NOT NULL, reason TEXT NOT NULL, time_ms INTEGER NOT NULL,
  PRIMARY KEY (wid, eid, part)
) STRICT, WITHOUT ROWID;
CREATE INDEX delivery_failed ON delivery (nid) WHERE state IN (6, 7);
CREATE TABLE delivery_count (
  nid INTEGER NOT NULL, channel TEXT NOT NULL, state INTEGER NOT NULL, count INTEGER NOT NULL, PRIMARY KEY (nid, channel, state)
) STRICT, WITHOUT ROWID;
CREATE TABLE item (
  rid INTEGER NOT NULL, seq INTEGER NOT NULL, nid INTEGER NOT NULL, flags INTEGER NOT NULL, at_ms INTEGER NOT NULL,
  first INTEGER NOT NULL, PRIMARY KEY (rid, seq)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX item_notification ON item (rid, nid);
CREATE INDEX item_first ON item (rid, first);
CREATE TABLE head (
  rid INTEGER PRIMARY KEY, epoch INTEGER NOT NULL, seq INTEGER NOT NULL, unread INTEGER NOT NULL, unseen INTEGER NOT NULL,
  items INTEGER NOT NULL
) STRICT;
CREATE TABLE progress (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE presence_tenant (tenant TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
CREATE TABLE presence (rid INTEGER PRIMARY KEY, is_connected INTEGER NOT NULL, seen_ms INTEGER NOT NULL) STRICT;
CREATE INDEX presence_connected ON presence (rid) WHERE is_connected = 1;
"""


def open_writer(path: Path, vault: Vault) -> sqlite3.Connection:
    """The connection for writes; creates the tables if there are none. Raises DispatchDatabaseInvalid."""
    try:
        path.touch(0o600)  # before the first write: the write-ahead log gets the mode of the file
        path.chmod(0o600)
        connection = _open(path, vault)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA wal_autocheckpoint = 4000")
        connection.execute("PRAGMA secure_delete = ON")  # what is erased is overwritten
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version == 0:
            connection.executescript(f"BEGIN; {TABLES} PRAGMA user_version = {VERSION}; COMMIT;")
        elif not OLDEST <= version <= VERSION:
            which = "a newer" if version > VERSION else "an older, unreleased"
            detail = (
                f"was written by {which} version of godwit (schema {version}): expected schema {OLDEST} to {VERSION}"
            )
            raise DispatchDatabaseInvalid(f"{path} {detail}")
        else:
            migrate(connection, version)
        if not _knows_key(connection):
            raise DispatchDatabaseInvalid(
                f"{path} holds secrets of another key: expected the key file that it was written with "
                "(dispatch.secrets_key_file, or secrets.key beside it)"
            )
    except sqlite3.Error as error:
        raise DispatchDatabaseInvalid(f"{path} cannot be opened: {error}") from error
    return connection


def _knows_key(connection: sqlite3.Connection) -> bool:
    """Whether the newest secrets can be decrypted. Without them nothing may be sent, because it could not be signed."""
    rows = connection.execute(
        "SELECT unseal(secret) FROM (SELECT secret FROM address WHERE channel = 'webhook' ORDER BY aid DESC LIMIT 1) "
        "UNION ALL SELECT unseal(secret) FROM (SELECT secret FROM webhook ORDER BY wid DESC LIMIT 1) "
        "UNION ALL SELECT unseal(secret) FROM (SELECT password AS secret FROM provider WHERE password <> '' ORDER BY pid DESC LIMIT 1) "
        "UNION ALL SELECT unseal(secret) FROM (SELECT dkim_key AS secret FROM provider WHERE dkim_key <> '' ORDER BY pid DESC LIMIT 1)"
    )
    return all(secret for (secret,) in rows)


def open_reader(path: Path, vault: Vault) -> sqlite3.Connection:
    """A connection that only reads."""
    connection = _open(path, vault)
    connection.execute("PRAGMA query_only = ON")
    return connection


def add_functions(connection: sqlite3.Connection, vault: Vault) -> None:
    """Adds functions to SQL that encrypt and decrypt: `seal(text)` and `unseal(text)`."""
    connection.create_function("seal", 1, vault.seal)
    connection.create_function("unseal", 1, vault.unseal)


def _open(path: Path, vault: Vault) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=512)
    add_functions(connection, vault)
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute("PRAGMA cache_size = -16000")
    return connection
