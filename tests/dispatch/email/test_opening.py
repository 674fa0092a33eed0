"""E-mail opens with its first provider, while dispatch runs."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path

import dkim

from tests.dispatch.conftest import running
from tests.dispatch.content.test_personal import find_in_files
from tests.dispatch.email.test_email import make_keys, wait_for_state
from tests.dispatch.email.test_providers import DEADLINE_S, FAST, HI, Relay, listening, make_body, put_ann
from tests.dispatch.test_inbox import wait_for


async def test_the_first_provider_opens_the_channel_and_its_secrets_are_never_shown(
    tmp_path: Path, runtime: Path
) -> None:
    private, public = make_keys("ed25519")
    relay = Relay()
    login = {"auth_require_tls": False, "authenticator": relay.login}
    async with asyncio.timeout(DEADLINE_S), listening(relay, **login):
        async with running(tmp_path, FAST) as both:
            await put_ann(both)
            only = {**HI, "policy": {"first": ["email"]}}
            assert (await both.api("PUT", "/v1/notifications/n0", only))[1]["code"] == 4338
            dkim_body = {"selector": "s1", "key": private.decode()}
            body = make_body(relay, user="me", password="secret", dkim=dkim_body, sends_max=4)
            status, answer = await both.api("PUT", "/v1/providers/west", body)
            assert status == 201 and answer["has_password"] and answer["has_dkim_key"] and answer["state"] == "working"
            _, listed = await both.api("GET", "/v1/providers")
            assert "secret" not in str(listed) and "PRIVATE" not in str(listed)
            assert listed["providers"] == [answer]
            again = make_body(relay, user="me", sends_max=4)  # names no secret: they stay
            assert (await both.api("PUT", "/v1/providers/west", again))[1]["has_password"]
            await both.api("PUT", "/v1/notifications/n1", HI)
            await wait_for_state(both, "sent")
            assert relay.logins == ["me"]
            record = b"v=DKIM1; k=ed25519; p=" + base64.b64encode(public)
            assert dkim.verify(relay.taken[0], dnsfunc=lambda name, timeout=5: record)
            assert not find_in_files(tmp_path, private.split(b"\n")[1])
        async with running(tmp_path, FAST) as both:  # a restart knows it
            assert (await both.api("GET", "/v1/providers/west"))[1]["domains"] == []
            await both.api("PUT", "/v1/notifications/n2", HI)
            await wait_for(both, "n2")
            assert len(relay.taken) == 2
            assert (await both.api("DELETE", "/v1/providers/west"))[0] == 204
            assert (await both.api("GET", "/v1/providers/west"))[1]["code"] == 4339
