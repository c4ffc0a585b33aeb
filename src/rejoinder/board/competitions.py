"""Competitions and their tracks: what an organiser decides, and the files that runs are scored against."""

import os
import secrets
import shutil
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import delete, select
from sqlalchemy.orm import Session, joinedload, undefer_group

from rejoinder.board.models import Baseline, Competition, Entry, Submission, SubmissionScores, Track, new_id, now
from rejoinder.board.names import clean_filename, clean_name, key_of, slug_of
from rejoinder.board.scorer import Describe, Files
from rejoinder.board.scorer_process import ScorerProcess
from rejoinder.board.site import Site
from rejoinder.errors import UserError

BASELINES = ("uniform", "popularity")
LONGEST_DESCRIPTION = 50_000


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What an organiser decides of a competition; the defaults are DialEval-1's (section 3.3), with the Ladder."""

    name: str
    description: str = ""
    opens: datetime
    closes: datetime
    share: float = 0.5
    quota: int = 10
    daily: int | None = None
    digits: int = 4
    ladder: bool = True
    log2: bool = False
    private: bool = True
    finals: int = 3
    baselines: list[str] = msgspec.field(default_factory=lambda: list(BASELINES))


def _checked(rules: Rules) -> dict[str, object]:
    name = clean_name(rules.name, "name")
    wrong = [
        (rules.closes <= rules.opens, "closing time: expected after the opening time"),
        (
            len(rules.description) > LONGEST_DESCRIPTION,
            f"description: {len(rules.description):,} letters; expected at most {LONGEST_DESCRIPTION:,}",
        ),
        (not 0 < rules.share <= 1, "share: expected more than 0% and at most 100%"),
        (not 1 <= rules.quota <= 10_000, "quota: expected 1 to 10,000 runs"),
        (rules.daily is not None and not 1 <= rules.daily <= 10_000, "daily quota: expected 1 to 10,000 runs"),
        (not 1 <= rules.digits <= 6, "digits: expected 1 to 6"),
        (not 1 <= rules.finals <= 100, "final runs: expected 1 to 100"),
        (not set(rules.baselines) <= set(BASELINES), f"baselines: expected some of {', '.join(BASELINES)}"),
    ]
    for is_wrong, message in wrong:
        if is_wrong:
            raise UserError(message)
    return {**msgspec.structs.asdict(rules), "name": name}


def create_competition(session: Session, rules: Rules) -> Competition:
    """Add a competition without tracks yet."""
    values = _checked(rules)
    taken = {"index", *session.scalars(select(Competition.slug))}  # the archive's first page is called so
    competition = Competition(
        slug=slug_of(rules.name, taken), secret=secrets.token_hex(16), created=now(), tracks=[], **values
    )
    session.add(competition)
    session.flush()
    return competition


def change_competition(session: Session, competition: Competition, rules: Rules) -> dict[str, list[str]]:
    """Change what may be changed and return it as field -> [before, after]; reopening takes the final tables back."""
    values = _checked(rules)
    if competition.tracks and (competition.share, competition.baselines) != (rules.share, rules.baselines):
        raise UserError("share and baselines: fixed since there are tracks")
    if rules.log2:
        _check_log2(measure for track in competition.tracks for measure in track.measures)
    changes = {
        field: [str(getattr(competition, field)), str(value)]
        for field, value in values.items()
        if getattr(competition, field) != value
    }
    for field, value in values.items():
        setattr(competition, field, value)
    for track in competition.tracks:
        track.version += 1
        if competition.state != "closed":
            track.final = None
    return changes


def _check_log2(measures: Iterable[dict[str, Any]]) -> None:
    rising = [measure["name"] for measure in measures if measure["higher"]]
    if rising:
        raise UserError(f"-log2 is for distances, and {rising[0]} is none")


def find_competition(session: Session, slug: str) -> Competition | None:
    """Return the competition at this address."""
    return session.scalar(select(Competition).where(Competition.slug == slug))


