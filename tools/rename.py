"""Rename identifiers across the repository, from the rows of `tools/names.toml`.

A row lists `identifiers` (whole identifiers in code: never part of a longer one, never a word of prose), `words` (distinctive identifiers,
replaced in code, strings, comments and documents alike), `strings` (whole string literals and keys), `text` (exact text), `prose` (terms
in comments and documents), `parts` (parts of identifiers, `_mark_` and `Mark` in camel case, never inside a word) and `moves` (files
and folders). `in_strings` also renames inside literals: parts where there is no space, else terms; `sql` renames words of all literals
but docstrings and sentences. `paths` limits a row to glob patterns, `not_after` leaves out an identifier that follows the given text.
A row is refused when its paths already use a new name; `--force` skips that check.

    python tools/rename.py ROW [ROW ...] | --all  [--root DIR] [--force]
"""

import argparse
import fnmatch
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

CODE = {".rs", ".py", ".pyi", ".js", ".ts", ".c", ".h"}
DOCUMENTS = {".toml", ".json", ".md", ".yml", ".yaml", ".html", ".css", ".svg", ".sh", ".service", ".conf", ".cfg", ""}
NEVER = (
    "*.lock",
    "docs/reports/*.html",
    "*package-lock.json",
    "CHANGELOG.md",
    "LICENSE",
    "clients/javascript/LICENSE",
    "tools/*",
    "tests/unit/tools/*",
)

RUST = r'(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<string>b?r(#*)".*?"\3|b?"(?:\\.|[^"\\])*"|b?\'(?:\\[^\']+|[^\\\'])\')'
JAVASCRIPT = r"(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<string>\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`)"
PYTHON = (
    r"(?P<comment>#[^\n]*)|(?P<string>[rbfuRBFU]{0,2}(?:\"\"\".*?(?<!\\)\"\"\"|'''.*?(?<!\\)'''"
    r"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'))"
)
LEXERS = {".rs": RUST, ".c": RUST, ".h": RUST, ".js": JAVASCRIPT, ".ts": JAVASCRIPT, ".py": PYTHON, ".pyi": PYTHON}
LITERAL = re.compile(r"""^([a-zA-Z]{0,2}#*)(\"\"\"|'''|["'`])(.*)(\2#*)$""", re.DOTALL)

Replace = Callable[[str], str]


def whole(names: dict[str, str], not_after: list[str]) -> Replace:
    """A function that replaces whole identifiers in a text that is all code."""
    if not names:
        return lambda text: text
    found = re.compile(
        r"(?:(?<![A-Za-z0-9_])|(?<=\\[nt]))("
        + "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
        + r")(?![A-Za-z0-9_])"
    )

    def put(match: re.Match[str]) -> str:
        before = match.string[max(0, match.start() - 24) : match.start()]
        return match[0] if any(before.endswith(text) for text in not_after) else names[match[1]]

    return lambda text: found.sub(put, text)


def part_of(old: str) -> str:
    """The expression that finds a part: `mark`, `Mark` or `MARK`."""
    if old.isupper():
        return rf"(?<![A-Za-z]){re.escape(old)}(?![A-Za-z])"
    return rf"{'(?<![A-Z])' if old[0].isupper() else '(?<![A-Za-z])(?<!pytest[.])'}{re.escape(old)}(?![a-z])"


def part(parts: dict[str, str]) -> Replace:
    """A function that replaces whole parts of identifiers: `mark` in `put_mark_id`, `Mark` in `sinceMark`, never in `remark`."""
    if not parts:
        return lambda text: text
    found = re.compile("|".join(part_of(old) for old in sorted(parts, key=len, reverse=True)))
    return lambda text: found.sub(lambda match: parts[match[0]], text)


def in_prose(text: str, rename: Replace, prose: Replace) -> str:
    """Replace identifiers inside the `code spans` of a comment or a document, and terms outside of them."""
    spans = re.split(r"(`[^`\n]+`)", text)
    return "".join(rename(part) if number % 2 else prose(part) for number, part in enumerate(spans))


