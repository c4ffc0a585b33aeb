"""The API for programs: hand runs in, ask for scores and leaderboards; described at /api/openapi.json."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, HTTPException, Path, Query, Request, Response
from pydantic import BaseModel, Field
from sqlalchemy import select
from starlette.concurrency import run_in_threadpool

from rejoinder.board import submissions
from rejoinder.board.competitions import find_track
from rejoinder.board.leaderboard import lines_of
from rejoinder.board.models import Competition, Submission, Track, User
from rejoinder.board.web.receiving import take_run
from rejoinder.board.web.visitor import Board, TokenHolder, get_board
from rejoinder.errors import UserError

router = APIRouter(prefix="/api")

Slug = Annotated[str, Path(pattern="^[a-z0-9-]{1,60}$", description="The competition, as in its address.")]
TrackSlug = Annotated[str, Path(pattern="^[a-z0-9-]{1,80}$", description="The track, as in its address.")]


class Problem(BaseModel):
    """What is wrong."""

    detail: str | list[dict[str, Any]]


class ScoreOut(BaseModel):
    """A rounded online score with its 95% interval; null where all examples have the same score."""

    score: float
    low: float | None
    high: float | None


class RunOut(BaseModel):
    """A submission: `scores` holds what the Ladder released of it."""

    id: str
    number: int
    file: str
    status: Literal["waiting", "scored", "refused"]
    error: str | None
    scores: dict[str, ScoreOut]
    received: datetime
    runs_left: int = Field(description="How many more runs the team may hand in to this track now.")


class TrackOut(BaseModel):
    """A test set with its measures."""

    slug: str
    language: str
    subtask: str
    examples: int
    measures: list[str]


class CompetitionOut(BaseModel):
    """A contest."""

    slug: str
    name: str
    state: Literal["soon", "open", "closed"]
    opens: datetime
    closes: datetime
    quota: int
    daily_quota: int | None
    tracks: list[TrackOut]


class ShownScore(BaseModel):
    """A score as the leaderboard shows it: a dash for both ends where there is no interval."""

    score: str
    low: str
    high: str
    group: str
    best: bool


class LineOut(BaseModel):
    """A row of a leaderboard."""

    name: str
    kind: Literal["team", "baseline"]
    scores: dict[str, ShownScore]


class LeaderboardOut(BaseModel):
    """A track's standings, in order of one measure."""

    by: str
    final: bool
    lines: list[LineOut]


class UserOut(BaseModel):
    """Whose token this is."""

    name: str
    team: str | None


def _problems(*codes: int) -> dict[int | str, dict[str, Any]]:
    return {code: {"model": Problem} for code in codes}


@router.get("/me", responses=_problems(401, 429))
def me(user: TokenHolder) -> UserOut:
    """Say whose token this is."""
    return UserOut(name=user.name, team=user.team.name if user.team else None)


@router.get("/competitions")
def competitions(request: Request) -> list[CompetitionOut]:
    """List the competitions."""
    with get_board(request).site.database.reading() as session:
        found = list(session.scalars(select(Competition).order_by(Competition.closes.desc())))
    return [_competition(each) for each in found]


def _competition(found: Competition) -> CompetitionOut:
    tracks = [
        TrackOut(
            slug=track.slug,
            language=track.language,
            subtask=track.subtask,
            examples=track.examples,
            measures=[measure["name"] for measure in track.measures],
        )
        for track in found.tracks
    ]
    return CompetitionOut.model_validate(
        {
            "slug": found.slug, "name": found.name, "state": found.state, "opens": found.opens, "closes": found.closes,
            "quota": found.quota, "daily_quota": found.daily, "tracks": tracks,
        }
    )  # fmt: skip


def _track(board: Board, slug: str, track: str) -> Track:
    with board.site.database.reading() as session:
        found = find_track(session, slug, track)
    if found is None:
        raise HTTPException(404, "there is no such track")
    return found


