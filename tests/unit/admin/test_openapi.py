"""The document names exactly the routes there are, each answer has its shape, and the reference page is made from it."""

import json
from collections.abc import Iterator
from typing import Any

import aiohttp
from aiohttp import web

from godwit import testing
from godwit.admin.app import AdminPort
from godwit.admin.console import FILES
from godwit.admin.openapi.document import OPERATIONS, make_document
from godwit.admin.openapi.page import describe_admin
from godwit.admin.openapi.shapes import SHAPES
from godwit.testing.fake_engine import open_fake_engine


def list_routes(port: AdminPort) -> set[tuple[str, str]]:
    app: web.Application = port._app
    routes = ((route.method.lower(), route.resource.canonical) for route in app.router.routes() if route.resource)
    return {(method, path) for method, path in routes if method != "head" and path not in FILES}


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from [value["$ref"]] if "$ref" in value else []
        for inner in value.values():
            yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)


async def test_it_names_exactly_the_routes_there_are() -> None:
    async with testing.node({}, open_engine=open_fake_engine) as running, aiohttp.ClientSession() as http:
        admin = running.node._admin
        assert admin is not None
        assert list_routes(admin) == {(operation.method, operation.path) for operation in OPERATIONS}
        async with http.get(f"{running.admin_url}/openapi.json") as answer:
            assert await answer.json() == json.loads(json.dumps(make_document()))


def test_every_reference_has_its_shape_and_every_shape_is_used() -> None:
    used = {reference.rsplit("/", 1)[1] for reference in references(make_document())}
    assert used == set(SHAPES)


def test_what_changes_something_asks_for_the_token() -> None:
    for path in make_document()["paths"].values():
        for method, operation in path.items():
            assert (operation.get("security") == [{"admin": []}]) == (method != "get")


def test_the_reference_page_has_every_operation_and_every_field() -> None:
    page = describe_admin()
    assert all(f"`{operation.method.upper()} {operation.path}`" in page for operation in OPERATIONS)
    assert all(f"`{field}`" in page for shape in SHAPES.values() for field in shape.get("properties", ()))
