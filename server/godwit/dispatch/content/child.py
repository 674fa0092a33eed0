"""The child that renders Liquid: a separate program with little memory, which the parent kills after a timeout.

It reads one JSON object on each line and answers each with one. Tenants write templates, and Liquid's own limits are not
enough: a filter can allocate without bound.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Iterator
from typing import Any

from liquid import BoundTemplate, Environment, StrictDefaultUndefined
from liquid.builtin.expressions import FilteredExpression
from liquid.exceptions import LiquidError

MEMORY_BYTES = 512 * 1024 * 1024
OUTPUT_BYTES_MAX = 262_144
LOOPS_MAX = 10_000
SLICE_S = 0.1
"""CPU time after which no more receivers are rendered in one request, because other requests wait."""
SLICE_BYTES = 4 * 1024 * 1024
"""Bytes of texts after which an answer ends: with one more receiver it is still shorter than the parent's limit."""
FAILURES = (LiquidError, ValueError, TypeError, ArithmeticError, RecursionError, MemoryError)
"""The exceptions that a template may raise."""

Environment.output_stream_limit = OUTPUT_BYTES_MAX  # this process has no other use for it
Environment.loop_iteration_limit = LOOPS_MAX
Environment.context_depth_limit = 20


def make_environment(*, escapes: bool) -> Environment:
    """Strict: an undefined variable is an error, unless `default` replaces it. There is no loader, so nothing can be included."""
    environment = Environment(undefined=StrictDefaultUndefined, autoescape=escapes)
    environment.add_filter("json", lambda value: json.dumps(value, ensure_ascii=False))
    return environment


def answer(request: dict[str, Any], environments: dict[bool, Environment]) -> dict[str, Any]:
    """Render or analyze each source of a request."""
    if request["kind"] == "receivers":
        return {"results": render_receivers(request, environments)}
    results: list[Any] = []
    for source in request["sources"]:
        if request["kind"] == "mjml":
            results.append(compile_mjml(source["text"]))
            continue
        try:
            template = environments[bool(source.get("escapes"))].from_string(source["text"])
            if request["kind"] == "analyze":
                results.append(analyze(template))
            else:
                results.append({"text": str(template.render(**request["data"]))})
        except FAILURES as error:
            results.append({"error": describe(error)})
    return {"results": results}


def render_receivers(request: dict[str, Any], environments: dict[bool, Environment]) -> list[dict[str, Any]]:
    """The texts of the first receivers, as many as fit into a slice of time, at least one. An error concerns one receiver."""
    results: list[dict[str, Any]] = []
    parsed: dict[str, list[BoundTemplate]] = {}
    end_s, size = time.process_time() + SLICE_S, 0
    for locale, names in request["receivers"]:
        try:
            if locale not in parsed:
                sources = request["sources"][locale]
                parsed[locale] = [environments[bool(one.get("escapes"))].from_string(one["text"]) for one in sources]
            texts = [str(template.render(**names, **request["data"])) for template in parsed[locale]]
            results.append({"texts": texts})
            size += len(dump(texts))
        except FAILURES as error:
            results.append({"error": describe(error)})
        if time.process_time() >= end_s or size >= SLICE_BYTES:
            break
    return results


def describe(error: Exception) -> str:
    """The error in a template or its data."""
    return f"{error!s:.300}" or type(error).__name__


def analyze(template: BoundTemplate) -> dict[str, Any]:
    """The names that a template needs, without those that `default` replaces everywhere. `receiver` is always included: a
    template that uses it is rendered for each receiver.
    """
    found = template.analyze()
    if unknown := sorted(set(found.filters) - set(template.env.filters)):
        return {"error": f"the filter {unknown[0]!r} does not exist"}
    optional = {at for node in template.nodes for at in list_defaulted(node)}
    needed = [
        name
        for name, uses in found.globals.items()
        if name == "receiver" or any(use.span.index not in optional for use in uses)
    ]
    return {"variables": sorted(str(name) for name in needed)}


def list_defaulted(node: Any) -> Iterator[int]:
    """The places of values whose first filter is `default`."""
    for expression in node.expressions():
        filters = expression.filters if isinstance(expression, FilteredExpression) else None
        if filters and filters[0].name == "default":
            yield expression.left.token.start_index
    for child in node.children(None, include_partials=False):
        yield from list_defaulted(child)


def compile_mjml(text: str) -> dict[str, str]:
    """The HTML of an MJML document, which must not include another."""
    import mrml

    try:
        return {"text": mrml.to_html(text, mrml.ParserOptions(include_loader=mrml.noop_loader())).content}
    except (OSError, ValueError) as error:
        hint = "; mj-include is not allowed" if "mj-include" in text else ""
        return {"error": f"the MJML is not valid: {error!s:.300}{hint}"}


def dump(value: Any) -> bytes:
    """JSON as it is sent to the parent: most characters take as many bytes as in UTF-8."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    environments = {escapes: make_environment(escapes=escapes) for escapes in (False, True)}
    for line in sys.stdin.buffer:
        sys.stdout.buffer.write(dump(answer(json.loads(line), environments)) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
