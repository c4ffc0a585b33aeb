"""`rejoinder sample` and `rejoinder demo`."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from rejoinder.cli.app import Seed, app


class World(StrEnum):
    """What can be generated."""

    IRC = "irc"
    ADVISING = "advising"
    FILMS = "films"
    HELPDESK = "helpdesk"


@app.command(epilog="Example: rejoinder sample helpdesk --out helpdesk --size 500 --seed 1")
def sample(
    world: Annotated[
        World,
        typer.Argument(
            metavar="WORLD",
            help="irc: support-channel logs with true reply links; advising: course advising with paraphrases; films: "
            "knowledge base, ratings, discussions; helpdesk: dialogues with 19 annotators, English and Chinese.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder to write to.")],
    size: Annotated[
        int,
        typer.Option(
            "--size", min=1, help="Messages (irc), dialogues (advising), training dialogues (helpdesk), films."
        ),
    ] = 1_000,
    seed: Seed = 0,
) -> None:
    """Generate sample data: everything runs with no download."""
    from importlib import import_module

    from rejoinder.folders import clear_folder
    from rejoinder.report.terminal import progress

    clear_folder(out)
    with progress(f"generating {world.value}", total=None):
        import_module(f"rejoinder.sample.{world.value}").write(out, size, seed)
    typer.echo(f"{world.value}: {out}", err=True)


@app.command(epilog="Example: rejoinder demo --out demo --size 300")
def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder to write to.")] = Path("demo"),
    size: Annotated[int, typer.Option("--size", min=50, help="Examples in each test set.")] = 300,
    seed: Seed = 0,
) -> None:
    """Run the whole loop on generated data.

    Sample world, tasks, simple systems, scores, tests, one report.
    """
    from rejoinder.demo import run

    run(out, size, seed)
