"""What leaderboards and final tables show: teams compared by every measure, as JSON in the track's row."""

import logging
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from rejoinder.board.leaderboard import TEAM
from rejoinder.board.models import (
    SCORED,
    WAITING,
    Baseline,
    Competition,
    Entry,
    Submission,
    SubmissionScores,
    Team,
    Track,
    new_id,
    now,
)
from rejoinder.board.scorer import Compare, Row
from rejoinder.board.scorer_process import ScorerDiedError, ScorerProcess
from rejoinder.board.site import Site
from rejoinder.board.teams import taking_part

log = logging.getLogger("rejoinder.board")


def refresh(site: Site, scorer: ScorerProcess) -> int:
    """Bring the standings of every track up to date, and return how many were not."""
    with site.database.reading() as session:
        stale = [track for track in session.scalars(select(Track)) if is_stale(track)]
        rows = {track.id: _online_rows(session, track) for track in stale}
    for track in stale:
        found = _compared(scorer, track, Compare(track.name, track.measures, rows[track.id], track.competition.digits))
        if found is None:
            continue
        with site.database.writing() as session:
            if kept := session.get(Track, track.id):  # unless an organiser has just removed it
                kept.standings = {"version": track.version, **found}
    return len(stale)


def _compared(scorer: ScorerProcess, track: Track, request: Compare) -> dict[str, Any] | None:
    """Return what a comparison comes to; None: it cannot be made, for which no other track has to wait."""
    try:
        return scorer.ask(request)
    except ScorerDiedError:
        if scorer.killed:
            raise
        log.exception("the tables of %s were not made", track.slug)
        return None


def is_stale(track: Track) -> bool:
    """Whether something happened since the standings were made."""
    return track.standings is None or track.standings["version"] != track.version


def _online_rows(session: Session, track: Track) -> list[Row]:
    """Return each public team's best run by each measure, as far as released; and the baselines."""
    rows = [Row(base.name, base.online) for base in _baselines(session, track)]
    taking = select(Entry).where(Entry.track_id == track.id, Entry.team_id.in_(taking_part()))
    entries = session.scalars(taking.join(Team).order_by(Team.key))  # in which order teams of equal scores stand
    public = (entry for entry in entries if entry.published or not track.competition.private)
    for entry in public:
        by_run: dict[str, list[str]] = {}
        for measure, holder in entry.best.items():
            by_run.setdefault(holder["run"], []).append(measure)
        for run, measures in by_run.items():
            rows.append(Row(TEAM + entry.team.name, session.get_one(SubmissionScores, run).online, measures))
    return rows


def _baselines(session: Session, track: Track) -> Iterable[Baseline]:
    return session.scalars(select(Baseline).where(Baseline.track_id == track.id).order_by(Baseline.name.desc()))


def finish(site: Site, scorer: ScorerProcess) -> int:
    """Make the final tables of closed competitions once nothing waits to be scored; return how many were made."""
    with site.database.reading() as session:
        closed = select(Track).where(Track.competition.has(Competition.closes <= now()))
        due = [track for track in session.scalars(closed) if track.final is None and not _waits(session, track)]
        rows = {track.id: _final_rows(session, track) for track in due}
    for track in due:
        runs = [row.name for row in rows[track.id]]
        folder = site.results / f"{track.id}-{new_id()}"
        title = f"{track.competition.name}, {track.name}"
        asked = Compare(title, track.measures, rows[track.id], track.competition.digits, str(folder))
        found = _compared(scorer, track, asked) if rows[track.id] else {}
        if found is not None:
            _record_final(site, track.id, runs, {"measures": [], **found, "folder": folder.name})
    return len(due)


def _waits(session: Session, track: Track) -> bool:
    waiting = select(Submission.id).where(Submission.track_id == track.id, Submission.status == WAITING).limit(1)
    return session.scalar(waiting) is not None


def _record_final(site: Site, track_id: str, runs: list[str], final: dict[str, Any]) -> None:
    with site.database.writing() as session:
        track = session.get(Track, track_id)
        if track and track.competition.state == "closed" and track.final is None and _is_whole(session, track, runs):
            track.final = final
            return
    # reopened, or another server was quicker, or a run came or a team went in the last moment: it is made again
    shutil.rmtree(site.results / final["folder"], ignore_errors=True)


def _is_whole(session: Session, track: Track, runs: list[str]) -> bool:
    """Whether these are still the rows of a final table."""
    return not _waits(session, track) and {row.name for row in _final_rows(session, track)} == set(runs)


def final_runs(session: Session, track: Track) -> list[Submission]:
    """Return the runs in the final table: those each team picked, or else its best by the first measure."""
    of_track = Submission.track_id == track.id, Submission.team_id.in_(taking_part())
    scored = select(Submission).where(*of_track, Submission.status == SCORED)
    by_team: dict[str, list[Submission]] = {}
    for submission in session.scalars(scored.join(Team).order_by(Team.key, Submission.number)):
        by_team.setdefault(submission.team_id, []).append(submission)
    chosen = []
    for team_id, runs in by_team.items():
        best = session.get_one(Entry, (team_id, track.id)).best
        holder = next((best[measure["name"]]["run"] for measure in track.measures if measure["name"] in best), None)
        chosen += [run for run in runs if run.picked] or [run for run in runs if run.id == holder]
    return chosen


def _final_rows(session: Session, track: Track) -> list[Row]:
    runs = [Row(run.label, session.get_one(SubmissionScores, run.id).whole) for run in final_runs(session, track)]
    return [Row(base.name, base.whole) for base in _baselines(session, track)] + runs


def remake(session: Session, team_id: str) -> None:
    """Have every table made again that a team leaves or returns to."""
    for track in session.scalars(select(Track).join(Entry).where(Entry.team_id == team_id)):
        track.version += 1
        track.final = None


def results_folder(site: Site, track: Track) -> Path | None:
    """Return where a track's final reports are."""
    return None if track.final is None else site.results / track.final["folder"]
