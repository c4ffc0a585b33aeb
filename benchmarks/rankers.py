"""Rankers on real dialogues: every run that was made, with intervals, tie groups and the published rows.

`python -m benchmarks.ranker_runs` makes the runs. Those that need no network are made here if they are missing; the
others want a GPU, and are shown as far as they are there, or as they were kept in benchmarks/scores.
"""

import datetime
import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from benchmarks import kept
from benchmarks.ranker_runs import FOLDER, NETWORKS, TESTS, WORDS, answer, build_advising
from benchmarks.results import Goal, Section, Table
from rejoinder.comparison import Comparison, Settings
from rejoinder.evaluation import Request, evaluate
from rejoinder.files import fingerprint
from rejoinder.measures.measure import Scores
from rejoinder.statistics import mean_intervals
from rejoinder.tasks.load import load_task

MEASURES = ("R@1", "R@10", "R@50", "MRR", "DSTC7")
PUBLISHED = {"ubuntu": "ubuntu", "advising": "advising-2"}
AIMS = {"R@1": 0.60, "R@10": 0.88}
NONE = {
    "words-or-none": "words",
    "bi-or-none": "cascade-bi",
    "taught-or-none": "cascade-taught",
    "late-mpnet-or-none": "cascade-late-mpnet",
}
INFORMED = {"informed-words": "words", "informed-bi": "cascade-bi", "informed-taught": "cascade-taught"}
"""Systems for subtasks 4 and 5, and what they are made of."""
PEER = "sentence-transformers"
SPEEDS = "trainers.json"
"""What `benchmarks.trainers` measured."""


def measure(quick: bool) -> Section:
    if quick or not (FOLDER / "ubuntu").is_dir():
        nothing = Table("Rankers", ["data"], [["not measured: needs a collection of real dialogues"]])
        return Section("Rankers", [nothing])
    build_advising()
    compared = {key: _compare(*key) for key in WORDS}
    missing, speeds = _missing(compared), _speeds()
    tables = [_table(corpus, subtask, comparison) for (corpus, subtask), comparison in compared.items()]
    tables = [*missing, *tables, *_training(speeds)]
    return Section("Rankers: in part" if missing else "Rankers", tables, _goals(compared, speeds, whole=not missing))


def _missing(compared: dict[tuple[str, int], Comparison]) -> list[Table]:
    """Name recipes that have no row: a section without them does not take the place of one that has them."""
    wanted = {key: [name for name in names if name not in compared[key].runs] for key, names in NETWORKS.items()}
    rows = [[f"{corpus.capitalize()}, subtask {task}", ", ".join(own)] for (corpus, task), own in wanted.items() if own]
    return [Table("Recipes without a row here", ["task", "recipes"], rows)] if rows else []


def _compare(corpus: str, subtask: int) -> Comparison:
    """Compare all runs of the folder, and those that cost little in any case."""
    for name in WORDS[corpus, subtask]:
        answer(corpus, subtask, name)
    request = Request(
        truth=FOLDER / corpus / f"subtask_{subtask}" / TESTS[corpus],
        runs=sorted((FOLDER / "runs" / corpus / f"subtask_{subtask}").glob("*.json")),
        measures=("MAP", *MEASURES) if subtask == 3 else MEASURES,
        references=(f"dstc7/{PUBLISHED[corpus]}/{subtask}",),
        settings=Settings(seed=0),
    )
    found, path = evaluate(request).comparison, kept.FOLDER / f"{corpus}_{subtask}.parquet"
    names = (*WORDS[corpus, subtask], *NETWORKS[corpus, subtask], PEER)
    found, older = kept.with_kept(found, fingerprint(request.truth), path, names, request.settings)
    notes = [f"{run} was measured on {day}" for run, day in older.items() if day != datetime.date.today()]
    return msgspec.structs.replace(found, notes=tuple(notes))


def _table(corpus: str, subtask: int, comparison: Comparison) -> Table:
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
    if comparison.notes:
        notes.append(f"From earlier measurements: {'; '.join(comparison.notes)}.")
    if subtask == 4:
        notes.append(_where_answered(corpus, comparison))
    return Table(f"{corpus.capitalize()}, subtask {subtask}", header, rows, notes)


def _where_answered(corpus: str, comparison: Comparison) -> str:
    """Say how the rankers below those of NONE do where an option is right: these dialogues are not subtask 1's."""
    examples = load_task(FOLDER / corpus / "subtask_4" / TESTS[corpus]).examples
    answered = examples["correct"].list.len().fill_null(0).to_numpy() > 0
    scores = _scores(comparison, "DSTC7")
    means = dict(zip(scores.runs, scores.values[:, answered].mean(axis=1), strict=True))
    found = ", ".join(f"{name} {means[name]:.3f}" for name in NONE.values() if name in means)
    return f"DSTC7 of rankers that know no NONE, on the {answered.sum()} lists that hold a right option: {found}."


