"""What a refused body may have instead: the choices of a field, or the fields of an object, that msgspec's sentences do not name. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from msgspec import inspect

from ..pure.text_forms import WORDS

_ENUM, _FIELD, _PATTERN = "Invalid enum value", "Object contains unknown field", "Expected `str` matching regex "


def add_choices(what: str, kind: type, path: str) -> str:
    """The sentence of a refusal, with what is expected at a JSON pointer into a value of `kind`."""
    if what.startswith(_PATTERN):
        return next((f"expected {words}" for pattern, words in WORDS.items() if repr(pattern) in what), what)
    if not what.startswith((_ENUM, _FIELD)):
        return what
    found = list(_follow(_inspect(kind), path.strip("/").split("/") if path else []))
    if what.startswith(_FIELD):
        names = [field.encode_name for one in found if isinstance(one, inspect.StructType) for field in one.fields]
    else:
        names = [str(value) for one in found if isinstance(one, inspect.LiteralType) for value in one.values]
    return f"{what}: expected {_join(list(dict.fromkeys(names)))}" if names else what


def _join(names: list[str]) -> str:
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


@lru_cache(maxsize=100)
def _inspect(kind: type) -> inspect.Type:
    return inspect.type_info(kind)


def _follow(kind: inspect.Type, steps: list[str]) -> Iterator[inspect.Type]:
    """All types that a value at the end of the steps may have. Keys of dictionaries are no steps (msgspec does not name them)."""
    if isinstance(kind, inspect.UnionType):
        for one in kind.types:
            yield from _follow(one, steps)
    elif isinstance(kind, inspect.DictType):
        yield from _follow(kind.value_type, steps)
        if not steps:
            yield from _follow(kind.key_type, steps)
    elif not steps:
        yield kind
    elif isinstance(kind, inspect.ListType):
        yield from _follow(kind.item_type, steps[1:])
    elif isinstance(kind, inspect.StructType):
        for field in kind.fields:
            if field.encode_name == steps[0]:
                yield from _follow(field.type, steps[1:])
