"""Gives the documentation the pages that are kept, or made, elsewhere: the contract, the architecture, the configuration.

Run by mkdocs as a hook. Links between the originals are rewritten to the pages' places; nothing is copied into git.
"""

import re

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from godwit.config import describe_config

KEPT_ELSEWHERE = {
    "reference/protocol.md": "protocol/protocol.md",
    "reference/binary.md": "protocol/binary.md",
    "reference/architecture.md": "ARCHITECTURE.md",
    "changelog.md": "CHANGELOG.md",
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    root = config.config_file_path.removesuffix("mkdocs.yml")
    for page, source in KEPT_ELSEWHERE.items():
        with open(root + source, encoding="utf-8") as opened:
            files.append(File.generated(config, page, content=relink(opened.read(), page)))
    files.append(File.generated(config, "reference/configuration.md", content=describe_config()))
    return files


def relink(text: str, page: str) -> str:
    """Links as they stand in the original, turned into links from the page; those that lead out of the pages become text."""
    up = "../" * page.count("/")

    def rewrite(found: re.Match[str]) -> str:
        label, target = found.groups()
        if target.startswith(("http:", "https:", "#")):
            return found.group()
        path = target.removeprefix("../")
        places = {source: place for place, source in KEPT_ELSEWHERE.items()} | {"binary.md": "reference/binary.md"}
        places |= {"protocol.md": "reference/protocol.md"}
        if path.startswith("docs/") and path.endswith(".md"):
            return f"[{label}]({up}{path.removeprefix('docs/')})"
        return f"[{label}]({up}{places[path]})" if path in places else label

    return re.sub(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)", rewrite, text)
