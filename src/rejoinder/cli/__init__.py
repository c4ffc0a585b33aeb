"""The command line: `rejoinder --help`. Commands import what they need when they run, so that help answers at once."""

import io
import sys

import typer

from rejoinder.cli import board, build, chats, evaluate, films, judge, learn, runs, sample
from rejoinder.cli.app import app

__all__ = ["app", "board", "build", "chats", "evaluate", "films", "judge", "learn", "main", "runs", "sample"]


def main() -> None:
    """Run the command line; a mistake in the input is one line on the error stream and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot show an arrow shows a question mark
    try:
        app()
    except Exception as error:
        code, line = _told(error)
        typer.echo(f"error: {line}", err=True)
        sys.exit(code)


def _told(error: Exception) -> tuple[int, object]:
    """Return the exit code and the line for what a person can mend; other errors are shown as they are."""
    from rejoinder.errors import UserError, is_out_of_memory, lack_of_room, missing_library

    if isinstance(error, ModuleNotFoundError):
        error = missing_library("this", error)
    if isinstance(error, UserError):
        return 2, error
    if is_out_of_memory(error):
        return 1, "out of memory; this needs more than there is"
    if isinstance(error, OSError) and error.filename is not None:
        return 1, error
    if reason := lack_of_room(error):
        return 1, f"output cannot be written ({reason})"
    if isinstance(error, OSError):
        return 1, error
    raise error
