"""The JavaScript client keeps its cut: pure parts without clock or chance, a browser's globals in one file, one package in Node's socket.

That the pure parts know no socket, timer or global either is the type checker's to say (clients/javascript/tsconfig.pure.json).
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from tests.architecture.source import code_files, is_generated, read

CLIENT = Path("clients/javascript")
SOURCES = [path for path in code_files(".js") if CLIENT / "src" in path.parents]
NODE_FILES = {
    CLIENT / f"src/{name}.js"
    for name in ("platform/node", "position_store/file", "position_store/lease", "transport/node_socket")
}
BROWSER_FILE = CLIENT / "src/platform/browser.js"
PURE = (CLIENT / "src/session", CLIENT / "src/codec")
FUNCTION_LINES_MAX = 60

IMPORT = re.compile(r"""^(?:import|export)\b[^;]*?\bfrom "([^"]+)";""", re.MULTILINE)
OF_BROWSERS = re.compile(
    r"\b(?:window|document|navigator|localStorage|sessionStorage|location|WebSocket|fetch)\b(?!\w)"
)
IMPURE = re.compile(r"\b(?:Date|performance)\b|Math\.random|\bcrypto\b|\bconsole\.")


def code_of(path: Path) -> str:
    """A file without its comments and texts."""
    return re.sub(r"/\*.*?\*/|//[^\n]*|\"[^\"\n]*\"|`[^`]*`", "", read(path), flags=re.DOTALL)


def long_blocks(text: str) -> list[tuple[int, int]]:
    """Where a function begins, and its lines, if they are too many: to the brace of the same indentation."""
    lines, found = text.splitlines(), []
    for first, line in enumerate(lines):
        if not re.search(r"(?:\)|=>) \{$", line) or line.lstrip().startswith(
            ("class ", "export class ", "describe(", "for (")
        ):
            continue
        indentation = line[: len(line) - len(line.lstrip())]
        last = next((n for n in range(first + 1, len(lines)) if lines[n].startswith(indentation + "}")), first)
        if last - first + 1 > FUNCTION_LINES_MAX:
            found.append((first + 1, last - first + 1))
    return found


def test_every_module_opens_with_what_it_owns() -> None:
    modules = [path for path in code_files(".js") if CLIENT in path.parents]
    assert len(modules) > 40
    assert not [str(path) for path in modules if not read(path).startswith("// ")]


@pytest.mark.parametrize("path", SOURCES, ids=str)
def test_a_module_imports_its_like_and_node_in_four_files_alone(path: Path) -> None:
    for name in IMPORT.findall(read(path)):
        is_node = name.startswith("node:") and path in NODE_FILES
        is_ws = name == "ws" and path == CLIENT / "src/transport/node_socket.js"
        assert name.startswith(("./", "../")) or is_node or is_ws, name


def test_what_a_page_loads_never_reaches_nodes_own() -> None:
    reached, waiting = set(), [CLIENT / "src/browser.js"]
    while waiting:
        path = waiting.pop()
        reached.add(path)
        found = {Path(os.path.normpath(path.parent / name)) for name in IMPORT.findall(read(path))}
        waiting += found - reached
    assert len(reached) > 30 and not reached & NODE_FILES


def test_a_browsers_globals_are_with_the_platforms() -> None:
    assert OF_BROWSERS.search(code_of(BROWSER_FILE))
    assert not [
        str(path)
        for path in SOURCES
        if path not in {BROWSER_FILE, CLIENT / "src/platform/node.js"} and OF_BROWSERS.search(code_of(path))
    ]


def test_the_pure_parts_take_no_time_and_draw_no_lots() -> None:
    pure = [path for path in SOURCES if path.parent in PURE]
    assert len(pure) > 15
    assert not [str(path) for path in pure if IMPURE.search(code_of(path))]


def test_no_function_is_longer_than_60_lines() -> None:
    scripts = [path for path in code_files(".js") if not is_generated(path)]
    assert not [f"{path}:{line} has {lines} lines" for path in scripts for line, lines in long_blocks(read(path))]
    assert long_blocks("function f() {\n" + "  x();\n" * 59 + "}\n") == [(1, 61)]
    assert long_blocks("class A {\n" + "  x() {\n  }\n" * 59 + "}\n") == []


def test_only_ws_is_installed_to_run_it_and_the_lock_names_no_place() -> None:
    manifest = json.loads(read(CLIENT / "package.json"))
    assert set(manifest["dependencies"]) == {"ws"} and "peerDependencies" not in manifest
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in manifest["devDependencies"].values())
    locked = json.loads(read(CLIENT / "package-lock.json"))["packages"]
    assert locked[""]["devDependencies"] == manifest["devDependencies"]
    assert all("integrity" in entry and "resolved" not in entry for name, entry in locked.items() if name)
