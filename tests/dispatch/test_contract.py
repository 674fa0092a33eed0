"""The API follows its OpenAPI document for every caller: schemathesis with a live key, a test key and a key of another tenant."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from tests.dispatch.conftest import Running, running
from tests.dispatch.test_policies import FAST
from tests.dispatch.test_tenants import make_key

# What JSON Schema cannot say: zones, times, URLs that may be reached; and that some paths take a receiver's token.
NOT_CHECKED = "positive_data_acceptance,missing_required_header,unsupported_method"

# A batch is accepted with the problem of each wrong item in its results.
BATCH = """
[[operations]]
include-path = "/v1/notifications/batch"
checks.negative_data_rejection.enabled = false
"""
WITHOUT_BODY = {
    "/u/{token}",
    "/v1/deliveries/{delivery}/retry",
    "/v1/groups/{group}",
    "/v1/groups/{group}/import",
    "/v1/groups/{group}/subscriptions/{receiver}",
    "/v1/live-token",
    "/v1/notifications/{id}/cancel",
    "/v1/notifications/{id}/recall",
    "/v1/notifications/{id}/resume",
    "/v1/receivers/import",
    "/v1/receivers/{receiver}/token",
    "/v1/webhooks/{webhook}/rotate",
    "/v1/webhooks/{webhook}/test",
}
"""Requests that have no body, or lines of JSON."""


async def make_keys(both: Running) -> dict[str, str]:
    _, made = await both.api("POST", "/v1/keys", {"scopes": ["admin"], "test": True})
    await both.api("PUT", "/v1/receivers/ann", {})
    return {
        "live": await make_key(both, "shop", "admin"),
        "test": made["key"],
        "other": await make_key(both, "bank", "read"),
        "receiver": await both.make_token("ann"),
    }


async def test_every_request_with_a_body_has_it_in_the_document(dispatch: Running) -> None:
    _, document = await dispatch.api("GET", "/v1/openapi.json")
    lacking = {
        path
        for path, methods in document["paths"].items()
        for method, shown in methods.items()
        if method in ("put", "post", "patch") and "requestBody" not in shown
    }
    assert lacking == WITHOUT_BODY


async def test_the_body_of_a_batch_is_in_the_document(dispatch: Running) -> None:
    _, document = await dispatch.api("GET", "/v1/openapi.json")
    content = document["paths"]["/v1/notifications/batch"]["post"]["requestBody"]["content"]
    item = {"$ref": "#/components/schemas/BatchItem"}
    assert content["application/json"]["schema"] == {"type": "array", "items": item}
    one, other = (document["components"]["schemas"][name]["properties"] for name in ("BatchItem", "NotificationBody"))
    assert set(one) == {*other, "id"}


@pytest.mark.parametrize("whose", ["live", "test", "other", "receiver"])
@pytest.mark.parametrize(
    ("phases", "examples"),
    [("coverage", 1), pytest.param("examples,coverage,fuzzing,stateful", 60, marks=pytest.mark.long)],
)
async def test_every_answer_is_one_that_the_document_allows(
    whose: str, phases: str, examples: int, tmp_path: Path, runtime: Path
) -> None:
    program = Path(sys.executable).parent / "schemathesis"
    limits = {
        "dispatch_limits": {**FAST["dispatch_limits"], "wrong_keys_per_minute_max": 10_000, "inbox_wait_ms_max": 0}
    }
    (tmp_path / "schemathesis.toml").write_text(BATCH)
    async with running(tmp_path, limits) as both:
        key = (await make_keys(both))[whose]
        run = await asyncio.create_subprocess_exec(
            *(program, "run", f"{both.url}/v1/openapi.json", "--phases", phases, "-n", str(examples)),
            *("-H", f"Authorization: Bearer {key}", "--exclude-checks", NOT_CHECKED, "--no-color", "--seed", "1"),
            # Names that have a pattern and are not dots are found slowly, on a busy machine very slowly.
            "--suppress-health-check=filter_too_much,too_slow",
            cwd=tmp_path,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said, _ = await run.communicate()
    assert run.returncode == 0, said.decode()[:3_000]
