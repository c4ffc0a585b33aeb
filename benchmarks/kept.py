"""What runs scored, example by example, kept in benchmarks/scores: a row that took a GPU is compared with later ones.

A run that is made anew takes the place of what was kept of it. What was kept of other examples, or not by all measures,
counts for nothing, but stays. Of runs that were measured before scores were kept, or by code that answers otherwise
now, `earlier.json` has means and intervals; they are shown until the runs are made anew.
"""

import datetime
import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl

from rejoinder.comparison import Comparison, Settings, compare
from rejoinder.measures.measure import Scores

FOLDER = Path(__file__).parent / "scores"
EARLIER = FOLDER / "earlier.json"
Row = dict[str, tuple[float, float, float]]
"""By measure, a mean and its interval."""
_COLUMNS = {
    "truth": pl.String,
    "run": pl.String,
    "measured": pl.Date,
    "measure": pl.String,
    "scores": pl.List(pl.Float64),
}


def with_kept(
    found: Comparison, truth: str, path: Path, names: Collection[str], settings: Settings
) -> tuple[Comparison, dict[str, datetime.date]]:
    """Compare runs on a truth, by its fingerprint, with others of these names that were kept; keep them all.

    Also returns when those others were measured.
    """
    table = pl.read_parquet(path) if path.is_file() else pl.DataFrame(schema=_COLUMNS)
    remade = (pl.col("truth") == truth) & pl.col("run").is_in(found.runs)
    own = [
        (truth, run, datetime.date.today(), by.measure.name, values.tolist())
        for by in found.measures
        for run, values in zip(by.scores.runs, by.scores.values, strict=True)
        if run in names
    ]
    whole = pl.concat([pl.DataFrame(own, schema=_COLUMNS, orient="row"), table.filter(~remade)])
    path.parent.mkdir(exist_ok=True)
    whole.sort("truth", "run", "measure").write_parquet(path, compression="zstd")
    asked = {by.measure.name for by in found.measures}
    others = table.filter(~remade, pl.col("truth") == truth, pl.col("run").is_in(names), pl.col("measure").is_in(asked))
    others = others.filter(pl.col("measure").n_unique().over("run") == len(asked))
    if others.is_empty():
        return found, {}
    compared = compare([_joined(by.scores, others) for by in found.measures], found.title, settings)
    compared = msgspec.structs.replace(compared, signature=found.signature, references=found.references)
    return compared, dict(others.select("run", "measured").unique().sort("run").iter_rows())


def _joined(own: Scores, others: pl.DataFrame) -> Scores:
    """Return a measure's scores of all runs, by name."""
    kept = others.filter(pl.col("measure") == own.measure.name)
    rows = dict(zip(own.runs, own.values, strict=True)) | dict(kept.select("run", "scores").iter_rows())
    return Scores(own.measure, tuple(sorted(rows)), np.array([rows[run] for run in sorted(rows)]))


def earlier_rows(task: str, truth: str, runs: Collection[str]) -> dict[str, Row]:
    """Return what is known of runs on a task, by its truth's fingerprint, that were not made since."""
    known = _earlier()["tasks"].get(task, {"truth": "", "rows": {}})
    return {run: row for run, row in known["rows"].items() if run not in runs} if known["truth"] == truth else {}


def earlier_trainings() -> dict[str, Any]:
    """Return the records of trainings that earlier rows are of."""
    found: dict[str, Any] = _earlier()["training"]
    return found


def earlier_day() -> str:
    """Return when earlier rows were measured."""
    return str(_earlier()["measured"])


def _earlier() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(EARLIER.read_text())
    return found


def with_records(path: Path, made: dict[str, Any]) -> dict[str, Any]:
    """Return records, by name, beside others that were kept; keep them all."""
    whole = (json.loads(path.read_text()) if path.is_file() else {}) | made
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(whole, indent=1, sort_keys=True) + "\n")
    return whole