@router.get("/competitions/{slug}/{track}/leaderboard", responses=_problems(404))
def leaderboard(
    request: Request,
    slug: Slug,
    track: TrackSlug,
    by: Annotated[str | None, Query(max_length=40, description="The measure to order by. Default: the first.")] = None,
) -> LeaderboardOut:
    """Return a track's standings: the online ones, or after closing the final ones."""
    found = _track(get_board(request), slug, track)
    names = [measure["name"] for measure in found.measures]
    if by is not None and by not in names:
        raise HTTPException(404, f"no such measure; there are {', '.join(names)}")
    final = found.final if found.competition.state == "closed" else None
    lines = lines_of(found, final or found.standings, by or names[0])
    return LeaderboardOut.model_validate(
        {
            "by": by or names[0],
            "final": final is not None,
            "lines": [
                {
                    "name": line.name,
                    "kind": "team" if line.team else "baseline",
                    "scores": {
                        name: {"score": s.text, "low": s.low, "high": s.high, "group": s.group, "best": s.best}
                        for name, s in line.scores.items()
                    },
                }
                for line in lines
            ],
        }
    )


@router.post(
    "/competitions/{slug}/{track}/runs",
    status_code=201,
    responses={**_problems(401, 404, 409, 413, 422, 429), 201: {"model": RunOut}, 202: {"model": RunOut}},
    openapi_extra={
        "requestBody": {
            "required": True,
            "description": "The run file itself, in any format that the command line reads, gzipped or not.",
            "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
        }
    },
)
async def submit(
    request: Request,
    response: Response,
    user: TokenHolder,
    slug: Slug,
    track: TrackSlug,
    name: Annotated[str, Query(min_length=1, max_length=200, description="The file's name, for messages.")] = "run",
) -> RunOut:
    """Hand a run in: the request's body is the file.

    201: scored, and counted. 202: still being scored; ask for it again. 422: a mistake in the file, which costs no
    quota. 409: the quota is used up, the competition is not open, or you are in no team.
    """
    board = get_board(request)
    board.limits.upload.check(user.id)
    found = await run_in_threadpool(_track, board, slug, track)
    try:
        run = await take_run(board, user, found, name, _body(request))
    except submissions.TooLargeError as error:
        raise HTTPException(413, str(error)) from None
    except UserError as error:
        raise HTTPException(409, str(error)) from None
    if run.status == "refused":
        raise HTTPException(422, run.error)
    response.status_code = 202 if run.status == "waiting" else 201
    return await run_in_threadpool(_run, board, run)


async def _body(request: Request) -> AsyncIterator[bytes]:
    async for chunk in request.stream():
        yield chunk


def _run(board: Board, run: Submission) -> RunOut:
    with board.site.database.reading() as session:
        return _out(run, submissions.runs_left(session, run.track.competition, run.track_id, run.team_id))


def _out(run: Submission, left: int) -> RunOut:
    return RunOut.model_validate(
        {
            "id": run.id, "number": run.number, "file": run.filename, "status": run.status, "error": run.error,
            "scores": run.released, "received": run.created, "runs_left": left,
        }
    )  # fmt: skip


@router.get("/competitions/{slug}/{track}/runs", responses=_problems(401, 404, 429))
def runs(request: Request, user: TokenHolder, slug: Slug, track: TrackSlug) -> list[RunOut]:
    """List the team's runs of a track, oldest first."""
    board = get_board(request)
    found = _track(board, slug, track)
    with board.site.database.reading() as session:
        own = select(Submission).where(Submission.team_id == user.team_id, Submission.track_id == found.id)
        listed = list(session.scalars(own.order_by(Submission.number)))
        left = submissions.runs_left(session, found.competition, found.id, user.team_id) if user.team_id else 0
    return [_out(each, left) for each in listed]


@router.get("/runs/{run_id}", responses=_problems(401, 404, 429))
def run(request: Request, user: TokenHolder, run_id: Annotated[str, Path(pattern="^[0-9a-f]{16}$")]) -> RunOut:
    """Return one of the team's runs."""
    board = get_board(request)
    found = _own(board, user, run_id)
    return _run(board, found)


def _own(board: Board, user: User, run_id: str) -> Submission:
    with board.site.database.reading() as session:
        found = session.get(Submission, run_id)
    if found is None or found.team_id != user.team_id:
        raise HTTPException(404, "there is no such run")
    return found
