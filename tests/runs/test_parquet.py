"""Parquet runs: their columns. The rules for choices are in test_selection, those for labels in test_judgement."""

import gzip
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from rejoinder.runs import parquet, read_judgement_run, read_selection_run
from rejoinder.runs.judgement import JudgementRun
from rejoinder.runs.selection import SelectionRun
from rejoinder.tasks.dialeval import AnnotationRecord, DialogueRecord, QualityRecord, TurnRecord, to_task
from rejoinder.tasks.selection import SelectionTruth, to_pairs

SELECTION = SelectionTruth(pl.Series("id", ["1", "2"]), to_pairs([0, 1], ["A", "NONE"]))
CHOICES = {"example": ["1", "1", "2"], "option": ["B", "A", "NONE"], "score": [0.75, 0.25, 1.0]}

VOTE = AnnotationRecord(QualityRecord(0, 1, 2), ["CNUG", "HNUG"])
TURNS = [TurnRecord("customer", []), TurnRecord("helpdesk", [])]
JUDGEMENT = to_task([DialogueRecord("a", TURNS, [VOTE]), DialogueRecord("b", TURNS, [VOTE])]).truth()
LABELS = [
    ("a", "nugget", 0, "CNUG", 1.0),
    ("a", "nugget", 1, "HNUG", 0.5),
    ("a", "nugget", 1, "HNaN", 0.5),
    ("b", "nugget", 1, "HNaN", 1.0),
    ("b", "nugget", 0, "CNaN", 1.0),
]
COLUMNS = ["example", "question", "turn", "label", "probability"]


def write(path: Path, table: pl.DataFrame) -> Path:
    table.write_parquet(path)
    return path


def read_choices(path: Path) -> SelectionRun:
    return read_selection_run(path, SELECTION)


def read_labels(path: Path, lenient: bool = False) -> JudgementRun:
    return read_judgement_run(path, JUDGEMENT, lenient=lenient)


def labels(rows: list[tuple[object, ...]] = LABELS) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=COLUMNS, orient="row")


@pytest.mark.parametrize("name", ["run.parquet", "run.parquet.gz"])
def test_choices_are_read_and_written(tmp_path, name):
    run = read_choices(write(tmp_path / "original", pl.DataFrame(CHOICES)))
    assert run.choices.rows() == [(0, "B", 0.75), (0, "A", 0.25), (1, "NONE", 1.0)]
    for again in (tmp_path / name, tmp_path / f"again-{name}"):
        parquet.write_selection(again, run, SELECTION)
    assert (tmp_path / name).read_bytes() == again.read_bytes()
    assert read_choices(again).choices.equals(run.choices)
    assert read_choices(again).name == f"again-{name}".split(".")[0]


@pytest.mark.parametrize("name", ["run.parquet", "run.parquet.gz"])
def test_labels_are_read_and_written(tmp_path, name):
    run = read_labels(write(tmp_path / "original", labels()))
    assert list(run.distributions) == ["nugget"]
    assert run.distributions["nugget"].tolist() == [
        [0, 1, 0, 0, 0, 0, 0],
        [0, 0, 0, 0, 0.5, 0, 0.5],
        [0, 0, 0, 1, 0, 0, 0],
        [0, 0, 0, 0, 0, 0, 1],
    ]
    for again in (tmp_path / name, tmp_path / f"again-{name}"):
        parquet.write_judgements(again, run, JUDGEMENT)
    assert (tmp_path / name).read_bytes() == again.read_bytes()
    assert np.array_equal(read_labels(again).distributions["nugget"], run.distributions["nugget"])


def test_quality_needs_no_turn(tmp_path):
    rows = [(id_, question, None, "0", 1.0) for id_ in "ab" for question in "ASE"]
    run = read_labels(write(tmp_path / "run", labels(rows)))
    assert run.distributions["A"].tolist() == [[0, 0, 1, 0, 0]] * 2


@pytest.mark.parametrize("kind", [pl.Int8, pl.UInt64, pl.Categorical, pl.Enum(["1", "2"])])
def test_ids_may_be_numbers_or_categories(tmp_path, kind):
    table = pl.DataFrame(CHOICES).with_columns(pl.col("example").cast(kind), pl.col("score").cast(pl.Float32))
    assert read_choices(write(tmp_path / "run", table)).choices["example"].to_list() == [0, 0, 1]


