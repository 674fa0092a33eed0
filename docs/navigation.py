"""Gives every page its place: a guide or concept that mkdocs.yml does not name joins its section under its own title.

Run by mkdocs as a hook. A page is written by whoever wrote what it tells of; nobody has to remember the table of contents, and
none is orphaned. What is named and does not exist stays an error.
"""

from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig

SECTIONS = {"Guides": "guides", "Concepts": "concepts", "Decisions": "decisions", "Tables": "pipelines"}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    config.nav = complete(config.nav or [], Path(config.docs_dir))
    return config


def complete(nav: list[Any], docs: Path) -> list[Any]:
    """The table of contents with all pages of the folders that are sections."""
    named = set(list_pages(nav))
    for section in nav:
        for title, inside in section.items():
            for page in sorted((docs / SECTIONS[title]).rglob("*.md")) if title in SECTIONS else []:
                path = page.relative_to(docs).as_posix()
                if path not in named:
                    inside.append({read_title(page): path})
    return nav


def list_pages(nav: Any) -> list[str]:
    """Every page that a table of contents names."""
    if isinstance(nav, str):
        return [nav]
    inside = nav.values() if isinstance(nav, dict) else nav
    return [page for one in inside for page in list_pages(one)]


def read_title(page: Path) -> str:
    """A page's first heading."""
    lines = page.read_text(encoding="utf-8").splitlines()
    return next((line.removeprefix("# ").strip() for line in lines if line.startswith("# ")), page.stem)
