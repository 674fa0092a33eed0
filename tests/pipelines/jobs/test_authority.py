"""Every table with an identity has a column for its authority, also tables that are older than the column."""

from __future__ import annotations

from typing import Any

from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from godwit_pipelines.lake import Lake
from godwit_pipelines.schemas import ACCESS, DELIVERIES, MESSAGES
from godwit_pipelines.tables import TABLES
from tests.pipelines.conftest import Runs
from tests.pipelines.jobs.test_since import TEN, message_of, range_of
from tests.pipelines.transforms.rows import frame

TOKEN, CERTIFICATE = "jwt:https://id.example", "certificate"
AUDIT = ("gold.audit_ranges", "gold.audit_faults")


def test_every_table_that_names_an_identity_says_who_vouches_for_it() -> None:
    naming = [table for table in TABLES.values() if {"identity", "publisher"} & {*table.schema.names}]
    assert len(naming) >= 6
    for table in naming:
        assert "authority" in table.schema.names, table.name
        assert table.schema["authority"].nullable, f"{table.name}: rows of older nodes have none"


def test_an_older_table_of_sessions_goes_on(spark: SparkSession, lake: Lake, run_job: Runs) -> None:
    def come(offset: int, kind: str, connection: int, authority: str) -> dict[str, Any]:
        row = {"node": "n", "run": "r", "journal_offset": offset, "time": TEN + offset * 1_000_000}
        return row | {"kind": kind, "connection": connection, "identity": "ann", "authority": authority}

    def land(*rows: dict[str, Any]) -> None:
        lake.append("bronze.access", frame(spark, ACCESS, rows))
        run_job("sessions")

    land(come(0, "connected", 1, TOKEN), come(1, "connected", 2, TOKEN), come(2, "disconnected", 2, TOKEN))
    forget_authority(lake, "silver.sessions")
    land(
        come(3, "disconnected", 1, TOKEN), come(4, "connected", 3, CERTIFICATE), come(5, "disconnected", 3, CERTIFICATE)
    )
    land(come(6, "connected", 4, TOKEN))
    known = {row.connection: (row.end_state, row.authority) for row in lake.read("silver.sessions").collect()}
    assert known == {
        1: ("closed", TOKEN),
        2: ("closed", None),  # nothing was heard of it since
        3: ("closed", CERTIFICATE),
        4: ("open", TOKEN),
    }


def test_the_audit_names_the_authority_and_fills_older_tables(spark: SparkSession, lake: Lake, run_job: Runs) -> None:
    lake.append(
        "bronze.messages", frame(spark, MESSAGES, [message_of(n, 1 + n // 5, n % 5 + 1, -50) for n in range(10)])
    )
    ann = {1: {"identity": "ann", "authority": TOKEN}, 2: {"identity": "ann", "authority": CERTIFICATE}}
    # the token's is in order and is folded, the certificate's is judged: it lacks a message
    handed = [range_of(0, 1, 10, 1, 5) | ann[1], range_of(1, 2, 10, 1, 2) | ann[2], range_of(2, 2, 20, 4, 5) | ann[2]]
    lake.append("bronze.deliveries", frame(spark, DELIVERIES, handed))
    for since in ({}, {"since": "2026-11-21 10:00"}, {}):
        assert run_job("audit", **since).found == 1
        assert known(lake, "gold.audit_ranges") == [(1, "ann", TOKEN), (2, "ann", CERTIFICATE)]
        assert known(lake, "gold.audit_faults") == [(2, "ann", CERTIFICATE)]
        for name in AUDIT:
            forget_authority(lake, name)


def known(lake: Lake, name: str) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, lake.read(name).select("connection", "identity", "authority").collect()))


def forget_authority(lake: Lake, name: str) -> None:
    """The table as it was made before it had the column."""
    older = DeltaTable(lake.path(name)).to_pyarrow_table().drop_columns(["authority"])
    write_deltalake(lake.path(name), older, mode="overwrite", schema_mode="overwrite")
    assert "authority" not in DeltaTable(lake.path(name)).schema().to_arrow().names
