"""An error names the problem in one line, and can be caught by its class."""

import errno
import socket

import pytest

from godwit import errors


def test_every_error_is_a_godwit_error_and_stands_in_the_drawn_tree() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and kind.__module__ == errors.__name__]
    for kind in kinds:
        assert issubclass(kind, errors.GodwitError)
        assert kind.__name__ in str(errors.__doc__)


def test_a_refused_value_names_key_source_value_bound_and_hint() -> None:
    error = errors.ConfigInvalid("node.shards", 99, "must be …", hint="try 2", source="flag")
    assert str(error) == "node.shards (from flag): 99 must be …; try 2"


@pytest.mark.parametrize(
    "error", [errors.SubjectInvalid("x" * 10_000, "is long"), errors.PositionInvalid("x" * 10_000)]
)
def test_a_strangers_text_does_not_flood_the_sentence(error: ValueError) -> None:
    assert len(str(error)) < 250 and isinstance(error, ValueError)


def test_closing_and_refusing_say_whether_to_come_back() -> None:
    assert errors.SessionClosed(4200, "draining", reconnect_after_ms=5).reconnect
    assert not errors.CommandRefused(4101, "SubjectInvalid", "no").retry
    assert "client on 127.0.0.1:1" in str(errors.ListenFailed("client", "127.0.0.1:1", "taken"))


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (OSError(errno.EADDRINUSE, "error while attempting to bind on address ('::1', 1): in use"), "in use"),
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "Name or service not known"),
        (OSError("no number"), "no number"),
    ],
)
def test_a_port_that_cannot_be_opened_is_described_in_the_words_of_the_system(reason: OSError, words: str) -> None:
    assert str(errors.ListenFailed("admin", "[::1]:1", reason)) == f"cannot listen for admin on [::1]:1: {words}"
