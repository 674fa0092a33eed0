"""A signal during the start is reported, and ends the process."""

import signal
import threading

from godwit.signals.terminations import Terminations

DEADLINE_S = 10


def test_a_signal_is_told_and_then_ends_the_process_also_where_telling_fails() -> None:
    before = signal.getsignal(signal.SIGUSR1)
    happened: list[object] = []
    is_over = threading.Event()

    def end(code: int) -> None:
        happened.append(code)
        is_over.set()

    def tell(number: signal.Signals) -> None:
        happened.append(number)
        raise OSError("no log")

    terminations = Terminations(end)
    terminations.tell = tell
    try:
        terminations.hold(signal.SIGUSR1)
        signal.raise_signal(signal.SIGUSR1)
        assert is_over.wait(DEADLINE_S)
        assert happened == [signal.SIGUSR1, 0]
    finally:
        signal.signal(signal.SIGUSR1, before)
