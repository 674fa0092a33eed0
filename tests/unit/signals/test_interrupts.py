"""An interrupt that arrives where Python ignores exceptions ends the command all the same."""

import subprocess
import sys

import pytest

PROGRAM = """
import os, signal, subprocess, sys
import godwit.cli
from godwit.__main__ import main

is_new, null = True, subprocess.DEVNULL

def interrupt():
    global is_new
    if is_new:
        is_new = False
        signal.raise_signal(signal.SIGINT)

class Left:
    def __del__(self):
        interrupt()

def wait():
    if sys.argv[1] == "fork":
        os.register_at_fork(after_in_parent=interrupt)
    else:
        Left()
    try:
        subprocess.run(["sleep", "5"], stdout=null, stderr=null, preexec_fn=lambda: None)
    except KeyboardInterrupt:
        sys.exit(130)

signal.signal(signal.SIGINT, signal.default_int_handler)
godwit.cli.main = wait
main()
"""


@pytest.mark.parametrize("place", ["fork", "destructor"])
def test_an_interrupt_that_python_ignores_is_raised_again(place: str) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, place], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "")
