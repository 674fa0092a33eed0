"""Subjects that options name: the same are legal as on a node."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from godwit_pipelines.errors import ConfigInvalid
from godwit_pipelines.subject import check_pattern, check_subject

VECTORS = json.loads(Path("protocol/vectors/subjects.json").read_text(encoding="utf-8"))


def test_what_the_contract_calls_a_subject_or_pattern_is_taken() -> None:
    for subject in VECTORS["valid_subjects"]:
        if not subject.startswith("/$"):
            check_subject("below", subject)
    for pattern in [*VECTORS["valid_patterns"], *VECTORS["valid_subjects"], *VECTORS["with_empty_segments"]]:
        check_pattern("subjects", pattern)


@pytest.mark.parametrize("text", [*VECTORS["invalid_subjects"], *VECTORS["with_empty_segments"], "/$node/now"])
def test_what_no_message_can_be_published_on_is_refused(text: str) -> None:
    with pytest.raises(ConfigInvalid, match="--option below"):
        check_subject("below", text)


@pytest.mark.parametrize("text", VECTORS["invalid_patterns"])
def test_what_is_no_pattern_is_refused(text: str) -> None:
    with pytest.raises(ConfigInvalid, match="--option subjects"):
        check_pattern("subjects", text)
