import csv
import io
import json

import msgspec
import numpy as np
import pytest

from rejoinder.comparison import Correlation, Settings, compare
from rejoinder.measures.measure import Measure, Scores
from rejoinder.report.overview import agreement, agreement_table, average_ranks, overview_table
from rejoinder.report.plots import means_chart, to_svg
from rejoinder.report.tables import (
    Cell,
    Table,
    correlation_table,
    score_table,
    scores_to_csv,
    show,
    show_p,
    significance_table,
    to_csv,
    to_latex,
    to_markdown,
    to_object,
)
from rejoinder.statistics import Interval

NMD = Measure("NMD(A)", "", "", higher_is_better=False)
QUICK = Settings(trials=100, resamples=100)
RSNOD = Measure("RSNOD(A)", "", "", higher_is_better=False)


@pytest.fixture
def comparison():
    rng = np.random.default_rng(0)
    values = rng.random((3, 60)) * 0.1 + np.array([0.1, 0.3, 0.105])[:, None]
    scores = [Scores(measure, ("one", "two", "three"), values) for measure in (NMD, RSNOD)]
    return compare(scores, "a title", Settings(trials=999, resamples=300))


def test_scores_are_in_order_with_intervals_and_letters(comparison):
    table = score_table(comparison)
    assert table.header == ("run", "NMD(A) ↓", "RSNOD(A) ↓")
    assert [row[0].text for row in table.rows][-1] == "two"
    best = table.rows[0][1]
    assert best.strong
    assert best.detail.endswith(" a")
    assert table.rows[-1][1].detail.endswith(" b")


def test_equal_scores_have_no_interval_anywhere():
    values = np.stack([np.ones(20), np.linspace(0, 1, 20)])
    scores = Scores(Measure("R@1", "", "", higher_is_better=True), ("sure", "other"), values)
    found = compare([scores], "a title", QUICK)
    table = score_table(found)
    assert table.rows[0][1].detail == "[–] a"
    assert table.note.endswith("[–] no interval, as all scores are equal")
    assert "no interval" not in score_table(compare([Scores(scores.measure, ("other",), values[1:])], "", QUICK)).note
    assert ",sure,R@1,20,1.0,,,a" in scores_to_csv(found, {})
    sure = json.loads(msgspec.json.encode(to_object(found)))["runs"][0]["measures"]["R@1"]
    assert sure == {"mean": 1.0, "low": None, "high": None, "group": "a"}
    assert "NaN" not in to_svg(means_chart(found))


def test_log2_turns_the_scale_round(comparison):
    table = score_table(comparison, log2=True)
    assert table.header[1] == "NMD(A) ↑"
    plain = float(score_table(comparison).rows[0][1].text)
    shown = table.rows[0][1]
    assert float(shown.text) == pytest.approx(-np.log2(plain), abs=0.01)
    low, high = (float(end) for end in shown.detail.split("]")[0].strip("[").split(", "))
    assert low < float(shown.text) < high
    assert show(0.0, log2=True) == "inf"


def test_significance_has_the_papers_layout(comparison):
    table = significance_table(comparison.measures[0])
    assert [cell.text for cell in table.rows[0][1:]] == ["two", table.rows[0][2].text]
    assert table.rows[0][2].text.startswith("(p = 0.0010, ES_E1 = ") or table.rows[0][2].text.startswith("(p < 0.0001")
    assert "B = 999 trials" in table.title
    assert len(table.rows) == 2


def test_p_values_print_as_in_the_papers():
    assert show_p(1 / 10_001) == "p < 0.0001"
    assert show_p(0.0018) == "p = 0.0018"


def test_correlations_have_the_papers_layout():
    table = correlation_table([Correlation(("NMD(A)", "RSNOD(A)"), Interval(1.0, 1.0, 1.0))])
    assert table.rows[0][0].text == "NMD(A) vs RSNOD(A)"
    assert table.rows[0][1].plain() == "1.000 [1.000, 1.000]"
    table = correlation_table([Correlation(("NMD(A)", "RSNOD(A)"), Interval(1.0, float("nan"), float("nan")))])
    assert table.rows[0][1].plain() == "1.000 [–]"
    assert table.note == "[–] no interval, as any of these runs are ranked alike"


