"""Rankers on real dialogues: every run that was made, with intervals, tie groups and the published rows.

`python -m benchmarks.ranker_runs` makes the runs. Those that need no network are made here if they are missing; the
others want a GPU, and are shown as far as they are there, or as they were kept in benchmarks/scores. Of a few only
means and intervals were kept; these have a dagger and no tie group.
"""

import datetime
import json
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from benchmarks import kept, without_answers
from benchmarks.ranker_runs import FOLDER, NETWORKS, TESTS, WORDS, answer, build_advising
from benchmarks.results import Goal, Section, Table
from rejoinder.comparison import Comparison, MeasureComparison, Settings
from rejoinder.evaluation import Request, evaluate
from rejoinder.files import fingerprint
from rejoinder.measures.measure import Scores
from rejoinder.report.tables import show_interval
from rejoinder.statistics import mean_intervals
from rejoinder.tasks.load import load_task

MEASURES = ("R@1", "R@10", "R@50", "MRR", "DSTC7")
PUBLISHED = {"ubuntu": "ubuntu", "advising": "advising-2"}
AIMS = {"R@1": 0.60, "R@10": 0.88}
NONE = {
    "words-or-none": "words",
    "minilm-or-none": "words-and-minilm",
    "quick-or-none": "cascade-quick",
    "quick-mpnet-or-none": "cascade-quick-mpnet",
    "bi-or-none": "cascade-bi",
    "taught-or-none": "cascade-taught",
    "late-mpnet-or-none": "cascade-late-mpnet",
}
INFORMED = {
    "informed-words": "words",
    "informed-minilm": "words-and-minilm",
    "informed-bi": "cascade-bi",
    "informed-taught": "cascade-taught",
}
"""Systems for subtasks 4 and 5, and what they are made of."""
PEER = "sentence-transformers"
SPEEDS = "trainers.json"
"""What `benchmarks.trainers` measured."""
DAGGER = "†"


class Standing(NamedTuple):
    """All that is known of the runs on one task."""

    comparison: Comparison
    earlier: dict[str, kept.Row]
    """Of runs that were not made since the code changed, means and intervals."""

    @property
    def runs(self) -> list[str]:
        return [*self.comparison.runs, *self.earlier]

    def mean(self, measure: str, run: str) -> float:
        return self.earlier[run][measure][0] if run in self.earlier else float(self.scores(measure, run).mean())

    def scores(self, measure: str, run: str) -> NDArray[np.float64]:
        """Return a run's scores, example by example."""
        scores = _scores(self.comparison, measure)
        return scores.values[scores.runs.index(run)]

    def named(self, run: str) -> str:
        return f"{run} {DAGGER}" if run in self.earlier else run


def measure(quick: bool) -> Section:
    if quick or not (FOLDER / "ubuntu").is_dir():
        return Section(
            "Rankers", needs="a collection of real dialogues, which `benchmarks/ranker_runs.py` says how to build"
        )
    build_advising()
    standings = {key: _standing(*key) for key in WORDS}
    speeds = _speeds()
    tables = [_table(corpus, subtask, standing) for (corpus, subtask), standing in standings.items()]
    tables = [*_missing(standings), *tables, *without_answers.table(NONE), *_training(speeds)]
    return Section("Rankers", tables, _goals(standings, speeds))


def _missing(standings: dict[tuple[str, int], Standing]) -> list[Table]:
    """Name recipes that have no row."""
    wanted = {key: [name for name in names if name not in standings[key].runs] for key, names in NETWORKS.items()}
    rows = [[f"{corpus.capitalize()}, subtask {task}", ", ".join(own)] for (corpus, task), own in wanted.items() if own]
    return [Table("Recipes without a row", ["task", "recipes"], rows)] if rows else []


def _standing(corpus: str, subtask: int) -> Standing:
    """Compare all runs of the folder, and those that cost little in any case, with those that were kept."""
    for name in WORDS[corpus, subtask]:
        answer(corpus, subtask, name)
    request = Request(
        truth=FOLDER / corpus / f"subtask_{subtask}" / TESTS[corpus],
        runs=sorted((FOLDER / "runs" / corpus / f"subtask_{subtask}").glob("*.json")),
        measures=("MAP", *MEASURES) if subtask == 3 else MEASURES,
        references=(f"dstc7/{PUBLISHED[corpus]}/{subtask}",),
        settings=Settings(seed=0),
    )
    found, task, truth = evaluate(request).comparison, f"{corpus}_{subtask}", fingerprint(request.truth)
    names = (*WORDS[corpus, subtask], *NETWORKS[corpus, subtask], PEER)
    found, older = kept.with_kept(found, truth, kept.FOLDER / f"{task}.parquet", names, request.settings)
    notes = [f"{run} was measured on {day}" for run, day in older.items() if day != datetime.date.today()]
    return Standing(msgspec.structs.replace(found, notes=tuple(notes)), kept.earlier_rows(task, truth, found.runs))


