"""Statements of the docs about the repository: links work, named files exist, and configurations load."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from godwit.config import build_config
from tests.architecture.source import ROOT, kept_files, read

TEXTS = [path for path in kept_files() if path.suffix == ".md"]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s#]+)(?:#[^)]*)?\)")
WORDS = {
    *(
        "Subject",
        "Pattern",
        "Message",
        "Sequence",
        "Epoch",
        "Position",
        "Feed",
        "Arrival",
        "Resume token",
        "Log",
        "Snapshot",
    ),
    *("Stream", "Cursor", "Connection", "Session", "Identity", "Rights", "Shard", "Frame", "Node", "Code"),
}


def links_of(path: Path) -> list[str]:
    return [target for target in LINK.findall(read(path)) if not target.startswith(("http:", "https:", "mailto:"))]


@pytest.mark.parametrize("path", TEXTS, ids=str)
def test_links_lead_somewhere(path: Path) -> None:
    assert not [link for link in links_of(path) if not (ROOT / path.parent / link).exists()]


def test_architecture_names_only_what_exists() -> None:
    named = re.findall(r"`((?:[\w.-]+/)+[\w.-]*)`", read(Path("ARCHITECTURE.md")))
    assert named
    assert not [name for name in named if not (ROOT / name).exists()]


def test_architecture_is_one_page() -> None:
    assert len(read(Path("ARCHITECTURE.md")).splitlines()) <= 130


def test_every_configuration_shown_is_one_that_loads() -> None:
    shown = [block for path in TEXTS for block in re.findall(r"```toml\n(.*?)```", read(path), re.DOTALL)]
    assert shown
    for block in shown:
        build_config(tomllib.loads(block), {}, {})


def test_the_glossary_has_the_words() -> None:
    glossary = read(Path("docs/glossary.md"))
    defined = {
        word for entry in re.findall(r"^\| \*\*([^*]+)\*\*", glossary, re.MULTILINE) for word in entry.split(", ")
    }
    assert defined >= WORDS


def test_every_python_block_passes_the_type_checker(tmp_path: Path) -> None:
    for number, block in enumerate(
        block for path in TEXTS for block in re.findall(r"```python\n(.*?)```", read(path), re.DOTALL)
    ):
        (tmp_path / f"block{number}.py").write_text(block)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), *tmp_path.glob("*.py")]
    done = subprocess.run(command, cwd=ROOT / "server", text=True, capture_output=True)
    assert done.returncode == 0, done.stdout
