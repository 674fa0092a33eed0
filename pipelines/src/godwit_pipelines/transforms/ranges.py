"""Arithmetic of offset ranges: put together, clipped, taken from each other. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise

Range = tuple[int, int]
"""Offsets from the first up to, not including, the second."""


def merged(ranges: Iterable[Range]) -> list[Range]:
    """Ranges in order, those that touch or overlap as one."""
    found: list[Range] = []
    for first, next in sorted(ranges):
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], next))
        else:
            found.append((first, next))
    return found


def clipped(ranges: Sequence[Range], low: int, high: int) -> list[Range]:
    """What of the ranges lies between two offsets. They are in order and share none, so that few of many are looked at."""
    begin, end = (
        bisect_right(ranges, low, key=lambda each: each[1]),
        bisect_left(ranges, high, key=lambda each: each[0]),
    )
    return [(max(first, low), min(next, high)) for first, next in ranges[begin:end]]


def without(ranges: Iterable[Range], others: Iterable[Range]) -> list[Range]:
    """What of the ranges is in none of the others."""
    taken, left, index = merged(others), list[Range](), 0
    for first, next in merged(ranges):
        at = first
        while index < len(taken) and taken[index][1] <= at:
            index += 1
        while index < len(taken) and taken[index][0] < next:
            low, high = taken[index]
            if low > at:
                left.append((at, low))
            at = max(at, high)
            if high > next:
                break
            index += 1
        if at < next:
            left.append((at, next))
    return left


def widened(ranges: Sequence[Range], most: int) -> list[Range]:
    """At most so many ranges: of those in order that share none, the nearest as one, with what lies between them."""
    apart = sorted(range(1, len(ranges)), key=lambda at: ranges[at][0] - ranges[at - 1][1], reverse=True)
    begins = [0, *sorted(apart[: most - 1]), len(ranges)]
    return [(ranges[begin][0], ranges[end - 1][1]) for begin, end in pairwise(begins) if begin < end]


def count_offsets(ranges: Iterable[Range]) -> int:
    return sum(next - first for first, next in ranges)
