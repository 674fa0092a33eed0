"""The configuration: defaults ‹ TOML file ‹ GODWIT_PIPELINES_* environment ‹ flags, with the source of each value.

Owns loading and its errors; settings.py owns what can be set. Imports no Spark, so that errors are reported at once. Invariant: the
result is valid, or ConfigInvalid was raised.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import Field, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from .errors import ConfigInvalid, TableMissing
from .settings import Config
from .values.addresses import local_path
from .values.numbers import parse_count, parse_number

CONFIG_VARIABLE = "GODWIT_PIPELINES_CONFIG"
_PREFIX = "GODWIT_PIPELINES_"
_NOT_IN_A_LAKE = "%\\[]^|"
_PATHS = (
    "journal.paths",
    "lake.path",
    "lake.checkpoints",
    "kafka.jars",
    "metrics.file",
    "spark.class_archive",
)
"""Settings that name a file or folder."""
_DAYS_MAX = 100_000
_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


def find_lake(config: Config) -> Path:
    """The folder of the tables. Raises TableMissing if it does not exist."""
    folder = Path(config.lake.path).absolute()
    if not folder.is_dir():
        raise TableMissing(f"{folder} does not exist: run `godwit-pipelines run all` to create it")
    return folder


def list_options() -> Iterator[tuple[str, Field[Any], Any]]:
    """Every setting as `section.name`, with its field and default."""
    for section in fields(Config):
        if section.name != "sources":
            settings = getattr(Config(), section.name)
            for found in fields(settings):
                yield f"{section.name}.{found.name}", found, getattr(settings, found.name)


_DEFAULTS = {key: default for key, _, default in list_options()}
_FIELDS = {key: found for key, found, _ in list_options()}
_BY_VARIABLE = {_PREFIX + key.replace(".", "_").upper(): key for key in _DEFAULTS}


def load_config(
    file: Path | None, environment: Mapping[str, str], flags: Mapping[str, str] = MappingProxyType({})
) -> Config:
    """The configuration from a file, the environment and flags. `flags` has texts by key, such as `{"lake.path": "out"}`. Raises
    ConfigInvalid.
    """
    if file is None and environment.get(CONFIG_VARIABLE):
        file = Path(local_path(CONFIG_VARIABLE, environment[CONFIG_VARIABLE]))
    values: dict[str, tuple[Any, str]] = {}
    for key, value in flatten(read_file(file) if file else {}, str(file)):
        values[key] = value, str(file)
    for name, text in environment.items():
        if name.startswith(_PREFIX) and name != CONFIG_VARIABLE:
            if name not in _BY_VARIABLE:
                raise ConfigInvalid(name, None, "is not a setting of the pipelines", hint=_nearest(name, _BY_VARIABLE))
            values[_BY_VARIABLE[name]] = text, name
    for key, text in flags.items():
        values[_known(key, "a flag")] = text, "a flag"
    config = build_config({key: (convert(key, *given), given[1]) for key, given in values.items()})
    check_lake(config)
    check_keep_days(config)
    return config


def check_keep_days(config: Config) -> None:
    """Raises ConfigInvalid if `maintain.keep_days` names a table that does not exist or has no days, or if a value is not a number of
    days.
    """
    if not config.maintain.keep_days:
        return
    from .tables import TABLES

    key, source = "maintain.keep_days", config.sources.get("maintain.keep_days", "")
    dated = {name for name, table in TABLES.items() if table.day}
    for name, text in config.maintain.keep_days.items():
        if name not in TABLES:
            raise ConfigInvalid(key, name, "is not a table", hint=_nearest(name, dated), source=source)
        if name not in dated:
            raise ConfigInvalid(key, name, "has no column of days, so its rows cannot expire", source=source)
        days = parse_number(text)
        if days is None or not 0 <= days <= _DAYS_MAX:
            raise ConfigInvalid(
                key, f"{name}={text}", f"must be a number of days from 0 to {_DAYS_MAX:,}", source=source
            )


def check_lake(config: Config) -> None:
    """Raises ConfigInvalid for a folder that the Delta library would misread or refuse."""
    folder = str(Path(config.lake.path).absolute())
    wrong = [letter for letter in folder if letter in _NOT_IN_A_LAKE or ord(letter) < 0x20]
    if wrong:
        source = config.sources.get("lake.path", "")
        raise ConfigInvalid(
            "lake.path", folder, f"has {wrong[0]!r} in it: expected a path without this character", source=source
        )


def build_config(values: Mapping[str, tuple[Any, str]]) -> Config:
    """The configuration with these values, each given with its source."""
    config = Config(sources=MappingProxyType({key: source for key, (_, source) in values.items()}))
    for key, (value, _) in values.items():
        section, name = key.split(".")
        config = replace(config, **{section: replace(getattr(config, section), **{name: value})})
    return config


def read_file(path: Path) -> dict[str, Any]:
    """The content of a TOML file."""
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigInvalid("--config", str(path), f"cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigInvalid("--config", str(path), f"is not TOML: {error}") from error


def flatten(table: Mapping[str, Any], source: str) -> Iterator[tuple[str, Any]]:
    """The values of a file as `section.name`. An unknown key is an error that suggests the nearest one."""
    sections = {key.split(".")[0] for key in _DEFAULTS}
    for section, content in table.items():
        if section not in sections or not isinstance(content, Mapping):
            raise ConfigInvalid(section, content, "is not a section", hint=_nearest(section, sections), source=source)
        for name, value in content.items():
            yield _known(f"{section}.{name}", source), value


def convert(key: str, value: Any, source: str) -> Any:
    """The value in its setting's type. The environment and flags give text, with commas between the items of a list."""
    default, found = _DEFAULTS[key], _FIELDS[key]
    given = value
    if isinstance(default, tuple):
        value = tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value
        if isinstance(value, list | tuple) and all(isinstance(part, str) for part in value):
            return tuple(local_path(key, part, source) for part in value) if key in _PATHS else tuple(value)
        raise ConfigInvalid(key, given, "must be a list of strings", source=source)
    if isinstance(default, Mapping):
        return _convert_table(key, value, source)
    if isinstance(default, bool):
        if isinstance(value, str):
            value = True if value.lower() in _TRUE else False if value.lower() in _FALSE else value
        if not isinstance(value, bool):
            raise ConfigInvalid(key, given, "must be true or false", source=source)
        return value
    if isinstance(default, int | float):
        return _convert_number(key, value, source)
    if not isinstance(value, str):
        raise ConfigInvalid(key, None if found.metadata["secret"] else given, "must be a string", source=source)
    choices = found.metadata["choices"]
    if choices and value not in choices:
        raise ConfigInvalid(key, given, f"must be one of {', '.join(choices)}", source=source)
    return local_path(key, value, source) if key in _PATHS else value


