"""The journal's rows outlive the program that wrote them: what readers rely on is frozen, and a change that breaks them is named."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.architecture.source import ROOT

FROZEN = Path("tests/architecture/lists/events.json")


def load_streams() -> ModuleType:
    spec = importlib.util.spec_from_file_location("streams", ROOT / "protocol/streams.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["streams"] = module  # its named tuples look themselves up
    spec.loader.exec_module(module)
    return module


streams = load_streams()


def read_frozen() -> dict[str, list[list[Any]]]:
    frozen: dict[str, list[list[Any]]] = json.loads((ROOT / FROZEN).read_text("utf-8"))
    return frozen


def read_now() -> list[Any]:
    now: list[Any] = streams.read_streams(ROOT / "protocol/events.toml")
    return now


def test_no_frozen_field_has_changed() -> None:
    assert not streams.list_breaks(read_frozen(), read_now())


def test_every_field_is_frozen() -> None:
    assert streams.freeze(read_now()) == (ROOT / FROZEN).read_text("utf-8"), (
        "events.toml has fields that are not frozen yet: `python protocol/generate.py --freeze`"
    )


def change(name: str, edit: Any) -> list[str]:
    """The sentences about the streams, one of them with its fields edited."""
    edited = [
        stream._replace(fields=tuple(edit(list(stream.fields)))) if stream.name == name else stream
        for stream in read_now()
    ]
    breaks: list[str] = streams.list_breaks(read_frozen(), edited)
    return breaks


def replace(fields: list[Any], which: str, **changes: Any) -> list[Any]:
    return [field._replace(**changes) if field.name == which else field for field in fields]


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda fields: [field for field in fields if field.name != "arrival"], "messages.arrival is gone or renamed"),
        (lambda fields: replace(fields, "arrival", name="number"), "messages.arrival is gone or renamed"),
        (lambda fields: replace(fields, "epoch", type="string"), "messages.epoch was int64 and is string"),
        (lambda fields: replace(fields, "kind", null=True), "messages.kind may now be null"),
        (lambda fields: replace(fields, "key", null=False), "messages.key may no longer be null"),
        (lambda fields: [fields[1], fields[0], *fields[2:]], "the order of its fields has changed"),
        (lambda fields: [*fields[:-1], fields[0]._replace(name="more"), fields[-1]], "may not be null"),
        (lambda fields: [fields[0]._replace(name="more", null=True), *fields], "not behind the old fields"),
        (lambda fields: [*fields, fields[0]._replace(name="more", null=True)], "not behind the old fields"),
    ],
)
def test_a_change_that_breaks_readers_is_named(edit: Any, said: str) -> None:
    assert any(said in sentence for sentence in change("messages", edit)), change("messages", edit)


def test_a_stream_that_is_gone_is_named() -> None:
    kept = [stream for stream in read_now() if stream.name != "access"]
    assert any("stream access is gone" in sentence for sentence in streams.list_breaks(read_frozen(), kept))


def test_a_new_field_behind_the_old_ones_breaks_nobody() -> None:
    assert not change("messages", lambda fields: [*fields[:-1], fields[0]._replace(name="more", null=True), fields[-1]])
