"""Which subjects and patterns are valid, and which pattern matches which subject."""

import pytest

from godwit.errors import SubjectInvalid
from godwit.subject import SUBJECT_BYTES_MAX, check_pattern, check_subject, is_pattern, matches


@pytest.mark.parametrize(
    "subject",
    [
        "/a",
        "/a/b",
        "/a*b/c",
        "/a/***",
        "/é/雪",
        "/$godwit/stats",
        "/" + "a" * 1023,
        "/a b",
        "//",
        "/a/",
        "//a",
        "/a//b",
    ],
)
def test_legal_subjects_are_accepted(subject: str) -> None:
    assert check_subject(subject) == subject


@pytest.mark.parametrize(
    ("subject", "reason"),
    [
        ("", "begin"),
        ("a/b", "begin"),
        ("/", "no segment"),
        ("/a/*", "wildcard"),
        ("/**", "wildcard"),
        ("/a\0b", "control"),
        ("/a\nb", "control"),
        ("/a\x85b", "control"),
        ("/\ud800", "UTF-8"),
        ("/" + "é" * (SUBJECT_BYTES_MAX // 2), "bytes"),
    ],
)
def test_illegal_subjects_name_the_rule_they_break(subject: str, reason: str) -> None:
    with pytest.raises(SubjectInvalid, match=reason):
        check_subject(subject)


def test_rest_wildcard_is_only_allowed_last() -> None:
    assert check_pattern("/a/*/c/**") == "/a/*/c/**"
    with pytest.raises(SubjectInvalid, match="before its last"):
        check_pattern("/a/**/c")


@pytest.mark.parametrize(
    ("pattern", "subject", "holds"),
    [
        ("/a", "/a", True),
        ("/a", "/b", False),
        ("/a/*", "/a/b", True),
        ("/a/*", "/a", False),
        ("/a/*", "/a/b/c", False),
        ("/*/b", "/a/b", True),
        ("/a/**", "/a", True),
        ("/a/**", "/a/b/c", True),
        ("/a/**", "/ab", False),
        ("/**", "/a/b", True),
        ("/**", "/$a/b", False),
        ("/*", "/$a", False),
        ("/$a/**", "/$a/b", True),
        ("/a/*/c/**", "/a/b/c", True),
        ("/a/*/c/**", "/a/b/d", False),
        ("/*/a", "//a", True),
        ("/a/*", "/a/", True),
        ("/a", "/a/", False),
        ("//**", "/a", False),
        ("/a/*", "/a/$b", True),
    ],
)
def test_patterns_hold_subjects(pattern: str, subject: str, holds: bool) -> None:
    assert matches(pattern, subject) is holds
    assert is_pattern(pattern) is ("*" in pattern)