def _table(corpus: str, subtask: int, standing: Standing) -> Table:
    comparison = standing.comparison
    header = ["system", *(f"{by.measure.name} [95%], tie group" for by in comparison.measures)]
    ranked = sorted(standing.runs, key=lambda run: -standing.mean("DSTC7", run))
    rows = [[standing.named(run), *(_cell(standing, by, run) for by in comparison.measures)] for run in ranked]
    for name, means in comparison.references.items():
        found = (means.get(by.measure.name) for by in comparison.measures)
        rows.append([f"*{name}*", *("" if mean is None else f"{mean:.3f}" for mean in found)])
    data = {
        "ubuntu": "built from real logs and split by time",
        "advising": "generated; their conversations were not trained on",
    }
    note = (
        f"{comparison.examples} dialogues, {data[corpus]}; the published rows (in italics) are for orientation: other "
        f"data. Signature: {comparison.signature}"
    )
    notes = [note]
    if standing.earlier:
        notes.append(
            f"Rows with {DAGGER} were measured until {kept.earlier_day()}, by earlier code. Only their means and "
            "intervals were kept, so nothing was tested against them."
        )
    if comparison.notes:
        notes.append(f"From earlier measurements: {'; '.join(comparison.notes)}.")
    if subtask == 4:
        notes.append(_where_answered(corpus, comparison))
    return Table(f"{corpus.capitalize()}, subtask {subtask}", header, rows, notes)


def _cell(standing: Standing, by: MeasureComparison, run: str) -> str:
    if run in standing.earlier:
        mean, low, high = standing.earlier[run][by.measure.name]
        return f"{mean:.3f} {show_interval(low, high, 3)}"
    place = by.scores.runs.index(run)
    return f"{by.scores.means[place]:.3f} {show_interval(by.low[place], by.high[place], 3)} {by.groups[place]}"


def _where_answered(corpus: str, comparison: Comparison) -> str:
    """Say how the rankers below those of NONE do where an option is right: these dialogues are not subtask 1's."""
    examples = load_task(FOLDER / corpus / "subtask_4" / TESTS[corpus]).examples
    answered = examples["correct"].list.len().fill_null(0).to_numpy() > 0
    scores = _scores(comparison, "DSTC7")
    means = dict(zip(scores.runs, scores.values[:, answered].mean(axis=1), strict=True))
    found = ", ".join(f"{name} {means[name]:.3f}" for name in NONE.values() if name in means)
    return f"DSTC7 of rankers that know no NONE, on the {answered.sum()} lists that hold a right option: {found}."


def _training(speeds: list[dict[str, Any]]) -> list[Table]:
    made = {path.parent.name: _summary(path) for path in (FOLDER / "models").glob("*/history.json")}
    models = kept.with_records(kept.FOLDER / "training.json", made)
    before = {f"{name} {DAGGER}": its for name, its in kept.earlier_trainings().items() if name not in models}
    note = (
        "The last stage of each recipe's training, as its own record has it; scoring dev is not counted. Where several "
        "were trained at once, each took longer than alone."
    )
    rows = [
        [name, f"{its['steps']:,}", f"{its['seconds']:,.0f} s", its["device"], f"{its['dev']:.3f}"]
        for name, its in sorted((models | before).items())
    ]
    found = [Table("Training", ["model", "steps", "time", "on", "MRR on dev"], rows, [note])]
    if speeds:
        fast = [
            [name, timed["device"], str(timed["epochs"]), f"{timed[name]:,.1f}", f"{timed[name] / timed[PEER]:.2f}"]
            for timed in speeds
            for name in (PEER, "rejoinder")
        ]
        note = (
            "The same MiniLM and pairs in the same batches on one machine, one trainer after the other, both warm. "
            "Tokenising counts; ours does it once for all epochs. Both compute in half precision on a GPU; on a CPU "
            "only ours does so by default."
        )
        columns = ["trainer", "on", "epochs", "pairs a second", f"to {PEER}"]
        found.append(Table("Training beside a peer", columns, fast, [note]))
    return found


