"""Every option of `publish` and `tail`, and every number of any command, with wrong values: an error sentence, never an
internal error.
"""

from __future__ import annotations

import asyncio
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from godwit.cli.publish import publish
from godwit.cli.tail import COUNT_MAX
from tests.cli.test_hostile import LEAVES
from tests.unit.client.peer import Peer

VALUES = (
    "",
    "0",
    "-1",
    "nan",
    "inf",
    "1e999",
    str(1 << 64),
    "9" * 5_000,
    "x" * 300,
    "é",
    "a\nb",
    "/a//b",
    "/a/*",
    "\x1b[2J",
)
EXITS = {0, 1, 2}


async def invoke(peer: Peer, *words: str) -> Result:
    def call() -> Result:
        return CliRunner().invoke(LEAVES["publish"], ["--server", peer.url, "/a", "1", *words])

    return await asyncio.to_thread(call)


def valued(command: click.Command) -> list[str]:
    found = [each for each in command.params if isinstance(each, click.Option) and not each.is_flag]
    return [each.opts[0] for each in found if each.opts[0] not in ("--server", "--token-file")]


@pytest.mark.parametrize("option", valued(publish))
async def test_any_value_of_an_option_of_publish_is_taken_or_refused(option: str) -> None:
    async with Peer() as peer:
        for value in VALUES:
            outcome = await invoke(peer, option, value)
            known = (
                isinstance(outcome.exception, SystemExit | None)
                or type(outcome.exception).__module__ == "godwit.errors"
            )
            assert known and outcome.exit_code in EXITS, (value[:20], outcome.exception)


@pytest.mark.parametrize("name", LEAVES)
def test_a_number_that_is_none_is_refused(name: str) -> None:
    for param in LEAVES[name].params:
        if isinstance(param, click.Option) and isinstance(param.type, click.types.FloatParamType):
            with pytest.raises(click.UsageError, match="not a number"):
                LEAVES[name].make_context(name, [param.opts[0], "nan"])


@pytest.mark.parametrize("option", ["--last", "--conflate-ms"])
def test_a_count_of_tail_is_one_that_the_client_takes(option: str) -> None:
    command: Any = LEAVES["tail"]
    for value in (0, COUNT_MAX + 1, -1, 1 << 64):
        with pytest.raises(click.BadParameter):
            command.make_context("tail", ["/a", option, str(value)])
    assert command.make_context("tail", ["/a", option, str(COUNT_MAX)]).params
