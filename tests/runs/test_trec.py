"""TREC runs: their layout. The rules for choices are in test_selection."""

from pathlib import Path

import polars as pl
import pytest

from rejoinder.runs import read_selection_run, trec
from rejoinder.runs.selection import SelectionRun
from rejoinder.tasks.selection import SelectionTruth, to_pairs

TRUTH = SelectionTruth(pl.Series("id", ["1", "film 2"]), to_pairs([0, 1], ["A", "Good Morning, Miss Dove"]))
GOOD = (
    "1 Q0 B 1 0.75 my%20run\n"
    "1 Q0 A 2 -1e-07 my%20run\n"
    "film%202 Q0 Good%20Morning,%20Miss%20Dove 1 3.0 my%20run\n"
    "film%202 Q0 50%25\u00a0off 2 3.0 my%20run\n"
)


def read(path: Path, lenient: bool = False) -> SelectionRun:
    return read_selection_run(path, TRUTH, lenient=lenient)


@pytest.mark.parametrize("name", ["my run", "my run.gz"])
def test_runs_are_read_and_written(save, tmp_path, name):
    (tmp_path / "original").mkdir()
    run = read(save(f"original/{name}", GOOD))
    assert run.choices.rows() == [
        (0, "B", 0.75),
        (0, "A", -1e-07),
        (1, "Good Morning, Miss Dove", 3.0),
        (1, "50%\u00a0off", 3.0),
    ]
    for again in (tmp_path / name, tmp_path / f"again-{name}"):
        trec.write(again, run, TRUTH)
    assert (tmp_path / name).read_bytes() == again.read_bytes()
    assert read(again).choices.equals(run.choices)
    if name == "my run":
        assert again.read_text("utf-8") == GOOD


def test_white_space_and_marks(save):
    text = "\ufeff" + GOOD.replace(" ", " \t ", 3).replace("\n", "\r\n") + "\r\n \n"
    assert read(save("run", text)).choices.equals(read(save("good", GOOD)).choices)


def test_the_rank_column_is_not_used(save):
    text = GOOD.replace("B 1 0.75", "B 9 0.75")
    assert read(save("run", text)).choices.equals(read(save("good", GOOD)).choices)


@pytest.mark.parametrize("number", ["1", "+1", "1.", ".5", "-1e5", "1E-3"])
def test_numbers(save, number):
    assert read(save("run", GOOD.replace("0.75", number))).choices["score"].max() >= float(number)


@pytest.mark.parametrize("lenient", [False, True])
@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("1 Q0 C 1 0.5", "line 5: 5 fields; expected topic Q0 option rank score name"),
        ("1 Q0 C 1 0.5 my run", "line 5: 7 fields; expected topic Q0 option rank score name"),
        ("1 Q0 C 1 high run", "line 5: score: 'high' is not a number"),
        ("1 Q0 C 1 nan run", "line 5: score: 'nan' is not a number"),
        ("1 Q0 C 1 1_0 run", "line 5: score: '1_0' is not a number"),
        ("1 Q0 C 1 ٣ run", "line 5: score: '٣' is not a number"),
        ("1 Q0 C 1 1e999 run", "example 1: confidence of 'C': inf is not a finite number"),
    ],
)
def test_malformed_lines(save, complaint, line, problem, lenient):
    assert complaint(read, save("run", f"{GOOD}{line}\n"), lenient) == f"run: {problem}"


def test_an_example_in_pieces_is_one_example(save):
    lines = GOOD.splitlines(keepends=True)
    path = save("run", "".join([lines[0], lines[2], lines[1], lines[3]]))
    assert read(path).choices.equals(read(save("good", GOOD)).choices)
