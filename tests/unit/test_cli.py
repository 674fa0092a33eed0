"""The command line: exit codes, the sentence for a mistake, the listening line, and leaving by signal."""

import asyncio
import importlib.util
import os
import signal
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import godwit
from godwit.cli import COMMANDS, main
from godwit.cli import godwit as command_line
from godwit.cli.serve import name_reachable, run_node
from godwit.config import Address, build_config
from godwit.testing import FREE_PORTS
from godwit.testing.fake_engine import FakeEngine


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["godwit", *words])
    with pytest.raises(SystemExit) as left:
        main()
    return int(left.value.code or 0)


def test_help_names_every_command() -> None:
    output = CliRunner().invoke(command_line, ["--help"]).output
    assert all(name in output for name in COMMANDS if importlib.util.find_spec(COMMANDS[name].split(":")[0]))


def test_a_misspelt_command_names_the_nearest() -> None:
    outcome = CliRunner().invoke(command_line, ["serv"])
    assert outcome.exit_code == 2 and "Did you mean serve?" in outcome.output


def test_config_check_tells_a_mistake_and_exits_2(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "godwit.toml"
    file.write_text("[node]\nshard = 1\n")
    assert run(monkeypatch, "config", "check", "--config", str(file)) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and "did you mean node.shards?" in captured.err and len(captured.err.splitlines()) == 1
    file.write_text("[node]\nshards = 1\n")
    assert run(monkeypatch, "config", "check", "--config", str(file), "--set", "node.name=x") == 0
    assert run(monkeypatch, "config", "check", str(file), "--set", "node.name=x") == 0
    assert run(monkeypatch, "config", "check", str(file), "--config", str(file)) == 2
    assert "valid: 2 values set" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--set", "admin.token_file=gone"], "admin.token_file: 'gone' cannot be read"),
        (["--set", "audit.plugins=gone:Audit"], "gone"),
        (
            [
                "--set",
                "client.tls_address=127.0.0.1:0",
                *(f"--set=tls.{name}_files=gone" for name in ("certificate", "key")),
            ],
            "tls.certificate_files: 'gone' ",
        ),
        (
            ["--set", "admin.tls=true", *(f"--set=tls.{name}_files=gone" for name in ("certificate", "key"))],
            "tls.certificate_files: ",
        ),
    ],
)
def test_config_check_opens_every_file_that_a_start_would(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str], why: str
) -> None:
    assert run(monkeypatch, "config", "check", *words) == 2
    assert why in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--set", "x"], "must be KEY=VALUE"),
        (["--set", "limits.log_messages_max=many"], "must be a whole number"),
        (["--config", "missing.toml"], "cannot be read"),
        (["--client", "8800"], "must be HOST:PORT"),
        (["--shards", "65"], "from 0 to 64"),
    ],
)
def test_serve_opens_nothing_where_the_configuration_is_wrong(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str], why: str
) -> None:
    assert run(monkeypatch, "serve", *words) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and why in captured.err


def test_config_show_and_doc_print_the_tree(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GODWIT_NODE_SHARDS", "3")
    assert run(monkeypatch, "config", "show") == 0
    assert "shards = 3  # environment GODWIT_NODE_SHARDS" in capsys.readouterr().out
    assert run(monkeypatch, "config", "doc") == 0
    assert "# Configuration" in capsys.readouterr().out


class Slow(FakeEngine):
    """Its drain never ends."""

    def drain(self, grace_ms: int, spread_ms: int) -> None:
        self.drains.append((grace_ms, spread_ms))


def serve_with(monkeypatch: pytest.MonkeyPatch, engine: type[FakeEngine]) -> "asyncio.Task[int]":
    module: Any = types.ModuleType("godwit._engine")
    module.Engine = engine
    monkeypatch.setattr(godwit, "_engine", module, raising=False)
    monkeypatch.setattr("godwit.logs.start_logs", lambda *_, **__: None)
    config = build_config(FREE_PORTS, {}, {})
    return asyncio.get_running_loop().create_task(run_node(config, lambda: config))


async def wait_for_line(capsys: pytest.CaptureFixture[str], word: str) -> str:
    async with asyncio.timeout(60):
        seen = ""
        while word not in seen:
            await asyncio.sleep(0.001)  # standard output has no event to wait for
            seen += capsys.readouterr().out
    return seen


async def test_a_signal_drains_and_exits_0(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    served = serve_with(monkeypatch, FakeEngine)
    line = await wait_for_line(capsys, "listening ")
    assert "listening client=127.0.0.1:" in line and "client=127.0.0.1:0" not in line
    os.kill(os.getpid(), signal.SIGTERM)
    assert await asyncio.wait_for(served, 5) == 0


async def test_a_second_signal_stops_at_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    served = serve_with(monkeypatch, Slow)
    await wait_for_line(capsys, "listening ")
    os.kill(os.getpid(), signal.SIGINT)
    await wait_for_line(capsys, "drain_began")
    os.kill(os.getpid(), signal.SIGTERM)
    assert await asyncio.wait_for(served, 5) == 1


@pytest.mark.parametrize(
    ("bound", "named"), [("0.0.0.0:1", "localhost:1"), ("[::]:1", "localhost:1"), ("127.0.0.1:1",) * 2]
)
def test_the_page_is_named_by_an_address_that_opens(bound: str, named: str) -> None:
    assert str(name_reachable(Address.parse(bound))) == named
