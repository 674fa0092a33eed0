"""Runs the command line: each error becomes one sentence on standard error and an exit code.

Exit codes: 0 success, 1 failure, 2 wrong arguments or configuration, 3 a port could not be opened, 70 an internal error,
130 interrupted by ^C, 141 standard output was closed (as for a program that SIGPIPE ends).
"""

from __future__ import annotations

import contextlib
import errno
import gc
import io
import logging
import math
import os
import sys
import traceback
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from ..errors import EXIT_CONFIG_INVALID, EXIT_LISTEN_FAILED, ConfigInvalid, GodwitError, ListenFailed
from ..words import printable

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer
    from _typeshed import WriteableBuffer

EXIT_FAILED = 1
EXIT_UNEXPECTED = 70
EXIT_INTERRUPTED = 130
EXIT_PIPE_CLOSED = 141
INTERRUPTED = "interrupted"
GARBAGE_THRESHOLD = 10_000
"""How many new objects start a collection of the youngest generation; Python's default is 700."""


class Text(click.types.StringParamType):
    """A text argument or option: UTF-8 in every locale; anything else is refused."""

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(super().convert(value, param, ctx))
        if not any("\ud800" <= character <= "\udfff" for character in text):
            return text
        try:
            return os.fsencode(text).decode()  # a locale of ASCII has left the bytes as they were
        except UnicodeError:
            self.fail(f"{text!a} is not valid UTF-8", param, ctx)


def _refuse_nan(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    """Refuse NaN: every comparison with it is false, so no range check refuses it."""
    if isinstance(value, float) and math.isnan(value):
        raise click.BadParameter(f"{value} is not a number", ctx, param)
    return value


def check_types(command: click.Command) -> click.Command:
    """Make every text parameter of a command and its subcommands refuse text that is not UTF-8, and every number NaN. File
    names may be any bytes.
    """
    for param in command.params:
        if type(param.type) is click.types.StringParamType:
            param.type = Text()
        elif isinstance(param.type, click.types.FloatParamType) and param.callback is None:
            param.callback = _refuse_nan
    if isinstance(command, click.Group):
        for subcommand in command.commands.values():
            check_types(subcommand)
    return command


def run(name: str, command: click.Command) -> int:
    """Run a command with the arguments of this process; returns the exit code."""
    if f"_{name.upper()}_COMPLETE" in os.environ:
        command.main(prog_name=name)  # a shell asks how a word may end; click answers and exits
    _open_streams()
    logging.raiseExceptions = False  # a log line that cannot be written is not worth a traceback
    code, sentence = _call(name, command)
    try:
        sys.stdout.flush()
    except OSError as error:
        code, sentence = _describe(error) if code == 0 else (code, sentence)
    said = printable(f"{name}: {sentence}\n", kept="\n") if sentence else ""
    with contextlib.suppress(OSError):
        sys.stderr.write(said)
        sys.stderr.flush()
    if code:
        drop_output()
    return code


def _call(name: str, command: click.Command) -> tuple[int, str]:
    """The exit code, and the sentence for standard error. It replaces click's `main`, which has other codes."""
    try:
        with command.make_context(name, sys.argv[1:]) as context:
            command.invoke(context)
    except SystemExit as left:
        if isinstance(left.__context__, BrokenPipeError):  # rich leaves with 1 there
            return EXIT_PIPE_CLOSED, ""
        return (
            (left.code, "") if isinstance(left.code, int) else (EXIT_FAILED if left.code else 0, str(left.code or ""))
        )
    except click.exceptions.Exit as left:
        return left.exit_code, ""
    except (KeyboardInterrupt, click.Abort):
        return EXIT_INTERRUPTED, INTERRUPTED
    except click.UsageError as error:
        said = io.StringIO()
        error.show(said)
        with contextlib.suppress(OSError):
            sys.stderr.write(printable(said.getvalue(), kept="\n"))
        return error.exit_code, ""
    except click.ClickException as error:
        return error.exit_code, error.format_message()
    except Exception as error:
        return _describe(error)
    return 0, ""


def _describe(error: Exception) -> tuple[int, str]:
    if isinstance(error, ConfigInvalid):
        return EXIT_CONFIG_INVALID, str(error)
    if isinstance(error, ListenFailed):
        return EXIT_LISTEN_FAILED, str(error)
    if isinstance(error, GodwitError):
        return EXIT_FAILED, str(error)
    if isinstance(error, BrokenPipeError):
        return EXIT_PIPE_CLOSED, ""
    if isinstance(error, OSError):
        where = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, str | bytes | os.PathLike) else ""
        return EXIT_FAILED, f"{where}{error.strerror or error}"
    sys.stderr.write(printable(traceback.format_exc(), kept="\n"))
    return EXIT_UNEXPECTED, f"unexpected {type(error).__name__}: {error}; please report it with the lines above"


class _Standard(io.FileIO):
    """A standard stream whose errors name it."""

    def write(self, data: Buffer, /) -> int:
        with self._naming():
            return super().write(data) or 0

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        with self._naming():
            return super().readinto(buffer) or 0

    def readall(self) -> bytes:
        with self._naming():
            return super().readall() or b""

    @contextlib.contextmanager
    def _naming(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            error.filename = f"standard {('input', 'output', 'error')[self.fileno()]}"
            raise


def _open_streams() -> None:
    """Give each standard stream a file, so that no socket gets its number, and allow any character. A closed standard input
    or output fails when it is used; output to a closed standard error is dropped.
    """
    for number, flags in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError as error:
            if error.errno != errno.EBADF:
                raise
            os.open(os.devnull, flags)  # takes the lowest free number, which is this one
    if sys.stdin is None:
        reader = io.BufferedReader(_Standard(0, "r", closefd=False))
        sys.stdin = io.TextIOWrapper(reader, "utf-8")
    for name, number in (("stdout", 1), ("stderr", 2)):
        before = getattr(sys, name)
        if before is not getattr(sys, f"__{name}__"):
            continue  # code in this process has redirected it
        encoding = before.encoding if before is not None else "utf-8"
        binary = io.BufferedWriter(_Standard(number, "w", closefd=False))
        is_line = number == 2 or binary.isatty()
        setattr(sys, name, io.TextIOWrapper(binary, encoding, "backslashreplace", line_buffering=is_line))


def drop_output() -> None:
    """Discard the buffers of failing streams; otherwise they would fail again, at the latest when Python ends."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def spare_start() -> None:
    """Exclude all current objects from cyclic garbage collection. A server calls it after its start.

    With Python's defaults every loaded module is examined repeatedly: 12 % of the CPU time of dispatch under load, and
    pauses of 50 ms for all Python code.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE_THRESHOLD, *gc.get_threshold()[1:])
