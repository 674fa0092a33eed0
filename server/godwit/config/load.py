"""Reads the configuration: defaults ‹ TOML file ‹ GODWIT_* environment ‹ flags. Each value keeps its source.

Owns the sources and the errors about them; tree.py defines the values. The file and environment are passed as values, so
that everything except `read_file` is pure. Invariant: the result is valid, or ConfigInvalid was raised.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ..errors import ConfigInvalid, ConfigNameUnknown, SubjectInvalid
from .checks import check_config
from .key_lines import KeyLines, find_key_lines
from .mistakes import Mistakes
from .option import Option
from .tree import OPTIONS, SECTIONS, Config, IssuerConfig, PatternConfig, list_issuer_options, list_pattern_options

CONFIG_VARIABLE = "GODWIT_CONFIG"
"""The variable that names the configuration file if there is no --config flag."""

FILE_BYTES_MAX = 16 * 1_048_576

SERVER_VARIABLE, TOKEN_VARIABLE, DISPATCH_KEY_VARIABLE = "GODWIT_SERVER", "GODWIT_TOKEN", "GODWIT_DISPATCH_KEY"
"""Variables of the client commands; they do not configure a node."""

PIPELINES_PREFIX = "GODWIT_PIPELINES_"
"""The prefix of variables of `godwit-pipelines`, which may run on the same machine."""

_NOT_OF_THE_TREE = frozenset({CONFIG_VARIABLE, SERVER_VARIABLE, TOKEN_VARIABLE, DISPATCH_KEY_VARIABLE})
_SERVICE_LINK = re.compile(
    r"GODWIT(_[A-Z0-9_]+)?_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_PROTO|_PORT|_ADDR)?)"
)
_SERVICE_ADDRESS = re.compile(r"GODWIT(_[A-Z0-9_]+)?_PORT")
"""Variables that Kubernetes sets in every container for each Service whose name begins with `godwit`."""
_NEAR, _NEAR_WHOLE = 0.6, 0.8
"""The least similarity of a misspelt name to a known one (0 to 1): within its section, and if the section is unknown."""
_BY_VARIABLE = {found.environment: found for found in OPTIONS.values()}


def load_config(
    file: Path | None = None,
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, str] | None = None,
    *,
    check: bool = True,
    is_reload: bool = False,
) -> Config:
    """The configuration of these sources; `flags` are texts by key. Raises ConfigInvalid.

    An empty file is a valid configuration at the start. A reload refuses it, because a truncated file would remove the
    admin token.
    """
    environment = environment or {}
    if file is None and CONFIG_VARIABLE in environment:
        file = Path(environment[CONFIG_VARIABLE])
    table, key_lines = read_file(file, may_be_empty=not is_reload) if file is not None else ({}, None)
    return build_config(table, environment, flags or {}, key_lines=key_lines, check=check)


def read_file(path: Path, option: str = "--config", *, may_be_empty: bool = True) -> tuple[dict[str, Any], KeyLines]:
    """Read a TOML file, with the line of each key. Raises ConfigInvalid, which names the option, if it cannot be read."""
    try:
        with path.open("rb") as opened:
            content = opened.read(FILE_BYTES_MAX + 1)  # a device has no end
        if len(content) > FILE_BYTES_MAX:
            raise ConfigInvalid(option, str(path), f"is longer than {FILE_BYTES_MAX} bytes")
        text = content.decode("utf-8-sig").replace("\r\n", "\n")  # some editors begin a file with a byte order mark
        if not text.strip() and not may_be_empty:
            hint = "if it should set nothing, write a comment into it"
            raise ConfigInvalid(option, str(path), "is empty", hint=hint)
        return tomllib.loads(text), find_key_lines(str(path), text)
    except OSError as error:
        raise ConfigInvalid(option, str(path), f"cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigInvalid(option, str(path), f"is not TOML: {error}") from error


def build_config(
    table: Mapping[str, Any],
    environment: Mapping[str, str],
    flags: Mapping[str, str],
    *,
    key_lines: KeyLines | None = None,
    check: bool = True,
) -> Config:
    """The configuration of sources passed as values; later ones override."""
    values = {key: found.default for key, found in OPTIONS.items()}
    sources = dict.fromkeys(OPTIONS, "default")
    mistakes = Mistakes()
    patterns, issuers = _take_table(table, key_lines or KeyLines("file"), values, sources, mistakes)
    ignored: list[str] = []
    for variable, text in environment.items():
        if not is_of_the_tree(variable):
            continue
        if variable not in _BY_VARIABLE and is_service_link(variable, text):
            ignored.append(variable)
            continue
        with mistakes.gather():
            if variable not in _BY_VARIABLE:
                raise ConfigNameUnknown(
                    variable, text, "is not known", hint=_name_nearest(variable, _BY_VARIABLE, _NEAR_WHOLE)
                )
            found = _BY_VARIABLE[variable]
            values[found.key] = found.parse(text, f"environment {variable}")
            sources[found.key] = f"environment {variable}"
    for key, text in flags.items():
        with mistakes.gather():
            values[key] = _find_option(key, text, "flag").parse(text, "flag")
            sources[key] = "flag"
    sections = {
        name: section(**{key.split(".")[1]: values[key] for key in OPTIONS if key.startswith(name + ".")})
        for name, section in SECTIONS.items()
    }
    config = Config(**sections, patterns=patterns, issuers=issuers, sources=MappingProxyType(sources))
    config = replace(config, ignored_variables=tuple(sorted(ignored)))
    if check:
        with mistakes.gather_rules():
            check_config(config)
    mistakes.raise_found()
    return config


def is_of_the_tree(variable: str) -> bool:
    """Whether a variable is meant to configure a node."""
    is_other = variable in _NOT_OF_THE_TREE or variable.startswith(PIPELINES_PREFIX)
    return variable.startswith("GODWIT_") and not is_other


def is_service_link(variable: str, text: str) -> bool:
    """Whether Kubernetes set this variable, and not the operator."""
    is_address = bool(_SERVICE_ADDRESS.fullmatch(variable)) and text.startswith(("tcp://", "udp://", "sctp://"))
    return is_address or bool(_SERVICE_LINK.fullmatch(variable))


def _take_table(
    table: Mapping[str, Any], key_lines: KeyLines, values: dict[str, Any], sources: dict[str, str], mistakes: Mistakes
) -> tuple[tuple[PatternConfig, ...], tuple[IssuerConfig, ...]]:
    patterns: list[PatternConfig] = []
    issuers: list[IssuerConfig] = []
    for name, section in table.items():
        with mistakes.gather():
            if name not in ("patterns", "issuers") and name not in SECTIONS:
                hint = _name_nearest(name, [*SECTIONS, "patterns", "issuers"])
                raise ConfigNameUnknown(name, section, "is not known", hint=hint, source=key_lines.tell(name))
            if not isinstance(section, dict):
                raise ConfigInvalid(name, section, f"must be a table: [{name}]", source=key_lines.tell(name))
            for key, value in section.items():
                with mistakes.gather():
                    if name == "patterns":
                        patterns.append(_take_pattern(key, value, key_lines))
                    elif name == "issuers":
                        issuers.append(_take_issuer(key, value, key_lines))
                    else:
                        source = key_lines.tell(name, key)
                        found = _find_option(f"{name}.{key}", value, source)
                        values[found.key] = found.accept(value, source)
                        sources[found.key] = source
    return tuple(patterns), tuple(issuers)


def _take_pattern(pattern: str, given: object, key_lines: KeyLines) -> PatternConfig:
    try:
        known = list_pattern_options(pattern)
    except SubjectInvalid as error:
        source = key_lines.tell("patterns", pattern)
        raise ConfigInvalid("patterns", pattern, error.reason, hint="e.g. /stocks/**", source=source) from error
    return PatternConfig(pattern=pattern, **_take_named(("patterns", pattern), known, given, key_lines))


def _take_issuer(issuer: str, given: object, key_lines: KeyLines) -> IssuerConfig:
    return IssuerConfig(issuer, **_take_named(("issuers", issuer), list_issuer_options(issuer), given, key_lines))


def _take_named(
    path: tuple[str, str], known: Mapping[str, Option], given: object, key_lines: KeyLines
) -> dict[str, Any]:
    prefix = f'{path[0]}."{path[1]}"'
    if not isinstance(given, dict):
        raise ConfigInvalid(prefix, given, "must be a table", source=key_lines.tell(*path))
    taken = {}
    mistakes = Mistakes()
    for name, value in given.items():
        source = key_lines.tell(*path, name)
        with mistakes.gather():
            if name not in known:
                hint = _name_nearest(name, known)
                raise ConfigNameUnknown(f"{prefix}.{name}", value, "is not known", hint=hint, source=source)
            taken[name] = known[name].accept(value, source)
    mistakes.raise_found()
    return taken


def _find_option(key: str, value: object, source: str) -> Any:
    if key.partition(".")[0] in ("patterns", "issuers"):
        raise ConfigInvalid(key, value, "can be set in a configuration file only", hint="see --config", source=source)
    if key not in OPTIONS:
        raise ConfigNameUnknown(key, value, "is not known", hint=_name_nearest(key, OPTIONS), source=source)
    return OPTIONS[key]


def _name_nearest(word: str, known: Iterable[str], near: float = _NEAR) -> str:
    """A hint: the most similar known name, else the list of all."""
    section, _, name = word.rpartition(".")
    candidates = list(known)
    elsewhere = [full for full in candidates if name and full.rpartition(".")[2] == name]
    beside = [full for full in candidates if full.rpartition(".")[0] == section]
    names = difflib.get_close_matches(name, [full.rpartition(".")[2] for full in beside], n=1, cutoff=near)
    inside = [".".join(filter(None, (section, found))) for found in names]
    whole = [] if beside else difflib.get_close_matches(word, candidates, n=1, cutoff=_NEAR_WHOLE)
    nearest = [*(elsewhere if len(elsewhere) == 1 else []), *inside, *whole]
    return f"did you mean {nearest[0]}?" if nearest else "`godwit config doc` lists all names"
