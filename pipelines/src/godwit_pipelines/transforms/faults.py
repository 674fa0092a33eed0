"""What is wrong with judged ranges, by name.

A range that begins beyond what its chain had reached leaves a *gap*; one that begins before it brings a *repeat*,
or, where it fills a gap, is a *reorder* (and the gap is none). Accounts that do not add up inside a range are a
*hole*, a *repeat* or a *miscount* (more reported missing than were; of a pattern's range that may be, for a gap may reach
before it, to where a client stood in one subject; and of places that nothing is known of, as where a row was damaged).
A term that comes back is an *epoch_regress*; a place beyond all that was published is *unpublished*. `declared` is a fault that was
reported to the client, or that the journal itself excuses; `cause` says by what. More than was published is none as long as so many may
have been erased.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

KINDS = ("gap", "hole", "repeat", "reorder", "epoch_regress", "miscount", "unpublished")
_ISLAND = ("node", "run", "connection", "selector", "chain", "island")
_ROW = (*_ISLAND, "journal_offset")
_PERSON = ("tenant", "identity", "authority", "client")
_WHO = (*_ROW, *_PERSON, "is_pattern", "time", "epoch", "place_before", "from_place", "to_place")
FAULT = (*_WHO, "kind", "messages", "declared", "cause")
_SETTLED = ("filled", "repeated", "reordered")
_ODD = """before > 0 or inside != 0 or across > 0 or regressed or gaps > 0 or lo <= reached or hi > published_to"""
_PLENTY = 1 << 62
"""More than can be missing: a gap that could not be counted accounts for whatever is missing in its range."""


def find_faults(judged: DataFrame) -> DataFrame:
    """Every fault, reported or not; at most one row of a kind, and declaration, for each range."""
    odd = judged.filter(_ODD)
    rows = odd.join(settle_back(odd), [*_ROW], "left").fillna(0, [*_SETTLED])
    return name_faults(rows).withColumn("declared", F.col("cause") != "").select(*FAULT)


_REPORTED = {
    "reported": f"""case when gaps = 0 then 0L when across > 0 then {_PLENTY}L else coalesce(gap_count, {_PLENTY}L) end""",
    "ahead": "before - filled + across",
    "lacking": "greatest(0L, inside)",
    "lost": "if(lost_rows, 'the journal lost rows', '')",
    "unseen": """if(is_pattern or across > 0 or coalesce(gap_count, 0L) = 0, 0L,
        greatest(0L, to_place - if(reached is null, from_place - 1, place_before) - before - (hi - lo + 1)))""",
    "over": "if(hi > published_to, greatest(0L, hi - greatest(published_to, lo - 1) - gone_inside), 0L)",
    "unknown": """case when cut_short then 'the run was cut short'
        when landed_to is null or time > landed_to then 'not landed yet' else '' end""",
}
"""`unseen`: places of a subject that no message is known of, ahead of the range and in it. Kafka skips some; of others a row was
damaged, so that it went to quarantine and its reader received a gap: in both cases that was not a miscount."""
_SPLIT = {
    "reported_ahead": "least(reported, ahead)",
    "reported_inside": "least(reported - least(reported, before + across), lacking)",
    "reported_unseen": "least(unseen, greatest(0L, reported - before - lacking))",
    "excess": "if(gaps > 0 and gap_count is not null and across = 0 and not is_pattern, gap_count - before - lacking - unseen, 0L)",
}
_NAMES = (
    ("gap", "reported_ahead + reported_inside + reported_unseen", "'reported'"),
    ("gap", "ahead - reported_ahead", "lost"),
    ("hole", "lacking - reported_inside", "lost"),
    ("repeat", "if(lost_rows, repeated, 0L)", "lost"),
    ("repeat", "if(lost_rows, 0L, repeated) + greatest(0L, -inside - gone_inside)", "''"),
    ("reorder", "reordered", "lost"),
    ("epoch_regress", "if(regressed, greatest(count, 1L), 0L)", "lost"),
    ("miscount", "excess", "''"),
    ("unpublished", "over", "unknown"),
)
"""The kinds that a row may be of: how many messages, and the cause that excuses them."""


def name_faults(rows: DataFrame) -> DataFrame:
    """A row for each fault of an odd range."""
    split = rows.selectExpr("*", *(f"{sql} as {name}" for name, sql in _REPORTED.items())).selectExpr(
        "*", *(f"{sql} as {name}" for name, sql in _SPLIT.items())
    )
    every = ", ".join(
        f"named_struct('kind', '{kind}', 'messages', {messages}, 'cause', {cause})" for kind, messages, cause in _NAMES
    )
    found = split.withColumn("found", F.expr(f"explode(filter(array({every}), each -> each.messages > 0))"))
    return found.select(*_WHO, "found.*")


def settle_back(odd: DataFrame) -> DataFrame:
    """Ranges that go back, against the gaps that their island had left by then: what fills a gap for the first time
    is a reorder, the rest repeats. For each range: `repeated`, `reordered`, and of a gap how much of it was
    `filled` later.

    Only ranges that go back and the gaps of their islands are looked at, cut at each other's ends into pieces that
    are whole for each.
    """
    islands = (
        odd.select(*_ISLAND, F.expr(f"explode(filter(array({_STRETCHES}), each -> each.hi >= each.lo)) as stretch"))
        .groupBy(*_ISLAND)
        .agg(F.array_sort(F.collect_list("stretch")).alias("stretches"))  # by offset
        .filter("exists(stretches, each -> each.is_back)")
    )
    ends = "array_sort(array_distinct(flatten(transform(stretches, each -> array(each.lo, each.hi + 1)))))"
    cut = islands.selectExpr("*", f"{ends} as at").selectExpr("*", "slice(at, 2, size(at)) as next")
    pieces = cut.selectExpr(*_ISLAND, "stretches", "explode(arrays_zip(at, next)) as piece")
    covered = pieces.selectExpr(
        *(*_ISLAND, "piece.next - piece.at as size"),
        "filter(stretches, each -> each.lo <= piece.at and each.hi >= piece.at) as over",
    ).filter("size > 0 and exists(over, each -> each.is_back)")
    turns = covered.selectExpr(*_ISLAND, "size", f"explode(concat({_FILLED}, {_RETURNED})) as turn")
    sums = (F.expr(f"sum(if(turn.what = '{name}', size, 0L)) as {name}") for name in _SETTLED)
    return turns.groupBy(*_ISLAND, F.col("turn.journal_offset").alias("journal_offset")).agg(*sums)


_KNOWN = "if(is_pattern and published_to < reached, published_to, reached)"
"""How far places are known: of a pattern's ranges past what has landed each begins, as far as can be told, where that ends."""
_STRETCHES = f"""
    if(lo <= {_KNOWN}, named_struct('journal_offset', journal_offset, 'lo', lo, 'hi', least(hi, {_KNOWN}), 'is_back', true), null),
    if(lo <= {_KNOWN}, named_struct('journal_offset', -1L, 'lo', lo, 'hi', began - 1, 'is_back', false), null),
    if(before > 0, named_struct('journal_offset', journal_offset, 'lo', reached + 1, 'hi', lo - 1, 'is_back', false), null)"""
"""What a range says of its island: that it goes back over places; that it lies before where the island began, where
nothing was handed over either (but nothing was owed); that it left a gap.
"""
_FILLED = "transform(filter(over, each -> not each.is_back), each -> named_struct('journal_offset', each.journal_offset, 'what', 'filled'))"
_RETURNED = """transform(filter(over, each -> each.is_back), (each, turn) -> named_struct('journal_offset', each.journal_offset,
    'what', if(turn = 0 and exists(over, other -> not other.is_back), 'reordered', 'repeated')))"""
