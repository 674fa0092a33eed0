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
    assert (
        "No message was lost without a gap, nothing was delivered twice, everything arrived in order and each of the "
        in said
    )
    assert "Not judged" not in said


def test_what_a_broker_does_not_guarantee_is_not_said_of_it(kept: Document) -> None:
    document = copy.deepcopy(kept) | {"broker": "mosquitto"}
    for one in document["guarantees"]:
        if one["guarantee"] in ("no repeat", "gaps"):
            one["state"] = "not guaranteed"
    said = read_verdict(document)
    assert "No message was lost without a gap and everything arrived in order." in said
    assert "twice" not in said and "right count" not in said
    assert "Not judged, because mosquitto does not guarantee it: no repeat, gaps." in said


def test_a_short_run_without_faults_is_named_as_that(kept: Document) -> None:
    said = read_verdict(kept | {"ended_ms": 16_200, "fault_kinds": {}})
    assert "16 seconds" in said and ", without faults." in said


def test_one_is_no_plural(kept: Document) -> None:
    counts = {**kept["counts"], "losses": 1, "restarts": 1, "violations": 1}
    said = read_verdict(kept | {"verdict": "broken", "fault_kinds": {"kill": 1}, "counts": counts})
    assert "while 1 fault broke 1 connection and restarted the node 1 time. A guarantee was broken 1 time" in said
