"""One configuration value: its type, default, bounds and description, and how text and TOML values are converted.

Declared with `option()` as a dataclass field of a section (tree.py); everything else (loading, `config show`,
the reference page) is derived from these declarations. Pure: nothing is read from file or environment here.
Invariant: a value that `Option.accept` or `Option.parse` returned has the option's type and lies within its bounds.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, get_type_hints

from ..errors import ConfigInvalid

_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")
_WORDS = {int: "a whole number", bool: "true or false", str: "a text"}


@dataclass(frozen=True, slots=True)
class Address:
    """HOST:PORT to listen on; with port 0 the system chooses one. IPv6 addresses are in brackets: [::1]:8800."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Address:
        """Reads HOST:PORT; raises ValueError."""
        host, colon, port = text.rpartition(":")
        is_bracketed = host.startswith("[") and host.endswith("]")
        if is_bracketed:
            host = host[1:-1]
        if not colon or not host or (":" in host) is not is_bracketed or any(c in host for c in " /[]@"):
            raise ValueError(text)
        if not (port.isascii() and port.isdigit()) or int(port) > 65535:
            raise ValueError(text)
        return cls(host, int(port))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Option:
    """The declaration of one value."""

    key: str
    type: Any
    default: Any
    sentence: str
    minimum: int | None = None
    maximum: int | None = None
    choices: tuple[str, ...] = ()
    is_secret: bool = False
    check: Callable[[Any], object] | None = None

    @property
    def environment(self) -> str:
        """The environment variable that sets it: GODWIT_ and the key in capitals."""
        return "GODWIT_" + self.key.replace(".", "_").upper()

    @property
    def bound(self) -> str:
        """The accepted values, as the end of the sentence "… must be"."""
        if self.choices:
            return "one of " + ", ".join(self.choices)
        if self.type is Address:
            return "HOST:PORT, such as 127.0.0.1:8800"
        if self.type == tuple[str, ...]:
            return "a list of texts"
        words = _WORDS[self.type]
        if self.minimum is not None and self.maximum is not None:
            words += f" from {self.minimum:,} to {self.maximum:,}"
        return words

    def parse(self, text: str, source: str) -> Any:
        """A value from text (environment, flag); raises ConfigInvalid."""
        try:  # a locale of ASCII leaves the bytes as they were
            text = text.encode(errors="surrogateescape").decode()
        except UnicodeError:
            raise ConfigInvalid(self.key, text, "is not valid UTF-8", source=source) from None
        if self.type is int:
            try:
                return self.accept(int(text), source)
            except ValueError:
                raise self._refuse(text, source) from None
        if self.type is bool:
            if text.lower() not in _TRUE + _FALSE:
                raise self._refuse(text, source)
            return text.lower() in _TRUE
        if self.type == tuple[str, ...]:
            return self.accept(_read_list(text), source)
        return self.accept(text, source)

    def accept(self, value: Any, source: str) -> Any:
        """A value from TOML, which has a type; raises ConfigInvalid."""
        if self.type is Address:
            try:
                return Address.parse(value)
            except (ValueError, AttributeError):
                raise self._refuse(value, source) from None
        if self.type == tuple[str, ...]:
            if not isinstance(value, list) or not all(isinstance(part, str) for part in value):
                raise self._refuse(value, source)
            value = tuple(value)
        elif type(value) is not self.type:
            raise self._refuse(value, source)
        if self.minimum is not None and self.maximum is not None and not self.minimum <= value <= self.maximum:
            raise self._refuse(value, source)
        if self.choices and value not in self.choices:
            raise self._refuse(value, source)
        if self.check is not None:
            try:
                self.check(value)
            except ValueError as error:
                raise ConfigInvalid(self.key, self._shown(value), str(error), source=source) from error
        return value

    def _refuse(self, value: object, source: str) -> ConfigInvalid:
        hint = f"the default is {show(self.default)}" if self.default is not None else "leave it out to use the node's"
        return ConfigInvalid(self.key, self._shown(value), f"must be {self.bound}", hint=hint, source=source)

    def _shown(self, value: object) -> object:
        if self.is_secret:
            return "(secret)"
        return list(value) if isinstance(value, tuple) else value


def _read_list(text: str) -> Any:
    """A list in TOML's form, or texts separated by commas. `[::1],a.example` also begins with a bracket."""
    if text.strip().startswith("["):
        try:
            return tomllib.loads(f"list = {text.strip()}")["list"]
        except (ValueError, RecursionError):
            pass
    return [part.strip() for part in text.split(",") if part.strip()]


def option(
    default: Any,
    sentence: str,
    *,
    minimum: int | None = None,
    maximum: int | None = None,
    choices: tuple[str, ...] = (),
    is_secret: bool = False,
    check: Callable[[Any], object] | None = None,
) -> Any:
    """Declare one value as a dataclass field; integers need both bounds."""
    about = {
        "sentence": sentence,
        "minimum": minimum,
        "maximum": maximum,
        "choices": choices,
        "is_secret": is_secret,
        "check": check,
    }
    return field(default=default, metadata=about)


def list_options(section: type, prefix: str) -> list[Option]:
    """The options that the dataclass of a section declares, in order, with keys `prefix.name`."""
    hints = get_type_hints(section)
    return [_make_option(f"{prefix}.{f.name}", hints[f.name], f) for f in fields(section) if f.metadata]


def _make_option(key: str, kind: Any, declared: Field[Any]) -> Option:
    assert declared.default is not MISSING
    optional = getattr(kind, "__args__", ())
    if type(None) in optional:  # `int | None`: what may be left to the node's own setting
        kind = next(part for part in optional if part is not type(None))
    return Option(key=key, type=kind, default=declared.default, **declared.metadata)


def show(value: object) -> str:
    """A value in TOML's form."""
    if value is None:
        return "(the node's)"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, tuple):
        return "[" + ", ".join(show(part) for part in value) + "]"
    text = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(each if each.isprintable() else _escape(each) for each in text) + '"'


def _escape(character: str) -> str:
    """Escape a control character: TOML does not allow it, and a terminal would interpret it."""
    number = ord(character)
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"
