"""Names of states, and positions of heads."""

from godwit.dispatch.model import Head, State, Target


def test_states_have_names_and_heads_positions() -> None:
    assert [state.label for state in State][:4] == ["queued", "deferred", "sending", "sent"]
    assert Head(7, 42, 1, 1).position == "7.42"


def test_a_target_is_shown_without_its_secret() -> None:
    assert "whsec_1" not in repr(Target(1, 2, "ann", "https://ann.example/", "whsec_1", '{"body":"whsec_1"}'))
