"""DialEval-1 data files (seed: NTCIR-15 overview, sections 2 and 4), also STC-3's: `rejoinder score test.json RUN`."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

import msgspec
import polars as pl

from rejoinder.dialogue import Dialogue, Turn
from rejoinder.files import BadInputError, open_binary
from rejoinder.records import read_json_records, write_json_list
from rejoinder.tasks.judgement import VOTE_SCHEMA, JudgementTask, Question
from rejoinder.text import counted

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
        problem = f"{counted(len(labels), 'label')} for {counted(len(turns), 'turn')}; expected one a turn"
        raise BadInputError(path, problem, place, field)
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
    """Turn checked records into a task."""
    dialogues = tuple(
        Dialogue(str(record.id), tuple(Turn(turn.sender, tuple(turn.utterances)) for turn in record.turns))
        for record in records
    )
    annotated = all(record.annotations is not None for record in records)
    return JudgementTask(dialogues, (*QUALITY, NUGGET), _votes(records) if annotated else None)


def _votes(records: list[DialogueRecord]) -> pl.DataFrame:
    """List every vote; an annotator is known by his place in the record only."""
    given = [
        (number, str(place), annotation)
        for number, record in enumerate(records)
        for place, annotation in enumerate(record.annotations or ())
    ]
    quality = {
        question.name: pl.DataFrame(
            {
                "dialogue": [number for number, _, _ in given],
                "question": question.name,
                "turn": 0,
                "annotator": [annotator for _, annotator, _ in given],
                "label": [getattr(annotation.quality, question.name.lower()) for _, _, annotation in given],
            }
        ).cast(VOTE_SCHEMA)
        for question in QUALITY
    }
    nuggets = pl.DataFrame(
        {
            "dialogue": [number for number, _, _ in given],
            "question": NUGGET.name,
            "turn": [list(range(len(annotation.nugget))) for _, _, annotation in given],
            "annotator": [annotator for _, annotator, _ in given],
            "label": [annotation.nugget for _, _, annotation in given],
        }
    )
    return pl.concat([*quality.values(), nuggets.explode("turn", "label").cast(VOTE_SCHEMA)])


def to_records(path: Path, task: JudgementTask) -> list[DialogueRecord]:
    """Turn a task, read from `path`, back into the records of a data file."""
    if task.questions != (*QUALITY, NUGGET):
        asked = ", ".join(question.name for question in task.questions)
        raise BadInputError(path, f"asks {asked}; DialEval's files hold A, S, E and nugget, with their labels")
    records = [
        msgspec.convert(
            {"id": d.id, "turns": [{"sender": turn.speaker, "utterances": turn.posts} for turn in d.turns]},
            DialogueRecord,
        )
        for d in task.dialogues
    ]
    if task.votes is not None:
        for number, annotator, a, s, e, nugget in _by_annotator(task.votes).iter_rows():
            record = records[number]
            if None in (a, s, e, nugget) or len(nugget) != len(record.turns):
                problem = f"annotator {annotator} left out a question or a turn, which DialEval's files cannot say"
                raise BadInputError(path, problem, f"dialogue {record.id}")
            quality = msgspec.convert({"A": int(a), "S": int(s), "E": int(e)}, QualityRecord)
            record.annotations = record.annotations or []
            record.annotations.append(AnnotationRecord(quality, nugget))
    return records


def _by_annotator(votes: pl.DataFrame) -> pl.DataFrame:
    """Return dialogue, annotator, A, S, E and the turns' nuggets, a row for each annotator of each dialogue."""
    who = ["dialogue", "annotator"]
    of_dialogues = [
        votes.filter(pl.col("question") == question.name).select(*who, pl.col("label").alias(question.name))
        for question in QUALITY
    ]
    nuggets = votes.filter(pl.col("question") == NUGGET.name).sort("turn", maintain_order=True)
    table = nuggets.group_by(who, maintain_order=True).agg(pl.col("label").alias(NUGGET.name))
    for quality in reversed(of_dialogues):
        table = quality.join(table, on=who, how="full", coalesce=True, maintain_order="left_right")
    return table.sort("dialogue", maintain_order=True)


class Layout(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a data file is laid out, so that it can be written again byte by byte."""

    keys: tuple[str, ...] = ("id", "turns", "annotations")
    """A record's keys, in order."""
    indent: int | None = 4
    """Spaces of each level; None: all on one line."""
    newline: bool = True
    """Whether the file ends in a line end."""


def find_layout(path: Path) -> Layout:
    """Look at how a data file is laid out."""
    _, first = next(read_json_records(path, dict[str, object]))
    with open_binary(path) as file:
        text = file.read()
    indented = re.match(rb"\[\n( *)\{", text)
    keys = tuple(key for key in first if key in DialogueRecord.__struct_fields__)
    return Layout(keys, len(indented[1]) if indented else None, text.endswith(b"\n"))


def write_dialogues(path: Path, records: Iterable[DialogueRecord], layout: Layout = Layout()) -> None:
    """Write a data file."""
    built = (msgspec.to_builtins(record) for record in records)
    ordered = ({key: record[key] for key in layout.keys if key in record} for record in built)
    write_json_list(path, ordered, layout.indent, layout.newline)
