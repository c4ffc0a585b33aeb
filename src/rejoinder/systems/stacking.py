"""Put rankings of the same examples together: by ranks, by scores, or by weights that are learned."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.optimize import minimize

from rejoinder.errors import UserError
from rejoinder.runs.selection import SelectionRun

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

_LEAST = 1e-9
_AT_ONCE = 1000
"""Examples whose options are joined together: what that needs is ten times as large as the result."""
_MOST = 1e100
"""Scores beyond it have squares that are no numbers."""
_OVER = 5e-3
"""How far a hundred shares that were rounded to four digits may be above their whole."""
_UNDER = 0.5
"""What shares come to in most examples, though the least may be left out; cosines of short lists come to less."""


def align(runs: Sequence[SelectionRun], scales: Sequence[float]) -> pl.DataFrame:
    """Return every option that any run chose, with its rank (`rank_0`, ...) and strength (`score_0`, ...) in each.

    Options of equal score share their ranks' mean. One that a run has not is worse than all that it has.
    """
    tables = [_ranked(run, number, scale) for number, (run, scale) in enumerate(zip(runs, scales, strict=True))]
    last = max((table["example"][-1] for table in tables if table.height), default=0)
    edges = pl.Series([*range(0, last + 1, _AT_ONCE), last + 1], dtype=pl.UInt32)
    cuts = [table["example"].search_sorted(edges) for table in tables]
    return pl.concat(
        _align([table[cut[place] : cut[place + 1]] for table, cut in zip(tables, cuts, strict=True)])
        for place in range(len(edges) - 1)
    )


def _align(tables: Sequence[pl.DataFrame]) -> pl.DataFrame:
    found = pl.concat([table.select("example", "option") for table in tables]).unique(maintain_order=True)
    for number, table in enumerate(tables):
        found = found.join(table, on=["example", "option"], how="left", maintain_order="left").with_columns(
            pl.col(f"rank_{number}").fill_null(pl.col(f"rank_{number}").count().over("example") + 1),
            pl.col(f"score_{number}").fill_null(pl.col(f"score_{number}").min().over("example") - 1).fill_null(0.0),
        )
    return found.sort("example", maintain_order=True)


def _ranked(run: SelectionRun, number: int, scale: float) -> pl.DataFrame:
    return run.choices.select(
        "example",
        "option",
        mean_rank().alias(f"rank_{number}"),
        pl.Series(f"score_{number}", strengths(run, scale), dtype=pl.Float64),
    )


def mean_rank() -> pl.Expr:
    """Return the rank of each of an example's choices by its score; equals share the mean of theirs."""
    return pl.col("score").rank("average", descending=True).over("example")


def scale_of(run: SelectionRun) -> float:
    """Return the spread of a run's scores; 0: they are shares of a whole, which are taken by their logarithm."""
    scores = run.choices["score"].to_numpy()
    if np.abs(scores).max(initial=0) > _MOST:
        raise UserError(
            f"{run.name}: {scores[np.abs(scores).argmax()]} is too large a score to be weighed beside others"
        )
    totals = run.choices.group_by("example").agg(pl.col("score").sum())["score"].to_numpy()
    shares = (scores >= 0).all() and (totals <= 1 + _OVER).all() and 2 * (totals > _UNDER).sum() >= len(totals)
    return 0.0 if shares else float(scores.std()) or 1.0


def strengths(run: SelectionRun, scale: float) -> Floats:
    """Return scores on one scale for all systems, which `scale_of` another of the system's runs has set."""
    score = pl.col("score")
    if scale:
        return np.asarray(run.choices["score"].to_numpy() / scale)
    # nothing at all is as little as 1e-9, or as the example's least share where that is less
    least = pl.min_horizontal(score.filter(score > 0).min().over("example").fill_null(_LEAST), _LEAST)
    return run.choices.select(pl.max_horizontal(score, least).log()).to_series().to_numpy()


def fuse_ranks(runs: Sequence[SelectionRun], constant: float = 60.0) -> SelectionRun:
    """Sum 1 / (60 + rank) over the runs (reciprocal rank fusion: Cormack, Clarke and Büttcher 2009).

    What a run has not is ranked just below what it has; the paper, whose runs have all, does not say.
    """
    table = align(runs, [1.0] * len(runs))
    total = pl.sum_horizontal(1 / (constant + pl.col(f"rank_{number}")) for number in range(len(runs)))
    return _sorted("ranks", table.select("example", "option", score=total))


def fuse_scores(runs: Sequence[SelectionRun], scales: Sequence[float] | None = None) -> SelectionRun:
    """Take the mean of each example's scores, of mean 0 and spread 1 in every run (CombSUM: Fox and Shaw 1994).

    Without scales, those of the runs themselves are taken.
    """
    table = align(runs, [scale_of(run) for run in runs] if scales is None else scales)
    standard = [_standardised(pl.col(f"score_{number}")) for number in range(len(runs))]
    mean = table.select(pl.mean_horizontal(standard)).to_series().to_numpy()
    return _sorted("scores", with_shares(table, mean))


