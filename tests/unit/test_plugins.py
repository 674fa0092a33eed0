"""Extensions are found by name or by entry point; one that is not valid is reported before a port opens."""

import asyncio
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from godwit import plugins
from godwit.errors import ConfigInvalid


class Good:
    async def take(self) -> None: ...


class Plain:
    def take(self) -> None: ...


def leave() -> None:
    raise SystemExit(3)


ONE = Good()


def interrupt() -> None:
    raise KeyboardInterrupt


def cancel() -> None:
    raise asyncio.CancelledError


def miss() -> None:
    raise KeyError("a table")


class Silent(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


def fail_without_words() -> None:
    raise Silent


class Odd:
    @property
    def take(self) -> None:
        raise RuntimeError("no database")


ODD = Odd()


def load(name: str) -> Any:
    return plugins.load_plugin("key", name, "godwit.tests", ("take",))


def test_an_object_or_what_makes_one_is_found() -> None:
    assert load(f"{__name__}:ONE") is ONE
    assert isinstance(load(f"{__name__}:Good"), Good)


def test_an_entry_point_is_found_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("mine", f"{__name__}:Good", "godwit.tests")
    monkeypatch.setattr(plugins, "entry_points", lambda group: [point])
    assert isinstance(load("mine"), Good)
    with pytest.raises(ConfigInvalid, match=r"installed: mine"):
        load("other")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("nothing", "not an entry point"),
        ("no.such:X", "ModuleNotFound"),
        ("json:nothing", "AttributeError"),
        (f"{__name__}:Plain", "not async: take"),
        (f"{__name__}:leave", "SystemExit"),
        (f"{__name__}:interrupt", "KeyboardInterrupt"),
        (f"{__name__}:cancel", "CancelledError"),
        (f"{__name__}:miss", "KeyError"),
        (f"{__name__}:fail_without_words", "cannot be read"),
        (f"{__name__}:ODD", "no database"),
    ],
)
def test_what_is_none_is_refused(name: str, why: str) -> None:
    with pytest.raises(ConfigInvalid, match=why):
        load(name)
