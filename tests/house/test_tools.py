"""Set-up names every missing tool with the way to get it, before anything is compiled."""

import os
import subprocess
from pathlib import Path


def run_tools(root: Path, path: str, *purposes: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": path}
    command = ["/bin/sh", str(root / ".ci/tools"), *purposes]
    return subprocess.run(command, env=environment, text=True, capture_output=True)


def bin_folder(folder: Path, **programs: str) -> str:
    """A folder with what the script itself runs, and the given fake programs."""
    for name in ("sort", "head", "cut"):
        os.symlink(f"/usr/bin/{name}", folder / name)
    for name, text in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    return str(folder)


def test_every_missing_tool_is_named_with_the_way_to_get_it(root: Path, tmp_path: Path) -> None:
    done = run_tools(root, bin_folder(tmp_path), "run", "test")
    assert done.returncode == 1
    assert [line for line in done.stderr.splitlines() if line.startswith("missing: ")] == [
        "missing: Python 3.11 or later, with venv",
        "missing: a C compiler (cc)",
        "missing: Rust 1.95 or later (cargo, rustc)",
        "missing: Node 20 or later, which tests the page",
    ]
    assert "rustup" in done.stderr and "apt install" in done.stderr


def test_an_old_tool_is_named_with_the_version_found(root: Path, tmp_path: Path) -> None:
    path = bin_folder(tmp_path, rustc="echo rustc 1.9.0", cargo="", cc="", python3="exit 0", node="echo v9.1.0")
    done = run_tools(root, path, "run", "test")
    assert done.returncode == 1
    assert "Rust 1.95 or later (found 1.9.0)" in done.stderr and "Node 20 or later (found 9.1.0)" in done.stderr


def test_running_needs_no_node(root: Path, tmp_path: Path) -> None:
    path = bin_folder(tmp_path, rustc="echo rustc 1.102.0", cargo="", cc="", python3="exit 0")
    done = run_tools(root, path, "run")
    assert (done.returncode, done.stdout.strip()) == (0, str(tmp_path / "python3"))
