"""Which Python modules may import which, and that the tools that check it find a planted fault.

ruff checks the only import of the compiled engine, import-linter the layers and the pure modules. import-linter cannot see a
compiled module, and its cache has missed a planted fault: hence both tools, no cache, and these tests.
"""

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.source import ROOT, code_files, read

TOOLS = Path(sys.executable).parent
DOORS = {
    Path("server/godwit/engine.py"),
    Path("server/godwit/rows/feedback.py"),
    Path("server/godwit/bench/generator.py"),
}
LAYERS_BELOW = {
    "pipelines": "godwit",
    "protocol": "godwit",
    "clients/javascript": "godwit",
}  # folder: what it never imports


def imported_modules(text: str) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module or ""}
    return found


@pytest.mark.parametrize(
    "line",
    [
        "import godwit._engine",
        "from godwit._engine import Engine",
        "from godwit import _engine",
        "from . import _engine",
        "from ._engine import Engine",
    ],
)
def test_ruff_sees_a_second_door_to_the_engine(line: str) -> None:
    command = [
        TOOLS / "ruff",
        "check",
        "--no-cache",
        "--select=TID251",
        "--stdin-filename=server/godwit/planted.py",
        "-",
    ]
    done = subprocess.run(command, cwd=ROOT, input=line + "\n", text=True, capture_output=True)
    assert done.returncode == 1 and "TID251" in done.stdout


def test_only_the_doors_import_the_compiled_engine() -> None:
    door = re.compile(
        r"^\s*(?:from [\w.]* import _engine|from [\w.]*_engine import|import godwit\._engine)", re.MULTILINE
    )
    importers = {path for path in code_files(".py") if path.parts[0] == "server" and door.search(read(path))}
    assert importers == DOORS


def test_folders_that_stand_apart_never_import_the_server() -> None:
    crossing = [
        f"{path} imports {name}"
        for path in code_files(".py")
        for name in imported_modules(read(path))
        if name.split(".")[0] == LAYERS_BELOW.get(path.parts[0])
    ]
    assert not crossing


@pytest.mark.parametrize(
    "module, planted",
    [("model", "import socket"), ("subject", "import asyncio"), ("errors", "from godwit import model")],
)
def test_import_linter_sees_a_planted_fault(module: str, planted: str, tmp_path: Path) -> None:
    for path in code_files(".py"):
        if path.parts[0] == "server":
            (tmp_path / path.parent).mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, tmp_path / path)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    command = [TOOLS / "lint-imports", "--no-cache"]

    def run() -> subprocess.CompletedProcess[str]:
        environment = {"PYTHONPATH": str(tmp_path / "server"), "PATH": ""}
        return subprocess.run(command, cwd=tmp_path, env=environment, text=True, capture_output=True)

    assert run().returncode == 0, run().stdout
    with (tmp_path / f"server/godwit/{module}.py").open("a") as opened:
        opened.write(f"\n{planted}\n")
    broken = run()
    assert broken.returncode == 1 and "BROKEN" in broken.stdout
