"""Pages are written in plain English: openers, phrases and long sentences that hide the actor are counted, and may only become fewer.

`lists/prose.json` holds the counts of each page that still has some; a page that is not in it must have none. After a page was rewritten,
`python -m tests.architecture.test_prose` lowers its counts. Tables, code and generated pages are left out. Whether a page serves its
reader is for a reader to judge; this test only stops the dialect from growing back.
"""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.source import ROOT, code_files, is_generated, kept_files, read

LIST = ROOT / "tests/architecture/lists/prose.json"
WORDS_MAX = 30
LEFT_OUT = {Path("tests/hostile/README.md")}  # written by programs
OPENERS = re.compile(r"(?:Who|Whoever|What|Whatever|Where|Wherever|Of)\b(?!.*\?$)")
PHRASES = re.compile(
    r"\b(?:(?:goes|go) on|(?:comes|come) back|(?:takes|take) up|(?:lets|let) go of|(?:hands|hand) over|(?:is|are|was|were|be) told"
    r"|tells?|(?:says|say) so|(?:stands|stand) at|anew|(?:is|are|that is) (?:no(?! longer)|none)\b)",
    re.IGNORECASE,
)
KINDS = ("openers", "phrases", "long")
SOURCES = ("server/godwit", "clients/python", "examples", "pipelines/src")
REDESIGNED = Path("pipelines/src/godwit_pipelines/transforms")  # rewritten with the transforms themselves
DIALECT = re.compile(
    r"(?<!`)\b(?:told|tells|anew|whoever|(?:goes|go) on|(?:comes|come|came) back|(?:takes|take) up(?! to)|(?:lets|let|letting) go"
    r"|hands? over|stands? (?:at|behind|between)|stood)\b",
    re.IGNORECASE,
)
LINES_MAX = {"README.md": 120}
WORDS_OF_PAGES_MAX = {  # counted as `wc -w` does: a page that grows beyond this is shortened elsewhere, or divided
    ("docs/guides/*.md", "docs/concepts/*.md"): 15_000,
    ("docs/guides/security.md",): 1_500,
    ("docs/pipelines/runbook.md",): 1_200,
    ("docs/benchmarks.md",): 1_500,
}


def list_pages() -> list[Path]:
    return [path for path in kept_files() if path.suffix == ".md" and path not in LEFT_OUT and not is_generated(path)]


def split_sentences(text: str) -> Iterator[str]:
    """The sentences of a page's paragraphs and list items, without code, tables, headings and addresses."""
    text = re.sub(r"^(```|~~~).*?^\1", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    lines = []
    for line in text.splitlines():
        is_apart = re.match(r"\s*(?:\||#|<|    \S|\t|$)", line) is not None
        is_item = re.match(r"\s*(?:[-*+]|\d+\.) ", line) is not None
        lines.append("" if is_apart else f"\n{line}" if is_item else line)
    for paragraph in re.split(r"\n\s*\n", "\n".join(lines)):
        plain = re.sub(r"`[^`]*`", "code", " ".join(paragraph.split()))
        plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", plain).replace("*", "")
        plain = re.sub(r"^(?:[-+]|\d+\.) ", "", plain)
        yield from (sentence for sentence in re.split(r"(?<=[.!?:;])\s+", plain) if sentence)


def count(text: str) -> dict[str, int]:
    """How many openers, phrases and long sentences a page has; kinds with none are left out."""
    found = dict.fromkeys(KINDS, 0)
    for sentence in split_sentences(text):
        found["openers"] += OPENERS.match(sentence) is not None
        found["phrases"] += len(PHRASES.findall(sentence))
        found["long"] += len(sentence.split()) > WORDS_MAX
    return {kind: number for kind, number in found.items() if number}


def test_no_page_has_more_of_the_dialect_than_it_had() -> None:
    known = json.loads(LIST.read_text("utf-8"))
    grown = []
    for page in list_pages():
        allowed = known.get(str(page), {})
        for kind, number in count(read(page)).items():
            if number > allowed.get(kind, 0):
                grown.append(f"{page}: {number} {kind}, {allowed.get(kind, 0)} before")
    assert not grown, "see the rules at the top of this file"


def list_docstrings(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(read(path))):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield text


def test_docstrings_of_programs_have_none_of_the_dialect() -> None:
    found = [
        f"{path}: {word.group()}"
        for path in code_files(".py")
        if any(map(path.is_relative_to, SOURCES)) and not path.is_relative_to(REDESIGNED)
        for text in list_docstrings(path)
        for word in DIALECT.finditer(text)
    ]
    assert not found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Who comes back is told so.", {"openers": 1, "phrases": 2}),
        ("What is Godwit?", {}),
        ("| Who comes back |\n\n```\nWho tells\n```\n", {}),
        ("- The client reconnects.\n- Where it stood, it goes on.", {"openers": 1, "phrases": 1}),
        ("word " * 31 + "end.", {"long": 1}),
        ("The `comes back` setting is [here](Who).", {}),
    ],
)
def test_what_is_counted(text: str, found: dict[str, int]) -> None:
    assert count(text) == found


@pytest.mark.parametrize("patterns", WORDS_OF_PAGES_MAX, ids=" ".join)
def test_pages_stay_short_enough_to_be_read(patterns: tuple[str, ...]) -> None:
    words = {page: len(page.read_text("utf-8").split()) for pattern in patterns for page in ROOT.glob(pattern)}
    assert 0 < sum(words.values()) <= WORDS_OF_PAGES_MAX[patterns]


@pytest.mark.parametrize("name", LINES_MAX)
def test_the_first_page_stays_short(name: str) -> None:
    assert len((ROOT / name).read_text("utf-8").splitlines()) <= LINES_MAX[name]


def write() -> None:
    """Lowers the counts of what was rewritten; never raises one that is there."""
    known = json.loads(LIST.read_text("utf-8")) if LIST.exists() else None
    counts = {str(page): count(read(page)) for page in list_pages()}
    if known is not None:
        counts = {
            page: {kind: min(number, known.get(page, {}).get(kind, 0)) for kind, number in found.items()}
            for page, found in counts.items()
        }
    kept = {page: {kind: number for kind, number in found.items() if number} for page, found in counts.items()}
    LIST.write_text(json.dumps({page: found for page, found in kept.items() if found}, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    write()
