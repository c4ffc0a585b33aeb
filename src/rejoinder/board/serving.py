"""Start the server: one process, with a scorer or two beside it."""

from contextlib import closing
from pathlib import Path

import typer
import uvicorn

from rejoinder.board import accounts
from rejoinder.board.site import open_site
from rejoinder.board.web.app import Options, create_app


def serve(folder: Path, database: str | None, host: str, port: int, options: Options) -> None:
    """Bring the tables up to date, print the first administrator's link, and serve until told to stop."""
    with closing(open_site(folder, database)) as site:
        with site.database.writing() as session:
            secret = accounts.first_link(session)
        typer.echo(f"board: {options.url}")
        if secret:
            typer.echo(f"become its administrator (once, within two days): {options.url.rstrip('/')}/link/{secret}")
        if host not in ("127.0.0.1", "::1", "localhost") and not options.url.startswith("https:"):
            typer.echo(
                "warning: passwords travel unencrypted; put a proxy with HTTPS before the board and give --url https://...",
                err=True,
            )
        uvicorn.run(create_app(site, options), host=host, port=port, log_level="warning", server_header=False)
