"""Shares of a batch: all that there is room for, nobody left out, nobody past their end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from godwit_pipelines.errors import JournalBroken
from godwit_pipelines.source.offsets import from_offset, share, to_offset

NODES = st.dictionaries(
    st.sampled_from("abcdefgh"), st.tuples(st.integers(0, 1 << 40), st.integers(0, 1 << 40)), min_size=1
)


@given(NODES, st.integers(1, 1 << 41))
def test_a_share_takes_what_there_is_room_for(nodes: dict[str, tuple[int, int]], rows_max: int) -> None:
    starts = {node: start for node, (start, _) in nodes.items()}
    ends = {node: start + lag for node, (start, lag) in nodes.items()}
    shared = share(starts, ends, rows_max)
    taken = {node: shared[node] - starts[node] for node in nodes}
    assert all(0 <= taken[node] <= ends[node] - starts[node] for node in nodes)
    behind = [node for node in nodes if ends[node] > starts[node]]
    total = sum(ends[node] - starts[node] for node in nodes)
    assert min(total, rows_max) <= sum(taken.values()) <= min(total, rows_max + len(behind))  # each gets one at least
    assert all(taken[node] > 0 for node in behind)


def test_who_is_behind_gets_more() -> None:
    assert share({"a": 0, "b": 0}, {"a": 900, "b": 100}, 100) == {"a": 90, "b": 10}


def test_nobody_goes_back() -> None:
    assert share({"a": 50}, {"a": 40}, 10) == {"a": 50}


def test_a_checkpoint_of_another_stream_is_refused() -> None:
    assert from_offset("messages", to_offset("messages", {"b": 2, "a": 1})) == {"a": 1, "b": 2}
    with pytest.raises(JournalBroken, match="of the stream messages, not of access"):
        from_offset("access", to_offset("messages", {"a": 1}))
