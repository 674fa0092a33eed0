"""Clause 12.4 lists the codes that are never sent: the sources send every other code, and none of those."""

import re
import tomllib
from pathlib import Path

from tests.architecture.source import code_files, read

SENDERS = ("core/src/", "engine/src/", "bridge/src/", "server/godwit/")
HEARERS = ("server/godwit/client/", "server/godwit/verify/")
GENERATED = {"core/src/codes.rs", "server/godwit/codes.py", "server/godwit/dispatch/codes.py"}


def sources() -> str:
    """What could send something, without lines that only tell codes apart."""
    paths = [
        path
        for path in code_files(".rs", ".py")
        if str(path).startswith(SENDERS) and not str(path).startswith(HEARERS) and str(path) not in GENERATED
    ]
    lines = "\n".join(read(path) for path in paths).splitlines()
    return "\n".join(
        line for line in lines if not re.match(r"\s*(\| )?Code::.*=>|.*[=!]= Code[.:]|.* in \{Code\.", line)
    )


def is_named(name: str, text: str) -> bool:
    constant = re.sub(r"(?<!^)(?=[A-Z])", "_", name).upper()
    return re.search(rf"Code::{name}\b|Code\.{constant}\b", text) is not None


def test_the_clause_names_exactly_the_codes_that_nobody_sends() -> None:
    codes = tomllib.loads(read(Path("protocol/codes.toml")))
    clause = re.search(r"^- 12\.4 (.*)$", read(Path("protocol/protocol.md")), re.MULTILINE)
    assert clause is not None
    text = sources()
    unsent = {row["number"] for name, row in codes.items() if not is_named(name, text)}
    assert unsent == {int(number) for number in re.findall(r"\b[14]\d{3}\b", clause[1])}


def test_tests_assert_on_codes_and_not_on_the_wording_of_refusals() -> None:
    """`check=lambda error: error.code == Code.NAME` in place of `match=`: sentences are for people and may change."""
    worded = re.compile(r"raises\((?:\w+\.)?(?:CommandRefused|SessionClosed)\b[^)]*match=")
    tests = [path for path in code_files(".py") if path.parts[0] == "tests" and path.name != "test_codes.py"]
    assert len(tests) > 100
    assert not [str(path) for path in tests if worded.search(read(path))]
