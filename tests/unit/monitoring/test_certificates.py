"""The seconds that the server certificates are still good: of the one that ends first, and only if there are certificates."""

import datetime
import time
from pathlib import Path

import pytest

from godwit import testing
from godwit.monitoring.certificates import Certificates
from godwit.monitoring.metric_specs import CERTIFICATE_FIGURE
from tests.authority import DAY, Authority


def test_the_first_that_ends_counts_and_one_that_has_ended_is_below_zero(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    long, short = (authority.issue("a", file=f"{days}", lives=days * DAY)[0] for days in (9, 3))
    now = [time.time()]
    certificates = Certificates([long, short, str(tmp_path / "none")], now_s=lambda: now[0])
    left = certificates.count()[CERTIFICATE_FIGURE]
    assert left == pytest.approx(datetime.timedelta(days=3).total_seconds(), abs=3_600)
    now[0] += 4 * 86_400
    assert certificates.count()[CERTIFICATE_FIGURE] < 0
    certificates.read([long])
    assert certificates.count()[CERTIFICATE_FIGURE] > 0
    certificates.read([])
    assert not certificates.count()


async def test_a_node_shows_it_for_the_certificate_that_it_serves(tmp_path: Path) -> None:
    chain, key = Authority(tmp_path).issue("localhost", lives=5 * DAY)
    tls = {"certificate_files": [chain], "key_files": [key]}
    async with testing.node({"tls": tls, "client": {"tls_address": "127.0.0.1:0"}}) as node:
        assert 4 * 86_400 < node.node.count()[CERTIFICATE_FIGURE] <= 5 * 86_400
    async with testing.node() as node:
        assert CERTIFICATE_FIGURE not in node.node.count()
