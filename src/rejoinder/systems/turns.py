"""The turns of all contexts of a task, laid end to end."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rejoinder.tasks.selection import SelectionTask


class Turns(NamedTuple):
    """All turns of all contexts, one after the other."""

    examples: int
    """How many contexts there are; some may have no turn."""
    texts: list[str]
    example: NDArray[np.intp]
    """The number of its context."""
    age: NDArray[np.intp]
    """How many turns came after it."""
    repliers: NDArray[np.bool_]
    """Whether who will reply said it, which is taken to be anybody else than the last speaker."""


def turns_of(task: SelectionTask) -> Turns:
    """Return the turns of a task."""
    sizes = task.examples["turns"].list.len().to_numpy().astype(np.intp)
    turn = pl.col("turns").explode(empty_as_null=False).struct
    said = task.examples.select(turn.field("text").fill_null(""), turn.field("speaker"))
    example = np.repeat(np.arange(len(sizes)), sizes)
    age = np.cumsum(sizes)[example] - 1 - np.arange(said.height)
    speakers = np.array(said["speaker"].to_list(), dtype=object)
    repliers = (speakers != speakers[np.arange(said.height) + age]).astype(bool)
    return Turns(task.examples.height, said["text"].to_list(), example, age, repliers)


def number_texts(texts: Sequence[str]) -> tuple[list[str], NDArray[np.intp]]:
    """Return different texts as they come, and the number of each text; contexts cut at every turn share many."""
    numbers: dict[str, int] = {}
    rows = np.fromiter((numbers.setdefault(text, len(numbers)) for text in texts), np.intp, len(texts))
    return list(numbers), rows
