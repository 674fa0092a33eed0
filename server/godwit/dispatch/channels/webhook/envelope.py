"""A webhook as bytes: a CloudEvents 1.0 body, signed as Standard Webhooks.

Pure. The id is that of the delivery, the same in every attempt, so that a receiver can drop duplicates. An attempt that
may be a repeat has the extension `possibleduplicate`.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from ...model import Shipment
from ...pure.delivery_ids import DeliveryId
from ..letter import Letter

TYPE = "godwit.notification"


def webhook_id(shipment: Shipment, letter: Letter) -> str:
    """The delivery's id, the same in every attempt."""
    key = shipment.key
    return str(DeliveryId(key.nid, key.rid, key.aid, letter.accepted_ms))


def make_body(shipment: Shipment, letter: Letter) -> bytes:
    """A CloudEvent in structured mode."""
    event: dict[str, Any] = {
        "specversion": "1.0",
        "id": webhook_id(shipment, letter),
        "source": f"/godwit/{shipment.tenant}",
        "type": TYPE,
        "subject": shipment.target.receiver,
        "time": datetime.fromtimestamp(letter.accepted_ms / 1_000, UTC).isoformat().replace("+00:00", "Z"),
        "datacontenttype": "application/json",
        "data": {"notification": letter.notification, "content": msgspec.Raw(letter.content)},
    }
    if shipment.is_doubtful:
        event["possibleduplicate"] = True
    return msgspec.json.encode(event)


SignBytes = Callable[[bytes], bytes]
"""An Ed25519 signature with the key of this dispatch."""


def make_headers(shipment: Shipment, letter: Letter, body: bytes, now_s: int, sign_bytes: SignBytes) -> dict[str, str]:
    """Content type, id, time and signatures of the attempt."""
    name = webhook_id(shipment, letter)
    return {
        "Content-Type": "application/cloudevents+json; charset=utf-8",
        **sign_all((shipment.target.secret,), name, now_s, body, sign_bytes),
    }


def sign_all(secrets: Sequence[str], name: str, now_s: int, body: bytes, sign_bytes: SignBytes) -> dict[str, str]:
    """Id, time, a signature with each secret (v1) and one with the key of this dispatch (v1a)."""
    signatures = [f"v1,{sign(secret, name, now_s, body)}" for secret in secrets]
    public = base64.b64encode(sign_bytes(f"{name}.{now_s}.".encode() + body)).decode()
    shown = " ".join([*signatures, f"v1a,{public}"])
    return {"webhook-id": name, "webhook-timestamp": str(now_s), "webhook-signature": shown}


def sign(secret: str, name: str, now_s: int, body: bytes) -> str:
    """The symmetric signature of Standard Webhooks."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{name}.{now_s}.".encode() + body
    return base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
