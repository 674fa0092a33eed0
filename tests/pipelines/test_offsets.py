"""Shares of a batch: as much as fits, the oldest first, and no node past its end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from godwit_pipelines.errors import JournalBroken
from godwit_pipelines.source.offsets import Span, from_offset, share, to_offset

SPANS = st.lists(st.tuples(st.integers(1, 5), st.integers(0, 20), st.integers(0, 6)), max_size=6)
NODES = st.dictionaries(st.sampled_from("abcd"), st.tuples(st.integers(0, 1 << 40), SPANS), min_size=1)


def spans_from(start: int, parts: list[tuple[int, int, int]]) -> list[Span]:
    """Spans of so many rows each, that begin so long after the end of the one before and last so long."""
    found, at_us = list[Span](), 0
    for rows, later_us, took_us in parts:
        found.append(Span(start, start + rows, at_us + later_us, at_us + later_us + took_us))
        start, at_us = start + rows, at_us + later_us + took_us
    return found


def cut(spans: list[Span], next: int) -> list[Span]:
    return [span._replace(next=min(next, span.next)) for span in spans if span.first < next]


@given(NODES, st.integers(1, 60))
def test_a_share_takes_the_oldest_rows_that_there_is_room_for(
    nodes: dict[str, tuple[int, list[tuple[int, int, int]]]], rows_max: int
) -> None:
    spans = {node: spans_from(start, parts) for node, (start, parts) in nodes.items()}
    starts = {node: start for node, (start, _) in nodes.items()}
    ends = {node: parts[-1].next if parts else starts[node] for node, parts in spans.items()}
    shared = share(starts, ends, rows_max, lambda node, first, next: cut(spans[node], next))
    assert sum(shared.values()) - sum(starts.values()) == min(sum(ends.values()) - sum(starts.values()), rows_max)
    assert all(starts[node] <= shared[node] <= ends[node] for node in nodes)
    taken = [span.begins_us for node in nodes for span in spans[node] if span.first < shared[node]]
    left = [span.ends_us for node in nodes for span in spans[node] if span.next > shared[node]]
    assert max(taken, default=0) <= min(left, default=0) or not left


def test_nobody_goes_back() -> None:
    assert share({"a": 50}, {"a": 40}, 10, lambda *_: []) == {"a": 50}


def test_a_checkpoint_of_another_stream_is_refused() -> None:
    assert from_offset("messages", to_offset("messages", {"b": 2, "a": 1})) == {"a": 1, "b": 2}
    with pytest.raises(JournalBroken, match="messages.* access"):
        from_offset("access", to_offset("messages", {"a": 1}))


@pytest.mark.parametrize("offset", [{}, {"nodes": {"a": 1}}, {"stream": "messages"}, {"stream": None, "nodes": []}])
def test_an_offset_that_names_no_stream_or_no_nodes_is_damaged(offset: dict[str, object]) -> None:
    with pytest.raises(JournalBroken, match="messages is damaged") as refused:
        from_offset("messages", offset)
    assert "None" not in str(refused.value)
