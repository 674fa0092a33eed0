"""The reference pages of commands, codes, limits and the HTTP API, in Markdown. Pure, except that the HTTP page reads its document."""

import json
from pathlib import Path
from typing import Any

import click

from godwit.cli import godwit

WIDTH = 110


def describe_commands() -> str:
    """Every command with its arguments and options, as click reports them."""
    lines = ["# Command-line reference", "", "    godwit [OPTIONS] COMMAND [ARGS]...", ""]
    with click.Context(godwit, info_name="godwit", terminal_width=WIDTH, max_content_width=WIDTH) as context:
        for name in godwit.list_commands(context):
            command = godwit.get_command(context, name)
            if command is not None:
                lines += _describe_command(_within(context, command, name), 2)
    return "\n".join(lines)


def _within(parent: click.Context, command: click.Command, name: str) -> click.Context:
    return click.Context(command, parent=parent, info_name=name, terminal_width=WIDTH, max_content_width=WIDTH)


def _describe_command(context: click.Context, level: int) -> list[str]:
    command = context.command
    lines = [f"{'#' * level} {context.command_path}", "", (command.help or "").replace("\b\n", "").strip(), ""]
    lines += ["    " + context.get_usage().removeprefix("Usage: "), ""]
    formatter = click.HelpFormatter(width=WIDTH)
    command.format_options(context, formatter)
    options = formatter.getvalue().rstrip()
    if options and not isinstance(command, click.Group):
        lines += ["```text", options, "```", ""]
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None:
                lines += _describe_command(_within(context, inner, name), level + 1)
    return lines


def describe_codes(codes: dict[str, Any]) -> str:
    """The codes of errors and closes, as protocol/codes.toml has them."""
    rows = [{"code": row.pop("number"), "name": name, **row} for name, row in codes.items() if "part" not in row]
    names = ("code", "name", "retry", "http", "sentence")
    return "\n".join(
        [
            "# Error codes",
            "",
            "The code that a client receives with an error or a close. `retry`: the same request may succeed later, unchanged. `http`:",
            "the HTTP status that goes with it. The [protocol](protocol.md) says how a client reacts to each range.",
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
        "Every queue and buffer has a limit. Set one as `limits.NAME`, some for a [pattern](../guides/configuration.md) alone.",
        "",
        "| limit | default | bounds | of each | at the limit |",
        "|---|---|---|---|---|",
    ]
    for name, row in limits["limit"].items():
        if "part" in row:  # a page of its own: protocol/dispatch.md
            continue
        low, high = row["bounds"]
        effect = row.get("sentence") or f"[{row['code']}](codes.md)"
        if row.get("sentence") and row.get("code"):
            effect = f"{row['sentence']} [{row['code']}](codes.md)"
        lines.append(f"| `{name}` | {row['default']:,} | {low:,} – {high:,} | {row['scope']} | {effect} |")
    return "\n".join([*lines, ""])


def describe_http(document: Path) -> str:
    """The operations of the client port, as protocol/openapi.json has them."""
    api = json.loads(document.read_text("utf-8"))
    lines = [
        "# HTTP API",
        "",
        "The operations of the client port. A node serves the complete description (OpenAPI 3.1) at `/v1/openapi.json`. The",
        "[guide](../guides/http.md) shows how to use them; the operations of the admin port are [on their own page](admin.md).",
        "",
        "| operation | summary |",
        "|---|---|",
    ]
    operations = [
        (f"{method.upper()} {path}", found)
        for path, methods in api["paths"].items()
        for method, found in methods.items()
    ]
    lines += [f"| `{name}` | {found['summary']} |" for name, found in operations]
    for name, found in operations:
        lines += ["", f"## {name}", "", f"{found.get('description', found['summary'] + '.')}", ""]
        if found.get("parameters"):
            lines += ["| parameter | in | meaning |", "|---|---|---|"]
            lines += [
                f"| `{one['name']}` | {one['in']} | {_cell(one.get('description', ''))} |"
                for one in found["parameters"]
            ]
            lines += [""]
        lines += ["Status codes: " + ", ".join(sorted(found["responses"])) + "."]
    return "\n".join([*lines, ""])


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value).replace("|", "\\|").replace("\n", " ")
