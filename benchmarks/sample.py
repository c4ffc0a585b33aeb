"""Generating sample data: how fast, and whether memory stays level as the data grows."""

import importlib
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.measuring import clock, in_child, run
from benchmarks.results import Goal, Section, Table, megabytes, seconds

WORLDS = {  # what is counted, and two sizes
    "advising": ("dialogues", 500, 10_000),
    "films": ("films", 500, 10_000),
    "helpdesk": ("dialogues", 1_000, 20_000),
    "irc": ("messages", 10_000, 200_000),
}
LEVEL = 1.25
"""Memory counts as level if twenty times the data takes no more than this many times the memory."""


def generate(world: str, folder: str, size: int) -> float:
    generator = importlib.import_module(f"rejoinder.sample.{world}")
    return clock(lambda: generator.write(Path(folder), size, 0))[0]


def measure(quick: bool) -> Section:
    rows: list[list[str]] = []
    goals: list[Goal] = []
    missing: list[str] = []
    for world, (unit, *sizes) in WORLDS.items():
        try:
            importlib.import_module(f"rejoinder.sample.{world}")
        except ImportError:
            missing.append(f"{world} is left out: there is no generator for it yet.")
            continue
        peaks = []
        for row, peak in _grow(world, unit, [20, 40] if quick else sizes):
            rows.append(row)
            peaks.append(peak)
        found = f"{megabytes(peaks[0])}, then {megabytes(peaks[1])}"
        goals.append(Goal(f"`sample {world}`: memory level as data grows", found, peaks[1] <= LEVEL * peaks[0]))
    header = ("world", "size", "time", "per second", "written", "peak memory")
    return Section("Sample data", [Table("Generators, each run once in a fresh process", header, rows, missing)], goals)


def _grow(world: str, unit: str, sizes: Sequence[int]) -> Iterable[tuple[list[str], float]]:
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            usage = run(in_child("benchmarks.sample", "generate", world, folder, size))
            written = sum(path.stat().st_size for path in Path(folder).rglob("*")) / 1e6
        taken = float(usage.output)
        count = f"{size:,} {unit}"
        figures = [seconds(taken), f"{size / taken:,.0f} {unit}", megabytes(written), megabytes(usage.peak)]
        yield [world, count, *figures], usage.peak
