"""The command line: `rejoinder --help`. Commands import what they need when they run, so that help answers at once."""

import io
import sys
from typing import NoReturn

import typer

from rejoinder.cli import board, build, evaluate, films, judge, learn, runs, sample
from rejoinder.cli.app import app

__all__ = ["app", "board", "build", "evaluate", "films", "judge", "learn", "main", "runs", "sample"]


def main() -> None:
    """Run the command line; a mistake in the input is one line on the error stream and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot show an arrow shows a question mark
    try:
        app()
    except ModuleNotFoundError as error:
        from rejoinder.errors import missing_library

        _stop(missing_library("this", error))
    except (MemoryError, RuntimeError) as error:
        from rejoinder.errors import is_out_of_memory

        if not is_out_of_memory(error):
            raise
        typer.echo("error: out of memory; this needs more than there is", err=True)
        sys.exit(1)
    except OSError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(1)
    except ValueError as error:
        _stop(error)


def _stop(error: Exception) -> NoReturn:
    """End with one line on a mistake that a person can mend; others are shown as they are."""
    from rejoinder.errors import UserError

    if not isinstance(error, UserError):
        raise error
    typer.echo(f"error: {error}", err=True)
    sys.exit(2)
