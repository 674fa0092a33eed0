"""Names of states, and positions of heads."""

from godwit.dispatch.model import Head, State


def test_states_have_names_and_heads_positions() -> None:
    assert [state.label for state in State][:4] == ["queued", "deferred", "sending", "sent"]
    assert Head(7, 42, 1, 1).position == "7.42"
