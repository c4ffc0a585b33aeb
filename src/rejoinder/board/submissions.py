"""Submissions: accepted with a quota slot in one transaction, then scored, then counted; or refused at no cost.

The file is on disk before the row is in the database, so a row never lacks its file. A server that dies leaves rows
that wait; the next one scores them. Scoring is the same whenever it happens, and only the first result is recorded.
"""

import hashlib
import os
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from rejoinder.board.ladder import climbs, round_to
from rejoinder.board.models import (
    REFUSED,
    SCORED,
    WAITING,
    Competition,
    Entry,
    Submission,
    SubmissionScores,
    Team,
    Track,
    User,
    new_id,
    now,
)
from rejoinder.board.names import clean_filename
from rejoinder.board.site import Site, sync_folder
from rejoinder.board.vectors import unpack
from rejoinder.errors import UserError

LEASE = timedelta(seconds=8)
"""How long a server is trusted to be busy with a submission without saying so again."""
PACKED = 8
"""How many times the largest upload a gzipped run may unpack to."""


Scored = dict[str, Any]
"""The scorer's answer: means with intervals, and packed scores by example, online and whole."""


class QuotaError(UserError):
    """The team has no run left; `pending` if some are still being scored, and may turn out to cost nothing."""

    def __init__(self, message: str, pending: bool) -> None:
        super().__init__(message)
        self.pending = pending


class TooLargeError(UserError):
    """The file is larger than the board takes."""


class Stored(msgspec.Struct, frozen=True):
    """A file that was received."""

    id: str
    filename: str
    size: int
    digest: str


async def receive(site: Site, filename: str, chunks: AsyncIterator[bytes], most: int) -> Stored:
    """Write a file as it arrives, no more than `most` bytes of it, safely to disk."""
    id_ = new_id()
    path = site.runs / f".{id_}.part"
    digest, size = hashlib.sha256(), 0
    try:
        with path.open("xb") as file:
            async for chunk in chunks:
                size += len(chunk)
                if size > most:
                    raise TooLargeError(f"{clean_filename(filename)}: larger than {most:,} bytes, which is the limit")
                digest.update(chunk)
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        path.rename(site.runs / id_)
        sync_folder(site.runs)
    finally:
        path.unlink(missing_ok=True)
    return Stored(id_, clean_filename(filename), size, digest.hexdigest())


def accept(site: Site, stored: Stored, user: User, track_id: str) -> Submission:
    """Reserve a quota slot for a received file."""
    with site.database.writing() as session:
        return _accept(session, stored, user, track_id)


def discard(site: Site, stored: Stored) -> None:
    """Remove a received file that was not accepted."""
    run_file(site, stored.id).unlink(missing_ok=True)


def run_file(site: Site, submission_id: str) -> Path:
    """Return where a submission's file is."""
    return site.runs / submission_id


def _accept(session: Session, stored: Stored, user: User, track_id: str) -> Submission:
    if user.team_id is None:
        raise UserError("make or join a team first")
    # whoever counts the team's runs waits here for those who do so too
    session.get_one(Team, user.team_id, with_for_update=True)
    track = session.get_one(Track, track_id)
    competition = track.competition
    if competition.state != "open":
        raise UserError("the competition is closed" if competition.state == "closed" else "the competition opens later")
    left = runs_left(session, competition, track_id, user.team_id)
    if left < 1:
        raise _no_run_left(session, competition, track_id, user.team_id)
    if session.get(Entry, (user.team_id, track_id)) is None:
        session.add(Entry(team_id=user.team_id, track_id=track_id, published=not competition.private, best={}))
    last = session.scalar(select(func.max(Submission.number)).where(*_of(user.team_id, track_id)))
    submission = Submission(
        id=stored.id, team_id=user.team_id, track_id=track_id, user_id=user.id, number=(last or 0) + 1,
        filename=stored.filename, size=stored.size, digest=stored.digest, status=WAITING, released={},
    )  # fmt: skip
    session.add(submission)
    session.flush()
    return submission


def _of(team_id: str, track_id: str) -> tuple[Any, ...]:
    return Submission.team_id == team_id, Submission.track_id == track_id


def _counted(session: Session, team_id: str, track_id: str, *more: Any) -> int:
    taken = Submission.status.in_((WAITING, SCORED))
    return (
        session.scalar(select(func.count()).select_from(Submission).where(*_of(team_id, track_id), taken, *more)) or 0
    )


