"""The page says no more than was judged. Its document is the one of the run that is kept in the docs, changed."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from godwit.verify.report import build_page

Document = dict[str, Any]


@pytest.fixture(scope="module")
def kept(root: Path) -> Document:
    document: Document = json.loads((root / "docs/reports/verify-ten-minutes.json").read_text(encoding="utf-8"))
    return {**document, "clients": document["clients"][:2]}


def read_verdict(document: Document) -> str:
    return build_page(document).partition("<h1>")[2].partition("</section>")[0]


def test_a_run_that_passed_says_what_was_kept(kept: Document) -> None:
    said = read_verdict(kept)
    assert "Nothing was lost in silence, nothing came twice, everything came in order and each of the " in said
    assert "Not judged" not in said


def test_what_a_broker_does_not_promise_is_not_said_of_it(kept: Document) -> None:
    document = copy.deepcopy(kept) | {"broker": "mosquitto"}
    for one in document["promises"]:
        if one["promise"] in ("no repeat", "gaps"):
            one["state"] = "not promised"
    said = read_verdict(document)
    assert "Nothing was lost in silence and everything came in order." in said
    assert "twice" not in said and "counted right" not in said
    assert "Not judged, because mosquitto does not promise it: no repeat, gaps." in said


def test_a_short_run_without_harm_is_told_as_that(kept: Document) -> None:
    said = read_verdict(kept | {"ended_ms": 16_200, "harms": {}})
    assert "16 seconds" in said and "; nothing was harmed." in said


def test_one_is_no_plural(kept: Document) -> None:
    counts = {**kept["counts"], "losses": 1, "restarts": 1, "breaches": 1}
    said = read_verdict(kept | {"verdict": "broken", "harms": {"kill": 1}, "counts": counts})
    assert "while 1 fault broke 1 connection and took the node down 1 time. 1 time a promise was broken" in said
