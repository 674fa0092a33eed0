"""The admin port of a node with very many subjects: metrics of the same length, lists of one page, and answers while it lists."""

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import pytest

from godwit import testing
from godwit.engine import Draft

BATCH = 20_000
PAGES = {
    "": 100,
    "?after=/many/5&limit=1000": 1_000,
    "?pattern=/many/7": 1,
    "?pattern=/nothing/**": 0,
    "?pattern=/*/none": 0,
}
"""Queries, and how many rows each has of 20,000 subjects and more."""


async def fill(node: testing.RunningNode, count: int) -> None:
    for first in range(0, count, BATCH):
        drafts = [Draft(f"/many/{number}", b"1", retain=False) for number in range(first, min(first + BATCH, count))]
        outcomes = await asyncio.to_thread(node.node.engine.publish_many, drafts)
        assert not [outcome for outcome in outcomes if isinstance(outcome, int)]


async def scrape(http: aiohttp.ClientSession, node: testing.RunningNode) -> str:
    async with http.get(f"{node.admin_url}/metrics") as answer:
        return await answer.text()


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


@pytest.mark.parametrize("count", [20_000, pytest.param(1_000_000, marks=pytest.mark.long)])
async def test_subjects_are_never_labels_and_are_listed_page_by_page(http: aiohttp.ClientSession, count: int) -> None:
    settings = {"limits": {"log_age_ms_max": 3_600_000, "logs_bytes_max": 4 << 30}}
    async with testing.node(settings) as node:
        empty = await scrape(http, node)
        await fill(node, count)
        full = await scrape(http, node)
        [metric] = [line for line in full.splitlines() if line.startswith("godwit_subjects ")]
        assert float(metric.split()[1]) == count
        assert len(full.splitlines()) == len(empty.splitlines()) and "/many/" not in full
        for query, rows in PAGES.items():
            async with http.get(f"{node.admin_url}/v1/subjects{query}") as answer:
                assert answer.status == 200 and len((await answer.json())["rows"]) == rows


async def test_the_node_delivers_and_answers_while_a_long_list_is_made(http: aiohttp.ClientSession) -> None:
    async with testing.node() as node:
        await fill(node, 20_000)
        lists = [asyncio.create_task(read(http, f"{node.admin_url}/v1/subjects?pattern=/*/none")) for _ in range(8)]
        async with http.get(f"{node.admin_url}/health/live") as answer:
            assert answer.status == 200
        await asyncio.gather(*lists)


async def read(http: aiohttp.ClientSession, url: str) -> str:
    async with http.get(url) as answer:
        return await answer.text()
