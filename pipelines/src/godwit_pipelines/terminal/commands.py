"""Turns every error of a command into a sentence and an exit code.

Owns the standard streams: output that nobody reads any more, a full device, or characters that the locale lacks are not failures of a
job, and never cause a trace. Invariant: the exit code is right also if the sentence cannot be written.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
import traceback
from typing import Any, NoReturn

import click

from ..errors import EXIT_PIPE_CLOSED, EXIT_STOPPED, EXIT_UNEXPECTED, STOPPED, DiskFailed, PipelineError
from ..words import sentences

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EBADF, errno.EFBIG)
_CLOSED = "godwit-pipelines: the reader of the output closed it before everything was written"


class Commands(click.Group):
    """The group of commands, as a program."""

    def make_context(self, *args: Any, **given: Any) -> click.Context:
        try:
            return super().make_context(*args, **given)
        except BrokenPipeError as error:  # --help, of which click would make a code of its own
            end(*describe(error))

    def invoke(self, ctx: click.Context) -> Any:
        try:
            done = super().invoke(ctx)
            sys.stdout.flush()
            return done
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except SystemExit as left:
            if not isinstance(left.__context__, BrokenPipeError):  # rich leaves with 1 there
                raise
            end(EXIT_PIPE_CLOSED, _CLOSED)
        except Exception as error:
            end(*describe(error))
        except KeyboardInterrupt:
            end(EXIT_STOPPED, STOPPED)

    def main(self, *args: Any, **given: Any) -> Any:
        """Replaces click's own program, which has other exit codes for output that cannot be written."""
        prepare_streams()
        code = 0
        try:
            code = super().main(*args, **{**given, "standalone_mode": False})
            sys.stdout.flush()
        except click.ClickException as wrong:
            said = io.StringIO()
            wrong.show(said)
            end(wrong.exit_code, sentences(said.getvalue().rstrip("\n")))
        except click.Abort:
            end(EXIT_STOPPED, STOPPED)
        except OSError as error:
            end(*describe(error))
        sys.exit(code if isinstance(code, int) else 0)


def describe(error: Exception) -> tuple[int, str]:
    """The exit code, and the sentence."""
    if isinstance(error, PipelineError):
        return error.exit_code, f"godwit-pipelines: {sentences(error)}"
    if isinstance(error, BrokenPipeError):
        return EXIT_PIPE_CLOSED, _CLOSED
    if isinstance(error, OSError) and error.filename is not None:
        return DiskFailed.exit_code, f"godwit-pipelines: {sentences(error)}"
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        return DiskFailed.exit_code, f"godwit-pipelines: the output cannot be written: {error.strerror}"
    trace = "".join(traceback.format_exception(error)).rstrip("\n")
    return EXIT_UNEXPECTED, sentences(f"{trace}\n{summary(error)}")  # not 1: nothing was found


def summary(error: Exception) -> str:
    """The part of an error that helps a person: its last line, without Spark's plan."""
    first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return f"godwit-pipelines: unexpected {type(error).__name__}{f': {first}' if first else ''}"


def end(code: int, text: str = "") -> NoReturn:
    """Print the sentence if possible, and exit with the code. Remaining output is dropped, because writing it would fail again."""
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"{text}\n" if text else "")
        sys.stderr.flush()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    sys.exit(code)


def prepare_streams() -> None:
    """Make every character printable: those that the locale lacks are escaped. Output that is closed fails when it is written."""
    for name, number, flags in (("stdout", 1, os.O_RDONLY), ("stderr", 2, os.O_WRONLY)):
        if getattr(sys, name) is None:
            os.dup2(os.open(os.devnull, flags), number)
            setattr(sys, name, os.fdopen(number, "w", encoding="utf-8"))
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
