"""How many places that are not there lie up to a place: against places counted one by one, and where they are far too many for that."""

from __future__ import annotations

import random

from pyspark.sql import SparkSession

from godwit_pipelines.transforms.gone import count_gone, list_stretches

SEED, NODES, LAST = 20261124, 40, 60
ERASED = "node string, run string, arrival long, rows long"
LINES = "node string, run string, line string"
POINTS = "node string, selector string, term long, run string, journal_offset long, end int, place long"
Piece = tuple[str, str, int | None, int]


def draw_pieces(lots: random.Random) -> dict[str, list[Piece]]:
    """Some of each node, of two runs of a line and one that says of none; they touch, overlap and lie in each other."""
    runs = ("a", "b", "alone")
    return {
        node: [
            (
                node,
                lots.choice(runs),
                lots.choice((None, *(lots.randint(1, LAST) for _ in range(9)))),
                lots.choice((1, 1, 2, 9, 25)),
            )
            for _ in range(lots.randrange(6))
        ]
        for node in map(str, range(NODES))
    }


def test_what_is_gone_up_to_a_place_is_what_counting_one_by_one_finds(spark: SparkSession) -> None:
    lots = random.Random(SEED)
    pieces = draw_pieces(lots)
    erased = spark.createDataFrame([piece for of in pieces.values() for piece in of], ERASED)
    lines = spark.createDataFrame([(node, run, "a") for node in pieces for run in ("a", "b")], LINES)
    line_of = {"a": "a", "b": "a", "alone": "alone"}
    number = {
        row.line: row.term
        for row in spark.sql("select line, xxhash64(line) as term from values ('a'), ('alone') as (line)").collect()
    }
    points, expected = [], {}
    for node, offset in ((node, offset) for node in pieces for offset in range(12)):
        line = lots.choice(("a", "alone"))
        places = {
            place
            for _, run, arrival, rows in pieces[node]
            if arrival is not None and line_of[run] == line
            for place in range(arrival, arrival + rows)
        }
        ends = (*sorted(lots.randint(0, LAST + 30) for _ in range(2)), (1 << 63) - 1)
        points += [
            (node, lots.choice(("/**", "/a/*")), number[line], "r", offset, end, at) for end, at in enumerate(ends)
        ]
        expected[node, offset] = tuple(sum(place <= at for place in places) for at in ends)
    counted = count_gone(spark.createDataFrame(points, POINTS), erased, lines).collect()
    found = {(row.node, row.journal_offset): (row.gone_from, row.gone_to, row.gone_all) for row in counted}
    assert found == expected
    assert len({*expected.values()}) > NODES


def test_stretches_share_no_place(spark: SparkSession) -> None:
    rows = [("n", "a", 1, 5), ("n", "a", 3, 1), ("n", "b", 4, 4), ("n", "a", 20, 1), ("n", "a", None, 7)]
    lines = spark.createDataFrame([("n", "a", "a"), ("n", "b", "a")], LINES)
    stretches = list_stretches(spark.createDataFrame(rows, ERASED), lines)
    assert sorted((row.place, row.next) for row in stretches.collect()) == [(1, 6), (6, 8), (20, 21)]


def test_a_stretch_may_be_longer_than_could_be_counted(spark: SparkSession) -> None:
    most = 1 << 40
    erased = spark.createDataFrame([("n", "a", 11, most)], ERASED)
    lines = spark.createDataFrame([("n", "a", "a")], LINES)
    term = spark.sql("select xxhash64('a') as term").collect()[0].term
    patterns = [("n", f"/{number}/*", term, "r", number, 1, 10 + number) for number in range(1000)]
    counted = count_gone(spark.createDataFrame(patterns, POINTS), erased, lines)
    assert {row.journal_offset: row.gone_to for row in counted.collect()} == {number: number for number in range(1000)}
