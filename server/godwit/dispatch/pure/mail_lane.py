"""Which e-mails share a lane: those of one tenant to one domain. Pure."""

from __future__ import annotations

from ..model import Shipment


def domain_of(shipment: Shipment) -> tuple[str, str]:
    """The lane of an e-mail: its tenant and the receiver's domain."""
    return shipment.tenant, shipment.target.value.rpartition("@")[2].lower()
