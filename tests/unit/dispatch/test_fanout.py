"""Lanes: the order of sends, and the limits of a slow host."""

from __future__ import annotations

from godwit.dispatch.fanout.lanes import Held, Lanes
from godwit.dispatch.model import DeliveryKey, Shipment, Target


def hold(number: int, host: str, tenant: str = "t") -> Held:
    key = DeliveryKey(1, number, "webhook", number)
    return Held(Shipment(key, tenant, Target(number, number, value=host), 0, 10**9), 10**9)


def test_lanes_take_turns_and_a_full_one_waits_while_others_do() -> None:
    lanes = Lanes(lambda shipment: shipment.target.value, 1, 8)
    for number, host in enumerate(["slow", "slow", "slow", "quick", "quick"]):
        lanes.add(hold(number, host))
    taken = []
    while held := lanes.take():
        taken.append(held.shipment.target.value)
        if held.shipment.target.value == "quick":
            lanes.end(held.shipment)
    assert taken == ["slow", "quick", "quick", "slow", "slow"], "alone, a lane may use every slot"
    assert len(lanes) == 0 and lanes.count("t") == 0


def test_what_waits_is_counted_by_tenant_and_let_go() -> None:
    lanes = Lanes(lambda shipment: shipment.tenant, 8, 8)
    lanes.add(hold(1, "a", "x"))
    lanes.add(hold(2, "a", "y"))
    assert (lanes.count("x"), lanes.count("z"), len(list(lanes.keys()))) == (1, 0, 2)
    lanes.clear()
    assert len(lanes) == 0 and lanes.take() is None


def test_no_host_and_no_tenant_has_every_slot() -> None:
    one_host = Lanes(lambda shipment: shipment.target.value, 2, 8)
    many_hosts = Lanes(lambda shipment: shipment.target.value, 2, 8)
    for number in range(20):
        one_host.add(hold(number, "slow"))
        many_hosts.add(hold(number, f"slow{number}"))
    for lanes, most in ((one_host, 4), (many_hosts, 6)):
        taken = []
        while held := lanes.take():
            taken.append(held.shipment)
        assert len(taken) == most
        lanes.add(hold(99, "quick", "other"))
        found = lanes.take()
        assert found is not None and found.shipment.tenant == "other"
        lanes.end(taken[0])
        found = lanes.take()
        assert found is not None and found.shipment.tenant == "t"


def test_a_lane_whose_host_asks_to_wait_rests_and_begins_again_with_one_send() -> None:
    lanes = Lanes(lambda shipment: shipment.target.value, 4, 16)
    for number, host in enumerate(["busy", "busy", "busy", "quick"]):
        lanes.add(hold(number, host))
    first = lanes.take()
    assert first is not None
    waited = lanes.throttle(first.shipment, 1_000)
    lanes.end(first.shipment)
    assert [held.shipment.key.rid for held in waited] == [1, 2] and len(lanes) == 1
    assert lanes.rests_until(first.shipment, 999) == 1_000 and lanes.rests_until(first.shipment, 1_000) == 0
    quick = lanes.take()
    assert quick is not None and quick.shipment.target.value == "quick"
    assert lanes.rests_until(quick.shipment, 0) == 0
    lanes.note_success(first.shipment, 500)  # of a send that was in flight: says nothing about what comes
    for most in (1, 2, 4):
        for number in range(10, 20):
            lanes.add(hold(number, "busy"))
        taken = []
        while held := lanes.take():
            taken.append(held.shipment)
        assert len(taken) == (most if most < 4 else 8), "alone, a lane may use half of the slots"
        lanes.note_success(taken[0], 2_000)
        for shipment in taken:
            lanes.end(shipment)
        lanes.clear()


def test_what_shares_a_provider_waits_for_it_here_and_not_in_the_slots_of_others() -> None:
    providers = {"t": ("slow", 2), "u": ("slow", 2), "v": ("quick", 3)}
    lanes = Lanes(lambda shipment: shipment.tenant, 8, 8, lambda shipment: providers[shipment.tenant])
    for number, tenant in enumerate("ttuuvvvv"):
        lanes.add(hold(number, "x", tenant))
    taken = []
    while held := lanes.take():
        taken.append(held.shipment)
    assert "".join(sorted(one.tenant for one in taken)) == "tuvvv"
    providers["t"] = providers["u"] = ("other", 9)  # the provider is replaced while its shipments are in flight
    for shipment in taken:
        lanes.end(shipment)
    while held := lanes.take():
        lanes.end(held.shipment)
    assert not len(lanes)