def runs_left(session: Session, competition: Competition, track_id: str, team_id: str) -> int:
    """Return how many runs the team may still hand in now."""
    left = competition.quota - _counted(session, team_id, track_id)
    if competition.daily is not None:
        midnight = now().replace(hour=0, minute=0, second=0, microsecond=0)
        left = min(left, competition.daily - _counted(session, team_id, track_id, Submission.created >= midnight))
    return max(left, 0)


def _no_run_left(session: Session, competition: Competition, track_id: str, team_id: str) -> QuotaError:
    if _counted(session, team_id, track_id, Submission.status == WAITING):
        return QuotaError("your team's last runs are still being scored; try again when they are", pending=True)
    whole = _counted(session, team_id, track_id) >= competition.quota
    used = f"all {competition.quota} runs" if whole else f"today's {competition.daily} runs"
    return QuotaError(f"the quota is used up: your team has handed in {used} of this track", pending=False)


def claim(session: Session) -> Submission | None:
    """Take the oldest waiting submission that no server is busy with, for a while."""
    free = or_(Submission.lease.is_(None), Submission.lease < now())
    found = session.scalar(
        select(Submission)
        .where(Submission.status == WAITING, free)
        .order_by(Submission.created)
        .limit(1)
        .with_for_update(skip_locked=True, of=Submission)
    )
    if found:
        found.lease = now() + LEASE
    return found


def refuse(site: Site, submission_id: str, error: str) -> None:
    """Record what is wrong with a file, which gives its quota slot back; the file goes, or mistakes fill the disk."""
    with site.database.writing() as session:
        submission = _locked(session, submission_id)
        if submission.status == WAITING:
            submission.status, submission.error, submission.scored = REFUSED, error, now()
        refused = submission.status == REFUSED
    if refused:
        run_file(site, submission_id).unlink(missing_ok=True)


def _locked(session: Session, submission_id: str) -> Submission:
    """Return a submission as it is once nobody else counts or changes its team's runs."""
    session.scalar(select(Team).join(Submission).where(Submission.id == submission_id).with_for_update(of=Team))
    return session.get_one(Submission, submission_id)


def record(site: Site, submission_id: str, answer: Scored) -> None:
    """Count a scored submission and release what the Ladder lets out."""
    with site.database.writing() as session:
        submission = _locked(session, submission_id)
        if submission.status != WAITING:
            return
        submission.status, submission.scored = SCORED, now()
        session.add(SubmissionScores(submission_id=submission_id, online=answer["online"], whole=answer["whole"]))
        _release(session, submission, answer)


def _release(session: Session, submission: Submission, answer: Scored) -> None:
    track = submission.track
    competition = track.competition
    entry = session.get_one(Entry, (submission.team_id, submission.track_id), with_for_update={"of": Entry})
    values = unpack(answer["online"])
    released: dict[str, Any] = {}
    best = dict(entry.best)
    holders = {holder["run"] for holder in best.values()} if competition.ladder else ()
    rivals = {run: unpack(session.get_one(SubmissionScores, run).online) for run in holders}
    for measure in track.measures:
        name, higher = measure["name"], measure["higher"]
        if name not in values:
            continue
        means: dict[str, Any] = answer["means"][name]
        rounded: dict[str, Any] = {key: round_to(competition.digits, value) for key, value in means.items()}
        holder = best.get(name)
        if holder is None:
            better = True
        elif competition.ladder:
            rival = rivals[holder["run"]][name]
            better = climbs(values[name], rival, holder["score"], competition.digits, higher)
        else:
            better = (rounded["score"] > holder["score"]) == higher and rounded["score"] != holder["score"]
        if better or not competition.ladder:
            released[name] = rounded
        if better:
            best[name] = {"run": submission.id, **rounded}
    submission.released = released
    if best != entry.best:
        entry.best = best
        track.version += 1


def pick(session: Session, submission: Submission, picked: bool) -> None:
    """Choose a run for the final table, or no longer."""
    competition = submission.track.competition
    if competition.state == "closed":
        raise UserError("the competition is closed; the choice of final runs is fixed")
    if submission.status != SCORED:
        raise UserError("only a scored run can enter the final table")
    session.get_one(Team, submission.team_id, with_for_update=True)
    own = _of(submission.team_id, submission.track_id)
    others = select(func.count()).where(*own, Submission.picked, Submission.id != submission.id)
    if picked and (session.scalar(others) or 0) >= competition.finals:
        raise UserError(f"{competition.finals} runs are chosen already, which is the most there can be")
    submission.picked = picked