AWKWARD = Table("50% & more_x", ("run", "R@1 ↑"), [(Cell("a|b_c {x}"), Cell("0.5", "[0.4, 0.6] a", strong=True))])


def test_markdown_keeps_bars_and_marks_the_best():
    lines = to_markdown(AWKWARD).splitlines()
    assert lines[-1] == "| a\\|b_c {x} | **0.5** [0.4, 0.6] a |"
    assert lines[3] == "|---|---|"


def test_latex_escapes(tmp_path):
    text = to_latex(AWKWARD)
    assert r"\caption{50\% \& more\_x}" in text
    assert r"{}a|b\_c \{x\} & \textbf{0.5} [0.4, 0.6] a \\" in text


def test_csv_reads_back():
    rows = list(csv.reader(io.StringIO(to_csv(AWKWARD))))
    assert rows == [["run", "R@1 ↑"], ["a|b_c {x}", "0.5 [0.4, 0.6] a"]]


def test_long_csv_and_json_hold_the_same_figures(comparison):
    rows = list(csv.DictReader(io.StringIO(scores_to_csv(comparison, {}))))
    found = to_object(comparison)
    assert len(rows) == 6
    for run in found["runs"]:
        for measure, figures in run["measures"].items():
            row = next(r for r in rows if (r["run"], r["measure"]) == (run["run"], measure))
            assert float(row["mean"]) == figures["mean"]
            assert figures["low"] < figures["mean"] < figures["high"]
            assert run["n"] == 60


RESULTS = {
    "t1": {"a": {"MRR": 0.9, "R@1": 0.8}, "b": {"MRR": 0.5, "R@1": 0.9}, "c": {"MRR": 0.4, "R@1": 0.1}},
    "t2": {"b": {"MRR": 0.7, "R@1": 0.6}, "c": {"MRR": 0.2, "R@1": 0.3}},
}


def test_overview_ranks_over_the_tasks_each_entered():
    assert average_ranks(RESULTS, "MRR") == {"a": 1.0, "b": 1.5, "c": 2.5}
    table = overview_table(RESULTS, "MRR")
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["a", "0.9000", "–", "1.00", "1 of 2"],
        ["b", "0.5000", "0.7000", "1.50", "2 of 2"],
        ["c", "0.4000", "0.2000", "2.50", "2 of 2"],
    ]
    assert table.rows[1][2].strong
    assert table.note.endswith("; – no score")
    assert "no score" not in overview_table({"t2": RESULTS["t2"]}, "MRR").note


def test_of_systems_tied_by_all_but_rounding_each_is_the_best():
    table = overview_table({"task": {"a": {"MRR": 0.3}, "b": {"MRR": 0.1 + 0.2}, "c": {"MRR": 0.2}}}, "MRR")
    assert [(row[1].strong, row[2].text) for row in table.rows] == [(True, "1.00"), (True, "1.00"), (False, "3.00")]


def test_an_overview_says_what_its_measure_is():
    for name, start in (
        ("DSTC7", "DSTC7: mean of hits@10 and MRR, by which the track ranked its teams; ordered by"),
        ("NMD(A)", "NMD(A): normalised match distance; ordered by"),
        ("MINE", "ordered by"),
    ):
        assert overview_table({"task": {"a": {name: 0.5}}}, name).note.startswith(start)


def test_agreement_counts_places_between_ranks():
    found = agreement(RESULTS, ["MRR", "R@1"])
    assert found.cases == 5
    assert found.spread == (3, 2)
    table = agreement_table(found, ["MRR", "R@1"])
    assert table.rows[1][2].text == "40%"
    assert "MRR, R@1" in table.title
    assert table.note.startswith("a case is one system on one task; ")
