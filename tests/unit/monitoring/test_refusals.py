"""The last refusals: a fixed number, newest first, with the code's name and a reason of limited length."""

from godwit.codes import Code
from godwit.monitoring.refusals import REASON_CHARACTERS_MAX, REFUSALS_MAX, Refusals


def test_the_oldest_go_and_the_newest_come_first() -> None:
    refusals = Refusals()
    for number in range(REFUSALS_MAX + 10):
        holder = ("ada", "", "")
        refusals.add(
            number, int(Code.PUBLISH_FORBIDDEN), "x" * 10_000, address="10.0.0.1:1", connection=2**63, holder=holder
        )
    rows = refusals.list()
    assert len(rows) == REFUSALS_MAX and rows[0]["time_ms"] == REFUSALS_MAX + 9 and rows[-1]["time_ms"] == 10
    assert rows[0]["name"] == "PublishForbidden" and len(rows[0]["reason"]) == REASON_CHARACTERS_MAX
    assert rows[0]["connection"] == f"{2**63:x}"
    assert len({row["number"] for row in rows}) == len(rows)


def test_a_code_that_a_peer_made_up_has_no_name() -> None:
    refusals = Refusals()
    refusals.add(1, 3000, "", address="")
    assert refusals.list()[0]["name"] == "" and refusals.list()[0]["connection"] is None
