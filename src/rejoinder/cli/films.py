"""`rejoinder import mdd`."""

from pathlib import Path
from typing import Annotated

import typer

from rejoinder.cli.build import Out, importing


@importing.command(
    "mdd", epilog="Example: rejoinder import mdd task1_qa_dev.txt --entities entities.txt --kb movie_kb.txt --out mdd"
)
def import_mdd(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Files of exchanges, and of candidates for task 4; gzipped or not."),
    ],
    out: Out,
    kb: Annotated[Path, typer.Option("--kb", help="movie_kb.txt, or a CSV or Parquet table of films.")],
    entities: Annotated[
        Path | None, typer.Option("--entities", help="Entity list, one name a line; else entities.txt beside --kb.")
    ] = None,
    task: Annotated[
        int | None, typer.Option("--task", min=1, max=5, help="Which task, where the files' names do not say.")
    ] = None,
) -> None:
    """Read official Movie Dialog files into task folders, one for each task and split."""
    from rejoinder.corpora.films import read_kb
    from rejoinder.report.terminal import progress
    from rejoinder.tasks.film_transfer import import_films, sort_files

    sources, candidates = sort_files(files, task)
    known = read_kb(kb, entities)
    for source in sources:
        with progress(f"reading {source.path.name}", None) as advance:
            folder = import_films(source, out, known, candidates.get(source.split), advance)
        typer.echo(str(folder))
