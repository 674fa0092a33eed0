"""Converts the tables from one version to the next, so that stored data survives an upgrade.

Each entry converts a file of its version to the next one, in one transaction with the version's number. Invariant: a
converted file has the tables of a new one.
"""

from __future__ import annotations

import sqlite3

from .deciding import digest_value

OLDEST = 5
MIGRATIONS: dict[int, str] = {
    5: """
CREATE TABLE item_6 (
  rid INTEGER NOT NULL, seq INTEGER NOT NULL, nid INTEGER NOT NULL, flags INTEGER NOT NULL, at_ms INTEGER NOT NULL,
  first INTEGER NOT NULL, PRIMARY KEY (rid, seq)
) STRICT, WITHOUT ROWID;
INSERT INTO item_6 SELECT rid, seq, nid, flags, at_ms, seq FROM item;
DROP TABLE item;
ALTER TABLE item_6 RENAME TO item;
CREATE UNIQUE INDEX item_notification ON item (rid, nid);
""",
    6: "CREATE TABLE progress (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;",
    7: """
CREATE TABLE presence_tenant (tenant TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
CREATE TABLE presence (rid INTEGER PRIMARY KEY, is_connected INTEGER NOT NULL, seen_ms INTEGER NOT NULL) STRICT;
CREATE INDEX presence_connected ON presence (rid) WHERE is_connected = 1;
""",
    8: "CREATE INDEX item_first ON item (rid, first);",
    9: """
CREATE INDEX job_order ON job (channel, priority, nid) WHERE is_done = 0;
CREATE INDEX job_put_off ON job (channel, lease_end_ms) WHERE is_done = 2;
""",
    10: """
CREATE TABLE job_render (
  nid INTEGER NOT NULL, channel TEXT NOT NULL, renders INTEGER NOT NULL, failed INTEGER NOT NULL, is_paused INTEGER NOT NULL,
  PRIMARY KEY (nid, channel)
) STRICT, WITHOUT ROWID;
""",
    11: """
CREATE TABLE attempt (
  nid INTEGER NOT NULL, rid INTEGER NOT NULL, channel TEXT NOT NULL, aid INTEGER NOT NULL, number INTEGER NOT NULL,
  state INTEGER NOT NULL, reason TEXT NOT NULL, ref TEXT NOT NULL, time_ms INTEGER NOT NULL,
  PRIMARY KEY (nid, rid, channel, aid, number)
) STRICT, WITHOUT ROWID;
""",
    12: """
CREATE TABLE personal (
  nid INTEGER NOT NULL, rid INTEGER NOT NULL, content BLOB NOT NULL, email BLOB NOT NULL, failure TEXT NOT NULL,
  is_again INTEGER NOT NULL, PRIMARY KEY (nid, rid)
) STRICT, WITHOUT ROWID;
CREATE INDEX personal_receiver ON personal (rid);
CREATE INDEX personal_again ON personal (nid, rid) WHERE is_again = 1;
""",
    13: """
CREATE TABLE provider (
  pid INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, settings BLOB NOT NULL, password TEXT NOT NULL, dkim_key TEXT NOT NULL
) STRICT;
""",
    # Earlier rows do not say whose they are: that of the delivery with most attempts whose address has the value now. If a row
    # keeps the owner 0, addresses have changed since: what was not tried then may have been sent by another delivery.
    14: """
CREATE TABLE sent_value_15 (
  nid INTEGER NOT NULL, channel TEXT NOT NULL, value TEXT NOT NULL, rid INTEGER NOT NULL, aid INTEGER NOT NULL,
  PRIMARY KEY (nid, channel, value)
) STRICT, WITHOUT ROWID;
INSERT INTO sent_value_15 SELECT nid, channel, value, 0, 0 FROM sent_value;
CREATE TEMP TABLE sent_to AS
  SELECT nid, delivery.channel AS channel, digest_value(delivery.channel, address.value) AS value, delivery.rid AS rid, aid, attempt
  FROM delivery JOIN address USING (aid)
  WHERE delivery.state <> 11 AND nid IN (SELECT nid FROM sent_value);
CREATE INDEX temp.sent_to_value ON sent_to (nid, channel, value);
UPDATE sent_value_15 SET (rid, aid) = (
  SELECT rid, aid FROM temp.sent_to AS found
  WHERE found.nid = sent_value_15.nid AND found.channel = sent_value_15.channel AND found.value = sent_value_15.value
  ORDER BY attempt DESC, rid LIMIT 1
) WHERE EXISTS (
  SELECT 1 FROM temp.sent_to AS found
  WHERE found.nid = sent_value_15.nid AND found.channel = sent_value_15.channel AND found.value = sent_value_15.value
);
DROP TABLE temp.sent_to;
DROP TABLE sent_value;
ALTER TABLE sent_value_15 RENAME TO sent_value;
CREATE INDEX sent_value_owner ON sent_value (nid, rid, aid);
UPDATE delivery SET doubt = 1 WHERE state IN (1, 2) AND attempt = 0 AND EXISTS (
  SELECT 1 FROM sent_value AS own
  WHERE own.nid = delivery.nid AND own.rid = delivery.rid AND own.aid = delivery.aid AND own.channel = delivery.channel
) AND EXISTS (SELECT 1 FROM sent_value AS other WHERE other.nid = delivery.nid AND other.rid = 0 AND other.channel = delivery.channel);
""",
    # Small events are no longer compressed. Both forms are read; an older version reads only the old one.
    15: "",
    16: """
DROP INDEX notification_old;
CREATE INDEX notification_old ON notification (expires_ms);
""",
    17: "CREATE INDEX notification_group ON notification (gid, version) WHERE gid > 0;",
}
VERSION = OLDEST + len(MIGRATIONS)


def migrate(connection: sqlite3.Connection, version: int) -> None:
    """Convert a file of an earlier version to the current one, step by step."""
    connection.create_function("digest_value", 2, digest_value, deterministic=True)
    for step in range(version, VERSION):
        connection.executescript(f"BEGIN; {MIGRATIONS[step]} PRAGMA user_version = {step + 1}; COMMIT;")
