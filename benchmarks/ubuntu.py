"""From logs to tasks: reading, untangling and building, as the logs grow; and, where the real logs are, how well.

Real data is found through REJOINDER_DATA (default ../shared/data): irc-links/{train,dev} and ubuntu-logs.
"""

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measuring import PYTHON, ROOT, clock, in_child, run
from benchmarks.results import Goal, Section, Table, megabytes, seconds
from rejoinder.sample import irc

REJOINDER = Path(PYTHON).parent / "rejoinder"
PUBLISHED = {"link F": 73.5, "variation of information": 91.5, "one-to-one": 76.0, "exact match F": 38.0}
"""The best ensembles of Kummerfeld et al. (2019), on that paper's own test set."""
SPEED = 1_000


def measure(quick: bool) -> Section:
    tables, goals = [], []
    with tempfile.TemporaryDirectory() as folder:
        table, reached = _growth(
            Path(folder), [2_000, 6_000] if quick else [10_000, 30_000, 100_000], 2_000 if quick else 20_000
        )
        tables.append(table)
        goals += reached
        data = Path(os.environ.get("REJOINDER_DATA", ROOT.parent / "shared" / "data"))
        if not quick and (data / "irc-links").is_dir() and (data / "ubuntu-logs").is_dir():
            for table, reached in _real(Path(folder), data):
                tables.append(table)
                goals += reached
    return Section("Ubuntu: from logs to tasks", tables, goals)


def read(folder: str) -> float:
    from rejoinder.corpora.irc import read_log

    return clock(lambda: [sum(1 for _ in read_log(path)) for path in Path(folder).glob("*.raw.txt")])[0]


def _growth(folder: Path, sizes: list[int], training: int) -> tuple[Table, list[Goal]]:
    """Time each step on generated logs; reading alone is also tried on ten times the most."""
    irc.write(folder / "train", training, 1)
    run([REJOINDER, "disentangle", "train", "--annotations", folder / "train", "--out", folder / "model"])
    rows: list[list[str]] = []
    speeds, peaks = [], []
    for size in (*sizes, 10 * sizes[-1]):
        logs = folder / f"logs-{size}"
        irc.write(logs, size, 2)
        usage = run(in_child("benchmarks.ubuntu", "read", logs))
        rows.append(_row("reading", size, float(usage.output), usage.peak))
        if size > sizes[-1]:
            continue
        usage = run([REJOINDER, "disentangle", "apply", logs, "--model", folder / "model", "--out", logs / "links"])
        rows.append(_row("untangling", size, usage.seconds, usage.peak))
        speeds.append(size / usage.seconds)
        peaks.append(usage.peak)
        if len(list(logs.glob("*.raw.txt"))) < 3:  # too few days to split by time
            continue
        command = [REJOINDER, "build", "ubuntu", "--logs", logs, "--links", logs / "links", "--out", logs / "tasks"]
        usage = run([*command, "--pool-size", 1_000])
        rows.append(_row("building", size, usage.seconds, usage.peak))
    header = ("step", "messages", "time", "messages per second", "peak memory")
    goals = [
        Goal(f"untangling {SPEED:,} messages a second", f"{speeds[-1]:,.0f}", speeds[-1] >= SPEED),
        Goal(
            "untangling: memory level as logs grow",
            f"{peaks[0]:.0f} MB, then {peaks[-1]:.0f} MB",
            peaks[-1] < 1.25 * peaks[0],
        ),
    ]
    return Table("Generated logs, each step once in a fresh process", header, rows), goals


def _row(step: str, size: int, taken: float, peak: float) -> list[str]:
    return [step, f"{size:,}", seconds(taken), f"{size / taken:,.0f}", megabytes(peak)]


def _real(folder: Path, data: Path) -> Iterator[tuple[Table, list[Goal]]]:
    links = data / "irc-links"
    trained = run([REJOINDER, "disentangle", "train", "--annotations", links / "train", "--out", folder / "real"])
    run([REJOINDER, "disentangle", "apply", links / "dev", "--model", folder / "real", "--out", folder / "dev"])
    figures = json.loads(run([REJOINDER, "disentangle", "score", links / "dev", folder / "dev", "--json"]).output)
    rows = [
        [name, f"{value:.1f}", f"{PUBLISHED[name]:.1f}" if name in PUBLISHED else ""] for name, value in figures.items()
    ]
    notes = [f"Trained on irc-links/train (153 logs) in {seconds(trained.seconds)}, scored on irc-links/dev (10 logs)."]
    header = ("measure", "Rejoinder, dev", "published best, on its own test set")
    goals = [
        Goal(f"{name} of at least {aim}", f"{figures[name]:.1f}", figures[name] >= aim)
        for name, aim in PUBLISHED.items()
    ]
    yield Table("Untangling real logs, in percent", header, rows, notes), goals
    yield _collection(folder, data), []


def _collection(folder: Path, data: Path) -> Table:
    sources = ["--logs", data / "ubuntu-logs", "--logs", data / "irc-links" / "train"]
    usage = run([REJOINDER, "build", "ubuntu", *sources, "--model", folder / "real", "--out", folder / "real-tasks"])
    found = json.loads((folder / "real-tasks" / "description.json").read_text())
    rows = [
        [name.replace("_", " "), f"{value:,.1f}" if isinstance(value, float) else f"{value:,}"]
        for name, value in found["diversity"].items()
    ]
    rows += [[name, f"{value:,}"] for name, value in found["funnel"].items()]
    rows += [[f"examples of {name}", f"{value:,}"] for name, value in found["tasks"].items()]
    for split, shared in found["overlaps"].items():
        rows.append(
            [f"replies of {split} that train has too, the same / nearly", f"{shared['same']} / {shared['alike']}"]
        )
    notes = [f"From ubuntu-logs and irc-links/train in {seconds(usage.seconds)}, {megabytes(usage.peak)} of memory."]
    return Table("A benchmark from real logs", ("property", "value"), rows, notes)
