"""Read a task from wherever it is: a task folder, or an official file."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from rejoinder.files import BadInputError
from rejoinder.formats import TRUTH_FORMATS, recognise_truth
from rejoinder.tasks import dialeval, dstc7
from rejoinder.tasks.judgement import JudgementTask
from rejoinder.tasks.judgement_folder import is_judgement_folder, load_judgement_task
from rejoinder.tasks.selection import SelectionTask, load_selection_task

Task = SelectionTask | JudgementTask


def load_task(path: Path, pool: Path | None = None) -> Task:
    """Read a task folder, a DSTC7 examples file (with its pool, if it has one) or DialEval data."""
    return load_tasks([path], pool)[0]


def load_tasks(paths: Sequence[Path], pool: Path | None = None) -> list[Task]:
    """Read tasks; where there is a pool, one at least has to choose from it."""
    read = [_read(path, pool) for path in paths]
    if pool is not None and not any(chooses for _, chooses in read):
        raise BadInputError(pool, f"has no use: no example of {' and '.join(map(str, paths))} chooses from a pool")
    return [task for task, _ in read]


def _read(path: Path, pool: Path | None) -> tuple[Task, bool]:
    """Return a task, and whether examples of it choose from a pool that is kept in a file of its own."""
    if not path.exists():
        raise BadInputError(path, "no such file or folder")
    format_ = recognise_truth(path)
    if format_ == "task":
        return load_judgement_task(path) if is_judgement_folder(path) else load_selection_task(path), False
    if format_ == "dialeval":
        return dialeval.read_task(path), False
    if format_ == "dstc7":
        task = dstc7.read_task(path, pool)
        bare = task.examples.filter(pl.col("options").is_null())["id"]
        if pool is not None and len(bare) and not task.options.height:
            raise BadInputError(pool, "holds no option to choose from")
        if len(bare) and pool is None:
            raise BadInputError(path, dstc7.NO_POOL, f"example-id {bare[0]}", "options-for-next")
        return task, len(bare) > 0
    raise BadInputError(path, f"{TRUTH_FORMATS[format_]}: this holds no dialogues to answer")
