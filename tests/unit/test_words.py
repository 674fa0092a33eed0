"""One is not written in the plural."""

from __future__ import annotations

import pytest

from godwit.words import counted


@pytest.mark.parametrize("count, said", [(0, "0 rows"), (1, "1 row"), (2_000, "2,000 rows")])
def test_one_is_told_in_the_singular(count: int, said: str) -> None:
    assert counted(count, "row") == said
    assert counted(count, "query", "queries").endswith("query" if count == 1 else "queries")
