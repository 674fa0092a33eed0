"""An early SIGHUP is not lost."""

import signal
import subprocess
import sys

import pytest

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


SPY = """
import _signal, sys

before = set(sys.modules)

def note(number, handler):
    print(number == _signal.SIGHUP, *sorted(name for name in set(sys.modules) - before if name != "__future__"))
    sys.exit(0)

_signal.signal = note
from godwit.__main__ import main

sys.argv = ["godwit", *sys.argv[1:]]
main()
"""


@pytest.mark.parametrize("command", ["serve", "dispatch run"])
def test_a_server_handles_hangups_before_it_imports_anything_large(command: str) -> None:
    run = subprocess.run([sys.executable, "-c", SPY, *command.split()], capture_output=True, text=True)
    assert run.stdout.split() == ["True", "godwit", "godwit.__main__", "godwit.signals", "godwit.signals.hangups"]
