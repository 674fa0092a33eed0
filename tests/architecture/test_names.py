"""A file is a noun of the domain, and a log event is a plain name with plain fields.

`lists/log_events.json` holds every event of the node's log with its fields, so that a new or renamed event shows in review;
`python -m tests.architecture.test_names` writes it.
"""

import ast
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.source import ROOT, code_files, read

SAY_NOTHING = {
    *("manager", "helper", "helpers", "util", "utils", "common", "base", "misc", "handler", "handlers"),
    *("processor", "service", "services", "impl", "v2"),
}
LOG_EVENTS = ROOT / "tests/architecture/lists/log_events.json"
LEVELS = {"info", "warning", "error", "debug"}
NOT_PLAIN = re.compile(r"(?:^|_)(?:kept|keeps|told|said|gone|gave|left|alike|why|who|what|anew|behind)(?:_|$)")


def test_no_file_has_a_name_that_says_nothing() -> None:
    empty = [str(path) for path in code_files() if SAY_NOTHING & set(re.split(r"[_.\-/]", str(path).lower()))]
    assert not empty


def list_calls(path: Path) -> Iterator[tuple[str, list[str]]]:
    """The events that a file logs, with the fields of each."""
    for call in ast.walk(ast.parse(read(path))):
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in LEVELS):
            continue
        match call.args:
            case [ast.Constant(value=str(event))] if re.fullmatch(r"\w+", event):
                yield event, [field.arg or "…" for field in call.keywords]


def list_events() -> dict[str, list[str]]:
    events: defaultdict[str, set[str]] = defaultdict(set)
    for path in code_files(".py"):
        if path.is_relative_to("server/godwit"):
            for event, fields in list_calls(path):
                events[event].update(fields)
    return {event: sorted(events[event]) for event in sorted(events)}


def test_every_log_event_is_listed_with_its_fields() -> None:
    listed = json.loads(LOG_EVENTS.read_text("utf-8"))
    assert list_events() == listed, "`python -m tests.architecture.test_names` writes the list"


def test_log_events_and_their_fields_have_plain_names() -> None:
    names = {name for event, fields in list_events().items() for name in (event, *fields)}
    assert not [name for name in sorted(names) if NOT_PLAIN.search(name) or (not name.islower() and name != "…")]


if __name__ == "__main__":
    LOG_EVENTS.write_text(json.dumps(list_events(), indent=1, ensure_ascii=False) + "\n", "utf-8")
