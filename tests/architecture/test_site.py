"""The documentation as it is built: strictly, with every page in the table of contents, and no link or anchor that leads nowhere."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

from docs.navigation import complete, list_pages, read_title
from docs.reference import make_pages
from tests.architecture.source import ROOT

SECTIONS = [
    "Get started",
    "Concepts",
    "Clients",
    "Notifications",
    "Security",
    "Operations",
    "Data pipelines",
    "Testing",
    "Reference",
    "Migrate from MigratoryData",
    "Contributing",
]
MADE = ("protocol", "binary", "codes", "limits", "configuration", "commands", "python", "javascript", "architecture")


class Page(HTMLParser):
    """What a page links to, and what can be linked to in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value and not value.startswith(("http:", "https:", "mailto:", "data:")):
                self.links.append(value)
            if name in ("id", "name") and value:
                self.anchors.add(value)


@pytest.fixture(scope="module")
def site(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(target)]
    done = subprocess.run(
        command, cwd=root, env={"PATH": "/usr/bin:/bin", "NO_MKDOCS_2_WARNING": "1"}, text=True, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    return target


def pages_of(site: Path) -> Iterator[tuple[Path, Page]]:
    for path in sorted(site.rglob("*.html")):
        if path.name != "404.html":  # its links are from the root
            yield path, Page(path.read_text(encoding="utf-8"))


def test_no_link_and_no_anchor_leads_nowhere(site: Path) -> None:
    pages = dict(pages_of(site))
    broken = []
    for path, page in pages.items():
        for link in page.links:
            target, anchor = urldefrag(unquote(link))
            found = (path.parent / target).resolve() if target else path
            found = found / "index.html" if found.is_dir() else found
            if not found.exists():
                broken.append(f"{path.relative_to(site)}: {link}")
            elif anchor and found in pages and anchor not in pages[found].anchors:
                broken.append(f"{path.relative_to(site)}: {link} has no such anchor")
    assert len(pages) > 20
    assert not broken


def test_nothing_compiled_is_shipped_with_it(site: Path) -> None:
    assert not list(site.rglob("*.pyc"))


def test_every_page_that_is_made_is_there_and_says_something(site: Path) -> None:
    for name in MADE:
        assert len((site / "reference" / name / "index.html").read_text()) > 10_000, name
    assert "catch_up_bytes_max" in (site / "reference/limits/index.html").read_text()
    assert "ConnectionsTooMany" in (site / "reference/codes/index.html").read_text()
    assert "--messages-per-second" in (site / "reference/commands/index.html").read_text()
    assert "subscribe" in (site / "reference/python/index.html").read_text()


def test_the_sections_are_those_that_readers_look_for(root: Path) -> None:
    named = re.findall(r"^  - ([^:\n]+):", (root / "mkdocs.yml").read_text("utf-8").split("\nnav:\n")[1], re.MULTILINE)
    assert named == SECTIONS


def test_reference_pages_are_committed_and_current() -> None:
    """Otherwise links to them are dead for a reader of the repository. `python -m docs.reference` writes them."""
    stale = [page for page, text in make_pages().items() if not is_written(page, text)]
    assert not stale, "run `python -m docs.reference` and commit what it wrote"


def is_written(page: str, text: str) -> bool:
    path = ROOT / "docs" / page
    return path.exists() and path.read_text("utf-8") == text


def test_every_page_can_be_reached_from_the_first(site: Path) -> None:
    pages = dict(pages_of(site))
    seen, waiting = set(), [site / "index.html"]
    while waiting:
        path = waiting.pop()
        if path in seen or path not in pages:
            continue
        seen.add(path)
        for link in pages[path].links:
            found = (path.parent / urldefrag(unquote(link)).url).resolve()
            waiting.append(found / "index.html" if found.is_dir() else found)
    assert seen == set(pages)


def test_a_page_nobody_named_joins_its_section_under_its_own_title(tmp_path: Path) -> None:
    guides = tmp_path / "guides"
    guides.mkdir()
    (guides / "a.md").write_text("# First\n")
    (guides / "b.md").write_text("text\n\n# Second\n")
    nav = complete([{"Home": "index.md"}, {"Operations": [{"First of all": "guides/a.md"}]}], tmp_path)
    assert nav[1] == {"Operations": [{"First of all": "guides/a.md"}, {"Second": "guides/b.md"}]}
    assert list_pages(nav) == ["index.md", "guides/a.md", "guides/b.md"]
    assert read_title(guides / "a.md") == "First"
