"""Pages for organisers: competitions, tracks, people, the audit log. Every act is noted in that log."""

import re
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, HTTPException, Request, Response
from sqlalchemy import select
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile

from rejoinder.board import accounts, audit, competitions, standings
from rejoinder.board.models import Act, Competition, Track, User, now
from rejoinder.board.names import clean_filename
from rejoinder.board.scorer_process import ScorerProcess
from rejoinder.board.web.board_pages import competition_of, track_of
from rejoinder.board.web.visitor import Administrator, Visitor, guarded, redirect
from rejoinder.errors import UserError

router = APIRouter(prefix="/admin", include_in_schema=False)
form = [Depends(guarded)]
Text = Annotated[str, Form(max_length=competitions.LONGEST_DESCRIPTION + 1000)]
_TIME = "%Y-%m-%dT%H:%M"


@router.get("")
def admin_page(visitor: Administrator) -> Response:
    """Show what there is to do."""
    with visitor.board.site.database.reading() as session:
        found = list(session.scalars(select(Competition).order_by(Competition.created.desc())))
        people = list(session.scalars(select(User).order_by(User.created)))
        acts = list(session.scalars(select(Act).order_by(Act.at.desc()).limit(8)))
    return visitor.page("admin.html", competitions=found, people=people, acts=acts)


@router.get("/audit")
def audit_page(visitor: Administrator) -> Response:
    """Show the audit log."""
    with visitor.board.site.database.reading() as session:
        acts = list(session.scalars(select(Act).order_by(Act.at.desc()).limit(1000)))
    return visitor.page("audit.html", acts=acts)


def _rules(sent: dict[str, Any]) -> competitions.Rules:
    """Read the form of a competition."""

    def time(name: str) -> datetime:
        try:
            return datetime.strptime(str(sent.get(name, ""))[:16], _TIME).replace(tzinfo=UTC)
        except ValueError:
            raise UserError(f"{name}: expected a date and a time, in UTC") from None

    def number(name: str, what: str) -> int:
        text = str(sent.get(name, "")).strip()
        if not text.isascii() or not text.isdigit() or len(text) > 6:
            raise UserError(f"{what}: expected a whole number")
        return int(text)

    return competitions.Rules(
        name=str(sent.get("name", "")),
        description=str(sent.get("description", "")).replace("\r\n", "\n"),
        opens=time("opens"),
        closes=time("closes"),
        share=number("share", "share") / 100,
        quota=number("quota", "quota"),
        daily=number("daily", "daily quota") if str(sent.get("daily", "")).strip() else None,
        digits=number("digits", "digits"),
        ladder=bool(sent.get("ladder")),
        log2=sent.get("transform") == "log2",
        private=bool(sent.get("private")),
        finals=number("finals", "final runs"),
        baselines=[name for name in competitions.BASELINES if sent.get(f"baseline_{name}")],
    )


def _values(rules: competitions.Rules | Competition) -> dict[str, Any]:
    """Return what the form of a competition shows."""
    names = ("name", "description", "quota", "daily", "digits", "ladder", "private", "finals", "baselines")
    return {
        **{name: getattr(rules, name) for name in names},
        "opens": rules.opens.strftime(_TIME),
        "closes": rules.closes.strftime(_TIME),
        "share": round(rules.share * 100),
        "transform": "log2" if rules.log2 else "none",
    }


def _sent_values(sent: dict[str, Any]) -> dict[str, Any]:
    """Return what the form shows again after a mistake."""
    names = ("name", "description", "quota", "daily", "digits", "finals", "opens", "closes", "share", "transform")
    baselines = [name for name in competitions.BASELINES if sent.get(f"baseline_{name}")]
    marks = {name: bool(sent.get(name)) for name in ("ladder", "private")}
    return {**{name: sent.get(name, "") for name in names}, **marks, "baselines": baselines}


