"""Pages of a team: hand runs in, see their history, choose final ones, publish."""

from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, HTTPException, Request, Response
from fastapi.responses import JSONResponse
from sqlalchemy import select
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile

from rejoinder.board import submissions
from rejoinder.board.leaderboard import make_score, progress_plot
from rejoinder.board.models import Entry, Submission, Team, Track
from rejoinder.board.web.board_pages import track_of
from rejoinder.board.web.receiving import take_run
from rejoinder.board.web.visitor import InTeam, SignedIn, Visitor, guarded, redirect
from rejoinder.errors import UserError

router = APIRouter(include_in_schema=False)
form = [Depends(guarded)]


@router.get("/c/{slug}/{track}/runs")
def runs_page(visitor: InTeam, slug: str, track: str, by: str = "") -> Response:
    """Show the team's runs and the form to hand one in."""
    return _runs(visitor, track_of(visitor, slug, track), by)


def _runs(visitor: Visitor, track: Track, by: str = "", status: int = 200, **values: Any) -> Response:
    assert visitor.user and visitor.user.team_id
    team_id = visitor.user.team_id
    with visitor.board.site.database.reading() as session:
        own = select(Submission).where(Submission.team_id == team_id, Submission.track_id == track.id)
        runs = list(session.scalars(own.order_by(Submission.number.desc())))
        entry = session.get(Entry, (team_id, track.id))
        left = submissions.runs_left(session, track.competition, track.id, team_id)
    names = [measure["name"] for measure in track.measures]
    by = by if by in names else names[0]
    return visitor.page(
        "runs.html",
        status,
        track=track,
        competition=track.competition,
        runs=runs,
        entry=entry,
        left=left,
        by=by,
        plot=progress_plot(track, runs, by),
        score=lambda values: make_score(track, values),
        most_bytes=visitor.board.most_bytes,
        **values,
    )


@router.post("/c/{slug}/{track}/runs")
async def submit(request: Request, visitor: InTeam, slug: str, track: str) -> Response:
    """Receive a run, check and score it."""
    assert visitor.user
    visitor.board.limits.upload.check(visitor.user.id)
    found = await run_in_threadpool(track_of, visitor, slug, track)
    async with request.form(max_files=1, max_fields=5) as sent:
        visitor.check_form(sent.get("csrf", ""))
        file = sent.get("run")
        try:
            if not isinstance(file, UploadFile) or not file.filename:
                raise UserError("choose a run file first")
            submission = await take_run(visitor.board, visitor.user, found, file.filename, _chunks(file))
        except UserError as error:
            return await run_in_threadpool(_complain, visitor, found, error)
    path = f"/runs/{submission.id}"
    return JSONResponse({"path": path}) if _is_script(request) else redirect(path)


def _complain(visitor: Visitor, track: Track, error: UserError) -> Response:
    status = 413 if isinstance(error, submissions.TooLargeError) else 409
    if _is_script(visitor.request):
        return JSONResponse({"error": str(error)}, status)
    return _runs(visitor, track, status=status, error=error)


def _is_script(request: Request) -> bool:
    return "application/json" in request.headers.get("accept", "")


async def _chunks(file: UploadFile) -> AsyncIterator[bytes]:
    while chunk := await file.read(1 << 20):
        yield chunk


def _own(visitor: Visitor, submission_id: str) -> Submission:
    """Return a submission of the visitor's team, or of any team for an administrator."""
    assert visitor.user
    with visitor.board.site.database.reading() as session:
        found = session.get(Submission, submission_id)
    if found is None or (found.team_id != visitor.user.team_id and not visitor.user.admin):
        raise HTTPException(404, "there is no such run")
    return found


@router.get("/runs/{submission_id}")
def run_page(visitor: SignedIn, submission_id: str) -> Response:
    """Show one run and what came of it."""
    run = _own(visitor, submission_id)
    with visitor.board.site.database.reading() as session:
        entry = session.get(Entry, (run.team_id, run.track_id))
        left = submissions.runs_left(session, run.track.competition, run.track_id, run.team_id)
    return visitor.page(
        "run.html",
        run=run,
        track=run.track,
        competition=run.track.competition,
        best=entry.best if entry else {},
        left=left,
        score=lambda values: make_score(run.track, values),
    )


@router.post("/runs/{submission_id}/final", dependencies=form)
def choose_final(visitor: InTeam, submission_id: str, picked: Annotated[bool, Form()] = False) -> Response:
    """Choose a run for the final table, or no longer."""
    assert visitor.user
    run = _own(visitor, submission_id)
    if run.team_id != visitor.user.team_id:
        raise HTTPException(403, "only the team itself chooses its final runs")
    slug, track = run.track.competition.slug, run.track.slug
    try:
        with visitor.board.site.database.writing() as session:
            submissions.pick(session, session.get_one(Submission, submission_id), picked)
    except UserError as error:
        return _runs(visitor, track_of(visitor, slug, track), status=409, error=error)
    return redirect(f"/c/{slug}/{track}/runs")


@router.post("/c/{slug}/{track}/publish", dependencies=form)
def publish(visitor: InTeam, slug: str, track: str, published: Annotated[bool, Form()] = False) -> Response:
    """Show the team's scores on the leaderboard, or no longer."""
    assert visitor.user and visitor.user.team_id
    found = track_of(visitor, slug, track)
    if not found.competition.private:
        raise HTTPException(409, "in this competition all scores are public")
    key = (visitor.user.team_id, found.id)
    with visitor.board.site.database.writing() as session:
        session.get_one(Team, visitor.user.team_id, with_for_update=True)
        entry = session.get(Entry, key)
        if entry is None:
            entry = Entry(team_id=key[0], track_id=key[1], best={})
            session.add(entry)
        entry.published = published
        session.get_one(Track, found.id, with_for_update={"of": Track}).version += 1
    visitor.board.jobs.wake()
    return redirect(f"/c/{slug}/{track}/runs")