BRACES = r"\{[^{}]*\}"
for _ in range(4):
    BRACES = rf"\{{(?:[^{{}}]|{BRACES})*\}}"
JSDOC = re.compile(rf"@\w+\s+(?:{BRACES})?\s*\[?[\w$.]*")


def in_comment(comment: str, rename: Replace, prose: Replace) -> str:
    """Replace identifiers in the tags of a JSDoc comment (types and names), and elsewhere as in a document."""
    if not comment.startswith("/**"):
        return in_prose(comment, rename, prose)
    done, at = [], 0
    for tag in JSDOC.finditer(comment):
        done += [in_prose(comment[at : tag.start()], rename, prose), rename(tag[0])]
        at = tag.end()
    return "".join(done) + in_prose(comment[at:], rename, prose)


def in_sql(content: str, sql: Replace) -> str:
    """Replace words of SQL; of formatted values only what stands in quotes."""
    pieces = re.split(r"(\{[^{}\n]*\})", content)
    quoted = re.compile(r"'[^'\n]*'")
    return "".join(
        quoted.sub(lambda one: sql(one[0]), piece) if n % 2 else sql(piece) for n, piece in enumerate(pieces)
    )


def in_string(
    literal: str, rename: Replace, prose: Replace, strings: dict[str, str], said: Replace, sql: Replace
) -> str:
    """Replace a literal that is wholly one of `strings`; otherwise what stands in braces (formatted values) or in code spans."""
    parts = LITERAL.match(literal)
    if parts is None:
        return literal
    start, quote, content, end = parts.groups()
    content = strings.get(content, content)
    if not content.rstrip().endswith("."):
        content = in_sql(content, sql)
    if quote in ('"""', "'''"):
        return start + quote + in_prose(content, rename, prose) + end
    pieces = re.split(r"((?<!\{)\$?\{[^{}\n]*\})", content)
    return start + quote + "".join(rename(piece) if n % 2 else said(piece) for n, piece in enumerate(pieces)) + end


def in_code(
    text: str, lexer: str, rename: Replace, prose: Replace, strings: dict[str, str], said: Replace, sql: Replace
) -> str:
    """Replace identifiers in the code of a source file, and whole literals."""
    done, at = [], 0
    for token in re.finditer(lexer, text, re.DOTALL):
        done.append(rename(text[at : token.start()]))
        if token["comment"] is not None:
            done.append(in_comment(token[0], rename, prose))
        else:
            done.append(in_string(token[0], rename, prose, strings, said, sql))
        at = token.end()
    return "".join(done) + rename(text[at:])


def in_document(text: str, suffix: str, rename: Replace, prose: Replace, strings: dict[str, str]) -> str:
    """Replace keys and whole strings of data; code spans and fenced blocks of a page."""
    if strings:
        texts = "|".join(map(re.escape, strings))
        text = re.sub(rf'(")({texts})(")', lambda match: match[1] + strings[match[2]] + match[3], text)
    if suffix == ".md":
        fenced = re.split(r"(^ *```.*?^ *```)", text, flags=re.DOTALL | re.MULTILINE)
        return "".join(
            rename(part) if number % 2 else in_prose(part, rename, prose) for number, part in enumerate(fenced)
        )
    return rename(prose(text)) if suffix in {".toml", ".svg"} else prose(text)


