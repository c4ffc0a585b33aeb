"""The command line: `rejoinder --help`. Commands import what they need when they run, so that help answers at once."""

import sys

import typer

from rejoinder.cli import build, evaluate, sample
from rejoinder.cli.app import app

__all__ = ["app", "build", "evaluate", "main", "sample"]


def main() -> None:
    """Run the command line; a mistake in the input is one line on the error stream and exit code 2."""
    try:
        app()
    except (LookupError, ValueError) as error:
        from rejoinder.files import BadInputError
        from rejoinder.measures.measure import UnknownMeasureError

        if not isinstance(error, BadInputError | UnknownMeasureError | LookupError):
            raise
        typer.echo(f"error: {error.args[0] if error.args else error}", err=True)
        sys.exit(2)
