"""Pages for everybody: competitions, leaderboards, final tables."""

import os
from pathlib import Path
from typing import Any

from fastapi import APIRouter, HTTPException, Response
from fastapi.responses import FileResponse
from sqlalchemy import select

from rejoinder.board.competitions import find_competition, find_track
from rejoinder.board.leaderboard import lines_of
from rejoinder.board.models import Competition, Track
from rejoinder.board.standings import results_folder
from rejoinder.board.web.headers import REPORT_POLICY
from rejoinder.board.web.visitor import Anyone, Visitor

router = APIRouter(include_in_schema=False)


def competition_of(visitor: Visitor, slug: str) -> Competition:
    """Return the competition at this address."""
    with visitor.board.site.database.reading() as session:
        competition = find_competition(session, slug)
    if competition is None:
        raise HTTPException(404, "there is no such competition")
    return competition


def track_of(visitor: Visitor, slug: str, track: str) -> Track:
    """Return the track at this address."""
    with visitor.board.site.database.reading() as session:
        found = find_track(session, slug, track)
    if found is None:
        raise HTTPException(404, "there is no such track")
    return found


@router.get("/")
async def index(visitor: Anyone) -> Response:
    """List the competitions."""
    return await visitor.public_page("index.html", lambda: _index(visitor))


def _index(visitor: Visitor) -> dict[str, Any]:
    with visitor.board.site.database.reading() as session:
        found = list(session.scalars(select(Competition).order_by(Competition.closes.desc())))
    order = {"open": 0, "soon": 1, "closed": 2}
    return {"competitions": sorted(found, key=lambda each: order[each.state])}


@router.get("/help")
def help_page(visitor: Anyone) -> Response:
    """Explain how to take part."""
    return visitor.page("help.html", url=visitor.board.url)


@router.get("/c/{slug}")
async def competition(visitor: Anyone, slug: str) -> Response:
    """Show a competition's description and tracks."""
    return await visitor.public_page("competition.html", lambda: {"competition": competition_of(visitor, slug)})


@router.get("/c/{slug}/{track}")
async def leaderboard(visitor: Anyone, slug: str, track: str, by: str = "") -> Response:
    """Show a track's leaderboard and, after closing, its final tables."""
    return await visitor.public_page("leaderboard.html", lambda: _leaderboard(visitor, slug, track, by))


def _leaderboard(visitor: Visitor, slug: str, track: str, by: str) -> dict[str, Any]:
    found = track_of(visitor, slug, track)
    names = [measure["name"] for measure in found.measures]
    by = by if by in names else names[0]
    final = found.final if found.competition.state == "closed" else None
    return {
        "track": found,
        "competition": found.competition,
        "by": by,
        "lines": lines_of(found, found.standings, by),
        "final": final,
        "final_lines": lines_of(found, final, by),
        "charts": _charts(visitor, found),
        "exports": _exports(visitor, found),
    }


def _charts(visitor: Visitor, track: Track) -> list[str]:
    folder = results_folder(visitor.board.site, track)
    return ["means.svg"] if folder and (folder / "charts" / "means.svg").is_file() else []


def _exports(visitor: Visitor, track: Track) -> list[str]:
    folder = results_folder(visitor.board.site, track)
    return sorted(path.name for path in (folder / "tables").glob("*")) if folder else []


_KINDS = {
    ".csv": "text/csv",
    ".md": "text/plain",
    ".tex": "text/plain",
    ".svg": "image/svg+xml",
    ".json": "application/json",
}


@router.get("/c/{slug}/{track}/report")
def report(visitor: Anyone, slug: str, track: str) -> Response:
    """Show the final report, with all tests and charts on one page."""
    return _result(visitor, slug, track, Path("report.html"))


@router.get("/c/{slug}/{track}/tables/{name}")
def table(visitor: Anyone, slug: str, track: str, name: str) -> Response:
    """Return a final table as CSV, Markdown or LaTeX."""
    return _result(visitor, slug, track, Path("tables") / Path(name).name)


@router.get("/c/{slug}/{track}/charts/{name}")
def chart(visitor: Anyone, slug: str, track: str, name: str) -> Response:
    """Return a final chart."""
    return _result(visitor, slug, track, Path("charts") / Path(name).name)


def _result(visitor: Visitor, slug: str, track: str, name: Path) -> Response:
    found = track_of(visitor, slug, track)
    folder = results_folder(visitor.board.site, found)
    # where a name is too long for a file, a path's own is_file fails
    if folder is None or found.competition.state != "closed" or not os.path.isfile(folder / name):  # noqa: PTH113
        raise HTTPException(404, "there is no such result")
    kind = _KINDS.get(name.suffix, "text/html" if name.name == "report.html" else "application/octet-stream")
    return FileResponse(folder / name, media_type=kind, headers={"Content-Security-Policy": REPORT_POLICY})
