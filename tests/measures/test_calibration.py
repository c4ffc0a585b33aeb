import msgspec
import numpy as np
import polars as pl
import pytest
from sklearn.calibration import calibration_curve

from rejoinder.errors import UserError
from rejoinder.measures.calibration import (
    Forecasts,
    answered,
    area_under,
    calibration_error,
    coverage_at,
    of_best_option,
    of_none,
    reliability,
    risk_coverage,
    sums,
)
from rejoinder.runs.selection import SelectionRun
from rejoinder.tasks.selection import SelectionTruth, to_pairs


@pytest.fixture
def forecasts():
    rng = np.random.default_rng(0)
    confidence = rng.random(1000)
    return Forecasts(confidence, rng.random(1000) < confidence**2)


def test_confidences_sum_to_what_is_right_in_whole_lists():
    offered = to_pairs([0, 0, 1, 1], ["a", "b", "b", "c"])
    truth = SelectionTruth(pl.Series(["x", "y"]), to_pairs([0, 1, 1], ["a", "b", "c"]), offered)
    rows = [(0, "a", 0.2), (0, "b", 0.1), (0, "NONE", 0.1), (1, "b", 0.9)]
    choices = pl.DataFrame(rows, {"example": pl.UInt32, "option": pl.String, "score": pl.Float64}, orient="row")
    assert sums(SelectionRun("run", choices), truth) == pytest.approx((0.4, 1))  # the other list is cut off
    assert sums(SelectionRun("run", choices[3:]), truth) is None
    assert sums(SelectionRun("run", choices), msgspec.structs.replace(truth, options=None)) is None


def test_bins_are_scikit_learns_quantiles(forecasts):
    right, confidence = calibration_curve(forecasts.right, forecasts.confidence, n_bins=10, strategy="quantile")
    table = reliability(forecasts)
    assert table["examples"].to_list() == [100] * 10
    assert table["confidence"].to_numpy() == pytest.approx(confidence)
    assert table["right"].to_numpy() == pytest.approx(right)
    assert calibration_error(forecasts) == pytest.approx(np.abs(right - confidence).mean())


def test_risk_and_coverage_by_hand():
    curve = risk_coverage(Forecasts(np.array([0.2, 0.9, 0.6, 0.4]), np.array([True, True, False, True])))
    assert curve["coverage"].to_list() == [0.25, 0.5, 0.75, 1.0]
    assert curve["risk"].to_list() == pytest.approx([0, 1 / 2, 1 / 3, 1 / 4])
    assert [coverage_at(curve, wanted) for wanted in (0.5, 0.75, 0.9)] == [1.0, 1.0, 0.25]
    assert coverage_at(risk_coverage(Forecasts(np.array([0.9]), np.array([False]))), 0.5) == 0
    assert area_under(curve) == pytest.approx((0 + 1 / 2 + 1 / 3 + 1 / 4) / 4)
    one_of_ten = risk_coverage(Forecasts(np.array([0.9] + [0.1] * 9), np.arange(10) == 0))
    assert area_under(one_of_ten) == pytest.approx(0.1 * 0 + 0.9 * 0.9)  # nine are answered at once, or none


def test_forecasts_of_a_run():
    truth = SelectionTruth(pl.Series(["x", "y", "z"]), to_pairs([0, 1, 2], ["a", "NONE", "b"]))
    rows = [(0, "a", 0.7), (0, "NONE", 0.3), (1, "NONE", 0.6), (1, "b", 0.4), (2, "NONE", 0.8), (2, "a", 0.2)]
    choices = pl.DataFrame(rows, {"example": pl.UInt32, "option": pl.String, "score": pl.Float64}, orient="row")
    options = of_best_option(SelectionRun("run", choices), truth)
    assert (options.confidence.tolist(), options.right.tolist()) == ([0.7, 0.4, 0.2], [True, False, False])
    none = of_none(SelectionRun("run", choices), truth)
    assert (none.confidence.tolist(), none.right.tolist()) == ([0.3, 0.6, 0.8], [False, True, False])
    assert of_none(SelectionRun("run", choices.filter(pl.col("option") != "NONE")), truth) is None
    with pytest.raises(UserError, match="no confidences between 0 and 1"):
        of_best_option(SelectionRun("run", choices.with_columns(score=pl.col("score") * 9)), truth)


@pytest.mark.parametrize("seed", range(3))
def test_examples_of_one_confidence_count_alike_whatever_their_order(seed):
    order = np.random.default_rng(seed).permutation(60)
    tied = Forecasts(np.full(60, 0.5), (np.arange(60) < 30)[order])
    assert calibration_error(tied) == pytest.approx(0)
    assert coverage_at(risk_coverage(tied), 0.9) == 0
    some = Forecasts(np.repeat([0.9, 0.5], [20, 60]), np.append(np.ones(20, bool), tied.right))
    assert risk_coverage(some).rows() == [(0.25, 0.0, 0.9), (1.0, 0.375, 0.5)]
    assert coverage_at(risk_coverage(some), 0.9) == 0.25


def test_what_a_run_decided_to_answer_stands_before_none():
    truth = SelectionTruth(pl.Series("id", ["1", "2", "3", "4"]), to_pairs([0, 1, 2, 3], ["a", "NONE", "a", "b"]))
    rows = [
        (0, "a", 0.6),
        (0, "NONE", 0.4),
        (1, "b", 0.7),
        (1, "NONE", 0.3),
        (2, "NONE", 0.9),
        (2, "a", 0.1),
        (3, "b", 1),
    ]
    schema = {"example": pl.UInt32, "option": pl.String, "score": pl.Float64}
    assert answered(SelectionRun("r", pl.DataFrame(rows, schema, orient="row")), truth) == (3, 2)