def test_other_columns_are_passed_over(tmp_path):
    table = pl.DataFrame(CHOICES).with_columns(rank=1).select("rank", "score", "option", "example")
    assert read_choices(write(tmp_path / "run", table)).choices.height == 3


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (pl.DataFrame.drop, "score: no such column; expected the columns example, option, score"),
        (lambda t, c: t.with_columns(pl.col(c).cast(pl.String)), "score: a column of String; expected numbers"),
        (lambda t, c: t.with_columns(pl.col(c) > 0.5), "score: a column of Boolean; expected numbers"),
        (lambda t, c: t.with_columns(pl.concat_list(c)), "score: a column of List(Float64); expected numbers"),
        (lambda t, c: t.with_columns(pl.lit(None).alias(c)), "score: a column of Null; expected numbers"),
        (lambda t, _: t.with_columns(example=1.0), "example: a column of Float64; expected text or whole numbers"),
        (lambda t, c: t.with_columns(pl.col(c).replace(0.25, None)), "row 2: a value is missing"),
        (lambda t, _: t.with_columns(pl.col("option").replace("B", None)), "row 1: a value is missing"),
    ],
)
def test_malformed_choices(tmp_path, complaint, change, problem):
    path = write(tmp_path / "run", change(pl.DataFrame(CHOICES), "score"))
    assert complaint(read_choices, path) == f"run: {problem}"


@pytest.mark.parametrize("lenient", [False, True])
@pytest.mark.parametrize(
    ("place", "row", "problem"),
    [
        (0, (None, "nugget", 0, "CNUG", 1.0), "row 1: a value is missing"),
        (1, ("a", "nugget", 1, "HNUG", None), "row 2: a value is missing"),
        (2, ("a", "nugget", 1, "HNUG", 0.5), "row 3: label: label 'HNUG' is given twice"),
        (3, ("b", "nugget", 3, "HNaN", 1.0), "example b: nugget: turns [0, 3]; expected [0, 1]"),
        (3, ("b", "nugget", -1, "HNaN", 1.0), "example b: nugget: turns [-1, 0]; expected [0, 1]"),
        (
            3,
            ("b", "nuggets", 0, "HNaN", 1.0),
            "example b: question: question 'nuggets'; expected one of A, S, E, nugget",
        ),
        (
            4,
            ("b", "nugget", 0, "HNUG", 1.0),
            "example b: nugget[0]: label 'HNUG'; expected one of CNUG0, CNUG, CNUG*, CNaN",
        ),
        (
            4,
            ("b", "nugget", 0, "CNUG", float("nan")),
            "example b: nugget[0]: probability nan of 'CNUG'; expected 0 to 1",
        ),
    ],
)
def test_malformed_labels(tmp_path, complaint, place, row, problem, lenient):
    path = write(tmp_path / "run", labels([*LABELS[:place], row, *LABELS[place + 1 :]]))
    assert complaint(read_labels, path, lenient) == f"run: {problem}"


@pytest.mark.parametrize(
    ("turn", "problem"),
    [
        (pl.lit(0.5), "turn: a column of Float64; expected whole numbers"),
        (pl.lit(2**63, dtype=pl.UInt64), "conversion from `u64` to `i64` failed in column 'turn'"),
    ],
)
def test_turns_that_are_no_turns(tmp_path, complaint, turn, problem):
    path = write(tmp_path / "run", labels().with_columns(turn=turn))
    assert complaint(read_labels, path).startswith(f"run: {problem}")


def test_the_other_kind_of_table(tmp_path, complaint):
    path = write(tmp_path / "run", labels())
    assert complaint(read_choices, path) == "run: option: no such column; expected the columns example, option, score"
    path = write(tmp_path / "run", pl.DataFrame(CHOICES))
    assert complaint(read_labels, path) == f"run: question: no such column; expected the columns {', '.join(COLUMNS)}"


def test_truncated_tables(tmp_path, complaint):
    whole = write(tmp_path / "whole", pl.DataFrame(CHOICES)).read_bytes()
    path = tmp_path / "run"
    for size in range(0, len(whole), 97):
        path.write_bytes(whole[:size])
        assert complaint(read_selection_run, path, SELECTION, "parquet").startswith(
            "run: not a Parquet table, or a damaged one ("
        )

    packed = gzip.compress(whole)
    for size in range(5, len(packed), 97):
        path.write_bytes(packed[:size])
        assert complaint(read_selection_run, path, SELECTION, "parquet").startswith("run: damaged gzip file (")
