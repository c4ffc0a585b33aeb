"""Time and memory as data grow: from logs of ten thousand to a million messages, and official files of gigabytes.

Most of an hour on two cores, so not part of `make bench`: python -m benchmarks growth
"""

import filecmp
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.measuring import PYTHON, Usage, clock, in_child, run
from benchmarks.results import Goal, Section, Table, megabytes, seconds
from rejoinder.sample import irc

REJOINDER = Path(PYTHON).parent / "rejoinder"
SPEED = 1_000
LEVEL = 1.25
"""How much more memory still counts as no more."""
LINEAR = 1.5
"""How much more time a message may take where there are ten times as many."""


def measure(quick: bool) -> Section:
    with tempfile.TemporaryDirectory() as folder:
        logs, fast = _logs(Path(folder), [2_000, 20_000] if quick else [10_000, 100_000, 1_000_000], quick)
        files, small = _files(Path(folder), [50, 100] if quick else [10_000, 100_000])
    return Section("Growth", [logs, files], [*fast, *small])


def read(folder: str) -> float:
    from rejoinder.corpora.irc import read_log

    return clock(lambda: [sum(1 for _ in read_log(path)) for path in Path(folder).glob("*.raw.txt")])[0]


def _logs(folder: Path, sizes: list[int], quick: bool) -> tuple[Table, list[Goal]]:
    irc.write(folder / "train", 2_000 if quick else 20_000, 1)
    run([REJOINDER, "disentangle", "train", "--annotations", folder / "train", "--out", folder / "model"])
    usages = {size: dict(_steps(folder, folder / f"logs-{size}", size)) for size in sizes}
    header = ("step", "messages", "time", "messages per second", "processor time per message", "peak memory")
    first, last = sizes[0], sizes[-1]
    rows = [_row(step, size, usages[size][step]) for step in usages[last] for size in sizes if step in usages[size]]
    speed = last / usages[last]["untangling"].processors
    goals = [Goal(f"untangling {SPEED:,} messages in a second of one processor", f"{speed:,.0f}", speed >= SPEED)]
    for step in usages[last]:
        cost = [usages[size][step].processors / size for size in sizes[-2:] if step in usages[size]]
        found = f"{seconds(cost[0])}, then {seconds(cost[-1])} a message"
        goals.append(Goal(f"{step}: time in proportion to the messages", found, cost[-1] <= LINEAR * cost[0]))
    for step in ("reading", "untangling"):
        peaks = [usages[size][step].peak for size in (first, last)]
        found = f"{megabytes(peaks[0])}, then {megabytes(peaks[1])}"
        goals.append(Goal(f"{step}: memory level as logs grow", found, peaks[1] <= LEVEL * peaks[0]))
    note = (
        "Time by the clock is longer where a machine does other work at once; processor time hardly is, and the goals "
        "go by it."
    )
    return Table("Generated logs, each step once in a fresh process", header, rows, [note]), goals


def _steps(folder: Path, logs: Path, size: int) -> Iterator[tuple[str, Usage]]:
    irc.write(logs, size, 2)
    usage = run(in_child("benchmarks.growth", "read", logs))
    yield "reading", usage._replace(seconds=float(usage.output), processors=float(usage.output))
    links, tasks = logs / "links", logs / "tasks"
    yield "untangling", run([REJOINDER, "disentangle", "apply", logs, "--model", folder / "model", "--out", links])
    if len(list(logs.glob("*.raw.txt"))) >= 3:  # fewer days cannot be split by time
        command = [REJOINDER, "build", "ubuntu", "--logs", logs, "--links", links, "--out", tasks]
        yield "building", run([*command, "--pool-size", 1_000])


def _row(step: str, size: int, usage: Usage) -> list[str]:
    speed = f"{size / usage.seconds:,.0f}"
    return [step, f"{size:,}", seconds(usage.seconds), speed, seconds(usage.processors / size), megabytes(usage.peak)]


def _files(folder: Path, sizes: list[int]) -> tuple[Table, list[Goal]]:
    rows, goals = [], []
    for size in sizes:
        write_task(folder / f"task-{size}", size)
        first, again = folder / f"official-{size}", folder / f"again-{size}"
        run([REJOINDER, "export", folder / f"task-{size}", "--out", first])
        examples, task = first / "ubuntu_train_subtask_1.json", folder / f"imported-{size}"
        usages = {
            "import dstc7": run([REJOINDER, "import", "dstc7", examples, "--out", task]),
            "export": run([REJOINDER, "export", task, "--out", again]),
        }
        if not filecmp.cmp(examples, again / examples.name, shallow=False):
            raise ValueError("what was imported and exported again is not the same file")
        weight = megabytes(examples.stat().st_size / 1e6)
        for command, used in usages.items():
            rows.append([command, f"{size:,}", weight, seconds(used.seconds), megabytes(used.peak)])
            goal = Goal(f"{command}: {weight} within 2 GB of memory", megabytes(used.peak), used.peak < 2_000)
            goals += [goal] if size == sizes[-1] else []
        shutil.rmtree(first)
        shutil.rmtree(again)
    header = ("command", "examples of 100 options", "file", "time", "peak memory")
    note = "The file that was exported again is the same, byte for byte."
    return Table("Official DSTC7 files, each command once in a fresh process", header, rows, [note]), goals


def write_task(folder: Path, examples: int) -> None:
    """Write a task of the official size: 100 options each, drawn from three times as many utterances."""
    from rejoinder.tasks.build import Cut, build_task
    from rejoinder.tasks.card import Card, write_card

    rng = np.random.default_rng(0)
    words = np.array([f"word{number}" for number in range(5_000)])
    texts = [" ".join(rng.choice(words, 10)) for _ in range(3 * examples + 200)]
    cuts = [Cut((("participant_1", text), ("participant_2", text), ("participant_1", text)), (text,)) for text in texts]
    build_task(cuts[:examples], [(text,) for text in texts]).save(folder)
    write_card(folder, Card("ubuntu", 1, "train", examples, len(texts)))
