"""Only deliveries in order are folded, and the audit's tables are the same with and without folding."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from godwit_pipelines.schemas import ACCESS, DELIVERIES, MESSAGES
from godwit_pipelines.transforms.audit import judge
from godwit_pipelines.transforms.folding import fold, list_again
from godwit_pipelines.transforms.published import know_published, sum_messages
from godwit_pipelines.transforms.runs import collect, list_ends
from tests.pipelines.transforms.audited import Audited, Scene, run_audit, scene_of
from tests.pipelines.transforms.checker import MICROS, Case, Row, draw_case
from tests.pipelines.transforms.rows import frame

CASES, SEED, LAST, HOUR_US = 150, 7, 40, 3_600_000_000
Delivery = dict[str, Any]


def handed(begin: int, end: int, **more: Any) -> Delivery:
    return {"from_sequence": begin, "to_sequence": end, "epoch": 1, "count": end - begin + 1, "gap_count": 0} | more


def stands(at: int) -> Delivery:
    return {"to_sequence": at, "epoch": 1, "confirmed": True}


CHAINS: dict[str, tuple[bool, list[Delivery]]] = {
    "one range": (True, [handed(5, 9)]),
    "one after the other": (True, [handed(1, 3), handed(4, 8), handed(9, 9)]),
    "named its place": (True, [stands(4), handed(5, 8)]),
    "named it again": (True, [handed(1, 4), stands(4), handed(5, 8)]),
    "only named it": (True, [stands(4)]),
    "merged": (True, [handed(1, 10, count=2, conflated=8), handed(11, 12)]),
    "hours": (True, [handed(1, 3), handed(4, 8, time=MICROS + HOUR_US), handed(9, 9, time=MICROS + 3 * HOUR_US)]),
    "to the end": (True, [handed(1, LAST)]),
    "past the end": (False, [handed(1, LAST + 1)]),
    "a gap": (False, [handed(1, 3), handed(5, 8)]),
    "a reported gap": (False, [handed(1, 3), handed(4, 8, count=4, gaps=1, gap_count=1)]),
    "a repeat": (False, [handed(1, 3), handed(3, 8)]),
    "a reorder": (False, [handed(1, 3), handed(7, 9), handed(4, 6)]),
    "a hole": (False, [handed(1, 8, count=7)]),
    "too many": (False, [handed(1, 8, count=9)]),
    "merged wrongly": (False, [handed(1, 8, count=2, conflated=5)]),
    "named another": (False, [handed(1, 4), stands(6), handed(7, 8)]),
    "another epoch": (False, [handed(1, 4), handed(5, 8, epoch=2)]),
    "an end and no beginning": (False, [handed(1, 4) | {"from_sequence": None}]),
    "another person": (False, [handed(1, 3), handed(4, 8, identity="else")]),
    "another tenant": (False, [handed(1, 3), handed(4, 8, tenant="else")]),
    "another authority": (False, [handed(1, 3, authority="basic"), handed(4, 8, authority="certificate")]),
    "twice subscribed": (False, [handed(1, 3), handed(4, 8)]),
    "once subscribed": (True, [handed(1, 3), handed(4, 8)]),
    "skips": (False, [handed(1, 3)]),
    "never published": (True, [handed(1, 3)]),
}


def test_what_is_in_order_is_folded_and_nothing_else(spark: SparkSession) -> None:
    deliveries, messages = [], []
    for number, (name, (_, rows)) in enumerate(CHAINS.items()):
        whose = {"node": "n", "run": "a", "connection": number, "selector": name, "time": MICROS}
        deliveries += [{"journal_offset": number * 100 + at, **whose, **row} for at, row in enumerate(rows)]
        if name != "never published":
            places = [place for place in range(1, LAST + 1) if name != "skips" or place != 2]
            messages += [{"node": "n", "run": "a", "subject": name, "epoch": 1, "sequence": place} for place in places]
    again = {"node": "n", "run": "a", "kind": "subscribed"}
    names = [*CHAINS]
    access = [
        {**again, "connection": names.index(name), "selector": name, "time": MICROS + time}
        for name, time in (("twice subscribed", 0), ("twice subscribed", 5), ("once subscribed", 0))
    ]
    pattern = handed(1, 3) | {"epoch": None, "selector": "/*", "is_pattern": True, "node": "n", "run": "a"}
    sums = sum_messages(frame(spark, MESSAGES, messages))
    given = frame(spark, DELIVERIES, [*deliveries, pattern])
    folded = fold(given, sums, list_again(given, frame(spark, ACCESS, access)))
    found = {row.selector: row.is_plain for row in folded.subscribers.collect()}
    rest = [row.selector for row in folded.rest.collect()]
    folded.release()
    sums.unpersist()
    assert found == {name: is_plain for name, (is_plain, _) in CHAINS.items()} and not folded.is_whole
    assert sorted(rest) == sorted(
        ["/*", *(name for name, (is_plain, rows) in CHAINS.items() if not is_plain for _ in rows)]
    )


def test_where_all_is_in_order_only_patterns_are_judged(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = orderly(random.Random(SEED))
    pattern = {"run": "a", "connection": 99, "selector": "/*", "is_pattern": True, "arrival_run": "a", "gap_count": 0}
    pattern |= {"from_arrival": 1, "to_arrival": 3, "count": 3, "journal_offset": len(scene.deliveries)}
    messages = frame(spark, MESSAGES, scene.messages)
    sums = sum_messages(messages)
    published = know_published(messages, sums, [], collect(list_ends(sums)))
    access = frame(spark, ACCESS, [])
    given = frame(spark, DELIVERIES, [*scene.deliveries, pattern])
    again = list_again(given, access)
    folded = fold(given, sums, again)
    rest = [row.selector for row in folded.rest.collect()]
    judged = judge(folded.rest.filter("not is_pattern"), published, again, counts=False)
    judged.explain()
    folded.release()
    sums.unpersist()
    assert rest == ["/*"] and not folded.is_whole
    plan = capsys.readouterr().out.splitlines()
    assert plan[1].startswith("LocalTableScan <empty>")  # Spark plans nothing for it


def twist(case: Case, lots: random.Random) -> Case:
    """What the checker does not judge: places named at any time, more than was published, persons and hours that change."""
    rows = list(case.rows)
    kind = "arrival" if case.is_pattern else "sequence"
    if rows and lots.random() < 0.4:
        at = lots.randrange(len(rows))
        there: Any = rows[at][f"to_{kind}"]
        named = {f"from_{kind}": None, f"to_{kind}": there + lots.choice((0, 0, 0, 1, -2))}
        rows.insert(at + 1, rows[at] | named | {"confirmed": True, "count": 0, "conflated": 0, "gaps": 0})
    if rows and lots.random() < 0.15:
        last: Any = rows[-1]
        rows[-1] = last | {f"to_{kind}": last[f"to_{kind}"] + 50, "count": last["count"] + 50}
    step, changes = lots.choice((1, HOUR_US // 3)), lots.randint(1, 8) if lots.random() < 0.1 else 99
    twisted: list[Row] = [
        row
        | {"journal_offset": case.number * 100 + at, "time": MICROS + at * step, "tenant": "t" if at < changes else "u"}
        for at, row in enumerate(rows)
    ]
    return replace(case, rows=twisted)


@pytest.mark.long  # two audits; that a folded one is right is held against the checker by test_audit.py
def test_folding_changes_nothing(spark: SparkSession) -> None:
    lots = random.Random(SEED)
    drawn = [draw_case(number, lots) for number in range(1, CASES + 1)]
    twisted = [twist(case, lots) for case in drawn]
    since = scene_of(twisted)
    since.deliveries = [row for row in since.deliveries if row["time"] >= MICROS + HOUR_US // 2]
    scenes = {"drawn": scene_of(drawn), "twisted": scene_of(twisted), "since": since, "orderly": orderly(lots)}
    folded, judged = run_audit(spark, scenes), run_audit(spark, scenes, is_folded=False)
    for name in scenes:
        assert tables(folded, name) == tables(judged, name)
    assert not folded.faults["orderly"] and len(folded.ranges["orderly"]) == 40


def test_where_all_is_folded_nothing_is_judged_and_the_tables_are_the_same(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenes = {"orderly": orderly(random.Random(SEED))}
    with monkeypatch.context() as patched:
        patched.setattr("tests.pipelines.transforms.audited.judge", lambda *_, **__: pytest.fail("it was judged"))
        folded = run_audit(spark, scenes)
    judged = run_audit(spark, scenes, is_folded=False)
    assert tables(folded, "orderly") == tables(judged, "orderly") and len(folded.ranges["orderly"]) == 40


@pytest.mark.long
def test_folding_changes_nothing_where_all_subjects_are_in_order(spark: SparkSession) -> None:
    lots = random.Random(SEED)
    drawn = [draw_case(number, lots) for number in range(1, CASES + 1)]
    scenes = {"patterns": scene_of([case for case in drawn if case.is_pattern]), "orderly": orderly(lots)}
    folded, judged = run_audit(spark, scenes), run_audit(spark, scenes, is_folded=False)
    for name in scenes:
        assert tables(folded, name) == tables(judged, name)
    assert folded.faults["patterns"]


def orderly(lots: random.Random) -> Scene:
    """Subscriptions of twenty connections to two subjects, in order, over some hours."""
    messages = [
        {"run": "a", "subject": f"/{subject}", "epoch": 1, "sequence": place, "time": MICROS + HOUR_US * 9}
        for subject in "xy"
        for place in range(1, LAST + 1)
    ]
    deliveries: list[Delivery] = []
    for connection in range(20):
        for subject in "xy":
            at = lots.randint(0, 5)
            rows = [stands(at)]
            while at < LAST:
                begin, at = at + 1, min(LAST, at + lots.randint(1, 9))
                rows.append(handed(begin, at))
            whose = {"run": "a", "connection": connection, "selector": f"/{subject}", "tenant": f"t{connection % 2}"}
            deliveries += [
                {**row, **whose, "time": MICROS + number * HOUR_US // 3, "journal_offset": len(deliveries) + number}
                for number, row in enumerate(rows)
            ]
    return Scene(deliveries, messages)


def tables(audited: Audited, scene: str) -> list[list[tuple[Any, ...]]]:
    found = (audited.faults[scene], audited.verdicts[scene], audited.ranges[scene])
    return [sorted((tuple(sorted(row.asDict().items())) for row in rows), key=repr) for rows in found]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(5))
def test_folding_changes_nothing_in_many_more(spark: SparkSession, seed: int) -> None:
    lots = random.Random(seed)
    scene = scene_of([twist(draw_case(number, lots), lots) for number in range(1, CASES + 1)])
    folded, judged = run_audit(spark, {"twisted": scene}), run_audit(spark, {"twisted": scene}, is_folded=False)
    assert tables(folded, "twisted") == tables(judged, "twisted")
