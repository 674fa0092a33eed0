"""An early SIGHUP is not lost."""

import signal

from godwit.signals.hangups import Hangups


def test_a_hangup_is_remembered_and_harms_nothing() -> None:
    before = signal.getsignal(signal.SIGHUP)
    hangups = Hangups()
    try:
        hangups.hold()
        assert not hangups.has_come
        signal.raise_signal(signal.SIGHUP)
        assert hangups.has_come
    finally:
        signal.signal(signal.SIGHUP, before)
