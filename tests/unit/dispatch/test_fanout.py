"""Lanes: the order of sends, and the limits of a slow host."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import FrameType

import pytest

from godwit.dispatch.channels.email.provider import ProviderSettings
from godwit.dispatch.channels.email.providers import Providers
from godwit.dispatch.errors import StoreFailed
from godwit.dispatch.fanout.dispatcher import Clocks, Dispatcher, Pace
from godwit.dispatch.fanout.lanes import Lanes
from godwit.dispatch.fanout.waiting import Held
from godwit.dispatch.model import DeliveryKey, PutOff, Shipment, Target
from godwit.dispatch.pure.mail_lane import domain_of


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


def open_providers(*given: tuple[str, str, tuple[str, ...], int]) -> Providers:
    """Name, From address, tenants and places of each."""
    providers = Providers(lambda: 1_000)
    for name, sender, tenants, sends_max in given:
        providers.put(ProviderSettings(name, "127.0.0.1:25", sender, tenants=tenants, sends_max=sends_max))
    return providers


def mail(number: int, tenant: str = "t", sender: str = "", domain: str = "x") -> Held:
    target = Target(number, number, value=f"a@{domain}.example", sender=sender)
    return Held(Shipment(DeliveryKey(1, number, "email", number), tenant, target, 0, 10**9), 10**9)


def take_all(lanes: Lanes) -> list[Shipment]:
    taken = []
    while held := lanes.take():
        taken.append(held.shipment)
    return taken


def test_what_shares_a_provider_waits_for_it_here_and_not_in_the_slots_of_others() -> None:
    given = ("slow", "a@s.example", ("t", "u"), 2), ("quick", "a@q.example", ("v",), 3)
    providers = open_providers(*given)
    lanes = Lanes(domain_of, 8, 8, providers)
    for number, tenant in enumerate("ttuuvvvv"):
        lanes.add(mail(number, tenant))
    taken = take_all(lanes)
    assert "".join(sorted(one.tenant for one in taken)) == "tuvvv"
    providers.put(ProviderSettings("other", "127.0.0.1:25", "a@s.example", tenants=("t", "u"), sends_max=9, priority=1))
    providers.remove("slow")  # replaced while its shipments are in flight
    lanes.resize(16, 16)
    for shipment in taken:
        lanes.end(shipment)
    for shipment in take_all(lanes):
        lanes.end(shipment)
    assert not len(lanes)
    assert [state.in_flight for state in providers.describe().values()] == [0, 0]


@pytest.mark.parametrize("first", ["one", "both", "two"])
def test_providers_that_two_tenants_share_in_part_are_counted_once(first: str) -> None:
    """Two slow providers, one tenant that may use both: a third provider keeps its places, and none is used twice."""
    slow = ("slow1", "a@one.example", ("one", "both"), 4), ("slow2", "a@one.example", ("two", "both"), 4)
    lanes = Lanes(domain_of, 12, 12, providers := open_providers(*slow, ("quick", "a@q.example", ("q",), 4)))
    for tenant in (first, "one", "both", "two"):
        for number in range(8):
            lanes.add(mail(number + 8 * (len(lanes) // 8), tenant))
        take_all(lanes)
    assert {name: state.in_flight for name, state in providers.describe().items()} == {
        "slow1": 4,
        "slow2": 4,
        "quick": 0,
    }
    for number in range(100, 108):
        lanes.add(mail(number, "q"))
    assert len(take_all(lanes)) == 4


def test_one_tenants_slow_provider_leaves_the_places_of_its_other_one() -> None:
    """A tenant's part counts at each provider, and e-mails to one domain over another provider do not wait behind it."""
    given = ("slow", "a@s.example", ("t",), 16), ("quick", "a@q.example", ("t",), 2)
    lanes = Lanes(domain_of, 18, 18, open_providers(*given))
    for number in range(40):
        lanes.add(mail(number, sender="a@s.example"))
    assert len(take_all(lanes)) == 16
    lanes.add(mail(99, sender="a@q.example"))
    assert [one.target.sender for one in take_all(lanes)] == ["a@q.example"]


def test_a_tenant_leaves_others_the_last_quarter_of_a_provider() -> None:
    lanes = Lanes(domain_of, 8, 8, open_providers(("all", "a@s.example", (), 8)))
    for number in range(20):
        lanes.add(mail(number))
    assert len(take_all(lanes)) == 6
    lanes.add(mail(99, "other"))
    assert [one.tenant for one in take_all(lanes)] == ["other"]


def test_the_place_of_what_its_sender_never_got_is_free_again() -> None:
    lanes = Lanes(domain_of, 1, 1, open_providers(("all", "a@s.example", ("t",), 1)))
    lanes.add(mail(1))
    lanes.add(mail(2))
    (taken,) = take_all(lanes)
    lanes.end(taken)
    assert len(take_all(lanes)) == 1


@pytest.mark.parametrize("tenants", [1, 10_000])
def test_what_waits_for_a_full_provider_is_skipped_together(tenants: int) -> None:
    providers = open_providers(("full", "a@full.example", (), 1), ("quick", "a@quick.example", (), 4))
    lanes = Lanes(domain_of, 8, 8, providers)
    lanes.add(mail(0, sender="a@full.example"))
    assert len(take_all(lanes)) == 1
    for number in range(1, 10_001):
        lanes.add(mail(number, f"t{number % tenants}", "a@full.example", f"d{number}"))
    lanes.add(mail(20_000, "t", "a@quick.example"))
    steps = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal steps
        steps += event == "call"

    sys.setprofile(count)
    try:
        taken = lanes.take()
        assert lanes.take() is None
    finally:
        sys.setprofile(None)
    assert taken is not None and taken.shipment.target.sender == "a@quick.example"
    assert len(lanes) == 10_000 and steps < 200


class FullDisk:
    """A store that refuses to put deliveries off."""

    async def put_off(self, rows: Sequence[PutOff]) -> None:
        raise StoreFailed("disk full")


async def test_a_tick_that_fails_keeps_no_slot() -> None:
    clocks = Clocks(lambda: 0, lambda: 0)
    dispatcher = Dispatcher("webhook", FullDisk(), None, clocks, pace=Pace(slots=8, per_lane=2))  # type: ignore[arg-type]  # no more is called
    for number in range(1, 4):
        dispatcher._hold(hold(number, "a"))
        dispatcher._put_off.append(PutOff(DeliveryKey(9, number, "webhook", 1), 0, 5))
        with pytest.raises(StoreFailed):
            await dispatcher.tick()
    assert len(dispatcher._choose_starts()) == 3, "all wait, and the slots are free"
