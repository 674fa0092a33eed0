"""The repository uses standard terms and names no machine or registry; every silenced warning has its reason on its line.

Words of the old private vocabulary are never right: each has a standard term (docs/glossary.md). Only the page for users of
another product, whose words they partly are, and the table of renames may use them.
"""

import re
from pathlib import Path

import pytest

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

NEVER = frozenset(
    {
        *("reign", "witness", "court", "crime", "sabotage", "swarm", "crowd", "askew", "purse", "unlanded", "mended"),
        *("idempotence", "entitlement", "harming"),
    }
)
NAMES = re.compile(
    r"slow_readers?|SlowReaders\b|\b(?:hold_ms|set_?aside|is_?aside|mark_run|mark_interval_ms|mark_bytes_max|ahead_rows|job_rounds"
    r"|behind_(?:bytes|messages|arrivals|rows)|reads_need_token|when_slow|interest_hold_ms|held_bytes_max|takes_proxy"
    r"|failures_per_minute|HeldTooMuch|AuthorizerSilent|PeerSilent|MessageSlow|RequestSlow|(?:Peer|Command|Connection)Fault"
    r"|MarkInvalid|fell_off|feed_falls|caught_up|evicted_(?:count|age|bytes)|accounts_forgiven|forgotten_arrival"
    r"|mqtt_left_out|descriptors_few|drain_unfinished|data_directory_opened|lived_ms|list_indicators|describe_figures"
    r"|godwit_(?:accounts|keys|shard_held_bytes|audit_behind)|StandRow|WatchStand|CPU a delivery)\b",
    re.IGNORECASE,
)
FOLDERS = re.compile(
    r"(?:^|/)(?:places|swarm|sabotage|house|beside)/|(?:^|/)(?:ways(?:\.test)?|bell|speak|portion)\.js$|(?:^|/)(?:scene|harming)\.py$"
    r"|(?:^|/)(?:lane|walk|board|outlet|uring_bell)\.rs$|^journal/src/chain\.rs$|^server/godwit/config/places\.py$"
)
OLD_TYPES = {  # the new names are in tools/names.toml; elsewhere some of these words are right
    "core": r"Outlet|Stride|Hole|HOLES_MAX|find_hole|restore_hole|tell_hole|walk_past",
    "engine": r"Outlet|Bell|MioBell|Lent|Board|Seat|Readings|Place",
    "journal": r"Lane|Rooms|Room|Look|Behind \{|holes|hole_arrival|read_chain",
    "console": r"told",
    "clients/javascript/src": r"[Tt]old|#told",
    "server/godwit/client": r"Told|told",
    "pipelines/src/godwit_pipelines/source": r"told|holes|_?told_node",
}
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
ALLOWED = {Path("docs/migrate.md"), Path("tools/names.toml"), Path("tests/architecture/test_speech.py")}
PACKAGES = ("Cargo.lock", "package-lock.json", "requirements.lock")


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


def find_words(text: str) -> set[str]:
    """The words that are never right, also as parts of identifiers and in the plural."""
    words = {word.lower() for word in WORD.findall(text)}
    plain = {form for word in words for form in (word, word.removesuffix("s"), word.removesuffix("es"))}
    return (plain & NEVER) | {name.lower() for name in NAMES.findall(text)}


def test_no_word_of_the_old_vocabulary_is_left() -> None:
    found = []
    for path in kept_files():
        if path in ALLOWED or path.name in PACKAGES or path.suffix in BINARY:
            continue
        found += [f"{path}: {word}" for word in sorted(find_words(f"{path}\n{read(path)}"))]
        found += [f"{path}: its name" for _ in FOLDERS.findall(str(path))]
    assert not found


@pytest.mark.parametrize("folder", OLD_TYPES)
def test_no_old_name_of_a_folder_is_left(folder: str) -> None:
    pattern = re.compile(rf"(?<![\w#])(?:{OLD_TYPES[folder]})(?!\w)")
    paths = [path for path in code_files() if path.is_relative_to(folder) and "decode/vectors" not in str(path)]
    found = [f"{path}: {name}" for path in paths for name in sorted(set(pattern.findall(read(path))))]
    assert paths and not found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a foreign page is recommended", set()),
        ("class Witness:", {"witness"}),
        ("two_witnesses, READS_REIGN", {"witness", "reign"}),
        ("crowded", set()),
        ("godwit_slow_readers = 1; hold_ms: 2; threshold_ms", {"slow_readers", "hold_ms"}),
        ("setAside(is_aside, PeerFault); put aside", {"setaside", "is_aside", "peerfault"}),
    ],
)
def test_which_words_are_found(text: str, found: set[str]) -> None:
    assert find_words(text) == found
