"""Task 5 (Dodge et al. 2016, section 2.5): exchanges of all tasks, each with the context of its own dialogue alone."""

from pathlib import Path

import numpy as np
import polars as pl

from rejoinder.tasks.writer import TaskWriter
from rejoinder.watch import Step

_BATCH = 20_000


def write_joint(out: Path, split: str, size: int, rng: np.random.Generator, advance: Step) -> tuple[int, int]:
    """Draw an equal share of each task that was built, and return how many examples and options there are.

    The options of all tasks are one pool: the entities, then the replies of discussions.
    """
    folders = {task: out / f"task_{task}" / split for task in (1, 2, 3, 4)}
    present = {task: folder for task, folder in folders.items() if folder.is_dir()}
    options = [_options(present[task]) for task in (1, 4) if task in present]
    parts = [
        _drawn(folder, task, size // len(present), options[0].height if task == 4 else 0, rng)
        for task, folder in present.items()
    ]
    examples = pl.concat(parts)
    examples = examples[rng.permutation(examples.height)]
    with TaskWriter(out / "task_5" / split) as writer:
        for option in pl.concat(options).iter_rows():
            writer.row(option)
        for start in range(0, examples.height, _BATCH):
            part = examples[start : start + _BATCH]
            writer.extend(part, part.select("task", "response"))
            advance(part.height)
    return writer.examples, len(writer.rows)


def _options(folder: Path) -> pl.DataFrame:
    return pl.read_parquet(folder / "options.parquet", columns=["id", "text"])


def _drawn(folder: Path, task: int, size: int, shift: int, rng: np.random.Generator) -> pl.DataFrame:
    columns = pl.scan_parquet(folder / "examples.parquet").select("turns", "correct")
    groups = pl.scan_parquet(folder / "groups.parquet").select(pl.col("response").cast(pl.Int64))
    table = pl.concat([columns, groups], how="horizontal").with_row_index("row")
    height = int(table.select(pl.len()).collect().item())
    chosen = pl.Series(rng.choice(height, min(size, height), replace=False), dtype=pl.UInt32)
    rows = (pl.element() + shift).cast(pl.UInt32)
    drawn = table.filter(pl.col("row").is_in(chosen.implode())).drop("row")
    return drawn.with_columns(pl.col("correct").list.eval(rows), task=pl.lit(task)).collect()
