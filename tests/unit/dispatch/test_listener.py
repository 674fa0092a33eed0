"""Which requests a port for receivers serves, and that a port lets its address go."""

from __future__ import annotations

import pytest
from aiohttp import web

from godwit.config.dispatch_limits import DispatchLimits
from godwit.config.option import Address
from godwit.dispatch.listener import Listener, choose_public
from godwit.errors import ListenFailed

LIMITS = DispatchLimits()


async def answer(request: web.Request) -> web.Response:
    return web.Response()


def test_only_the_requests_of_receivers_are_public() -> None:
    public = ["/v1/inbox", "/v1/inbox/marks", "/u/{token}", "/v1/keys.json", "/health/live", "/health/ready"]
    private = [
        "/v1/receivers/{receiver}/token",
        "/v1/inboxes",
        "/metrics",
        "/v1/notifications",
        "/v1/keys",
        "/console/",
    ]
    chosen = choose_public([web.get(path, answer) for path in [*public, *private]])
    assert [route.path for route in chosen] == public


async def test_a_port_that_is_taken_is_named_with_its_setting() -> None:
    first = Listener(web.Application(), "dispatch.address", None, LIMITS)
    bound = await first.start(Address("127.0.0.1", 0))
    with pytest.raises(ListenFailed, match=r"dispatch\.public_address"):
        await Listener(web.Application(), "dispatch.public_address", None, LIMITS).start(bound)
    await first.stop()
    again = Listener(web.Application(), "dispatch.address", None, LIMITS)
    assert await again.start(bound) == bound
    await again.stop()
