"""Gives the documentation the pages that are kept, or made, elsewhere: the contract, the architecture, and the reference.

Run by mkdocs as a hook. Links between the originals are rewritten to the pages' places; nothing is copied into git.
"""

import importlib.util
import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from godwit.admin.openapi.page import describe_admin
from godwit.cli import godwit
from godwit.config import describe_config
from godwit.monitoring.schema import describe_figures

KEPT_ELSEWHERE = {
    "reference/protocol.md": "protocol/protocol.md",
    "reference/binary.md": "protocol/binary.md",
    "reference/dispatch.md": "protocol/dispatch.md",
    "reference/architecture.md": "ARCHITECTURE.md",
    "changelog.md": "CHANGELOG.md",
}
CLIENT = """# The Python client

How to use it is told in [a client in Python](../guides/client.md); this is every name of it.

::: godwit.client
"""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    root = config.config_file_path.removesuffix("mkdocs.yml")
    for page, source in KEPT_ELSEWHERE.items():
        with open(root + source, encoding="utf-8") as opened:
            files.append(File.generated(config, page, content=relink(opened.read(), page)))

    def read(name: str) -> dict[str, Any]:
        with open(f"{root}protocol/{name}.toml", "rb") as opened:
            return tomllib.load(opened)

    made: dict[str, Callable[[], str]] = {
        "reference/admin.md": describe_admin,
        "reference/configuration.md": describe_config,
        "reference/commands.md": describe_commands,
        "reference/figures.md": describe_figures,
        "reference/codes.md": lambda: describe_codes(read("codes")),
        "reference/limits.md": lambda: describe_limits(read("limits")),
        "reference/python.md": lambda: CLIENT,
    }
    streams = load_streams(Path(root))
    for stream in streams.read_streams(Path(root) / "protocol/events.toml"):
        made[f"reference/streams/{stream.name}.md"] = lambda stream=stream: streams.describe_stream(stream)
    for page, make in made.items():
        files.append(File.generated(config, page, content=make()))
    return files


def load_streams(root: Path) -> ModuleType:
    """The module that reads events.toml; it lies beside the contract and in no package."""
    spec = importlib.util.spec_from_file_location("streams", root / "protocol/streams.py")
    if spec is None or spec.loader is None:
        raise FileNotFoundError(root / "protocol/streams.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["streams"] = module  # its named tuples look themselves up
    spec.loader.exec_module(module)
    return module


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


def describe_commands() -> str:
    """Every command with its arguments and options, from click's own account of them."""
    lines = ["# The command line", "", "    " + godwit.get_usage(click.Context(godwit, info_name="godwit")), ""]
    with click.Context(godwit, info_name="godwit") as context:
        for name in godwit.list_commands(context):
            command = godwit.get_command(context, name)
            if command is not None:
                lines += _describe_command(click.Context(command, parent=context, info_name=name), 2)
    return "\n".join(lines)


def _describe_command(context: click.Context, level: int) -> list[str]:
    command = context.command
    lines = [f"{'#' * level} {context.command_path}", "", (command.help or "").replace("\b\n", "").strip(), ""]
    lines += ["    " + context.get_usage().removeprefix("Usage: "), ""]
    formatter = click.HelpFormatter(width=110)
    command.format_options(context, formatter)
    options = formatter.getvalue().rstrip()
    if options and not isinstance(command, click.Group):
        lines += ["```text", options, "```", ""]
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None:
                lines += _describe_command(click.Context(inner, parent=context, info_name=name), level + 1)
    return lines


def describe_codes(codes: dict[str, Any]) -> str:
    """The codes of errors and closes, as protocol/codes.toml has them."""
    rows = [{"code": row.pop("number"), "name": name, **row} for name, row in codes.items() if "part" not in row]
    names = ("code", "name", "retry", "http", "sentence")
    return "\n".join(
        [
            "# Codes",
            "",
            "What a client is told when something is refused or closed. `retry`: the same may succeed later, unchanged. `http`: the",
            "status where HTTP carries it. What a client does upon a code is said in the [protocol](protocol.md).",
            "",
            "| " + " | ".join(names) + " |",
            "|---" * len(names) + "|",
            *("| " + " | ".join(_cell(row.get(name, "")) for name in names) + " |" for row in rows),
            "",
        ]
    )


def describe_limits(limits: dict[str, Any]) -> str:
    """The limits, as protocol/limits.toml has them."""
    lines = [
        "# Limits",
        "",
        "Every queue and buffer has one. They are set as `limits.NAME`, some for a [pattern](../guides/configuration.md) alone.",
        "",
        "| limit | default | bounds | of each | at the limit |",
        "|---|---|---|---|---|",
    ]
    for name, row in limits["limit"].items():
        if "part" in row:  # a page of its own: protocol/dispatch.md
            continue
        low, high = row["bounds"]
        told = row.get("sentence") or f"[{row['code']}](codes.md)"
        if row.get("sentence") and row.get("code"):
            told = f"{row['sentence']} [{row['code']}](codes.md)"
        lines.append(f"| `{name}` | {row['default']:,} | {low:,} – {high:,} | {row['scope']} | {told} |")
    return "\n".join([*lines, ""])


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value).replace("|", "\\|")
