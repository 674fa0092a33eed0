"""Two clocks that run forward."""

from godwit.dispatch.clock import mono_ms, now_ms


def test_both_clocks_are_milliseconds_that_do_not_run_back() -> None:
    assert now_ms() > 1_700_000_000_000
    first = mono_ms()
    assert mono_ms() >= first >= 0
