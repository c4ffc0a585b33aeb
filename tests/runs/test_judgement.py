"""The rules for runs of judgement tasks, strict and lenient, through both formats."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from rejoinder.runs import read_judgement_run
from rejoinder.runs.judgement import JudgementRun, uniform
from rejoinder.tasks.dialeval import AnnotationRecord, DialogueRecord, QualityRecord, TurnRecord, to_task
from rejoinder.text import counted

TURNS = [TurnRecord("customer", []), TurnRecord("helpdesk", [])]
QUALITY = QualityRecord(0, 1, 2)
TRUTH = to_task(
    [
        DialogueRecord("a", TURNS, [AnnotationRecord(QUALITY, ["CNUG", "HNUG"])]),
        DialogueRecord("b", TURNS[:1], [AnnotationRecord(QUALITY, ["CNUG"])]),
    ]
).truth()

Judgements = list[tuple[str, list[dict[str, float]]]]
GOOD: Judgements = [("b", [{"CNaN": 1.0}]), ("a", [{"CNUG": 0.25, "CNaN": 0.75}, {"HNUG*": 1.0}])]


def write(path: Path, format_: str, judgements: Judgements) -> Path:
    if format_ == "dialeval":
        path.write_text(json.dumps([{"id": id_, "nugget": turns} for id_, turns in judgements]))
        return path
    rows = [
        (id_, "nugget", turn, label, value)
        for id_, turns in judgements
        for turn, labels in enumerate(turns)
        for label, value in labels.items()
    ]
    columns = {"example": pl.String, "question": pl.String, "turn": pl.Int64, "label": pl.String, "probability": float}
    pl.DataFrame(rows, schema=columns, orient="row").write_parquet(path)
    return path


@pytest.fixture(params=["dialeval", "parquet"])
def run(request, tmp_path):
    """Write judgements in a format and read them as a run."""

    def read(judgements: Judgements, lenient: bool = False) -> JudgementRun:
        return read_judgement_run(write(tmp_path / "run", request.param, judgements), TRUTH, lenient=lenient)

    places = (
        [f"record {number} (id {{}})" for number in range(4)] if request.param == "dialeval" else ["example {}"] * 4
    )
    read.place = lambda number, id_: f"run: {places[number].format(id_)}"
    read.note = lambda number, id_: f"{tmp_path}/{read.place(number, id_)}"
    return read


def rows(run_: JudgementRun) -> list[list[float]]:
    return run_.distributions["nugget"].tolist()


EXPECTED = [[0, 0.25, 0, 0.75, 0, 0, 0], [0, 0, 0, 0, 0, 1, 0], [0, 0, 0, 1, 0, 0, 0]]


@pytest.mark.parametrize("lenient", [False, True])
def test_a_good_run_is_laid_out_in_the_order_of_the_truth(run, lenient):
    good = run(GOOD, lenient)
    assert rows(good) == EXPECTED
    assert good.notes == ()
    assert good.name == "run"


def test_unknown_dialogue(run, complaint):
    judgements = [*GOOD, ("c", [{"CNaN": 1.0}])]
    assert complaint(run, judgements) == f"{run.place(3, 'c')}: id: id is not in the truth"
    lenient = run(judgements, lenient=True)
    assert rows(lenient) == EXPECTED
    assert lenient.notes == (f"{run.note(3, 'c')}: id: id is not in the truth: left out",)


def test_missing_dialogue(run, complaint, tmp_path):
    problem = "run: id a: missing: the truth has it and the run has not"
    assert complaint(run, GOOD[:1]) == problem
    lenient = run(GOOD[:1], lenient=True)
    assert rows(lenient) == [[0.25] * 4 + [0] * 3, [0] * 4 + [1 / 3] * 3, EXPECTED[2]]
    assert lenient.notes == (f"{tmp_path}/{problem}: judged by the uniform distribution",)


def test_several_missing_dialogues(save, complaint):
    assert complaint(read_judgement_run, save("run", "[]"), TRUTH, "dialeval") == (
        "run: id a: missing: the truth has it and the run has not (and 1 more)"
    )


def test_duplicate_dialogue(tmp_path, complaint):
    path = write(tmp_path / "run", "dialeval", [*GOOD, ("b", [{"CNUG": 1.0}])])
    problem = "run: record 3 (id b): id: duplicate id"
    assert complaint(read_judgement_run, path, TRUTH) == problem
    lenient = read_judgement_run(path, TRUTH, lenient=True)
    assert rows(lenient) == EXPECTED
    assert lenient.notes == (f"{tmp_path}/{problem}: the first is kept",)


@pytest.mark.parametrize(("low", "high"), [(0.2, 0.4), (1.5, 1.5), (2.0, 6.0), (0.25, 0.752)])
def test_probabilities_that_do_not_sum_to_one(run, complaint, low, high):
    judgements = [GOOD[0], ("a", [{"CNUG": low, "CNaN": high}, {"HNUG*": 1.0}])]
    problem = f"nugget[0]: probabilities sum to {low + high:.6g}; expected 1"
    assert complaint(run, judgements) == f"{run.place(2, 'a')}: {problem}"
    lenient = run(judgements, lenient=True)
    assert np.allclose(rows(lenient)[0], [0, low / (low + high), 0, high / (low + high), 0, 0, 0])
    assert lenient.notes == (f"{run.note(2, 'a')}: {problem}: divided by their sum",)


def test_rounding_is_no_mistake(run):
    rounded = run([("b", [{"CNUG": 0.333, "CNaN": 0.333, "CNUG*": 0.333}]), GOOD[1]])
    assert rounded.notes == ()
    assert np.allclose(rows(rounded)[2], [0, 1 / 3, 1 / 3, 1 / 3, 0, 0, 0])


@pytest.mark.parametrize("lenient", [False, True])
@pytest.mark.parametrize(
    ("labels", "problem"),
    [
        ({"CNUG": 0.0}, "nugget[0]: probabilities sum to 0; expected 1"),
        ({"CNUG": 1e308, "CNaN": 1e308}, "nugget[0]: probabilities sum to inf; expected 1"),
        ({"CNUG": -0.5, "CNaN": 1.5}, "nugget[0]: probability -0.5 of 'CNUG'; expected 0 to 1"),
        ({"HNUG": 1.0}, "nugget[0]: label 'HNUG'; expected one of CNUG0, CNUG, CNUG*, CNaN"),
        ({"cnug": 1.0}, "nugget[0]: label 'cnug'; expected one of CNUG0, CNUG, CNUG*, CNaN"),
    ],
)
def test_what_lenient_does_not_mend_either(run, complaint, labels, problem, lenient):
    assert complaint(run, [("b", [labels]), GOOD[1]], lenient) == f"{run.place(1, 'b')}: {problem}"


@pytest.mark.parametrize("lenient", [False, True])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_probability_that_is_no_number(tmp_path, complaint, value, lenient):
    judgements = [("b", [{"CNUG": value}]), GOOD[1]]

    def problem(format_: str) -> str:
        return complaint(read_judgement_run, write(tmp_path / "run", format_, judgements), TRUTH, lenient=lenient)

    assert problem("parquet") == f"run: example b: nugget[0]: probability {value} of 'CNUG'; expected 0 to 1"
    assert problem("dialeval") == (f"run: record 1: CNUG: {json.dumps(value)} is not a number; expected a finite one")


@pytest.mark.parametrize("lenient", [False, True])
@pytest.mark.parametrize("turns", [1, 3])
def test_wrong_number_of_turns(run, complaint, turns, lenient):
    judgements = [GOOD[0], ("a", [{"CNUG": 1.0}] * turns)]
    assert complaint(run, judgements, lenient) == (
        f"{run.place(2, 'a')}: nugget: {counted(turns, 'distribution')}; expected 2, one a turn"
    )


def test_a_question_left_out_of_some_dialogues(save, complaint):
    quality = {name: {"0": 1.0} for name in "ASE"}
    records = [{"id": "a", "quality": quality, "nugget": GOOD[1][1]}, {"id": "b", "nugget": GOOD[0][1]}]
    for lenient in (False, True):
        assert complaint(read_judgement_run, save("run", records), TRUTH, lenient=lenient) == (
            "run: record 2 (id b): A: left out here, but not in other records"
        )


def test_a_format_of_the_other_kind(save, complaint):
    assert complaint(read_judgement_run, save("run", "a Q0 A 1 0.5 run\n"), TRUTH) == (
        "run: TREC run, lines `topic Q0 option rank score name`, which does not judge dialogues as the truth asks"
    )


def test_uniform():
    assert uniform(TRUTH.answers["A"]).tolist() == [[0.2] * 5] * 2
