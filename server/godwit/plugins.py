"""Finds a user's extension: by `module:attribute`, or by the name of an entry point of an installed package.

Any error in the user's module is reported as ConfigInvalid before a port opens. The caller names the methods that an
extension must have.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from importlib.metadata import entry_points
from typing import Any

from .errors import ConfigInvalid
from .extension import describe_error


def load_plugin(key: str, name: str, group: str, verbs: tuple[str, ...]) -> Any:
    """Load an object with all of these methods: the named one, or the result of calling the named class or function. Raises
    ConfigInvalid.
    """
    try:
        found = _find(name, group)
        plugin = found() if isinstance(found, type) or not hasattr(found, verbs[0]) else found
        missing = [verb for verb in verbs if not hasattr(plugin, verb)]
        plain = [verb for verb in verbs if verb not in missing and not _is_async(getattr(plugin, verb))]
    except _NotFound as error:
        raise ConfigInvalid(
            key, name, str(error), hint=f"name module:attribute, or an entry point of {group}"
        ) from error
    except BaseException as error:  # a user's module may raise anything: an exit, an interrupt, a cancellation
        raise ConfigInvalid(key, name, f"cannot be loaded: {describe_error(error)}") from error
    if missing:
        raise ConfigInvalid(key, name, f"has no method {', '.join(missing)}", hint="subclass the class of the guide")
    if plain:
        raise ConfigInvalid(key, name, f"has a method that is not async: {', '.join(plain)}", hint="write async def")
    return plugin


class _NotFound(Exception):
    """No extension has this name."""


def _is_async(method: Any) -> bool:
    """Whether a call returns a coroutine. A plain function would block its thread, or return no answer."""
    found = inspect.unwrap(method) if callable(method) else method
    return inspect.iscoroutinefunction(found) or inspect.iscoroutinefunction(getattr(found, "func", None))


def _find(name: str, group: str) -> Any:
    if ":" not in name:
        points = [point for point in entry_points(group=group) if point.name == name]
        if not points:
            known = ", ".join(sorted(point.name for point in entry_points(group=group))) or "none"
            raise _NotFound(f"is not an entry point of {group} (installed: {known})")
        return points[0].load()
    module_name, _, attribute = name.partition(":")
    if "" not in sys.path:
        sys.path.insert(0, "")  # a module beside the command is found, as with `python -m`
    return getattr(importlib.import_module(module_name), attribute)
