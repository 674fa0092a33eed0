"""Commands in the docs are accepted by the programs; complete programs in the docs are run."""

from __future__ import annotations

import asyncio
import re
import shlex
import sys
import tomllib
from pathlib import Path

import click
import pytest

from godwit import testing
from godwit.cli import godwit
from godwit.client import Client, SessionClosed
from godwit.plan.workload import read_workload
from tests.architecture.source import ROOT, is_generated, kept_files, read

TEXTS = [
    path
    for path in kept_files()
    if path.suffix == ".md" and path.parts[0] in ("docs", "README.md") and not is_generated(path)
]
COMMAND = re.compile(r"^(?:    |\t)(?:[A-Z_]+=\S+ )*(?:\S*/bin/)?godwit ([a-z].*)$", re.MULTILINE)


def list_commands() -> list[tuple[str, str]]:
    return [(str(path), line) for path in TEXTS for line in COMMAND.findall(read(path))]


@pytest.mark.parametrize(("path", "line"), list_commands())
def test_every_command_shown_is_one_that_the_command_line_takes(path: str, line: str) -> None:
    words = shlex.split(re.split(r"\s{2,}|\s[|>]", line)[0])  # what it does stands behind wide blanks
    command: click.Command = godwit
    context = click.Context(godwit, info_name="godwit")
    while isinstance(command, click.Group) and words:
        found = command.get_command(context, words.pop(0))
        assert found is not None, line
        command = found
    if not isinstance(command, click.Group):
        is_form = any(
            word.isupper() for word in words
        )  # such as `--config FILE`: the option is looked at, not its value
        command.make_context("godwit", words, resilient_parsing=is_form or "--help" in words)


def test_commands_are_found() -> None:
    assert len(list_commands()) > 10


def test_every_workload_shown_is_one_that_is_taken() -> None:
    shown = [
        block
        for path in TEXTS
        for block in re.findall(r'```toml title="workload.toml"\n(.*?)```', read(path), re.DOTALL)
    ]
    assert shown
    for block in shown:
        workload, _ = read_workload(tomllib.loads(block), {})
        assert workload.connections > 1


async def test_the_authorizer_of_the_guide_lets_each_into_their_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = re.findall(r"```python\n(.*?)```", read(Path("docs/guides/authorizer.md")), re.DOTALL)
    (tmp_path / "rooms.py").write_text(blocks[0])
    monkeypatch.syspath_prepend(str(tmp_path))
    scope: dict[str, object] = {}
    exec(compile(blocks[1], "docs/guides/authorizer.md", "exec"), scope)
    snippet_test = scope["test_ada_may_write_in_her_room"]
    async with asyncio.timeout(30):
        await snippet_test()  # type: ignore[operator]  # the guide's own test
        access = {"mode": "custom", "authorizer": "rooms:Rooms"}
        async with testing.node({"access": access}) as node, Client(node.url, token="nobody's") as nobody:
            with pytest.raises(SessionClosed):
                await nobody.publish("/rooms/ada/door", "shut")


async def test_the_tutorials_commands_do_what_it_says(tmp_path: Path) -> None:
    """Sections 3 and 4, word for word but for the node's address."""
    lines = re.findall(r"^    ((?:seq|\.venv/bin).*)$", read(Path("docs/tutorial.md")), re.MULTILINE)
    wanted = [line for line in lines if "publish" in line or "resume" in line]
    assert len(wanted) >= 5
    said = []
    async with testing.node() as node, asyncio.timeout(60):
        for line in wanted:
            line = line.replace(".venv/bin/python examples/", f"{sys.executable} {ROOT}/examples/")
            line = line.replace(".venv/bin/godwit publish", f"{sys.executable} -m godwit publish --server {node.url}")
            line = re.sub(r"(examples/publish\.py \S+|positions\.json)$", rf"\1 {node.url}", line)
            shell = await asyncio.create_subprocess_shell(
                line, cwd=tmp_path, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
            )
            output, errors = await shell.communicate()
            assert shell.returncode == 0, errors.decode()
            said.append((line, output.decode().split("\n")))
        async with Client(node.url) as client:
            message = await anext(aiter(client.subscribe("/rooms/kitchen/temperature")))
            assert message.json() == {"celsius": 22.5}
    first, second = ([row.split()[-1] for row in out if row] for line, out in said if "resume.py" in line)
    assert (first, second) == (["1", "2", "3", "4"], ["5", "6", "7", "8"])
