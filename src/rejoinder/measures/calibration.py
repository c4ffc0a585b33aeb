"""Whether a run knows what it knows: is it right as often as its confidences say, and in doubt where it errs?"""

from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rejoinder.errors import UserError
from rejoinder.runs.selection import SelectionRun
from rejoinder.tasks.selection import NONE, SelectionTruth

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


class Forecasts(NamedTuple):
    """How sure a run was of something, example by example, and whether it was so."""

    confidence: Floats
    right: Flags


def of_best_option(run: SelectionRun, truth: SelectionTruth) -> Forecasts:
    """Return the confidence in each example's best option, NONE left aside, and whether that one is correct."""
    best = run.choices.filter(pl.col("option") != NONE).unique("example", keep="first", maintain_order=True)
    return _forecasts(best, truth)


def of_none(run: SelectionRun, truth: SelectionTruth) -> Forecasts | None:
    """Return the confidence in NONE and whether that is correct; None where the run never chooses it."""
    chosen = run.choices.filter(pl.col("option") == NONE)
    return _forecasts(chosen, truth) if chosen.height else None


def answered(run: SelectionRun, truth: SelectionTruth) -> tuple[int, int]:
    """Return how many examples have an option before NONE, which a run so decided to answer, and how many rightly."""
    first = run.choices.unique("example", keep="first", maintain_order=True).filter(pl.col("option") != NONE)
    return first.height, first.join(truth.correct, on=["example", "option"], how="semi").height


def sums(run: SelectionRun, truth: SelectionTruth) -> tuple[float, float] | None:
    """Return what confidences sum to and how many are right, on average over the lists that a run ranks as a whole.

    Of probabilities both are about the same. None: there are no such lists, or what they hold is not known.
    """
    if truth.options is None:
        return None
    shared = 0 if truth.pool is None else len(truth.pool)
    offered = truth.options.group_by("example").len("offered")
    ranked = run.choices.filter(pl.col("option") != NONE).group_by("example").len("ranked")
    whole = ranked.join(offered, on="example").filter(pl.col("ranked") >= pl.col("offered") + shared)
    if whole.is_empty():
        return None
    chosen, correct = (table.join(whole, on="example", how="semi") for table in (run.choices, truth.correct))
    return float(chosen["score"].sum()) / whole.height, correct.height / whole.height


def _forecasts(chosen: pl.DataFrame, truth: SelectionTruth) -> Forecasts:
    examples = pl.DataFrame({"example": pl.int_range(len(truth.ids), dtype=pl.UInt32, eager=True)})
    correct = truth.correct.with_columns(right=pl.lit(True))
    found = examples.join(chosen, on="example", how="left", maintain_order="left").join(
        correct, on=["example", "option"], how="left", maintain_order="left"
    )
    confidence = found["score"].fill_null(0.0).to_numpy()
    if ((confidence < 0) | (confidence > 1)).any():
        raise UserError("this run's scores are no confidences between 0 and 1, so nothing can be said of them")
    return Forecasts(confidence, found["right"].fill_null(False).to_numpy())


def reliability(forecasts: Forecasts, bins: int = 10) -> pl.DataFrame:
    """Return mean confidence, share that was right and count, in bins of equally many examples.

    Examples of one confidence that fall into two bins are right there as often as all of them.
    """
    order = np.argsort(forecasts.confidence, kind="stable")
    _, level = np.unique(forecasts.confidence, return_inverse=True)
    right = (np.bincount(level, weights=forecasts.right) / np.bincount(level))[level]
    parts = [part for part in np.array_split(order, bins) if len(part)]
    rows = [(forecasts.confidence[part].mean(), right[part].mean(), len(part)) for part in parts]
    return pl.DataFrame(rows, schema=["confidence", "right", "examples"], orient="row")


def calibration_error(forecasts: Forecasts, bins: int = 10) -> float:
    """Return the mean distance of confidence from truth over the bins (Naeini, Cooper and Hauskrecht 2015)."""
    table = reliability(forecasts, bins)
    weights = table["examples"].to_numpy() / table["examples"].sum()
    return float(np.abs(table["confidence"].to_numpy() - table["right"].to_numpy()) @ weights)


def risk_coverage(forecasts: Forecasts) -> pl.DataFrame:
    """Return the share of wrong answers if only the surest are given, for every confidence (Geifman et al. 2017)."""
    levels, level = np.unique(-forecasts.confidence, return_inverse=True)
    given = np.cumsum(np.bincount(level))
    risk = np.cumsum(np.bincount(level, weights=~forecasts.right)) / given
    return pl.DataFrame({"coverage": given / len(level), "risk": risk, "confidence": -levels})


def area_under(curve: pl.DataFrame) -> float:
    """Return the mean risk over all coverages; what is equally sure is answered all at once."""
    return float(np.diff(curve["coverage"].to_numpy(), prepend=0) @ curve["risk"].to_numpy())


def coverage_at(curve: pl.DataFrame, precision: float) -> float:
    """Return how many examples can be answered with at least this precision."""
    enough = curve.filter(pl.col("risk") <= 1 - precision + 1e-12)["coverage"]
    return float(enough[-1]) if len(enough) else 0.0
