"""What the benchmark of rankers keeps of its runs, and says of its goals."""

import datetime
import json

import numpy as np
import polars as pl
import pytest
from benchmarks import kept, rankers

from rejoinder.comparison import Settings, compare
from rejoinder.measures.measure import Measure, Scores

SETTINGS = Settings(trials=100, resamples=100)
MEASURES = [Measure(name, "-", "-", True) for name in ("R@1", "R@10", "DSTC7")]


def compared(**runs):
    """Compare runs that have one score for each example, by all measures."""
    values = np.array(list(runs.values()), dtype=float)
    return compare([Scores(measure, tuple(runs), values) for measure in MEASURES], "title", SETTINGS)


def scores(comparison):
    return {run: comparison.measures[0].scores.values[place].tolist() for place, run in enumerate(comparison.runs)}


def test_kept_runs_are_compared_with_new_ones(tmp_path):
    path = tmp_path / "scores" / "ubuntu_1.parquet"
    first = compared(a=[1, 0, 0], b=[1, 1, 0], gone=[0, 0, 0])
    found, older = kept.with_kept(first, "truth", path, ["a", "b"], SETTINGS)
    assert (found, older) == (first, {})
    later = compared(b=[0, 0, 1], c=[1, 1, 1])
    found, older = kept.with_kept(later, "truth", path, ["a", "b", "c", "gone"], SETTINGS)
    assert scores(found) == {"a": [1, 0, 0], "b": [0, 0, 1], "c": [1, 1, 1]}  # `gone` was no known run then
    assert older == {"a": datetime.date.today()}
    assert found.signature == later.signature
    assert pl.read_parquet(path)["run"].unique().sort().to_list() == ["a", "b", "c"]
    other = compared(c=[0, 1, 1])
    assert kept.with_kept(other, "another truth", path, ["a", "b", "c"], SETTINGS) == (other, {})
    table = pl.read_parquet(path)
    assert table["truth"].unique().sort().to_list() == ["another truth", "truth"]  # none was lost
    table.filter((pl.col("run") != "a") | (pl.col("measure") != "R@10")).write_parquet(path)
    found, _ = kept.with_kept(later, "truth", path, ["a", "b", "c"], SETTINGS)
    assert found.runs == ("b", "c")  # `a` is not known by all measures


def test_records_are_kept_by_name(tmp_path):
    path = tmp_path / "scores" / "training.json"
    kept.with_records(path, {"a": {"steps": 1}, "b": {"steps": 2}})
    assert kept.with_records(path, {"b": {"steps": 3}}) == {"a": {"steps": 1}, "b": {"steps": 3}}
    assert kept.with_records(path, {}) == {"a": {"steps": 1}, "b": {"steps": 3}}


def test_goals_are_met_by_figures():
    speeds = [
        {"device": device, "epochs": 1, "sentence-transformers": 10.0, "rejoinder": 49.0}
        for device in ("a GPU", "CPU, 2 cores")
    ]
    half = [1, 0] * 10
    first = compared(
        **{"sentence-transformers": half, "stacked": [1] * 12 + [0] * 8, "words": half, "cascade-bi": half}
    )
    second = compared(**{"minilm": [1] * 4 + [0] * 16, "cascade-late": [1] * 8 + [0] * 12})
    fourth = compared(**{"words-or-none": [1] * 20, "bi-or-none": [0] * 20})
    by_task = {
        ("ubuntu", subtask): rankers.Standing(found, {})
        for subtask, found in ((1, first), (2, second), (4, fourth), (5, first))
    }
    goals = {goal.aim.partition(" (")[0]: goal for goal in rankers._goals(by_task, speeds)}
    met = {aim: goal.met for aim, goal in goals.items()}
    assert met == {
        "R@1 at least 0.60, by one recipe for both": True,
        "R@10 at least 0.88, by one recipe for both": False,
        **{
            f"R@1 at least 1.10 times that of MiniLM by sentence-transformers' trainer, on {encoder}": True
            for encoder in ("any encoder", "MiniLM taught by mpnet", "MiniLM alone")
        },
        "training at least 5 times as fast as sentence-transformers' trainer": False,
        "subtask 2: R@10 at least 2 times that of MiniLM as it is": True,
        **{
            f"{name}: mean of R@10 and MRR where none may be right no worse than that of {plain} in subtask 1": is_met
            for name, plain, is_met in (("words-or-none", "words", True), ("bi-or-none", "cascade-bi", False))
        },
    }
    ratio = goals["R@1 at least 1.10 times that of MiniLM by sentence-transformers' trainer, on MiniLM alone"].found
    assert ratio == "1.200 (stacked, the best of 3 on test)"
    row = {"R@1": (0.65, 0.6, 0.7), "R@10": (0.9, 0.8, 1.0), "DSTC7": (0.8, 0.7, 0.9)}
    by_task["ubuntu", 1] = rankers.Standing(first, {"cascade-late-mpnet": row})
    by_task["ubuntu", 4] = rankers.Standing(fourth, {"late-mpnet-or-none": row | {"DSTC7": (0.75, 0.7, 0.8)}})
    found = {goal.aim: goal for goal in rankers._goals(by_task, speeds)}
    best = "R@10 at least 0.88, by one recipe for both (cascade-late-mpnet †, the best on test)"
    assert found[best] == (best, "0.900", True)
    worse = next(goal for aim, goal in found.items() if aim.startswith("late-mpnet-or-none †"))
    assert worse[1:] == ("0.750 against 0.800: -0.050", False)  # no interval: scores by example were not kept


def test_rows_of_before_are_shown_until_they_are_made_anew(tmp_path, monkeypatch):
    rows = {"a": {"R@1": [0.5, 0.4, 0.6]}, "b": {"R@1": [0.2, 0.1, 0.3]}}
    known = {"measured": "2026-01-01", "training": {}, "tasks": {"ubuntu_1": {"truth": "this", "rows": rows}}}
    monkeypatch.setattr(kept, "EARLIER", tmp_path / "earlier.json")
    kept.EARLIER.write_text(json.dumps(known))
    assert kept.earlier_rows("ubuntu_1", "this", ["b", "c"]) == {"a": rows["a"]}
    assert kept.earlier_rows("ubuntu_1", "another", []) == kept.earlier_rows("ubuntu_2", "this", []) == {}


def test_a_row_of_before_has_no_tie_group():
    row = dict.fromkeys(("R@1", "R@10", "DSTC7"), (0.65, 0.6, 0.7))
    table = rankers._table("ubuntu", 1, rankers.Standing(compared(a=[1, 0], b=[1, 1]), {"c": row}))
    assert [line[0] for line in table.rows] == ["b", "c †", "a"]
    assert table.rows[1][1:] == ["0.650 [0.600, 0.700]"] * 3
    assert all(cell.split()[-1].isalpha() for line in table.rows[::2] for cell in line[1:])


@pytest.mark.parametrize("missing", [(), ("bm25",)])
def test_recipes_without_a_row_are_named(monkeypatch, missing):
    monkeypatch.setattr(rankers, "NETWORKS", {("ubuntu", 1): ("a", *missing)})
    tables = rankers._missing({("ubuntu", 1): rankers.Standing(compared(a=[1, 0], b=[0, 1]), {})})
    assert [table.rows for table in tables] == [[["Ubuntu, subtask 1", "bm25"]]][: len(missing)]
