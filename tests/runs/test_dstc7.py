"""DSTC7 submissions: their layout, and the rules that only they have. The others are in test_selection."""

import json
from pathlib import Path

import polars as pl
import pytest

from rejoinder.measures.measure import UnknownMeasureError
from rejoinder.measures.selection import score
from rejoinder.runs import dstc7, read_selection_run
from rejoinder.runs.selection import SelectionRun
from rejoinder.tasks.selection import SelectionTruth, to_pairs

TRUTH = SelectionTruth(pl.Series("id", ["1", "x"]), to_pairs([0, 1], ["A", "NONE"]))


def ranking(id_: object, *choices: tuple[object, object]) -> dict[str, object]:
    return {"example-id": id_, "candidate-ranking": [{"candidate-id": o, "confidence": c} for o, c in choices]}


GOOD = [ranking(1, ("B", 0.75), ("A", 0.25)), ranking("x", ("NONE", 1))]


def read(path: Path, lenient: bool = False) -> SelectionRun:
    return read_selection_run(path, TRUTH, lenient=lenient)


def reciprocal(run: SelectionRun, truth: SelectionTruth = TRUTH) -> list[float]:
    return score(run, truth, ["MRR"])["MRR"].tolist()


@pytest.mark.parametrize("name", ["run.json", "run.json.gz"])
def test_submissions_are_read_and_written(save, tmp_path, name):
    run = read(save(f"original-{name}", GOOD))
    assert run.choices.rows() == [(0, "B", 0.75), (0, "A", 0.25), (1, "NONE", 1.0)]
    for again in (tmp_path / name, tmp_path / f"again-{name}"):
        dstc7.write(again, run, TRUTH)
    assert (tmp_path / name).read_bytes() == again.read_bytes()
    assert read(again).choices.equals(run.choices)
    if name == "run.json":
        expected = [GOOD[0], ranking("x", ("NONE", 1.0))]
        assert again.read_text() == json.dumps(expected, indent=4) + "\n"


def test_one_record_a_line(save):
    assert reciprocal(read(save("run", "\n".join(json.dumps(record) for record in GOOD)))) == [0.5, 1.0]


def test_at_most_a_hundred_choices_are_written(tmp_path):
    choices = pl.DataFrame(
        {"example": [0] * 150 + [1], "option": [f"o{n}" for n in range(150)] + ["A"], "score": [1.0] * 151},
        schema_overrides={"example": pl.UInt32},
    )
    dstc7.write(tmp_path / "run", SelectionRun("run", choices), TRUTH)
    written = json.loads((tmp_path / "run").read_text())
    assert [len(record["candidate-ranking"]) for record in written] == [100, 1]
    assert written[0]["candidate-ranking"][99]["candidate-id"] == "o99"


@pytest.mark.parametrize("first", [1, "1"])
def test_duplicate_example(save, complaint, tmp_path, first):
    path = save("run", [*GOOD, ranking(first, ("A", 1))])
    problem = "run: record 3 (example-id 1): example-id: duplicate id, first in record 1"
    assert complaint(read, path) == problem
    lenient = read(path, lenient=True)
    assert lenient.notes == (f"{tmp_path}/{problem}: the first is kept",)
    assert reciprocal(lenient) == [0.5, 1.0]


def test_negative_confidence(save, complaint, tmp_path):
    path = save("run", [ranking(1, ("B", 0.75), ("A", -0.25)), GOOD[1]])
    problem = "run: record 1 (example-id 1): candidate-ranking[1].confidence: -0.25 is negative"
    assert complaint(read, path) == problem
    lenient = read(path, lenient=True)
    assert lenient.notes == (f"{tmp_path}/{problem}: kept as a score to rank by",)
    assert reciprocal(lenient) == [0.5, 1.0]
    with pytest.raises(UnknownMeasureError, match="negative"):
        score(lenient, TRUTH, ["F90"])


def test_more_than_a_hundred_choices(save, complaint, tmp_path):
    many = [(f"o{number}", number / 1000) for number in range(99)]
    good = save("run", [ranking(1, ("A", 0.0005), *many), GOOD[1]])
    assert reciprocal(read(good)) == [1 / 99, 1.0]
    path = save("run", [ranking(1, ("A", 0.0005), *many, ("p", 2.0)), GOOD[1]])
    problem = "run: record 1 (example-id 1): candidate-ranking: 101 choices; expected at most 100"
    assert complaint(read, path) == problem
    lenient = read(path, lenient=True)
    assert lenient.notes == (f"{tmp_path}/{problem}: the best ranked 100 are kept",)
    kept = lenient.choices.filter(pl.col("example") == 0)["option"].to_list()
    assert kept == ["p", *(f"o{number}" for number in range(98, 0, -1)), "A"]


@pytest.mark.parametrize("lenient", [False, True])
@pytest.mark.parametrize(
    ("record", "problem"),
    [
        (ranking("x"), "record 2 (example-id x): candidate-ranking: no choice; expected at least one"),
        (ranking(None, ("A", 1)), "record 2: example-id: expected `int | str`, got `null`"),
        (ranking(2.0, ("A", 1)), "record 2: example-id: expected `int | str`, got `float`"),
        (ranking("x", ("A", 1), (7, 1)), "record 2: candidate-ranking[1].candidate-id: expected `str`, got `int`"),
        (ranking("x", ("A", "1")), "record 2: candidate-ranking[0].confidence: expected `float`, got `str`"),
        (ranking("x", ("A", True)), "record 2: candidate-ranking[0].confidence: expected `float`, got `bool`"),
        (ranking("x", ("A", [1])), "record 2: candidate-ranking[0].confidence: expected `float`, got `array`"),
        ({"example-id": "x"}, "record 2: object missing required field `candidate-ranking`"),
        ({"candidate-ranking": []}, "record 2: object missing required field `example-id`"),
        (
            {"example-id": "x", "candidate-ranking": [{"candidate-id": "A"}]},
            "record 2: candidate-ranking[0]: object missing required field `confidence`",
        ),
        (
            {"example-id": "x", "candidate-ranking": {"A": 1}},
            "record 2: candidate-ranking: expected `array`, got `object`",
        ),
    ],
)
def test_malformed_records(save, complaint, record, problem, lenient):
    assert complaint(read, save("run", [GOOD[0], record]), lenient) == f"run: {problem}"


def test_the_last_of_two_equal_keys_counts_as_in_every_json_reader(save):
    text = json.dumps(GOOD).replace('"confidence": 0.25', '"confidence": 0.25, "confidence": 0.9')
    assert reciprocal(read(save("run", text))) == [1.0, 1.0]
