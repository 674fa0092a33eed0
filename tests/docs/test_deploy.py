"""deploy/: the unit is one that systemd takes, and what the container file does makes a node that serves."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from godwit.config import Config, build_config


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
    command = re.search(r"^CMD (\[.*\])$", text, re.MULTILINE)
    entry = re.search(r"^ENTRYPOINT (\[.*\])$", text, re.MULTILINE)
    assert command and entry
    words = [*json.loads(entry.group(1))[1:], *json.loads(command.group(1))]
    from godwit.cli import godwit

    serve = godwit.get_command(godwit.make_context("godwit", [], resilient_parsing=True), words[0])
    assert serve is not None
    serve.make_context("serve", words[1:])


@pytest.mark.long
def test_the_steps_of_the_container_file_make_a_node_that_serves(root: Path, tmp_path: Path) -> None:
    """The same steps in a clean environment: no engine for containers is needed."""
    source = tmp_path / "source"
    subprocess.run(["git", "clone", "--quiet", str(root), str(source)], check=True)
    for changed in ("deploy/wheel",):  # also before it is committed
        shutil.copy(root / changed, source / changed)
    environment = {**os.environ, "CARGO_TARGET_DIR": str(root / "target")}
    subprocess.run(["deploy/wheel", tmp_path / "wheels"], cwd=source, env=environment, check=True, timeout=900)
    clean = tmp_path / "opt"
    subprocess.run([sys.executable, "-m", "venv", clean], check=True)
    wheel = next((tmp_path / "wheels").glob("godwit-*.whl"))
    subprocess.run([clean / "bin/pip", "install", "--quiet", "--disable-pip-version-check", wheel], check=True)
    serve = [
        clean / "bin/godwit",
        "serve",
        "--client",
        "127.0.0.1:0",
        "--admin",
        "127.0.0.1:0",
        "--data",
        tmp_path / "d",
    ]
    with subprocess.Popen(serve, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as node:
        assert node.stdout is not None
        admin = re.search(r"admin=(\S+)", node.stdout.readline())
        assert admin is not None
        for path in ("/health/live", "/"):
            with urllib.request.urlopen(f"http://{admin.group(1)}{path}", timeout=10) as answer:
                assert answer.status == 200
        node.terminate()
        assert node.wait(60) == 0