def find_track(session: Session, slug: str, track: str) -> Track | None:
    """Return the track at this address, with its tables."""
    of = Track.competition.has(Competition.slug == slug)
    whole = joinedload(Track.competition).selectinload(Competition.tracks)
    return session.scalar(select(Track).where(of, Track.slug == track).options(whole, undefer_group("tables")))


def store_truth(site: Site, truth: list[Path], options: Path | None = None, entities: Path | None = None) -> Files:
    """Copy what a track is scored against into the board's folder: one file, or a task folder or its files."""
    several = sorted(truth[0].glob("[!.]*.*")) if len(truth) == 1 and truth[0].is_dir() else truth
    is_task = len(several) > 1
    if not several or (is_task and not {path.suffix for path in several} <= {".parquet", ".yaml"}):
        raise UserError("truth: expected one file, or the tables of a task folder")
    folder = site.truths / new_id()
    homes = dict.fromkeys(several, folder / "truth")
    homes |= {path: folder / kind for kind, path in (("options", options), ("entities", entities)) if path}
    copies = {path: home / clean_filename(path.name) for path, home in homes.items()}
    for path, copy in copies.items():
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
        with copy.open("rb") as file:
            os.fsync(file.fileno())
    stored = folder / "truth" if is_task else copies[several[0]]
    names = (None if path is None else str(copies[path].relative_to(site.folder)) for path in (options, entities))
    return Files(str(stored.relative_to(site.folder)), *names)


def remove_truth(site: Site, truth: str) -> None:
    """Remove the copies that a track was scored against."""
    shutil.rmtree(site.truths / Path(truth).parts[1], ignore_errors=True)


def absolute(site: Site, files: Mapping[str, str | None]) -> Files:
    """Return where a track's files are on this machine."""
    here = {kind: str(site.folder / path) for kind, path in files.items() if path}
    return Files(here["truth"], here.get("options"), here.get("entities"))


class Place(msgspec.Struct, frozen=True):
    """What a track is called: both may be empty where there is one track only."""

    language: str = ""
    subtask: str = ""


def add_track(
    site: Site, scorer: ScorerProcess, competition: Competition, files: Files, place: Place, measures: list[str]
) -> Track:
    """Read a truth, score the baselines on it and add it as a track; no measures: those of the papers."""
    named = msgspec.structs.asdict(files)
    rules = competition.baselines, competition.share, competition.secret
    try:
        found = scorer.ask(Describe(absolute(site, named), measures, *rules))
        if competition.log2:
            _check_log2(found["measures"])
        with site.database.writing() as session:
            return _insert_track(session, competition.id, named, place, found)
    except BaseException:
        remove_truth(site, files.truth)
        raise


def _insert_track(
    session: Session, competition_id: str, files: dict[str, Any], place: Place, found: dict[str, Any]
) -> Track:
    language, subtask = (
        clean_name(part, what) if part.strip() else ""
        for part, what in ((place.language, "language"), (place.subtask, "subtask"))
    )
    competition = session.get_one(Competition, competition_id, with_for_update={"of": Competition})
    baselines = found.pop("baselines")
    track = Track(language=language, subtask=subtask, files=files, **found)
    if key_of(track.name) in {key_of(other.name) for other in competition.tracks}:
        raise UserError(f"there is a track {track.name!r} already")
    track.slug = slug_of(track.name, {other.slug for other in competition.tracks})
    track.competition = competition
    session.add(track)
    session.flush()
    session.add_all(Baseline(track_id=track.id, name=name, **scores) for name, scores in baselines.items())
    return track


def remove_track(session: Session, track: Track) -> None:
    """Take a track away, with everything handed in to it."""
    of_track = select(Submission.id).where(Submission.track_id == track.id)
    session.execute(delete(SubmissionScores).where(SubmissionScores.submission_id.in_(of_track)))
    for kind in (Submission, Entry, Baseline):
        session.execute(delete(kind).where(kind.track_id == track.id))
    session.delete(track)
