"""NONE beside the same lists: subtask 1's test five times over, each time without the answers of another fifth.

Subtask 4 has lists of its own, which may be harder or easier by chance than those of subtask 1. Here every list stands
once without its answer and four times with it, so that whatever differs is due to NONE. `python -m benchmarks rankers`
shows what it comes to for models of subtask 4 that are there; figures of others are kept.
"""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl

from benchmarks import kept
from benchmarks.ranker_runs import FOLDER
from benchmarks.results import Table
from rejoinder.measures.selection import score
from rejoinder.model import load_model, predict
from rejoinder.statistics import mean_intervals
from rejoinder.tasks.load import load_task
from rejoinder.tasks.selection import SelectionTask

FIFTHS = 5
FILE = "without_answers.json"


def table(pairs: dict[str, str]) -> list[Table]:
    """Compare systems for subtask 4 with what they are made of, both on the lists of subtask 1."""
    figures = kept.with_records(kept.FOLDER / FILE, {name: _figures(*pair) for name, pair in _models(pairs).items()})
    rows = [
        [
            name,
            f"{its['none']:.3f}",
            f"{its['plain']:.3f}",
            f"{its['more']:+.3f}, {its['low']:+.3f} to {its['high']:+.3f}",
        ]
        for name, its in figures.items()
    ]
    columns = ["system", "DSTC7", "of what it is made of, where all have an answer", "difference, 95% within"]
    note = "Each of subtask 1's lists once without its answer and four times with it: the lists are the same for both."
    return [Table("Ubuntu, NONE on the lists of subtask 1", columns, rows, [note])] if rows else []


def _models(pairs: dict[str, str]) -> dict[str, tuple[Path, Path]]:
    """Return the folders of systems' models, and of what they are made of, where both are there."""
    models = FOLDER / "models"
    found = {name: (models / f"ubuntu-4-{name}", models / f"ubuntu-1-{plain}") for name, plain in pairs.items()}
    return {name: pair for name, pair in found.items() if all(model.is_dir() for model in pair)}


def _figures(none: Path, plain: Path) -> dict[str, float]:
    path = FOLDER / "ubuntu" / "subtask_1" / "test"
    task: Any = load_task(path)
    without = without_answers(task)
    often, once = (
        score(predict(*load_model(model), path, asked), asked.truth(), ["DSTC7"])["DSTC7"]
        for model, asked in ((none, without), (plain, task))
    )
    each = often.reshape(FIFTHS, -1).mean(axis=0)
    low, high = (float(end[0]) for end in mean_intervals((each - once)[None]))
    return {
        "none": float(each.mean()),
        "plain": float(once.mean()),
        "more": float((each - once).mean()),
        "low": low,
        "high": high,
    }


def without_answers(task: SelectionTask) -> SelectionTask:
    """Return all examples five times; in each fifth, others have a wrong option in the place of each right one."""
    rng = np.random.default_rng(0)
    parts = []
    for fifth in range(FIFTHS):
        options, correct = task.examples["options"].to_list(), task.examples["correct"].to_list()
        for number in range(fifth, len(options), FIFTHS):
            others = rng.permutation(np.setdiff1d(np.arange(task.options.height), options[number])).tolist()
            options[number] = [others.pop() if row in correct[number] else row for row in options[number]]
            correct[number] = []
        parts.append(
            task.examples.with_columns(
                id=pl.col("id") + f"/{fifth}",
                options=pl.Series(options, dtype=pl.List(pl.UInt32)),
                correct=pl.Series(correct, dtype=pl.List(pl.UInt32)),
            )
        )
    return msgspec.structs.replace(task, examples=pl.concat(parts))
