"""The command `godwit-pipelines`, also as `python -m godwit_pipelines`. Owns that it is stopped while it loads as calmly as later."""

from __future__ import annotations

import sys

from .errors import EXIT_STOPPED, STOPPED
from .stopping import hear


def main() -> None:
    try:
        hear()
        from .cli import main as command  # takes most of a second
    except KeyboardInterrupt:
        sys.stderr.write(f"{STOPPED}\n")
        sys.exit(EXIT_STOPPED)
    command()


if __name__ == "__main__":
    main()
