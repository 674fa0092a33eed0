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
    add_programs(folder, **programs)
    return str(folder)


def add_programs(folder: Path, **programs: str) -> None:
    for name, text in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)


def test_every_missing_tool_is_named_with_the_way_to_get_it(root: Path, tmp_path: Path) -> None:
    done = run_tools(root, bin_folder(tmp_path), "run", "test")
    assert done.returncode == 1
    assert [line for line in done.stderr.splitlines() if line.startswith("missing: ")] == [
        "missing: Python 3.11 or later, with venv",
        "missing: a C compiler (cc)",
        "missing: Rust 1.95 or later (cargo, rustc)",
        "missing: Node 20 or later, which brings the console its charts and tests the client",
        "missing: npm, which brings the console its charts",
    ]
    assert "rustup" in done.stderr and "apt install" in done.stderr


def test_an_old_tool_is_named_with_the_version_found(root: Path, tmp_path: Path) -> None:
    path = bin_folder(tmp_path, rustc="echo rustc 1.9.0", cargo="", cc="", python3="exit 0", node="echo v9.1.0")
    done = run_tools(root, path, "run", "test")
    assert done.returncode == 1
    assert "Rust 1.95 or later (found 1.9.0)" in done.stderr and "Node 20 or later (found 9.1.0)" in done.stderr


def test_checking_needs_clippy_and_rustfmt(root: Path, tmp_path: Path) -> None:
    programs = {"cc": "", "python3": "exit 0", "node": "echo v20.0.0", "npm": ""}
    path = bin_folder(tmp_path, rustc="echo rustc 1.95.0", cargo="exit 1", **programs)
    done = run_tools(root, path, "run", "check")
    assert done.returncode == 1 and "rustup component add clippy rustfmt" in done.stderr


def test_running_needs_node_and_no_more(root: Path, tmp_path: Path) -> None:
    path = bin_folder(tmp_path, rustc="echo rustc 1.102.0", cargo="", cc="", python3="exit 0")
    assert "missing: Node 20 or later" in run_tools(root, path, "run").stderr
    add_programs(tmp_path, node="echo v20.0.0", npm="")
    done = run_tools(root, path, "run")
    assert (done.returncode, done.stdout.strip()) == (0, str(tmp_path / "python3"))


def run_chromium(root: Path, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    path = bin_folder(folder, id="echo 1000")
    command = ["/bin/sh", str(root / ".ci/chromium")]
    return subprocess.run(command, env={"PATH": path, **environment}, text=True, capture_output=True)


def test_without_a_chromium_the_tests_of_the_page_are_left_out_and_it_is_said(root: Path, tmp_path: Path) -> None:
    done = run_chromium(root, tmp_path)
    assert done.returncode == 0 and "no Chromium found" in done.stderr


def test_under_ci_a_missing_chromium_is_an_error(root: Path, tmp_path: Path) -> None:
    assert run_chromium(root, tmp_path, CI="true").returncode == 1


def test_a_chromium_may_be_named(root: Path, tmp_path: Path) -> None:
    done = run_chromium(root, tmp_path, CHROMIUM="/bin/sh", CI="true")
    assert (done.returncode, done.stderr) == (0, "")
