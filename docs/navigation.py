"""Adds pages that mkdocs.yml does not name to their section, each under its own title.

mkdocs runs this file as a hook. A new guide therefore appears without an entry in mkdocs.yml. An entry for a page that does not exist
stays an error.
"""

from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig

SECTIONS = {
    "Concepts": "concepts",
    "Clients": "clients",
    "Notifications": "notifications",
    "Security": "security",
    "Operations": "guides",
    "Data pipelines": "pipelines",
    "Contributing": "decisions",
}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    config.nav = complete(config.nav or [], Path(config.docs_dir))
    return config


def complete(nav: list[Any], docs: Path) -> list[Any]:
    """Returns the table of contents with all pages of the folders that have a section."""
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
