"""Every module begins with a description; every Python module has a test file, and every test file a module."""

import ast
import re
from pathlib import Path

import pytest

from tests.architecture.source import code_files, is_generated, kept_files, read

PACKAGE = Path("server/godwit")
TESTS = Path("tests/unit")
UNTESTED_ALONE = {"__init__.py", "__main__.py"}


def says_what_it_owns(path: Path) -> bool:
    text = read(path)
    if path.suffix == ".py":
        return ast.get_docstring(ast.parse(text)) is not None
    return re.match(r"(?:#!\[.*\]\n)*//!", text) is not None


def mirrors(module: Path) -> set[Path]:
    """Where a module may be tested: client/backoff.py by client/test_backoff.py, or with its package by test_client.py."""
    inside = module.relative_to(PACKAGE)
    packages = {TESTS / folder.parent / f"test_{folder.name}.py" for folder in inside.parents if folder.name}
    return packages | {TESTS / inside.parent / f"test_{inside.name}"}


def test_every_module_opens_with_what_it_owns() -> None:
    silent = [str(path) for path in code_files(".py", ".rs") if read(path).strip() and not says_what_it_owns(path)]
    assert not silent


def test_every_python_module_has_its_own_tests() -> None:
    kept = set(kept_files())
    modules = [path for path in code_files(".py") if PACKAGE in path.parents and path.name not in UNTESTED_ALONE]
    alone = [str(path) for path in modules if not is_generated(path) and not mirrors(path) & kept]
    assert not alone


def test_every_unit_test_file_has_its_module() -> None:
    modules = [path for path in code_files(".py") if PACKAGE in path.parents]
    expected = set().union(*map(mirrors, modules))
    orphans = [
        str(path)
        for path in code_files(".py")
        if TESTS in path.parents and path.name.startswith("test_") and path not in expected
    ]
    assert not orphans


@pytest.mark.parametrize("text, owns", [("//! Says.\n", True), ("#![x]\n//! Says.\n", True), ("// No.\n", False)])
def test_a_rust_module_says_it_in_its_first_line(text: str, owns: bool, tmp_path: Path) -> None:
    planted = tmp_path / "planted.rs"
    planted.write_text(text)
    assert says_what_it_owns(planted) is owns
