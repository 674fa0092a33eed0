"""Settings that become rules: the private networks that webhooks may reach."""

import pytest

from godwit.config import build_config
from godwit.dispatch.channels.webhook.targets import list_private_targets
from godwit.errors import ConfigInvalid


def test_private_targets_are_networks_with_an_optional_port() -> None:
    config = build_config({"dispatch": {"private_targets": ["10.0.0.0/8", "127.0.0.1:9000", "[::1]:9000"]}}, {}, {})
    assert [target.port for target in list_private_targets(config.dispatch.private_targets)] == [None, 9000, 9000]
    for text in ("nonsense", "10.0.0.0/99", "127.0.0.1:0", "127.0.0.1:x"):
        with pytest.raises(ConfigInvalid, match="private_targets"):
            build_config({"dispatch": {"private_targets": [text]}}, {}, {})


@pytest.mark.parametrize("lacking", ["relay", "bounce_domain"])
def test_bounces_need_a_relay_and_their_domain(lacking: str) -> None:
    email = {
        "relay": "127.0.0.1:25",
        "sender": "news@shop.example",
        "bounce_address": "127.0.0.1:2525",
        "bounce_domain": "bounces.shop.example",
    }
    build_config({"dispatch_email": email}, {}, {})
    with pytest.raises(ConfigInvalid, match=rf"bounce_address.*dispatch_email\.{lacking}"):
        build_config({"dispatch_email": {**email, lacking: ""}}, {}, {})
