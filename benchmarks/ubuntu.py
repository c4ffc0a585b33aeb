"""How well real logs are untangled, and what is built from them.

The data is found through REJOINDER_DATA (default ../shared/data): irc-links/{train,dev} and ubuntu-logs.
"""

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measuring import PYTHON, ROOT, run
from benchmarks.results import Goal, Section, Table, megabytes, seconds

REJOINDER = Path(PYTHON).parent / "rejoinder"
PUBLISHED = {"link F": 73.5, "variation of information": 91.5, "one-to-one": 76.0, "exact match F": 38.0}
"""The best ensembles of Kummerfeld et al. (2019), on that paper's own test set."""


def measure(quick: bool) -> Section:
    data = Path(os.environ.get("REJOINDER_DATA", ROOT.parent / "shared" / "data"))
    title = "Ubuntu: real logs"
    if quick or not (data / "irc-links").is_dir() or not (data / "ubuntu-logs").is_dir():
        return Section(title, needs="irc-links and ubuntu-logs in REJOINDER_DATA")
    with tempfile.TemporaryDirectory() as folder:
        tables, goals = zip(*_real(Path(folder), data), strict=True)
    return Section(title, tables, [goal for reached in goals for goal in reached])


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
