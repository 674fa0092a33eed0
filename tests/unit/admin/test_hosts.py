"""A rebound name is a stranger's; addresses and the operator's own names are answered."""

import pytest

from godwit.admin.hosts import is_host_allowed, read_host


@pytest.mark.parametrize(
    ("header", "is_allowed"),
    [
        ("127.0.0.1:8801", True),
        ("127.0.0.1", True),
        ("192.0.2.7:80", True),
        ("[::1]:8801", True),
        ("localhost:8801", True),
        ("LOCALHOST.", True),
        ("ops.example", True),
        ("Ops.Example:8801", True),
        ("evil.example", False),
        ("localhost.evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("1.2.3.4@evil.example", False),
        ("127.0.0.1:8801:1", False),
        ("", False),
        ("[::1", False),
        ("a b", False),
        ("ops.example\r\nX: y", False),
        ("ops.example;script-src *", False),
    ],
)
def test_hosts(header: str, is_allowed: bool) -> None:
    assert is_host_allowed(header, ["ops.example"]) is is_allowed


def test_the_host_is_read_without_its_port() -> None:
    assert read_host("[::1]:8801") == "[::1]" and read_host("a.b:1") == "a.b" and read_host("a b") is None
