"""The application that commands join, and what several of them share."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from threading import current_thread, main_thread
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from rejoinder.errors import interrupt

if TYPE_CHECKING:
    from rejoinder.report.output import Style

ORDER = (
    *("demo", "sample", "build", "import", "export", "disentangle"),
    *("recipes", "train", "predict", "index", "crossvalidate", "fuse", "convert"),
    *("score", "compare", "overview", "reliability", "published"),
    *("describe", "judge", "board"),
)
"""The commands as the help lists them: as the work goes."""


class Commands(TyperGroup):
    """Lists commands in the order of the work."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the commands' names."""
        return sorted(super().list_commands(ctx), key=[*ORDER, *super().list_commands(ctx)].index)


app = typer.Typer(
    name="rejoinder",
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
)


class RunFormat(StrEnum):
    """Formats of a run file."""

    DIALEVAL = "dialeval"
    DSTC7 = "dstc7"
    PARQUET = "parquet"
    TREC = "trec"


@contextmanager
def resumable() -> Iterator[None]:
    """Tell whoever interrupts long work, by Ctrl-C or as a batch system does, how it goes on."""
    ours = current_thread() is main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    if ours:
        signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    except KeyboardInterrupt as stop:
        typer.echo("interrupted; the same command goes on with what was kept", err=True)
        raise typer.Exit(143 if stop.args == (signal.SIGTERM,) else 130) from None
    finally:
        if ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


Pool = Annotated[
    Path | None,
    typer.Option(
        "--pool", help="What all examples of official files choose from (subtask 2): lines `id TAB utterance`."
    ),
]
Seed = Annotated[int, typer.Option("--seed", min=0, max=2**63 - 1, help="Seed of every random choice.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Csv = Annotated[bool, typer.Option("--csv", help="Print CSV.")]
Markdown = Annotated[bool, typer.Option("--markdown", help="Print Markdown.")]
Latex = Annotated[bool, typer.Option("--latex", help="Print LaTeX (booktabs).")]


def chosen_style(**wanted: bool) -> "Style":
    """Return the one way of printing that is wanted; the terminal's, if none is."""
    from rejoinder.report.output import Style

    chosen = [name for name, is_wanted in wanted.items() if is_wanted]
    if len(chosen) > 1:
        raise typer.BadParameter(f"--{chosen[0]} and --{chosen[1]} exclude each other")
    return Style(chosen[0] if chosen else "terminal")


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
