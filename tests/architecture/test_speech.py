"""The repository speaks of Godwit alone, and every mark of silenced or unfinished work gives its reason on its line."""

import re
from pathlib import Path

from tests.architecture.source import code_files, kept_files, read

LOCKS = {Path("Cargo.lock"), Path("package-lock.json")}  # their format names where packages come from
BINARY = {".png", ".ico", ".so", ".gz", ".bin", ".arrow", ".arrows", ".index"}
# Split so that this file does not break its own rule.
FOREIGN = re.compile(
    "|".join(
        [
            r"(?<![\w/$])/" + r"(?:work|root|home)/\w",  # paths of one machine
            r"python"
            + r"hosted\.org|\bpypi"
            + r"\.org|crates"
            + r"\.io|npm"
            + r"js\.(?:org|com)|proxy\.golang"
            + r"\.org",
            r"repo1?\.maven" + r"\.apache|deb\.debian" + r"\.org",
        ]
    )
)
MARKS = {
    "unfinished": re.compile(
        r"\b(?:TODO|FIX" + r"ME|XXX)\b|\b(?:todo|unimplemented)!\(|\braise NotImplemented" + r"Error"
    ),
    "noqa": re.compile(r"#\s*noqa(?!: [A-Z]+\d+(?:, [A-Z]+\d+)* +\S)"),
    "type: ignore": re.compile(r"#\s*type:\s*ignore(?!\[[\w, -]+\]  # \S)"),
    "skip": re.compile(r"pytest\.mark\.(?:skip|xfail)(?!\w*\(.*reason=)|#\[ignore\]"),
}


def test_the_repository_names_no_machine_and_no_registry() -> None:
    foreign = [
        f"{path}:{number}: {line.strip()[:100]}"
        for path in kept_files()
        if path not in LOCKS and path.suffix not in BINARY
        for number, line in enumerate(read(path).splitlines(), 1)
        if FOREIGN.search(line)
    ]
    assert not foreign


def test_every_mark_of_silenced_work_gives_its_reason() -> None:
    silent = [
        f"{path}:{number}: {mark}: {line.strip()[:100]}"
        for path in code_files()
        if path != Path("tests/architecture/test_speech.py")
        for number, line in enumerate(read(path).splitlines(), 1)
        for mark, pattern in MARKS.items()
        if pattern.search(line)
    ]
    assert not silent


def test_every_lint_that_is_allowed_gives_its_reason() -> None:
    allowance = re.compile(r"#!?\[(?:allow|expect)\(([^\]]*)\)\](.*)")
    silent = [
        f"{path}: {found.group()[:100]}"
        for path in code_files(".rs")
        for found in allowance.finditer(read(path))
        if "reason = " not in found.group(1) and "//" not in found.group(2)
    ]
    assert not silent
