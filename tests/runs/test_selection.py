"""The rules for runs of selection tasks, strict and lenient, through every format that can break them."""

import json
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest

from rejoinder.measures.selection import score
from rejoinder.runs import read_selection_run, run_name
from rejoinder.tasks.selection import SelectionTruth, to_pairs

TRUTH = SelectionTruth(
    pl.Series("id", ["1", "2"]),
    to_pairs([0, 1], ["A", "NONE"]),
    options=to_pairs([0, 0, 0, 1, 1], ["A", "B", "C", "A", "B"]),
)
FORMATS = ["dstc7", "trec", "parquet"]
GOOD = [("1", "B", 0.6), ("1", "A", 0.4), ("2", "NONE", 1.0)]

Rows = Sequence[tuple[str, str, float]]


def write(path: Path, format_: str, rows: Rows) -> Path:
    if format_ == "trec":
        path.write_text("".join(f"{id_} Q0 {option} 1 {score!r} run\n" for id_, option, score in rows))
    elif format_ == "parquet":
        pl.DataFrame(rows, schema=["example", "option", "score"], orient="row").write_parquet(path)
    else:
        ids = dict.fromkeys(id_ for id_, _, _ in rows)
        rankings = {id_: [{"candidate-id": o, "confidence": s} for i, o, s in rows if i == id_] for id_ in ids}
        path.write_text(json.dumps([{"example-id": id_, "candidate-ranking": r} for id_, r in rankings.items()]))
    return path


@pytest.fixture(params=FORMATS)
def run(request, tmp_path):
    """Write rows in a format and read them as a run."""

    def read(rows: Rows, lenient: bool = False, truth: SelectionTruth = TRUTH):
        path = write(tmp_path / f"run.{request.param}", request.param, rows)
        return read_selection_run(path, truth, lenient=lenient)

    read.name = f"run.{request.param}"
    return read


def reciprocal(run_, truth: SelectionTruth = TRUTH) -> list[float]:
    return score(run_, truth, ["MRR"])["MRR"].tolist()


def notes(run_, tmp_path: Path) -> list[str]:
    return [note.replace(f"{tmp_path}/", "") for note in run_.notes]


def test_a_good_run(run):
    good = run([GOOD[2], *GOOD[:2]])
    assert good.choices.rows() == [(0, "B", 0.6), (0, "A", 0.4), (1, "NONE", 1.0)]
    assert good.name in ("run", "run.dstc7")
    assert good.notes == ()
    assert reciprocal(good) == [0.5, 1.0]


def test_confidence_ranks_and_ties_keep_the_listed_order(run):
    rows = [("1", "C", 0.1), ("1", "B", 0.4), ("1", "A", 0.4), GOOD[2]]
    assert run(rows).choices["option"].to_list() == ["B", "A", "C", "NONE"]


def test_lenient_leaves_a_good_run_alone(run):
    lenient = run(GOOD, lenient=True)
    assert lenient.choices.equals(run(GOOD).choices)
    assert lenient.notes == ()


def test_unknown_example(run, complaint, tmp_path):
    rows = [*GOOD, ("7", "A", 1.0), ("8", "A", 1.0)]
    assert complaint(run, rows) == f"{run.name}: example 7: example-id: is not in the truth (and 1 more)"
    assert complaint(run, rows[:-1]) == f"{run.name}: example 7: example-id: is not in the truth"
    lenient = run(rows, lenient=True)
    assert notes(lenient, tmp_path) == [f"{run.name}: 2 examples that the truth does not have were left out, first 7"]
    assert reciprocal(lenient) == [0.5, 1.0]


def test_missing_example(run, complaint, tmp_path):
    assert complaint(run, GOOD[:2]) == (
        f"{run.name}: example 2: example-id: missing: the truth has it and the run has not"
    )
    lenient = run(GOOD[:2], lenient=True)
    assert notes(lenient, tmp_path) == [f"{run.name}: 1 missing examples were scored as wrong, first 2"]
    assert reciprocal(lenient) == [0.5, 0.0]


