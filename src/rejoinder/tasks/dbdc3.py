"""Dialogue Breakdown Detection Challenge 3: 30 annotators say of each system turn whether the dialogue breaks down.

Files hold one dialogue each (`dialogue-id`, `turns` with `speaker` U or S, `utterance`, `time` and `annotations` with
`annotator-id` and `breakdown`). The labels are O (no breakdown), T (possibly one) and X (a breakdown): a scale.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Literal

import msgspec
import polars as pl

from rejoinder.dialogue import Dialogue, Turn
from rejoinder.files import BadInputError
from rejoinder.records import read_json
from rejoinder.tasks.judgement import VOTE_SCHEMA, JudgementTask, Question
from rejoinder.tasks.judgement_folder import check_votes

LABELS = ("O", "T", "X")
BREAKDOWN = Question("breakdown", LABELS, ordered=True, roles={"system": LABELS})
SPEAKERS = {"U": "user", "S": "system"}


class AnnotationRecord(msgspec.Struct, frozen=True, rename="kebab"):
    """One annotator's opinion of one turn."""

    annotator_id: str
    breakdown: Literal["O", "T", "X"]


class TurnRecord(msgspec.Struct, frozen=True):
    """One turn, and what annotators say of it: nothing, if it is the user's or opens the dialogue."""

    speaker: Literal["U", "S"]
    utterance: str
    annotations: tuple[AnnotationRecord, ...] = ()
    time: str = ""


class DialogueRecord(msgspec.Struct, frozen=True, rename="kebab"):
    """One dialogue."""

    dialogue_id: str
    turns: tuple[TurnRecord, ...]


def find_files(sources: Iterable[Path]) -> list[Path]:
    """Return the files given, and those of the folders given."""
    found: list[Path] = []
    for source in sources:
        inside = sorted(source.rglob("*.json")) if source.is_dir() else [source]
        if not inside:
            raise BadInputError(source, "holds no dialogue; expected files *.json")
        found += inside
    return found


def read_task(paths: Iterable[Path]) -> JudgementTask:
    """Read dialogues, one a file."""
    records: dict[str, tuple[Path, DialogueRecord]] = {}
    for path in paths:
        record = read_json(path, DialogueRecord)
        if record.dialogue_id in records:
            other = records[record.dialogue_id][0]
            raise BadInputError(path, f"{record.dialogue_id!r} is in {other} too", field="dialogue-id")
        records[record.dialogue_id] = path, record
    dialogues = tuple(_dialogue(record) for _, record in records.values())
    votes = pl.DataFrame(list(_votes(record for _, record in records.values())), schema=VOTE_SCHEMA, orient="row")
    task = JudgementTask(dialogues, (BREAKDOWN,), votes if votes.height else None)
    if votes.height:
        check_votes(next(iter(records.values()))[0].parent, task)
    return task


def _dialogue(record: DialogueRecord) -> Dialogue:
    time = None
    with suppress(ValueError, IndexError):
        time = datetime.fromisoformat(record.turns[0].time).replace(tzinfo=None)
    return Dialogue(
        record.dialogue_id, tuple(Turn(SPEAKERS[turn.speaker], (turn.utterance,)) for turn in record.turns), time
    )


def _votes(records: Iterable[DialogueRecord]) -> Iterator[tuple[int, str, int, str, str]]:
    for number, record in enumerate(records):
        for place, turn in enumerate(record.turns):
            for annotation in turn.annotations:
                yield number, BREAKDOWN.name, place, annotation.annotator_id, annotation.breakdown
