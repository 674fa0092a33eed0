"""The reference pages of the client libraries, in Markdown: public names with the sentences of their own documentation."""

import dataclasses
import inspect
import re
from pathlib import Path

from godwit import client

PYTHON = """# Python API

How to use the client is described in the [guide](../guides/client.md). The public names of `godwit.client`:

| name | meaning |
|---|---|
"""
JAVASCRIPT = """# JavaScript API

How to use the client is described in the [guide](../guides/javascript.md). The public names of `godwit-client`, from the
documentation comments of `clients/javascript/src`; the package also has them as TypeScript types (`clients/javascript/types`).
"""
SETTINGS = """
## Settings

Limits and times of one client: {example}. Times are in milliseconds; one of 2^31 or more never ends.

| setting | default | meaning |
|---|---|---|
"""
COMMENT = r"/\*\*((?:(?!\*/).)*)\*/\s*"


def describe_python() -> str:
    """A table of the public names, then the directive by which the site shows each in full."""
    rows = []
    for name in sorted(client.__all__):
        found = getattr(client, name)
        text = inspect.getdoc(found) if inspect.isclass(found) or inspect.isfunction(found) else None
        rows.append(f"| `{name}` | {_first_sentence(text or 'A type: see its definition.')} |\n")
    full = "\n## All members\n\nThe site lists them here; in the repository, read `server/godwit/client`.\n\n::: godwit.client\n"
    return PYTHON + "".join(rows) + _python_settings() + full


def _python_settings() -> str:
    """Each field of Settings with its default and the text below it in the source."""
    source = inspect.getsource(client.Settings)
    rows = []
    for field in dataclasses.fields(client.Settings):
        found = re.search(rf'^    {field.name}: [^\n]*\n    """(.*?)"""', source, re.MULTILINE | re.DOTALL)
        assert found, field.name
        rows.append(_setting(field.name, field.default, found.group(1)))
    return SETTINGS.format(example="`Client(…, settings=Settings(items_max=100))`") + "".join(rows)


def _javascript_settings(source: str) -> str:
    """Each default of settings.js with the comment above it."""
    rows = []
    for text, name, value in re.findall(r"^  " + COMMENT + r"(\w+): ([^\n]+),$", source, re.MULTILINE | re.DOTALL):
        word = re.search(r'\("(\w+)"\)', value)
        number, _, shift = value.replace("_", "").partition(" << ")
        rows.append(_setting(name, word[1] if word else int(number) << int(shift or 0), _prose(text)))
    return SETTINGS.format(example="`new Client(url, { settings: { itemsMax: 100 } })`") + "".join(rows)


def _setting(name: str, default: object, text: str) -> str:
    if isinstance(default, int):
        shown = f"{default >> 20} MiB" if "ytes" in name else f"{default:,}"
        return f"| `{name}` | {shown} | {_cell(text)} |\n"
    return f"| `{name}` | `{default}` | {_cell(' '.join(text.split()))} |\n"


def describe_javascript(source: Path) -> str:
    """Each exported class with its documented members, then the exported functions and types."""
    classes, functions = [], []
    for file, names in {source / "client.js": {"Client"}, **_exports(source)}.items():
        text = file.read_text("utf-8")
        for found in re.finditer(COMMENT + r"export class (\w+)([^{]*)\{", text, re.DOTALL):
            if names and found.group(2) not in names:
                continue
            body = text[found.end() : _end_of_class(text, found.end())]
            classes += ["", f"## {found.group(2)}", "", _prose(found.group(1)), *_members(body)]
        for found in re.finditer(COMMENT + r"export (?:async )?function (\w+)\(([^)]*)\)", text, re.DOTALL):
            if names and found.group(2) not in names:
                continue
            functions.append(f"| `{found.group(2)}({found.group(3)})` | {_cell(_prose(found.group(1)))} |")
    settings = _javascript_settings((source / "session/settings.js").read_text("utf-8"))
    table = ["", "## Functions", "", "| function | meaning |", "|---|---|", *functions, ""]
    return "\n".join([JAVASCRIPT, *classes, *table, settings])


def _exports(source: Path) -> dict[Path, set[str]]:
    """The files that index.js exports from, each with the names; no names mean all of the file."""
    index = (source / "index.js").read_text("utf-8")
    exported: dict[Path, set[str]] = {}
    for names, file in re.findall(r'^export (?:\{([^}]*)\}|\*) from "\./([^"]+)";', index, re.MULTILINE):
        exported.setdefault(source / file, set()).update(name.strip() for name in names.split(",") if name.strip())
    return exported


def _members(body: str) -> list[str]:
    """The documented public methods and getters of a class, as a table."""
    pattern = r"^  " + COMMENT + r"^  (?:async |static |get )*(\w+)(\([^)]*\))? ?(?:\{|=|;)"
    rows = []
    for found in re.finditer(pattern, body, re.DOTALL | re.MULTILINE):
        if found.group(2) in ("constructor", "type") or not _prose(found.group(1)):
            continue
        call = re.sub(r"\s+", " ", found.group(3) or "")
        is_getter = re.search(rf"^  (?:static )?get {found.group(2)}\(", body, re.MULTILINE)
        rows.append(f"| `{found.group(2)}{'' if is_getter else call}` | {_cell(_prose(found.group(1)))} |")
    return ["", "| member | meaning |", "|---|---|", *rows] if rows else []


def _end_of_class(text: str, start: int) -> int:
    return text.index("\n}", start) + 1


def _prose(comment: str) -> str:
    """A documentation comment without its stars, and without parameters, whose types the package has."""
    lines = [re.sub(r"^\s*\* ?", "", line).strip() for line in comment.strip().splitlines()]
    text = " ".join(line for line in lines if not line.startswith(("@", "}")))
    return re.sub(r"\s*@(?:param|returns|type|template)\b.*", "", text).strip()


def _first_sentence(text: str) -> str:
    return _cell(re.split(r"(?<=[.:;])\s", " ".join(text.split("\n\n")[0].split()))[0].rstrip(":;"))


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
