"""`godwit tail` against a scripted node: it prints messages, stops, and prints the command that continues."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from godwit.cli.tail import Continuation, list_doubts, read_stand, run_tail, tail
from godwit.client import Position, ResumePoint
from godwit.errors import ConfigInvalid
from tests.unit.client.peer import Peer

DEFAULTS: dict[str, Any] = {
    "since": None,
    "after": (),
    "last": None,
    "on_gap": "snapshot",
    "no_snapshot": False,
    "conflate_ms": None,
    "positions": None,
}


async def test_messages_come_as_json_until_the_count_is_reached(capsys: pytest.CaptureFixture[str]) -> None:
    async with Peer() as peer:
        peer.log["/a"] = [1, 2, 3]
        await asyncio.wait_for(
            run_tail((peer.url,), None, Continuation(), pattern="/a", is_json=True, count=2, **DEFAULTS), 5
        )
    objects = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["message"], row["content"]) for row in objects] == [("/a", 1), ("/a", 2)]


@pytest.mark.parametrize(("on_gap", "asked"), [("snapshot", None), ("oldest", "oldest")])
async def test_where_to_go_on_after_a_gap_is_asked_of_the_node(on_gap: str, asked: str | None) -> None:
    async with Peer() as peer:
        peer.log["/a"] = [1]
        given = {**DEFAULTS, "last": 5, "on_gap": on_gap}
        await asyncio.wait_for(
            run_tail((peer.url,), None, Continuation(), pattern="/a", is_json=True, count=1, **given), 5
        )
        [command] = [each for each in peer.heard if "subscribe" in each]
    assert (command["last"], command.get("on_gap")) == (5, asked)


def test_a_stand_is_a_resume_token_positions_by_subject_or_one_position() -> None:
    assert not read_stand("/a", None, ())
    assert read_stand("/a", None, ("7.42",)) == ResumePoint({"/a": Position(7, 42)})
    assert read_stand("/a/**", "a1.2.3", ("/a/b=7.1", "/a/c=8.2")) == ResumePoint(
        {"/a/b": Position(7, 1), "/a/c": Position(8, 2)}, "a1.2.3"
    )


@pytest.mark.parametrize(
    ("pattern", "since", "after", "why"),
    [
        ("a", None, (), "does not begin with a slash"),
        ("/a/**", None, ("7.1",), "must be SUBJECT=POSITION"),
        ("/a/**", None, ("=7.1",), "--after"),
        ("/a/**", None, ("a=7.1",), "did you mean /a"),
        ("/a", None, ("7",), "is not a valid position"),
        ("/a", None, ("2026-11-26",), "is not a valid position"),
        ("/a", "a1.2.3", (), "is for patterns"),
    ],
)
def test_what_is_no_stand_is_refused(pattern: str, since: str | None, after: tuple[str, ...], why: str) -> None:
    with pytest.raises(ConfigInvalid, match=why):
        read_stand(pattern, since, after)


def test_help_says_what_each_option_does() -> None:
    output = CliRunner().invoke(tail, ["--help"]).output
    assert all(option in output for option in ("--json", "--since", "--after", "--last", "--on-gap", "--positions"))


@pytest.mark.parametrize("since", ["2026-11-26", "2026-11-26T10:00:00Z", "7.42", "1795705241705"])
def test_a_topic_filter_and_a_date_for_a_token_are_pointed_at(since: str) -> None:
    assert list_doubts("/rooms/#", None) == ["/rooms/# is one subject; did you mean '/rooms/**'?"]
    assert list_doubts("/rooms/**", "a1f3.8812.1795250000123") == []
    [doubt] = list_doubts("/rooms/**", since)
    assert "looks like a date or a position" in doubt


def test_the_command_that_continues_repeats_servers_and_files() -> None:
    command = Continuation(("ws://a:1", "ws://b:2"), Path("my token"), Path("ca.pem"))
    begin = "godwit tail --server ws://a:1 --server ws://b:2 --token-file 'my token' --ca-file ca.pem"
    assert command.describe("/a", ResumePoint({"/a": Position(7, 42)})) == f"{begin} /a --after 7.42"
    assert command.describe("/a/**", ResumePoint(since="a1.2.3")) == f"{begin} '/a/**' --since a1.2.3"
    assert command.describe("/a", ResumePoint()) == ""


def test_the_command_that_continues_names_the_positions_that_its_resume_token_does_not_cover() -> None:
    """A token comes about once a second; with it alone the messages since then would be printed a second time."""
    reached = ResumePoint({"/a/old": Position(7, 1), "/a/b": Position(7, 42)}, "a1.2.3", recent=1)
    words = "godwit tail '/a/**' --since a1.2.3 --after=/a/b=7.42"
    assert Continuation().describe("/a/**", reached) == words
    many = ResumePoint({f"/a/{number}": Position(7, 1) for number in range(17)}, "a1.2.3", recent=17)
    assert Continuation().describe("/a/**", many) == "godwit tail '/a/**' --since a1.2.3"
