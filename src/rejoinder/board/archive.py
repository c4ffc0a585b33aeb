"""The whole board as static pages that need no server: descriptions, leaderboards, final tables and reports."""

import shutil
from importlib.resources import files
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import selectinload

from rejoinder.board.leaderboard import lines_of
from rejoinder.board.models import Competition, Track, now
from rejoinder.board.site import Site
from rejoinder.board.standings import results_folder
from rejoinder.board.web.templates import make_templates
from rejoinder.files import write_atomically
from rejoinder.folders import clear_folder


def write_archive(site: Site, out: Path) -> None:
    """Write the pages to a folder, in place of an earlier archive there; private teams stay out as on the board."""
    clear_folder(out, mark="board.css", parts=("results",))
    templates = make_templates()
    with site.database.reading() as session:
        whole = selectinload(Competition.tracks).undefer_group("tables")
        found = list(session.scalars(select(Competition).order_by(Competition.closes.desc()).options(whole)))
    static = files("rejoinder.board").joinpath("static")
    for name in ("board.css", "icon.svg"):
        with write_atomically(out / name) as file:
            file.write(static.joinpath(name).read_bytes())
    pages = {"index.html": templates.get_template("archive_index.html").render(competitions=found, when=now())}
    for competition in found:
        tracks = [_track(site, track, out) for track in competition.tracks]
        page = templates.get_template("archive_competition.html")
        pages[f"{competition.slug}.html"] = page.render(competition=competition, tracks=tracks, when=now())
    for name, text in pages.items():
        with write_atomically(out / name) as file:
            file.write(text.encode())


def _track(site: Site, track: Track, out: Path) -> dict[str, Any]:
    by = track.measures[0]["name"]
    final = track.final if track.competition.state == "closed" else None
    place = f"results/{track.competition.slug}/{track.slug}"
    folder = results_folder(site, track)
    if final and folder and folder.is_dir():
        shutil.copytree(folder, out / place)
    return {
        "track": track,
        "by": by,
        "lines": lines_of(track, track.standings, by),
        "final": final,
        "final_lines": lines_of(track, final, by),
        "place": place,
        "tables": sorted(path.name for path in (out / place / "tables").glob("*")),
    }
