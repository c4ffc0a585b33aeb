"""Film discussions: how fast the most similar of a million known messages is found, and its reply ranked with others.

Messages and replies are words drawn by Zipf's law.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.measuring import clock, in_child, run
from benchmarks.results import Goal, Section, Table, megabytes, seconds
from rejoinder.recipe import make_system, read_recipe
from rejoinder.systems.system import Lesson
from rejoinder.tasks.selection import SelectionTask

AIM = 0.01
WORDS, VOCABULARY = 15, 200_000
RECIPES = ("films-ir", "films-ir-feedback")


def measure(quick: bool) -> Section:
    size = 1_000 if quick else 1_000_000
    rows, slowest = [], 0.0
    for recipe in RECIPES:
        usage = run(in_child("benchmarks.film_retrieval", "retrieve", recipe, size))
        learned, first, each = json.loads(usage.output)
        slowest = max(slowest, each)
        rows.append([recipe, f"{size:,}", *map(seconds, (learned, first, each)), megabytes(usage.peak)])
    header = ("recipe", "exchanges", "learning", "the first 1,000 messages", "each of the next 1,000", "peak memory")
    note = f"Texts of {WORDS} words of {VOCABULARY:,}; 10,000 candidates, which are weighed for each thousand messages."
    table = Table("Learning from exchanges, and answering messages", header, rows, [note])
    aim = f"a message answered from {size:,} exchanges in {seconds(AIM)}"
    return Section("Films: retrieval", [table], [Goal(aim, seconds(slowest), slowest <= AIM)])


def retrieve(recipe: str, size: int) -> tuple[float, float, float]:
    """Return the seconds that learning takes, then the first thousand messages, then each of the next thousand."""
    system = make_system(read_recipe(recipe))
    train, asked = talk(size, size, 0), talk(min(1_000, size), min(10_000, size), 1)
    learned, _ = clock(lambda: system.fit(Lesson(train=train, work=Path())))
    first, again = (clock(lambda: system.predict(asked))[0] for _ in range(2))
    return learned, first, again / asked.examples.height


def talk(examples: int, options: int, seed: int) -> SelectionTask:
    """Return exchanges of drawn words."""
    replied = pl.DataFrame({"text": drawn(options, [seed, 1])}).select(
        pl.int_range(pl.len()).cast(pl.String).alias("id"), "text"
    )
    said = pl.DataFrame({"text": drawn(examples, [seed, 0])}).with_row_index("row")
    turn = pl.struct(pl.lit("user").alias("speaker"), "text")
    rows = said.select(
        pl.col("row").cast(pl.String).alias("id"),
        pl.concat_list(turn).alias("turns"),
        pl.lit(None, pl.List(pl.UInt32)).alias("options"),
        pl.concat_list("row").alias("correct"),
    )
    return SelectionTask(rows, replied)


def drawn(count: int, seed: Sequence[int]) -> pl.Series:
    """Draw texts whose words are as unequally frequent as those of a language."""
    chance = np.cumsum(1 / np.arange(1, VOCABULARY + 1))
    words = np.searchsorted(chance, np.random.default_rng(seed).random(count * WORDS) * chance[-1])
    return pl.Series(words.astype(np.int32)).cast(pl.String).reshape((count, WORDS)).arr.join(" ")