def _standardised(column: pl.Expr) -> pl.Expr:
    """Return each example's scores with mean 0 and spread 1; equal ones are 0, which rounding alone would part."""
    least, most = column.min().over("example"), column.max().over("example")
    shares = (column - least) / (most - least)  # whose squares are never too small for a float
    standard = (shares - shares.mean().over("example")) / shares.std().over("example")
    return pl.when(standard.is_finite()).then(standard).otherwise(0.0)


def features(table: pl.DataFrame, runs: int) -> Floats:
    """Return what stacking weighs, an option a row: each run's score, and the logarithm of its rank."""
    columns = [(pl.col(f"score_{number}"), -pl.col(f"rank_{number}").log()) for number in range(runs)]
    return table.select(
        column.alias(f"{number}") for number, column in enumerate(column for pair in columns for column in pair)
    ).to_numpy()


class Stack(NamedTuple):
    """What stacking has learned: each run's scale, and the weights of `features`."""

    scales: Floats
    weights: Floats


def stack(runs: Sequence[SelectionRun], learned: Stack) -> SelectionRun:
    """Rank by learned weights of the runs' scores and ranks."""
    table = align(runs, learned.scales.tolist())
    return _sorted("stack", with_shares(table, features(table, len(runs)) @ learned.weights))


def learn_stack(runs: Sequence[SelectionRun], correct: pl.DataFrame) -> Stack:
    """Learn to stack from runs and the correct options (columns `example`, `option`)."""
    scales = np.array([scale_of(run) for run in runs])
    table = align(runs, scales.tolist())
    weights = learn_order(features(table, len(runs)), table["example"].to_numpy(), is_correct(table, correct))
    return Stack(scales, weights)


def is_correct(table: pl.DataFrame, correct: pl.DataFrame) -> NDArray[np.bool_]:
    """Return which rows of (example, option) are correct."""
    marked = table.select("example", "option").join(
        correct.select("example", "option", pl.lit(True).alias("right")),
        on=["example", "option"],
        how="left",
        maintain_order="left",
    )
    return marked["right"].fill_null(False).to_numpy()


def learn_order(values: Floats, example: NDArray[Any], correct: NDArray[np.bool_], penalty: float = 1.0) -> Floats:
    """Return what `learn_weights` does, but refuse to learn nothing: all options would be alike."""
    weights = learn_weights(values, example, correct, penalty)
    if not weights.any():
        raise UserError("dev teaches no weights: nowhere is a right option told from a wrong one, by score or rank")
    return weights


def learn_weights(values: Floats, example: NDArray[Any], correct: NDArray[np.bool_], penalty: float = 1.0) -> Floats:
    """Return the weights of a conditional logit: a softmax over each example's options that favours the correct ones.

    Rows of an example stand together. Where several options are correct, their shares are summed; examples of which
    no correct option is among the rows teach nothing. Columns are scaled first, so that the penalty treats them alike.
    """
    taught = np.isin(example, np.unique(example[correct]))
    values, example, correct = values[taught], example[taught], correct[taught]
    if not len(values):
        return np.zeros(values.shape[1])
    scale = values.std(axis=0)
    scale[scale <= _LEAST * np.abs(values).max(axis=0)] = 1.0  # rounding alone would become a weight
    scaled, starts = values / scale, starts_of(example)

    def loss(weights: Floats) -> tuple[float, Floats]:
        logits = scaled @ weights
        whole, right = softmax(logits, starts), softmax(np.where(correct, logits, -np.inf), starts)
        mass = np.add.reduceat(np.where(correct, whole, 0.0), starts)
        value = -np.log(np.maximum(mass, 1e-300)).sum() + penalty / 2 * weights @ weights
        return float(value), scaled.T @ (whole - right) + penalty * weights

    found = minimize(loss, np.zeros(values.shape[1]), jac=True, method="L-BFGS-B")
    return np.asarray(found.x / scale)


def starts_of(example: NDArray[np.integer[Any]]) -> Rows:
    """Return where the rows of each example start; they stand together."""
    return np.flatnonzero(np.diff(example.astype(np.int64), prepend=-1))


def softmax(logits: Floats, starts: Rows) -> Floats:
    """Return the softmax within groups of rows that start at `starts`."""
    sizes = np.diff(starts, append=len(logits))
    powers = np.exp(logits - np.repeat(np.maximum.reduceat(logits, starts), sizes))
    return np.asarray(powers / np.repeat(np.add.reduceat(powers, starts), sizes))


def with_shares(table: pl.DataFrame, logits: Floats) -> pl.DataFrame:
    """Return the options with shares of each example's whole as scores."""
    shares = softmax(logits, starts_of(table["example"].to_numpy()))
    return pl.DataFrame([table["example"], table["option"], pl.Series("score", shares)])


def _sorted(name: str, table: pl.DataFrame) -> SelectionRun:
    return SelectionRun(name, table.sort("example", "score", descending=[False, True], maintain_order=True))
