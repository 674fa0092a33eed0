"""The loads against a real node, small: every delivery arrives once and in order, with each driver. Exactness, not speed."""

from __future__ import annotations

import pytest

from godwit.bench.loads import LOADS
from godwit.bench.rounds import run_rounds
from godwit.bench.targets import TARGETS

SIZE = 0.01


@pytest.mark.parametrize(
    "server", ["godwit", "godwit-readiness", pytest.param("godwit-binary", marks=pytest.mark.long)]
)
@pytest.mark.parametrize("load", ["fanout", "saturated"])
def test_a_load_loses_and_repeats_nothing(load: str, server: str) -> None:
    measured = run_rounds(LOADS[load], [TARGETS[server]], 1, "auto", SIZE, print, 0)
    figures = measured[server].figures[0]
    assert figures["cpu_us_per_delivery"] > 0
    assert figures["max_us"] >= figures["p50_us"] > 0


@pytest.mark.parametrize("server", [pytest.param("godwit", marks=pytest.mark.long), "godwit-binary"])
def test_every_publish_is_acknowledged(server: str) -> None:
    figures = run_rounds(LOADS["publish"], [TARGETS[server]], 1, "auto", SIZE, print, 0)[server].figures[0]
    assert figures["publishes_per_second"] > 0


def test_clients_that_come_back_get_exactly_what_they_missed() -> None:
    assert (
        run_rounds(LOADS["resume"], [TARGETS["godwit"]], 1, "auto", SIZE, print, 0)["godwit"].figures[0]["exact"] == 1
    )


def test_a_client_that_never_read_is_told_exactly_what_it_missed() -> None:
    assert run_rounds(LOADS["slow"], [TARGETS["godwit"]], 1, "auto", 0.03, print, 0)["godwit"].figures[0]["exact"] == 1


def test_many_subjects_of_their_own_on_many_shards() -> None:
    figures = run_rounds(LOADS["own"], [TARGETS["godwit"]], 1, "auto", SIZE, print, 0)["godwit"].figures[0]
    assert figures["memory_kb_per_connection"] > 0


def test_a_load_that_grows_delivers_each_broadcast_to_all_who_were_there() -> None:
    figures = run_rounds(LOADS["million"], [TARGETS["godwit"]], 1, "auto", 0.0005, print, 0)["godwit"].figures[0]
    assert figures["exact"] == figures["exact_at_50"] == 1
    assert figures["max_ms"] >= figures["p50_ms"] > 0