@router.get("/new")
def new_page(visitor: Administrator) -> Response:
    """Show the form of a new competition."""
    start = now().replace(minute=0, second=0, microsecond=0)
    rules = competitions.Rules(name="", opens=start, closes=start + timedelta(days=30))
    return visitor.page("competition_form.html", values=_values(rules), competition=None)


@router.post("/new", dependencies=form)
async def create(request: Request, visitor: Administrator) -> Response:
    """Add a competition."""
    sent = dict((await request.form()).items())
    return await run_in_threadpool(_create, visitor, sent)


def _create(visitor: Visitor, sent: dict[str, Any]) -> Response:
    assert visitor.user
    try:
        with visitor.board.site.database.writing() as session:
            competition = competitions.create_competition(session, _rules(sent))
            audit.note(session, visitor.user, "created a competition", competition.slug)
    except UserError as error:
        return visitor.page("competition_form.html", 400, values=_sent_values(sent), competition=None, error=error)
    return redirect(f"/admin/c/{competition.slug}")


@router.get("/c/{slug}")
def edit_page(visitor: Administrator, slug: str) -> Response:
    """Show a competition's form and tracks."""
    return _edit(visitor, competition_of(visitor, slug))


def _edit(visitor: Visitor, competition: Competition, status: int = 200, **values: Any) -> Response:
    values = {"values": _values(competition), **values}
    return visitor.page("competition_form.html", status, competition=competition, **values)


@router.post("/c/{slug}", dependencies=form)
async def change(request: Request, visitor: Administrator, slug: str) -> Response:
    """Change a competition."""
    sent = dict((await request.form()).items())
    return await run_in_threadpool(_change, visitor, slug, sent)


def _change(visitor: Visitor, slug: str, sent: dict[str, Any]) -> Response:
    assert visitor.user
    before = competition_of(visitor, slug)
    try:
        with visitor.board.site.database.writing() as session:
            changed = competitions.change_competition(session, session.get_one(Competition, before.id), _rules(sent))
            audit.note(session, visitor.user, "changed a competition", slug, **changed)
    except UserError as error:
        return _edit(visitor, before, 400, values=_sent_values(sent), error=error)
    visitor.board.jobs.wake()
    return redirect(f"/admin/c/{slug}")


@router.post("/c/{slug}/close", dependencies=form)
def close(visitor: Administrator, slug: str) -> Response:
    """Close a competition now."""
    assert visitor.user
    found = competition_of(visitor, slug)
    if found.state != "open":
        return _edit(visitor, found, 409, error="only an open competition can be closed")
    with visitor.board.site.database.writing() as session:
        session.get_one(Competition, found.id).closes = now()
        audit.note(session, visitor.user, "closed a competition", slug)
    visitor.board.jobs.wake()
    return redirect(f"/c/{slug}")


@router.post("/c/{slug}/tracks")
async def add_track(request: Request, visitor: Administrator, slug: str) -> Response:
    """Add a track with its truth."""
    found = await run_in_threadpool(competition_of, visitor, slug)
    async with request.form(max_files=8, max_fields=10) as sent:
        visitor.check_form(sent.get("csrf", ""))
        with tempfile.TemporaryDirectory() as folder:
            try:
                uploads = await _save(sent, Path(folder))
                await run_in_threadpool(_add_track, visitor, found, uploads, sent)
            except UserError as error:
                message = _as_sent(str(error), folder, str(visitor.board.site.truths))
                return await run_in_threadpool(_edit, visitor, found, 400, error=message)
    visitor.board.jobs.wake()
    return redirect(f"/admin/c/{slug}#tracks")


def _as_sent(message: str, *folders: str) -> str:
    """Name files as they were sent, `truth/a.json`, and not where they lie meanwhile."""
    for folder in folders:
        message = re.sub(rf"{re.escape(folder)}/([0-9a-f]{{16}}/)?", "", message)
    return message


