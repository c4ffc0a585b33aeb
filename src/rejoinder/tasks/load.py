"""Read a task from wherever it is: a task folder, or an official file."""

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
    if not path.exists():
        raise BadInputError(path, "no such file or folder")
    if path.is_dir() and not _is_task(path):
        inside = sorted(folder.name for folder in path.iterdir() if _is_task(folder))
        if inside:
            raise BadInputError(path, f"holds several tasks ({', '.join(inside)}); name one of them")
    format_ = recognise_truth(path)
    if pool is not None and format_ != "dstc7":
        raise BadInputError(pool, f"a pool has no use with {TRUTH_FORMATS[format_]}")
    if format_ == "task":
        return load_judgement_task(path) if is_judgement_folder(path) else load_selection_task(path)
    if format_ == "dialeval":
        return dialeval.read_task(path)
    if format_ == "dstc7":
        task = dstc7.read_task(path, pool)
        bare = task.examples.filter(pl.col("options").is_null())["id"]
        if pool is not None and not len(bare):
            raise BadInputError(pool, f"a pool has no use with {path}, whose examples have options of their own")
        if pool is not None and len(bare) and not task.options.height:
            raise BadInputError(pool, "holds no option to choose from")
        if len(bare) and pool is None:
            problem = "has no options of its own; name the pool to choose from"
            raise BadInputError(path, problem, f"example-id {bare[0]}", "options-for-next")
        return task
    raise BadInputError(path, f"{TRUTH_FORMATS[format_]}: this holds no dialogues to answer")


def _is_task(folder: Path) -> bool:
    return (folder / "examples.parquet").is_file() or is_judgement_folder(folder)
