"""deploy/: systemd accepts the unit, and the steps of the container file result in a node that serves."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from playwright.async_api import Page, expect

from godwit.children import follow_parent, wait_for_end
from godwit.config import Config, build_config
from godwit.errors import EXIT_CONFIG_INVALID
from tests.architecture.source import ROOT


def test_the_unit_is_one_that_systemd_takes(root: Path, tmp_path: Path) -> None:
    text = (root / "deploy/godwit.service").read_text()
    program = tmp_path / "godwit"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    unit = tmp_path / "godwit.service"
    unit.write_text(text.replace("/opt/godwit/bin/godwit", str(program)))
    if shutil.which("systemd-analyze"):
        done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert str(unit) not in done.stderr
    stop = re.search(r"^TimeoutStopSec=(\d+)$", text, re.MULTILINE)
    assert stop is not None
    defaults: Config = build_config({}, {}, {})
    assert int(stop.group(1)) * 1_000 > defaults.drain.grace_ms, "the unit ends a node that still drains"


def test_the_unit_minds_how_a_node_ends_and_what_it_tells(root: Path) -> None:
    unit = dict(re.findall(r"^(\w+)=(.+)$", (root / "deploy/godwit.service").read_text(), re.MULTILINE))
    assert unit["Type"] == "notify" and unit["TimeoutStartSec"] == "infinity"
    assert int(unit["RestartPreventExitStatus"]) == EXIT_CONFIG_INVALID
    assert int(unit["UMask"], 8) & 0o007 == 0o007 and int(unit["StateDirectoryMode"], 8) & 0o007 == 0


def test_the_user_of_the_unit_is_made_and_may_read_what_the_guide_installs(root: Path) -> None:
    [user] = re.findall(r"^User=(.+)$", (root / "deploy/godwit.service").read_text(), re.MULTILINE)
    lines = [line.split() for line in (root / "docs/guides/deploying.md").read_text().splitlines()]
    assert [line for line in lines if line[:1] == ["useradd"] and line[-1] == user]
    [install] = [line for line in lines if line[:1] == ["install"] and line[-1] == "/etc/godwit/godwit.toml"]
    assert install[install.index("-g") + 1] == user and install[install.index("-m") + 1] == "640"


def test_kernel_settings_are_names_that_linux_knows(root: Path) -> None:
    lines = [line for line in (root / "deploy/90-godwit.conf").read_text().splitlines() if line and line[0] != "#"]
    assert lines
    for line in lines:
        name, value = (part.strip() for part in line.split("="))
        assert re.fullmatch(r"[\d ]+", value)
        if sys.platform == "linux":
            assert Path("/proc/sys", *name.split(".")).exists(), name


def test_the_container_file_names_only_what_is_there(root: Path) -> None:
    text = (root / "deploy/Containerfile").read_text()
    assert text.count("FROM ") == 2
    assert os.access(root / "deploy/wheel", os.X_OK)
    from godwit.cli import godwit

    for words in (read_line(text, "ENTRYPOINT"), read_line(text, "HEALTHCHECK CMD")):
        command = godwit.get_command(godwit.make_context("godwit", [], resilient_parsing=True), words[1])
        assert command is not None
        command.make_context(words[1], words[2:])


def test_a_flag_on_the_containers_command_line_keeps_its_other_settings(root: Path) -> None:
    """What follows the image's name replaces CMD, so that no default may stand there."""
    text = (root / "deploy/Containerfile").read_text()
    assert not re.search(r"^CMD ", text, re.MULTILINE)
    config = build_config({}, read_variables(text), {"admin.address": "0.0.0.0:8801"})
    assert (str(config.admin.address), str(config.client.address)) == ("0.0.0.0:8801", "0.0.0.0:8800")
    assert config.node.data_directory == "/var/lib/godwit"


def test_the_extra_that_brings_the_pipelines_takes_the_version_that_is_here(root: Path) -> None:
    node, pipelines = (
        tomllib.loads((root / place).read_text()) for place in ("pyproject.toml", "pipelines/pyproject.toml")
    )
    [needed] = map(Requirement, node["project"]["optional-dependencies"]["pipelines"])
    assert needed.name == pipelines["project"]["name"] and pipelines["project"]["version"] in needed.specifier


@pytest.mark.long
def test_the_wheel_holds_the_console_with_its_charts_and_nothing_of_its_tests(wheel: Path, root: Path) -> None:
    with zipfile.ZipFile(wheel) as held:
        names = set(held.namelist())
    wanted = {
        f"godwit/console/{path.relative_to(root / 'console')}"
        for path in (root / "console").rglob("*")
        if path.suffix in (".js", ".css", ".html", ".svg") and not {"node_modules", "vendor"} & set(path.parts)
    }
    assert len(wanted) > 20 and not wanted - names
    assert {"godwit/console/vendor/uPlot.esm.js", "godwit/console/vendor/uPlot.min.css"} <= names
    assert [name for name in names if name.startswith("godwit/_engine")]
    assert not [name for name in names if "node_modules" in name or "/tests/" in name or "axe" in name]


@pytest.mark.long
async def test_the_steps_of_the_container_file_make_a_node_that_serves_its_console(
    installed: Path, tmp_path: Path, page: Page
) -> None:
    """With the container's own arguments; no engine for containers is needed."""
    text = (ROOT / "deploy/Containerfile").read_text()
    serve, health = read_line(text, "ENTRYPOINT"), read_line(text, "HEALTHCHECK CMD")
    assert {serve[0], health[0]} == {"/opt/godwit/bin/godwit"}
    fitted = {"0.0.0.0:8800": "127.0.0.1:0", "127.0.0.1:8801": "127.0.0.1:0", "/var/lib/godwit": str(tmp_path / "data")}
    variables = {name: fitted[value] for name, value in read_variables(text).items()}
    program, inside = str(installed / "bin/godwit"), {**os.environ, **variables}
    node = await asyncio.create_subprocess_exec(
        *(program, *serve[1:], "--admin", "localhost:0"),
        env=inside,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        cwd=tmp_path,
        preexec_fn=follow_parent(),
    )
    try:
        async with asyncio.timeout(120):
            assert node.stdout is not None
            admin = re.search(r"admin=(\S+)", (await node.stdout.readline()).decode())
            assert admin is not None
            check = await asyncio.create_subprocess_exec(program, *health[1:], env=inside, cwd=tmp_path)
            assert await check.wait() == 0
            await page.goto(f"http://{admin.group(1)}/")
            await expect(page.locator("#condition")).to_have_text("ready", timeout=30_000)
            await expect(page.locator(".chart canvas").first).to_be_visible(timeout=30_000)
            node.terminate()  # STOPSIGNAL
            assert await wait_for_end(node) == 0
            check = await asyncio.create_subprocess_exec(
                program, *health[1:], env=inside, stderr=asyncio.subprocess.DEVNULL
            )
            assert await check.wait() == 1
    finally:
        if node.returncode is None:
            node.kill()
            await wait_for_end(node)


def read_line(text: str, name: str) -> list[str]:
    found = re.search(rf"^{name} (\[.*\])$", text, re.MULTILINE)
    assert found is not None
    words: list[str] = json.loads(found.group(1))
    return words


def read_variables(text: str) -> dict[str, str]:
    """What ENV sets for the node."""
    return dict(re.findall(r"(GODWIT_\w+)=(\S+)", text))
