"""DialEval-1 data files (seed: NTCIR-15 overview, sections 2 and 4), also STC-3's: `rejoinder score test.json RUN`."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from rejoinder.dialogue import Dialogue, Turn
from rejoinder.files import BadInputError, read_json_records, write_json_list
from rejoinder.tasks.judgement import Answers, JudgementTask, Question

ROLES = ("customer", "helpdesk")
SCALE = ("2", "1", "0", "-1", "-2")
CUSTOMER_LABELS = ("CNUG0", "CNUG", "CNUG*", "CNaN")
HELPDESK_LABELS = ("HNUG", "HNUG*", "HNaN")

QUALITY = tuple(Question(name, SCALE, ordered=True) for name in ("A", "S", "E"))
NUGGET = Question(
    "nugget",
    CUSTOMER_LABELS + HELPDESK_LABELS,
    ordered=False,
    roles={"customer": CUSTOMER_LABELS, "helpdesk": HELPDESK_LABELS},
)

Score = Literal[-2, -1, 0, 1, 2]
Integers = NDArray[np.intp]
Floats = NDArray[np.float64]


class TurnRecord(msgspec.Struct):
    """One turn: who sent it, and its posts."""

    sender: Literal["customer", "helpdesk"]
    utterances: list[str]


class QualityRecord(msgspec.Struct, rename="upper"):
    """One annotator's scores for task accomplishment, customer satisfaction and effectiveness."""

    a: Score
    s: Score
    e: Score


class AnnotationRecord(msgspec.Struct):
    """One annotator's judgement of a dialogue: three scores, and a nugget label for each turn."""

    quality: QualityRecord
    nugget: list[str]


class DialogueRecord(msgspec.Struct, omit_defaults=True):
    """One dialogue of a data file; test files have no annotations."""

    id: str | int
    turns: list[TurnRecord]
    annotations: list[AnnotationRecord] | None = None


def read_dialogues(path: Path) -> Iterator[DialogueRecord]:
    """Yield checked dialogues of a data file."""
    seen: dict[str, int] = {}
    for number, record in read_json_records(path, DialogueRecord):
        record.id = str(record.id)
        place = f"record {number} (id {record.id})"
        if record.id in seen:
            raise BadInputError(path, f"duplicate id, first used by record {seen[record.id]}", place, "id")
        seen[record.id] = number
        if not record.turns:
            raise BadInputError(path, "a dialogue needs at least one turn", place, "turns")
        if record.annotations is not None and not record.annotations:
            raise BadInputError(path, "an annotated dialogue needs at least one annotation", place, "annotations")
        for annotator, annotation in enumerate(record.annotations or ()):
            _check_nuggets(path, place, record.turns, annotator, annotation.nugget)
        yield record


def _check_nuggets(path: Path, place: str, turns: list[TurnRecord], annotator: int, labels: list[str]) -> None:
    field = f"annotations[{annotator}].nugget"
    if len(labels) != len(turns):
        raise BadInputError(path, f"{len(labels)} labels for {len(turns)} turns; expected one a turn", place, field)
    for number, (turn, label) in enumerate(zip(turns, labels, strict=True)):
        allowed = NUGGET.allowed(ROLES.index(turn.sender))
        if label not in allowed:
            raise BadInputError(
                path,
                f"{label!r} for a {turn.sender} turn; expected one of {', '.join(allowed)}",
                place,
                f"{field}[{number}]",
            )


def read_task(path: Path) -> JudgementTask:
    """Read a data file whole."""
    records = list(read_dialogues(path))
    if not records:
        raise BadInputError(path, "holds no dialogue")
    bare = [number for number, record in enumerate(records, 1) if record.annotations is None]
    if 0 < len(bare) < len(records):
        place = f"record {bare[0]} (id {records[bare[0] - 1].id})"
        raise BadInputError(path, "left out here, but not in other records", place, "annotations")
    return to_task(records)


def to_task(records: list[DialogueRecord]) -> JudgementTask:
    """Turn checked records into a task; annotations become counts of votes."""
    dialogues = tuple(
        Dialogue(str(record.id), tuple(Turn(turn.sender, tuple(turn.utterances)) for turn in record.turns))
        for record in records
    )
    annotated = all(record.annotations is not None for record in records)
    return JudgementTask(dialogues, (*QUALITY, NUGGET), _count_votes(records) if annotated else None)


def _count_votes(records: list[DialogueRecord]) -> dict[str, Answers]:
    dialogues = np.arange(len(records))
    quality = [
        (number, [vote.quality.a, vote.quality.s, vote.quality.e])
        for number, record in enumerate(records)
        for vote in record.annotations or ()
    ]
    example = np.array([number for number, _ in quality])
    chosen = int(SCALE[0]) - np.array([scores for _, scores in quality])  # the scale's places run from 2 down to -2
    answers = {
        question.name: Answers(
            question, dialogues, np.zeros_like(dialogues), _count(example, chosen[:, place], len(records), len(SCALE))
        )
        for place, question in enumerate(QUALITY)
    }
    return answers | {NUGGET.name: _count_nuggets(records)}


def _count_nuggets(records: list[DialogueRecord]) -> Answers:
    turns = [(number, ROLES.index(turn.sender)) for number, record in enumerate(records) for turn in record.turns]
    example, role = np.array(turns).T
    place = {label: number for number, label in enumerate(NUGGET.labels)}
    rows: list[int] = []
    chosen: list[int] = []
    first = 0
    for record in records:
        for vote in record.annotations or ():
            rows.extend(range(first, first + len(record.turns)))
            chosen.extend(place[label] for label in vote.nugget)
        first += len(record.turns)
    return Answers(NUGGET, example, role, _count(np.array(rows), np.array(chosen), len(turns), len(place)))


def _count(rows: Integers, columns: Integers, height: int, width: int) -> Floats:
    return np.bincount(rows * width + columns, minlength=height * width).reshape(height, width).astype(np.float64)


def write_dialogues(path: Path, records: Iterable[DialogueRecord]) -> None:
    """Write a data file."""
    write_json_list(path, iter(records))
