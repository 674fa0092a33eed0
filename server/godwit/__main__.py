"""`python -m godwit`, and the command `godwit`. An interrupt while the program loads ends it without a traceback.

It imports little before the signals of a server are handled: until then, a hangup would end the process.
"""

import sys

SERVERS = (["serve"], ["dispatch", "run"])
"""The commands that run a server."""


def main() -> None:
    if any(sys.argv[1 : 1 + len(command)] == command for command in SERVERS):
        _handle_signals()
    try:
        from .cli import main as command  # takes most of the time until a command begins
    except KeyboardInterrupt:
        sys.stderr.write("godwit: interrupted\n")
        sys.exit(130)
    from .signals import interrupts

    interrupts.EARLY.keep()
    command()


def _handle_signals() -> None:
    from .signals import hangups

    hangups.EARLY.hold()  # a server whose configuration changes while it starts reloads, and is not ended
    import signal

    from .signals import terminations

    terminations.EARLY.hold(signal.SIGTERM)  # also where it is the first process of a container


if __name__ == "__main__":
    main()