class Row:
    """One row of the table: what is renamed, and where."""

    def __init__(self, row: dict[str, Any]) -> None:
        self.name: str = row["name"]
        self.paths: list[str] = row.get("paths", ["*"])
        self.but: list[str] = row.get("but", [])
        self.identifiers: dict[str, str] = row.get("identifiers", {})
        self.words: dict[str, str] = row.get("words", {})
        self.strings: dict[str, str] = row.get("strings", {})
        self.text: dict[str, str] = row.get("text", {})
        self.moves: dict[str, str] = row.get("moves", {})
        rename, parts = whole(self.identifiers, row.get("not_after", [])), part(row.get("parts", {}))
        self._identifiers: Replace = lambda text: parts(rename(text))
        self._words = whole(self.words, [])
        self._prose = whole(row.get("prose", {}), [])
        self._sql = whole(row.get("sql", {}), [])
        self._said: Replace = (
            (lambda text: self._prose(text) if " " in text.strip() else parts(text))
            if row.get("in_strings")
            else lambda text: text
        )

    def takes(self, path: str) -> bool:
        return any(fnmatch.fnmatch(path, pattern) for pattern in self.paths) and not any(
            fnmatch.fnmatch(path, pattern) for pattern in [*self.but, *NEVER]
        )

    def apply(self, text: str, suffix: str) -> str:
        for old, new in self.text.items():
            text = text.replace(old, new)
        text = self._words(text)
        if suffix in LEXERS:
            return in_code(text, LEXERS[suffix], self._identifiers, self._prose, self.strings, self._said, self._sql)
        return in_document(text, suffix, self._identifiers, self._prose, self.strings)

    def used(self, text: str) -> set[str]:
        names = {*self.identifiers.values(), *self.words.values()} - {*self.identifiers, *self.words}
        return {name for name in names if re.search(rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![A-Za-z0-9_])", text)}


def tracked(root: Path) -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True).stdout
    return [path for path in listed.split("\0") if path]


def readable(root: Path, row: Row) -> Iterator[tuple[Path, str]]:
    for path in tracked(root):
        file = root / path
        if row.takes(path) and file.suffix in CODE | DOCUMENTS and file.is_file() and not file.is_symlink():
            try:
                yield file, file.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue


def remove_leftovers(folder: Path) -> None:
    """A folder that holds nothing but compiled Python files is removed, so that another can be moved there."""
    if folder.is_dir() and all(file.suffix == ".pyc" for file in folder.rglob("*") if not file.is_dir()):
        shutil.rmtree(folder)


def run(row: Row, root: Path, *, force: bool) -> int:
    """Apply one row and return how many files changed."""
    if not force:
        for file, text in readable(root, row):
            if used := row.used(text):
                raise SystemExit(
                    f"{row.name}: {file.relative_to(root)} already uses {', '.join(sorted(used))} (--force renames all the same)"
                )
    changed = 0
    for file, text in readable(root, row):
        if (new := row.apply(text, file.suffix)) != text:
            file.write_text(new, encoding="utf-8")
            changed += 1
    for old, new in row.moves.items():
        remove_leftovers(root / new)
        if (root / old).exists() and not (root / new).exists():
            (root / new).parent.mkdir(parents=True, exist_ok=True)
            subprocess.run(["git", "mv", old, new], cwd=root, check=True)
            changed += 1
    return changed


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Rename identifiers by the rows of names.toml.")
    parser.add_argument("rows", nargs="*", help="Names of rows, in the order of the table.")
    parser.add_argument("--all", action="store_true", help="Apply every row.")
    parser.add_argument("--root", type=Path, default=Path.cwd(), help="The checkout to change (default: here).")
    parser.add_argument("--table", type=Path, default=Path(__file__).with_name("names.toml"))
    parser.add_argument("--force", action="store_true", help="Rename also where a new name is already in use.")
    given = parser.parse_args(arguments)
    rows = [Row(row) for row in tomllib.loads(given.table.read_text(encoding="utf-8"))["row"]]
    unknown = set(given.rows) - {row.name for row in rows}
    if unknown or not (given.rows or given.all):
        parser.error(f"unknown rows: {', '.join(sorted(unknown))}" if unknown else "name rows, or --all")
    for row in rows:
        if given.all or row.name in given.rows:
            sys.stdout.write(f"{row.name}: {run(row, given.root, force=given.force)} files\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