def _summary(path: Path) -> dict[str, Any]:
    """Say of a training how long it was, where, and what came of it."""
    history = json.loads(path.read_text())
    return {
        "steps": history[-1]["step"],
        "seconds": round(sum(entry["seconds"] for entry in history), 1),
        "device": history[-1].get("device", ""),
        "dev": max((entry["dev"] for entry in history if "dev" in entry), default=0.0),
    }


def _speeds() -> list[dict[str, Any]]:
    """Return the pairs a second of each trainer, by device and epochs, where they were measured."""
    path = FOLDER / SPEEDS
    made = json.loads(path.read_text()) if path.is_file() else {}
    by_device = kept.with_records(kept.FOLDER / SPEEDS, made)
    return [timed | {"device": device} for device, found in by_device.items() for timed in found["pairs a second"]]


def _goals(standings: dict[tuple[str, int], Standing], speeds: list[dict[str, Any]]) -> list[Goal]:
    """Say which goals are met."""
    first, second, fourth, fifth = (standings["ubuntu", subtask] for subtask in (1, 2, 4, 5))
    goals = _best_goals(first, second)
    for timed in speeds:
        if timed["device"].startswith("CPU"):  # the goal is for a GPU
            continue
        ratio = timed["rejoinder"] / timed[PEER]
        aim = f"training at least 5 times as fast as {PEER}' trainer (epochs: {timed['epochs']})"
        goals.append(Goal(aim, f"{ratio:.2f}", ratio >= 5))
    goals += _no_worse(first, fourth, NONE, "where none may be right")
    return goals + _no_worse(first, fifth, INFORMED, "with pages of knowledge")


def _best_goals(first: Standing, second: Standing) -> list[Goal]:
    """Compare the best recipes for subtasks 1 and 2 with what was aimed for, and with peers."""
    best = max(_ours(first), key=lambda run: min(first.mean(name, run) / aim for name, aim in AIMS.items()))
    goals = [
        Goal(
            f"{name} at least {aim:.2f}, by one recipe for both ({first.named(best)}, the best on test)",
            *_reached(first.mean(name, best), aim),
        )
        for name, aim in AIMS.items()
    ]
    if PEER in first.runs:
        encoders = {"any encoder": (), "MiniLM taught by mpnet": ("mpnet",), "MiniLM alone": ("mpnet", "taught")}
        for encoder, without in encoders.items():
            names = [run for run in _ours(first) if not any(part in run for part in without)]
            aim = f"R@1 at least 1.10 times that of MiniLM by {PEER}' trainer, on {encoder}"
            goals.append(Goal(aim, *_best(first, "R@1", names, PEER, least=1.1)))
    if "minilm" in second.runs:
        aim = "subtask 2: R@10 at least 2 times that of MiniLM as it is"
        goals.append(Goal(aim, *_best(second, "R@10", _ours(second), "minilm", least=2)))
    return goals


def _no_worse(first: Standing, other: Standing, pairs: dict[str, str], how: str) -> list[Goal]:
    """Compare systems for another subtask with what they are made of, on subtask 1.

    Both are made of the same dialogues, in the same order, with their own cuts and wrong options.
    """
    goals = []
    for name, plain in pairs.items():
        if name in other.runs and plain in first.runs:
            here, there = other.mean("DSTC7", name), first.mean("DSTC7", plain)
            system, without = other.named(name), first.named(plain)
            aim = f"{system}: mean of R@10 and MRR {how} no worse than that of {without} in subtask 1"
            found = f"{here:.3f} against {there:.3f}: {here - there:+.3f}"
            if name not in other.earlier and plain not in first.earlier:
                more = other.scores("DSTC7", name) - first.scores("DSTC7", plain)
                low, high = (float(end[0]) for end in mean_intervals(more[None]))
                found += ", the same for every dialogue" if np.isnan(low) else f", 95% within {low:+.3f} to {high:+.3f}"
            goals.append(Goal(aim, found, here >= there))
    return goals


def _reached(value: float, aim: float) -> tuple[str, bool]:
    return f"{value:.3f}", value >= aim


def _best(standing: Standing, measure: str, names: list[str], peer: str, least: float) -> tuple[str, bool]:
    """Say how many times a peer's score the best of some runs has, and whether that is enough."""
    best = max(names, key=lambda run: standing.mean(measure, run))
    ratio = standing.mean(measure, best) / standing.mean(measure, peer)
    return f"{ratio:.3f} ({standing.named(best)}, the best of {len(names)} on test)", ratio >= least


def _ours(standing: Standing) -> list[str]:
    return [run for run in standing.runs if run != PEER]


def _scores(comparison: Comparison, measure: str) -> Scores:
    return next(by.scores for by in comparison.measures if by.measure.name == measure)
