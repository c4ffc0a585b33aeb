"""Rankers on real dialogues: every run that was made, with intervals, tie groups and the published rows.

Needs a collection and runs below REJOINDER_RANKERS (default build/rankers); the systems that need no network are
trained here, the others by hand, for they want a GPU:

rejoinder build ubuntu --logs LOGS --model LINKS --turns --out build/rankers/ubuntu
rejoinder train bi-encoder --task build/rankers/ubuntu/turns/train --dev build/rankers/ubuntu/subtask_1/dev \
    --out build/rankers/models/bi-encoder
rejoinder predict build/rankers/models/bi-encoder --task build/rankers/ubuntu/subtask_1/test \
    --out build/rankers/runs/subtask_1/bi-encoder.json
"""

import json
import os
from pathlib import Path

from benchmarks.results import Goal, Section, Table
from rejoinder.comparison import Comparison, Settings
from rejoinder.evaluation import Request, evaluate
from rejoinder.model import Assignment, load_model, predict, train_model
from rejoinder.recipe import read_recipe
from rejoinder.runs.convert import write_run
from rejoinder.tasks.load import load_task

ROOT = Path(__file__).parent.parent
FOLDER = Path(os.environ.get("REJOINDER_RANKERS", ROOT / "build" / "rankers"))
RECIPES = {1: ("random", "tfidf", "bm25", "words"), 4: ("random", "words", "words-or-none")}
MEASURES = ("R@1", "R@10", "R@50", "MRR", "DSTC7")
AIMS = {"R@1": 0.60, "R@10": 0.88}


def measure(quick: bool) -> Section:
    title = "Rankers"
    if quick or not (FOLDER / "ubuntu").is_dir():
        return Section(title, [Table("Rankers", ["data"], [["not measured: needs a collection of real dialogues"]])])
    compared = {subtask: _compare(subtask) for subtask in RECIPES}
    tables = [_table(subtask, comparison) for subtask, comparison in compared.items()]
    return Section(title, [*tables, _training()], _goals(compared[1], compared[4]))


def _compare(subtask: int) -> Comparison:
    """Run what is not there yet, and compare all runs of the folder."""
    data, runs = FOLDER / "ubuntu" / f"subtask_{subtask}", FOLDER / "runs" / f"subtask_{subtask}"
    for name in RECIPES[subtask]:
        if not (runs / f"{name}.json").is_file():
            _run(name, data, FOLDER / "models" / f"{name}-{subtask}", runs / f"{name}.json")
    request = Request(
        truth=data / "test",
        runs=sorted(runs.glob("*.json")),
        measures=MEASURES,
        references=(f"dstc7/ubuntu/{subtask}",),
        settings=Settings(seed=0),
    )
    return evaluate(request).comparison


def _run(name: str, data: Path, model: Path, out: Path) -> None:
    train, dev = ((data / split, load_task(data / split)) for split in ("train", "dev"))
    train_model(Assignment(recipe=read_recipe(name), train=train, dev=dev), model)
    task = load_task(data / "test")
    write_run(out, predict(*load_model(model), data / "test", task), task.unanswered(), "dstc7")


def _table(subtask: int, comparison: Comparison) -> Table:
    header = ["system", *(f"{by.measure.name} [95%], tie group" for by in comparison.measures)]
    rows = []
    for place in comparison.measures[-1].order:
        name = comparison.measures[-1].scores.runs[place]
        cells = (
            f"{by.scores.means[place]:.3f} [{by.low[place]:.3f}, {by.high[place]:.3f}] {by.groups[place]}"
            for by in comparison.measures
        )
        rows.append([name, *cells])
    for name, means in comparison.references.items():
        rows.append([f"*{name}*", *(f"{means[m]:.3f}" if m in means else "" for m in MEASURES)])
    note = (
        f"{comparison.examples} dialogues, built from real logs and split by time; the published rows (in italics) "
        f"are for orientation: other data. Signature: {comparison.signature}"
    )
    return Table(f"Ubuntu, subtask {subtask}", header, rows, [note])


def _training() -> Table:
    rows = []
    for path in sorted((FOLDER / "models").glob("*/history.json")):
        history = json.loads(path.read_text())
        seconds = sum(entry["seconds"] for entry in history)
        checks = [entry["dev"] for entry in history if "dev" in entry]
        rows.append(
            [path.parent.name, f"{history[-1]['step']:,}", f"{seconds:,.0f} s", f"{max(checks, default=0):.3f}"]
        )
    note = "The last stage of each recipe's training, as its own record has it; scoring dev is not counted."
    return Table("Training", ["model", "steps", "time", "MRR on dev"], rows, [note])


def _goals(first: Comparison, fourth: Comparison) -> list[Goal]:
    best = {by.measure.name: float(by.scores.means.max()) for by in first.measures}
    none = max(float(by.scores.means.max()) for by in fourth.measures if by.measure.name == "DSTC7")
    goals = [Goal(f"{name} at least {aim:.2f}", f"{best[name]:.3f}", best[name] >= aim) for name, aim in AIMS.items()]
    aim = "subtask 4's mean of hits@10 and MRR no worse than subtask 1's, by the same words"
    words = next(by for by in first.measures if by.measure.name == "DSTC7")
    mean = float(words.scores.means[words.scores.runs.index("words")])
    return [*goals, Goal(aim, f"{none:.3f} against {mean:.3f}", none >= mean)]
