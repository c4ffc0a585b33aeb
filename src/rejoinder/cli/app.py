"""The application that commands join, and what several of them share."""

from typing import Annotated

import typer

app = typer.Typer(
    name="rejoinder",
    help="Choose the next reply in a dialogue, judge how a dialogue went, and prove which system does it better.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
)


Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of every random choice.")]


def _version(wanted: bool) -> None:
    if wanted:
        from rejoinder import __version__

        typer.echo(f"rejoinder {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Choose the next reply in a dialogue, judge how a dialogue went, and prove which system does it better.

    Start with `rejoinder demo`.
    """
