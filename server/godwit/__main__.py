"""`python -m godwit`, and the command `godwit`. An interrupt while the program loads ends it without a traceback."""

from __future__ import annotations

import signal
import sys

from .signals import hangups, terminations


def main() -> None:
    if "serve" in sys.argv[1:2]:
        hangups.EARLY.hold()  # a node whose configuration changes while it starts reloads, and is not ended
        terminations.EARLY.hold(signal.SIGTERM)  # also where it is the first process of a container
    try:
        from .cli import main as command  # takes most of the time until a command begins
    except KeyboardInterrupt:
        sys.stderr.write("godwit: interrupted\n")
        sys.exit(130)
    command()


if __name__ == "__main__":
    main()