async def _save(sent: FormData, folder: Path) -> dict[str, list[Path]]:
    """Write uploaded files to a folder: kind -> files."""
    saved: dict[str, list[Path]] = {"truth": [], "options": [], "entities": []}
    for kind, paths in saved.items():
        for file in sent.getlist(kind):
            name = clean_filename(file.filename or ".") if isinstance(file, UploadFile) else "."
            if isinstance(file, UploadFile) and not name.startswith("."):  # a task folder's own notes are hidden
                path = folder / kind / name
                if path in paths:
                    raise UserError(f"{kind}: two files are called {path.name}")
                path.parent.mkdir(exist_ok=True)
                with path.open("xb") as copy:
                    while chunk := await file.read(1 << 20):
                        copy.write(chunk)
                paths.append(path)
    return saved


def _add_track(visitor: Visitor, competition: Competition, uploads: dict[str, list[Path]], sent: FormData) -> None:
    assert visitor.user
    site = visitor.board.site
    files = competitions.store_truth(
        site, uploads["truth"], *(next(iter(uploads[kind]), None) for kind in ("options", "entities"))
    )
    place = competitions.Place(str(sent.get("language", "")), str(sent.get("subtask", "")))
    measures = [name.strip() for name in str(sent.get("measures", "")).split(",") if name.strip()]
    with ScorerProcess() as scorer:
        track = competitions.add_track(site, scorer, competition, files, place, measures)
    with site.database.writing() as session:
        audit.note(session, visitor.user, "added a track", f"{competition.slug}/{track.slug}", files=files.truth)


@router.post("/c/{slug}/{track}/remove", dependencies=form)
def remove_track(visitor: Administrator, slug: str, track: str, confirm: Text = "") -> Response:
    """Take a track away with all its runs, if its name is typed to confirm."""
    assert visitor.user
    found = track_of(visitor, slug, track)
    if confirm.strip() != track:
        return _edit(visitor, found.competition, 400, error=f"type {track} to confirm that all its runs will be lost")
    with visitor.board.site.database.writing() as session:
        competitions.remove_track(session, session.get_one(Track, found.id))
        audit.note(session, visitor.user, "removed a track", f"{slug}/{track}")
    competitions.remove_truth(visitor.board.site, found.files["truth"])
    return redirect(f"/admin/c/{slug}")


def _person(visitor: Visitor, user_id: str) -> User:
    with visitor.board.site.database.reading() as session:
        found = session.get(User, user_id)
    if found is None:
        raise HTTPException(404, "there is no such user")
    return found


@router.post("/users/{user_id}/link", dependencies=form)
def reset(visitor: Administrator, user_id: str) -> Response:
    """Make a one-time link for somebody who forgot the password, and show it."""
    assert visitor.user
    person = _person(visitor, user_id)
    with visitor.board.site.database.writing() as session:
        secret = accounts.create_link(session, person)
        audit.note(session, visitor.user, "made a link for a new password", person.name)
    return visitor.page("reset.html", person=person, link=f"{visitor.board.url}/link/{secret}")


@router.post("/users/{user_id}/role", dependencies=form)
def set_role(visitor: Administrator, user_id: str, role: Text = "") -> Response:
    """Make somebody an administrator, a member, or nobody."""
    assert visitor.user
    person = _person(visitor, user_id)
    if role not in ("administrator", "member", "disabled"):
        raise HTTPException(400, "expected administrator, member or disabled")
    if person.id == visitor.user.id:
        raise HTTPException(409, "you cannot change your own role; ask another administrator")
    with visitor.board.site.database.writing() as session:
        changed = session.get_one(User, user_id)
        changed.admin, changed.disabled = role == "administrator", role == "disabled"
        if person.team_id and changed.disabled != person.disabled:
            standings.remake(session, person.team_id)
        audit.note(session, visitor.user, "changed a role", person.name, role=role)
    visitor.board.jobs.wake()
    return redirect("/admin#people")
