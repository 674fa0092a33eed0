"""The types of command-line options, with the same rules as settings: paths of this machine, and numbers in the form of JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..values.addresses import local_path
from ..values.numbers import parse_count, parse_number


class LocalPath(click.Path):
    """A path of this machine, or `file:///PATH`. The address of another store is refused, as it is for a setting."""

    def __init__(self, **given: Any) -> None:
        super().__init__(path_type=Path, **given)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        key = param.opts[-1] if param is not None else "path"
        return super().convert(local_path(key, value) if isinstance(value, str) else value, param, ctx)


class Count(click.IntRange):
    """A whole number in ASCII digits; Python would also take `1_0` and digits of other scripts."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and parse_count(value) is None:
            self.fail(f"{value!r} is not a whole number.", param, ctx)
        return super().convert(value, param, ctx)


class Number(click.FloatRange):
    """A finite number."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and parse_number(value) is None:
            self.fail(f"{value!r} is not a number.", param, ctx)
        return super().convert(value, param, ctx)
