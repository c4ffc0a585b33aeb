"""A board: a folder with its files, and its database."""

import os
import shutil
from pathlib import Path

from rejoinder.board.database import Database, sqlite_url
from rejoinder.errors import UserError

PARTS = ("runs", "truths", "results")
"""Submitted files, what they are scored against, and what is made of them after closing."""


class Site:
    """Where everything of one board is."""

    def __init__(self, folder: Path, database: str | None = None) -> None:
        if not (folder / PARTS[0]).is_dir():
            raise UserError(f"{folder} is no board; make one with `rejoinder board init {folder}`")
        self.folder = folder.resolve()
        self.runs, self.truths, self.results = (self.folder / part for part in PARTS)
        self.database = Database(database or sqlite_url(folder))

    def close(self) -> None:
        """Close the database."""
        self.database.close()


def make_folder(folder: Path) -> None:
    """Make a new board's folder, which nobody else may read."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} exists and is not an empty folder; give another name")
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    for part in PARTS:
        (folder / part).mkdir()


def create_site(folder: Path, database: str | None = None) -> Site:
    """Make a new board."""
    make_folder(folder)
    try:
        return open_site(folder, database)
    except BaseException:
        shutil.rmtree(folder)
        raise


def open_site(folder: Path, database: str | None = None) -> Site:
    """Open a board and bring its tables up to date."""
    site = Site(folder, database)
    try:
        site.database.migrate()
    except BaseException:
        site.close()
        raise
    return site


def sync_folder(folder: Path) -> None:
    """Make sure that new names in a folder outlive a crash."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