def _convert_table(key: str, value: Any, source: str) -> Mapping[str, str]:
    """`a=1,b=2`, or a table of texts and numbers."""
    if isinstance(value, str):
        pairs = [part.partition("=") for part in value.split(",") if part.strip()]
        if not all(equals for _, equals, _ in pairs):
            raise ConfigInvalid(key, value, "must be NAME=VALUE, separated by commas", source=source)
        value = {name.strip(): text.strip() for name, _, text in pairs}
    if not isinstance(value, Mapping) or not all(isinstance(each, str | int | float) for each in value.values()):
        raise ConfigInvalid(key, value, "must be a table of strings", source=source)
    return MappingProxyType({name: _text(each) for name, each in value.items()})


def _text(value: str | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _convert_number(key: str, value: Any, source: str) -> float:
    default, metadata = _DEFAULTS[key], _FIELDS[key].metadata
    text = "" if isinstance(value, bool) else str(value)
    number = parse_number(text) if isinstance(default, float) else parse_count(text)
    low, high = metadata["low"], metadata["high"]
    if number is None or not (low is None or number >= low) or not (high is None or number <= high):
        kind = "a whole number" if isinstance(default, int) else "a number"
        raise ConfigInvalid(key, value, f"must be {kind} from {low:,.15g} to {high:,.15g}", source=source)
    return float(number) if isinstance(default, float) else int(number)


def _known(key: str, source: str) -> str:
    if key not in _DEFAULTS:
        raise ConfigInvalid(key, None, "is not a setting", hint=_nearest(key, _DEFAULTS), source=source)
    return key


def _nearest(name: str, among: Mapping[str, Any] | set[str]) -> str:
    found = difflib.get_close_matches(name, among, n=1, cutoff=0)
    return f"did you mean {found[0]}?" if found else ""


def describe_config() -> str:
    """The reference page of the settings: default, bounds, variable and meaning of each."""
    lines = ["| setting | default | bounds | variable | meaning |", "|---|---|---|---|---|"]
    for key, found, default in list_options():
        low, high = found.metadata["low"], found.metadata["high"]
        bounds = f"{low:,.15g} to {high:,.15g}" if low is not None else " ".join(found.metadata["choices"])
        shown = "" if default in ("", ()) or isinstance(default, Mapping) else f"`{_text(default)}`"
        lines.append(
            f"| `{key}` | {shown} | {bounds} | `{_PREFIX}{key.replace('.', '_').upper()}` | {found.metadata['about']} |"
        )
    return "\n".join(lines)
