"""Which names look alike."""

from godwit.access.lookalikes import list_lookalikes


def test_pairs_that_look_alike_are_named_and_others_are_not() -> None:
    alike = [
        ("partner:", "Partner:"),
        ("acme:", "\u0430cme:"),
        ("shop1:", "shopl:"),
        ("modern:", "modem:"),
        ("a-b:", "a_b:"),
    ]
    for pair in alike:
        assert list_lookalikes(pair) == [tuple(sorted(pair))]
    assert list_lookalikes(["acme:", "partner:", "shop:", "", "acme2:"]) == []
