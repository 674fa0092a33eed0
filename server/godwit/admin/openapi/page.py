"""The reference page of the admin port, in Markdown, made from the document. Pure."""

from __future__ import annotations

from .document import INTRODUCTION, OPERATIONS, Operation
from .shapes import SHAPES, Schema


def describe_admin() -> str:
    """A table of the operations, then the parameters and answers of each."""
    lines = [
        "# Admin API",
        "",
        f"The admin port serves this as OpenAPI 3.1 at `/openapi.json`. {INTRODUCTION}",
        "",
        "| operation | what it does | answer |",
        "|---|---|---|",
    ]
    lines += [
        f"| `{one.method.upper()} {one.path}` | {one.sentence} | {one.answer or one.media} |" for one in OPERATIONS
    ]
    for operation in OPERATIONS:
        if operation.asks:
            lines += _describe(operation)
    lines += ["", "## Answers"]
    for name, schema in SHAPES.items():
        if schema.get("properties"):
            lines += _describe_shape(name, schema)
    return "\n".join(lines) + "\n"


def _describe(operation: Operation) -> list[str]:
    lines = [
        "",
        f"## {operation.method.upper()} {operation.path}",
        "",
        operation.sentence,
        "",
        "| parameter | type | meaning |",
        "|---|---|---|",
    ]
    return lines + [f"| `{ask.name}` | {_type(ask.schema)} | {ask.sentence} |" for ask in operation.asks]


def _describe_shape(name: str, schema: Schema) -> list[str]:
    lines = ["", f"### {name}", "", str(schema["description"]), "", "| field | type | meaning |", "|---|---|---|"]
    for field, inner in schema["properties"].items():
        optional = "" if field in schema["required"] else " (optional)"
        known = inner if "anyOf" not in inner else {**inner["anyOf"][0], "or": "null"}
        lines.append(f"| `{field}` | {_type(inner)} | {known.get('description', '')}{optional} |")
    return lines


def _type(schema: Schema) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return f"{_type(schema['anyOf'][0])} or null"
    if "enum" in schema:
        return " ".join(f"`{word}`" for word in schema["enum"])
    if schema.get("type") == "array" and "items" in schema:
        return f"list of {_type(schema['items'])}"
    kind = schema.get("type", "any")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)
