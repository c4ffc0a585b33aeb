"""DialEval submissions: their layout. The rules for distributions are in test_judgement."""

import json
from pathlib import Path

import numpy as np
import pytest

from rejoinder.runs import dialeval, read_judgement_run
from rejoinder.runs.judgement import JudgementRun
from rejoinder.tasks.dialeval import AnnotationRecord, DialogueRecord, QualityRecord, TurnRecord, to_task

TURNS = [TurnRecord("customer", []), TurnRecord("helpdesk", [])]
TRUTH = to_task([DialogueRecord("a", TURNS, [AnnotationRecord(QualityRecord(0, 1, 2), ["CNUG", "HNUG"])])]).truth()

SCALE = {"2": 0.5, "1": 0.25, "0": 0.0, "-1": 0.0, "-2": 0.25}
GOOD = {
    "id": "a",
    "quality": {"A": SCALE, "S": SCALE, "E": SCALE},
    "nugget": [
        {"CNUG0": 0.0, "CNUG": 0.5, "CNUG*": 0.25, "CNaN": 0.25},
        {"HNUG": 0.5, "HNUG*": 0.0, "HNaN": 0.5},
    ],
}


def read(path: Path, lenient: bool = False) -> JudgementRun:
    return read_judgement_run(path, TRUTH, lenient=lenient)


@pytest.mark.parametrize("parts", [("quality", "nugget"), ("quality",), ("nugget",)])
@pytest.mark.parametrize("name", ["run.json", "run.json.gz"])
def test_submissions_are_read_and_written(save, tmp_path, parts, name):
    record = {key: GOOD[key] for key in ("id", *parts)}
    run = read(save(f"original-{name}", [record]))
    asked = {"quality": ["A", "S", "E"], "nugget": ["nugget"]}
    assert list(run.distributions) == [question for part in parts for question in asked[part]]
    for again in (tmp_path / name, tmp_path / f"again-{name}"):
        dialeval.write(again, run, TRUTH)
    assert (tmp_path / name).read_bytes() == again.read_bytes()
    for question, distribution in read(again).distributions.items():
        assert np.array_equal(distribution, run.distributions[question])
    if name == "run.json":
        assert again.read_text() == json.dumps([record], indent=4) + "\n"


def test_distributions_follow_the_labels_not_their_order(save):
    record = GOOD | {"quality": {name: dict(reversed(SCALE.items())) for name in "ESA"}}
    run = read(save("run", json.dumps(record)))
    assert run.distributions["A"].tolist() == [[0.5, 0.25, 0, 0, 0.25]]
    assert run.distributions["nugget"].tolist() == [[0, 0.5, 0.25, 0.25, 0, 0, 0], [0, 0, 0, 0, 0.5, 0, 0.5]]


def test_labels_left_out_have_no_probability(save):
    record = {"id": "a", "nugget": [{"CNUG": 1}, {"HNUG": 1}]}
    assert read(save("run", [record])).distributions["nugget"].tolist() == [
        [0, 1, 0, 0, 0, 0, 0],
        [0, 0, 0, 0, 1, 0, 0],
    ]


@pytest.mark.parametrize("lenient", [False, True])
@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"quality": None, "nugget": None}, "record 1 (id a): neither quality nor nugget is given"),
        ({"quality": {"A": SCALE, "S": SCALE}}, "record 1 (id a): quality: criteria A, S; expected A, S and E"),
        ({"quality": {}}, "record 1 (id a): quality: criteria none; expected A, S and E"),
        (
            {"quality": GOOD["quality"] | {"F": SCALE}},
            "record 1 (id a): quality: criteria A, E, F, S; expected A, S and E",
        ),
        (
            {"quality": GOOD["quality"] | {"S": {"3": 1.0}}},
            "record 1 (id a): S: label '3'; expected one of 2, 1, 0, -1, -2",
        ),
        ({"quality": GOOD["quality"] | {"S": [0.2] * 5}}, "record 1: quality[...]: expected `object`, got `array`"),
        ({"quality": GOOD["quality"] | {"S": {"2": "1"}}}, "record 1: quality[...][...]: expected `float`, got `str`"),
        ({"nugget": {"CNUG": 1}}, "record 1: nugget: expected `array | null`, got `object`"),
        ({"nugget": [{"CNUG": None}]}, "record 1: nugget[0][...]: expected `float`, got `null`"),
        ({"id": None}, "record 1: id: expected `int | str`, got `null`"),
    ],
)
def test_malformed_records(save, complaint, change, problem, lenient):
    assert complaint(read, save("run", [GOOD | change]), lenient) == f"run: {problem}"


def test_data_are_no_submission(save, complaint):
    data = {"id": "a", "turns": [], "annotations": [{"quality": {"A": 0, "S": 0, "E": 0}, "nugget": []}]}
    assert complaint(read, save("run", [data])) == "run: record 1 (id a): neither quality nor nugget is given"