def test_duplicate_candidate(run, complaint, tmp_path):
    rows = [("1", "A", 0.1), *GOOD]
    assert complaint(run, rows) == f"{run.name}: example 1: candidate-id: 'A' is chosen twice"
    lenient = run(rows, lenient=True)
    assert notes(lenient, tmp_path) == [f"{run.name}: left out 1 repeated choice: an option keeps its best rank"]
    assert lenient.choices.rows() == [(0, "B", 0.6), (0, "A", 0.4), (1, "NONE", 1.0)]


def test_unknown_option(run, complaint, tmp_path):
    rows = [("1", "X", 0.9), *GOOD]
    assert complaint(run, rows) == f"{run.name}: example 1: candidate-id: 'X' is not one of the example's options"
    lenient = run(rows, lenient=True)
    assert notes(lenient, tmp_path) == [f"{run.name}: 1 choice outside the options, counted as wrong"]
    assert reciprocal(lenient) == [1 / 3, 1.0]


def test_an_option_of_another_example_is_unknown(run, complaint):
    rows = [*GOOD, ("2", "C", 0.1)]
    assert complaint(run, rows) == f"{run.name}: example 2: candidate-id: 'C' is not one of the example's options"


def test_an_option_that_the_pool_has_not(run, complaint):
    truth = SelectionTruth(TRUTH.ids, TRUTH.correct, pool=pl.Series("option", ["A", "B"]))
    assert run(GOOD, truth=truth).notes == ()
    assert "'C' is not one of the example's options" in complaint(run, [*GOOD, ("2", "C", 0.1)], truth=truth)


def test_any_option_goes_where_none_is_known(run):
    truth = SelectionTruth(TRUTH.ids, TRUTH.correct)
    assert reciprocal(run([("1", "X", 0.9), *GOOD], truth=truth), truth) == [1 / 3, 1.0]


def test_an_option_without_name(tmp_path, complaint):
    for format_ in ("dstc7", "parquet"):
        path = write(tmp_path / "run", format_, [("1", "", 0.9), *GOOD])
        for lenient in (False, True):
            assert complaint(read_selection_run, path, TRUTH, lenient=lenient) == (
                "run: example 1: candidate-id: is empty"
            )


@pytest.mark.parametrize("lenient", [False, True])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_confidence_that_is_no_number(tmp_path, complaint, value, lenient):
    rows = [*GOOD, ("2", "A", value)]

    def problem(format_: str) -> str:
        path = write(tmp_path / "run", format_, rows)
        return complaint(read_selection_run, path, TRUTH, lenient=lenient)

    assert problem("parquet") == f"run: example 2: confidence of 'A': {value} is not a finite number"
    assert problem("trec") == f"run: line 4: score: '{value}' is not a number"
    assert problem("dstc7") == (
        f"run: record 2: confidence: {json.dumps(value)} is not a number; expected a finite one"
    )


def test_negative_scores_rank_in_formats_without_confidences(tmp_path):
    rows = [("1", "B", -3.5), ("1", "A", -2.5), ("2", "NONE", -1.0)]
    for format_ in ("trec", "parquet"):
        assert reciprocal(read_selection_run(write(tmp_path / "run", format_, rows), TRUTH)) == [1.0, 1.0]


def test_more_than_a_hundred_choices_in_formats_without_that_limit(tmp_path):
    truth = SelectionTruth(pl.Series("id", ["1"]), to_pairs([0], ["o150"]))
    rows = [("1", f"o{number}", 1 / number) for number in range(1, 151)]
    for format_ in ("trec", "parquet"):
        assert reciprocal(read_selection_run(write(tmp_path / "run", format_, rows), truth), truth) == [1 / 150]


def test_a_format_of_the_other_kind(save, complaint):
    path = save("run", [{"id": "1", "nugget": []}])
    assert complaint(read_selection_run, path, TRUTH) == (
        "run: DialEval submission (JSON), which does not rank options as the truth asks"
    )


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("a.json", "a"), ("a.b.json.gz", "a.b"), ("a.run.gz", "a"), ("a.parquet", "a"), ("v1.5", "v1.5"), ("a.gz", "a")
    ],
)  # fmt: skip
def test_names(file, name):
    assert run_name(Path("folder") / file) == name
