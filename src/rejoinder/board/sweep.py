"""Tidy a board's folder: remove files that no row speaks of, since a server died or an organiser changed his mind."""

import shutil
from contextlib import suppress
from pathlib import Path

from sqlalchemy import select

from rejoinder.board.models import REFUSED, Submission, Track, now
from rejoinder.board.site import Site

OLD = 3600
"""Seconds: younger files may be another server's, which are there before their rows."""


def sweep(site: Site) -> None:
    """Remove old files that were being received, refused, read or written when they were left."""
    with site.database.reading() as session:
        known = {
            site.runs: set(session.scalars(select(Submission.id).where(Submission.status != REFUSED))),
            site.truths: {Path(files["truth"]).parts[1] for files in session.scalars(select(Track.files))},
            site.results: {final["folder"] for final in session.scalars(select(Track.final)) if final},
        }
    found = [path for folder in known for path in folder.iterdir()]
    if not any(path.name in known[path.parent] for path in found):
        return  # a new board; or one that was started with another's database, which must not cost it its files
    for path in found:
        with suppress(FileNotFoundError):  # another server has just renamed it
            if path.name not in known[path.parent] and path.stat().st_mtime < now().timestamp() - OLD:
                _remove(path)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink()