def _training(speeds: list[dict[str, float]]) -> list[Table]:
    made = {path.parent.name: _summary(path) for path in (FOLDER / "models").glob("*/history.json")}
    models = kept.with_records(kept.FOLDER / "training.json", made)
    note = (
        "The last stage of each recipe's training, as its own record has it; scoring dev is not counted. Where several "
        "were trained at once, each took longer than alone."
    )
    rows = [
        [name, f"{its['steps']:,}", f"{its['seconds']:,.0f} s", its["device"], f"{its['dev']:.3f}"]
        for name, its in sorted(models.items())
    ]
    found = [Table("Training", ["model", "steps", "time", "on", "MRR on dev"], rows, [note])]
    if speeds:
        fast = [
            [name, str(timed["epochs"]), f"{timed[name]:,.0f}", f"{timed[name] / timed[PEER]:.2f}"]
            for timed in speeds
            for name in (PEER, "rejoinder")
        ]
        note = (
            "The same MiniLM and pairs in the same batches on one GPU, one trainer after the other, both warm. "
            "Tokenising counts; ours does it once for all epochs."
        )
        columns = ["trainer", "epochs", "pairs a second", f"to {PEER}"]
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


def _speeds() -> list[dict[str, float]]:
    """Return the pairs a second of each trainer, by epochs, where they were measured."""
    path = FOLDER / SPEEDS
    made = json.loads(path.read_text()) if path.is_file() else {}
    return list(kept.with_records(kept.FOLDER / SPEEDS, made).get("pairs a second", []))


def _goals(compared: dict[tuple[str, int], Comparison], speeds: list[dict[str, float]], whole: bool) -> list[Goal]:
    """Say which goals are met; what is to be reached by the best of all recipes can be told of all alone."""
    first, fourth, fifth = (compared["ubuntu", subtask] for subtask in (1, 4, 5))
    goals = _best_goals(first, compared["ubuntu", 2]) if whole else []
    for timed in speeds:
        ratio = timed["rejoinder"] / timed[PEER]
        aim = f"training at least 5 times as fast as {PEER}' trainer (epochs: {timed['epochs']})"
        goals.append(Goal(aim, f"{ratio:.2f}", ratio >= 5))
    goals += _no_worse(first, fourth, NONE, "where none may be right")
    return goals + _no_worse(first, fifth, INFORMED, "with pages of knowledge")


def _best_goals(first: Comparison, second: Comparison) -> list[Goal]:
    """Compare the best recipes for subtasks 1 and 2 with what was aimed for, and with peers."""
    best = max(_ours(first), key=lambda run: min(_of(first, name, run) / aim for name, aim in AIMS.items()))
    goals = [
        Goal(
            f"{name} at least {aim:.2f}, by one recipe for both ({best}, the best on test)",
            *_reached(_of(first, name, best), aim),
        )
        for name, aim in AIMS.items()
    ]
    if PEER in first.measures[0].scores.runs:
        encoders = {"any encoder": (), "MiniLM taught by mpnet": ("mpnet",), "MiniLM alone": ("mpnet", "taught")}
        for encoder, without in encoders.items():
            names = [run for run in _ours(first) if not any(part in run for part in without)]
            run, ratio = _best(first, "R@1", names, PEER)
            aim = f"R@1 at least 1.10 times that of MiniLM by {PEER}' trainer, on {encoder}"
            goals.append(Goal(aim, f"{ratio:.3f} ({run}, the best of {len(names)} on test)", ratio >= 1.1))
    if "minilm" in second.measures[0].scores.runs:
        names = _ours(second)
        run, ratio = _best(second, "R@10", names, "minilm")
        found = f"{ratio:.2f} ({run}, the best of {len(names)} on test)"
        goals.append(Goal("subtask 2: R@10 at least 2 times that of MiniLM as it is", found, ratio >= 2))
    return goals


def _no_worse(first: Comparison, other: Comparison, pairs: dict[str, str], how: str) -> list[Goal]:
    """Compare systems for another subtask with what they are made of, on subtask 1.

    Both are made of the same dialogues, in the same order, with their own cuts and wrong options.
    """
    goals = []
    for name, plain in pairs.items():
        if name in other.measures[0].scores.runs and plain in first.measures[0].scores.runs:
            here, there = _row(other, "DSTC7", name), _row(first, "DSTC7", plain)
            more = here - there
            ends = " to ".join(f"{end[0]:+.3f}" for end in mean_intervals(more[None]))
            aim = f"{name}: mean of R@10 and MRR {how} no worse than that of {plain} in subtask 1"
            found = f"{here.mean():.3f} against {there.mean():.3f}: {more.mean():+.3f}, 95% within {ends}"
            goals.append(Goal(aim, found, bool(more.mean() >= 0)))
    return goals


def _reached(value: float, aim: float) -> tuple[str, bool]:
    return f"{value:.3f}", value >= aim


def _best(comparison: Comparison, measure: str, names: list[str], peer: str) -> tuple[str, float]:
    """Return the best of some runs, and how many times a peer's score it has."""
    best = max(names, key=lambda run: _of(comparison, measure, run))
    return best, _of(comparison, measure, best) / _of(comparison, measure, peer)


def _ours(comparison: Comparison) -> list[str]:
    return [run for run in comparison.runs if run != PEER]


def _of(comparison: Comparison, measure: str, run: str) -> float:
    return float(_row(comparison, measure, run).mean())


def _row(comparison: Comparison, measure: str, run: str) -> NDArray[np.float64]:
    """Return a run's scores, example by example."""
    scores = _scores(comparison, measure)
    return scores.values[scores.runs.index(run)]


def _scores(comparison: Comparison, measure: str) -> Scores:
    return next(by.scores for by in comparison.measures if by.measure.name == measure)
