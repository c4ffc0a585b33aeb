"""`rejoinder board`: online evaluation."""

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from rejoinder.cli.app import app

board = typer.Typer(help="Host a competition with a hidden test set, or enter one.", no_args_is_help=True)
app.add_typer(board, name="board")


@board.callback()
def check_installed(context: typer.Context) -> None:
    """Host a competition with a hidden test set, or enter one."""
    from importlib.util import find_spec

    from rejoinder.errors import UserError

    if context.invoked_subcommand == "submit":  # which needs none of them
        return
    for library in ("alembic", "argon2", "fastapi", "nh3", "sqlalchemy", "uvicorn"):
        if find_spec(library) is None:
            raise UserError(f"the board needs {library}: pip install 'rejoinder[board]'")


Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The board's folder.")]
DatabaseOption = Annotated[
    str | None,
    typer.Option(
        "--database",
        envvar="REJOINDER_DATABASE",
        help="postgresql://user:password@host/name. Default: SQLite in the folder.",
    ),
]


@board.command(epilog="Example: rejoinder board init play --sample")
def init(
    folder: Folder,
    sample: Annotated[
        bool, typer.Option("--sample", help="Add a competition on generated data, and runs to hand in to it.")
    ] = False,
    database: DatabaseOption = None,
) -> None:
    """Make a new board."""
    from rejoinder.board.site import create_site

    with closing(create_site(folder, database)) as site:
        if sample:
            from rejoinder.board.sample import add_sample
            from rejoinder.report.terminal import progress

            with progress("generating the sample competition", None):
                add_sample(site)
    typer.echo(f"made {folder}; start it with: rejoinder board serve {folder}", err=True)
    if sample:
        typer.echo(f"runs to hand in: {folder / 'sample'}", err=True)


@board.command(epilog="Example: rejoinder board serve play --port 8000")
def serve(
    folder: Folder,
    database: DatabaseOption = None,
    host: Annotated[str, typer.Option("--host", help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port to listen at.")] = 8000,
    url: Annotated[
        str | None,
        typer.Option("--url", help="Where people reach the board, such as https://board.example.org behind a proxy."),
    ] = None,
    scorers: Annotated[int, typer.Option("--scorers", min=1, max=64, help="Runs scored at the same time.")] = 2,
    most_megabytes: Annotated[
        int, typer.Option("--max-upload", min=1, max=2000, help="Largest run file, in megabytes.")
    ] = 64,
) -> None:
    """Serve a board.

    The first start prints a link to become its administrator.
    """
    from rejoinder.board.serving import serve as serve_board
    from rejoinder.board.web.app import Options

    local = f"http://{'127.0.0.1' if host == '0.0.0.0' else host}:{port}"
    options = Options(url=url or local, scorers=scorers, most_bytes=most_megabytes * 1_000_000)
    serve_board(folder, database, host, port, options)


@board.command(epilog="Example: rejoinder board submit run.json --to http://127.0.0.1:8000/c/sample/english-quality")
def submit(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The run file, in any format, gzipped or not.")],
    to: Annotated[str, typer.Option("--to", help="The track's address, as the browser shows it.")],
    token: Annotated[
        str, typer.Option("--token", envvar="REJOINDER_TOKEN", help="Your API token, from the board's account page.")
    ],
) -> None:
    """Hand a run in to a board and print its scores.

    A mistake in the file costs no quota.
    """
    from rejoinder.board.client import hand_in
    from rejoinder.report.terminal import print_table, progress

    print_table(hand_in(run, to, token, progress))


@board.command(epilog="Example: rejoinder board backup play --out play.tar.gz")
def backup(
    folder: Folder,
    out: Annotated[Path, typer.Option("--out", help="The archive to write.")],
    database: DatabaseOption = None,
) -> None:
    """Write everything of a board to one archive, while it runs."""
    from rejoinder.board.backup import write_backup
    from rejoinder.board.site import open_site
    from rejoinder.files import spare_inputs

    spare_inputs(out)
    with closing(open_site(folder, database)) as site:
        write_backup(site, out)
    typer.echo(f"backup: {out}", err=True)


@board.command(epilog="Example: rejoinder board restore play.tar.gz copy")
def restore(
    archive: Annotated[Path, typer.Argument(metavar="ARCHIVE", help="What `rejoinder board backup` wrote.")],
    folder: Folder,
    database: DatabaseOption = None,
) -> None:
    """Make a board from a backup.

    On SQLite or PostgreSQL, whichever it came from.
    """
    from rejoinder.board.backup import read_backup

    read_backup(archive, folder, database)
    typer.echo(f"restored {folder}; start it with: rejoinder board serve {folder}", err=True)


@board.command(epilog="Example: rejoinder board archive play --out site")
def archive(
    folder: Folder,
    out: Annotated[Path, typer.Option("--out", help="Folder to write to.")],
    database: DatabaseOption = None,
) -> None:
    """Write the whole board as static pages.

    Descriptions, leaderboards, final tables and reports.
    """
    from rejoinder.board.archive import write_archive
    from rejoinder.board.site import open_site

    with closing(open_site(folder, database)) as site:
        write_archive(site, out)
    typer.echo(f"archive: {out / 'index.html'}", err=True)
