"""Judges on real dialogues, cross-validated: the layout of DialEval-1's tables 3 to 7 and 9 to 12, and ratios.

Needs DCH-1 below REJOINDER_DATA (default ../shared/data), and DBDC3 for the last table. Runs are kept in
REJOINDER_FOLDS (default build/folds), so that recipes that take longer can be cross-validated apart and are shown too:

rejoinder crossvalidate RECIPE --task DATA/dch1/train_en.json.gz --out build/folds/train_en
"""

import os
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

import msgspec
import numpy as np

from benchmarks import measuring
from benchmarks.results import Goal, Section, Table
from rejoinder.comparison import Comparison, MeasureComparison, Settings
from rejoinder.crossvalidation import Folds, FoldsCard, write_crossvalidated
from rejoinder.evaluation import Request, evaluate
from rejoinder.files import fingerprint
from rejoinder.published import reference
from rejoinder.recipe import read_recipe
from rejoinder.report.judged import alpha_table, statistics_table
from rejoinder.report.tables import Table as ReportTable
from rejoinder.report.tables import show_interval, show_p
from rejoinder.tasks import dialeval
from rejoinder.tasks.judgement_folder import load_judgement_task

ROOT = Path(__file__).parent.parent
DATA = Path(os.environ.get("REJOINDER_DATA", ROOT.parent / "shared" / "data"))
FOLDS = Path(os.environ.get("REJOINDER_FOLDS", ROOT / "build" / "folds"))
REJOINDER = Path(measuring.PYTHON).parent / "rejoinder"
RECIPES = ("bl-uniform", "bl-popularity", "mean", "mean-by-turn", "kernel-judge")
BREAKDOWNS = ("mean", "mean-by-turn", "kernel-judge")
LANGUAGES = {"cn": "Chinese", "en": "English"}
QUALITY = ("NMD(A)", "NMD(S)", "NMD(E)")
AIMS = {"en": (0.58, 0.38), "cn": (0.53, 0.34)}
"""Ratios to the train-set means that the best recipe should reach: NMD, JSD."""


def measure(quick: bool) -> Section:
    title = "Judges"
    if quick or not (DATA / "dch1").is_dir():
        return Section(title, needs="the real dialogues of DCH-1 in REJOINDER_DATA")
    tables, goals = [], []
    tasks = {language: dialeval.read_task(_path(language)) for language in LANGUAGES}
    named = {f"{LANGUAGES[language]} (train)": task for language, task in tasks.items()}
    tables.append(
        _plain(statistics_table(named), "Counted on the shared files; the paper's table 3 has them for its own splits.")
    )
    for name, task in named.items():
        tables.append(_plain(alpha_table(name, task)))
    for number, language in enumerate(LANGUAGES):
        comparison = _compare(language, tasks[language])
        tables += _ranked(language, comparison, 4 if number == 0 else 9)
        ratios = _ratios(comparison)
        tables.append(_ratio_table(language, ratios))
        goals += [*_goals(language, ratios), *_against_lstm(language, comparison, ratios)]
    if (DATA / "dbdc3-en-dev.tar.xz").is_file():
        tables.append(_breakdowns())
    return Section(title, tables, goals)


def _path(language: str) -> Path:
    return DATA / "dch1" / f"train_{language}.json.gz"


def _compare(language: str, task: dialeval.JudgementTask) -> Comparison:
    """Cross-validate what is not there yet, and compare all runs of the folder."""
    path, out = _path(language), FOLDS / f"train_{language}"
    for name in RECIPES:
        recipe, card = read_recipe(name), out / f"{name}.yaml"
        if not card.is_file() or msgspec.yaml.decode(card.read_bytes(), type=FoldsCard).task != fingerprint(path):
            write_crossvalidated(out, recipe, task, fingerprint(path), Folds())
    runs = sorted(out.glob("*.json"))
    return evaluate(Request(truth=path, runs=runs, settings=Settings(seed=0))).comparison


def _ranked(language: str, comparison: Comparison, number: int) -> list[Table]:
    """Return a table for each criterion: runs ranked by the one measure and by the other, as the paper prints them."""
    by_name = {by.measure.name: by for by in comparison.measures}
    others = reference(f"dialeval1/{LANGUAGES[language].lower()}")
    tables = []
    for subject in ("A", "S", "E", "nugget"):
        first, second = ("RSNOD", "NMD") if subject != "nugget" else ("JSD", "RNSS")
        names = [name if subject == "nugget" else f"{name}({subject})" for name in (first, second)]
        columns = [_ranking(by_name[name], others) for name in names]
        rows = [[*left, *right] for left, right in zip(*columns, strict=True)]
        what = "nugget detection" if subject == "nugget" else f"dialogue quality, {subject}-score"
        place = number + "ASE".index(subject) if subject != "nugget" else number + 3
        tables.append(
            Table(
                f"{LANGUAGES[language]} {what} (layout of DialEval-1, table {place})",
                ["run", f"mean {first} [95%], tie group", "run", f"mean {second} [95%], tie group"],
                rows,
                (
                    f"{comparison.examples:,} dialogues, 5-fold cross-validation. Runs with a letter in common cannot "
                    "be told apart (randomised Tukey HSD, 5%). Rows in *italics* are the paper's, on another test set "
                    "of 300 dialogues with 20 annotators: for orientation only, nothing was tested against them.",
                ),
            )
        )
    tables.append(_significance(language, by_name))
    return tables


def _ranking(by: MeasureComparison, others: Mapping[str, Mapping[str, float]]) -> list[tuple[str, str]]:
    own = [
        (mean, f"**{run}**", f"{mean:.4f} {show_interval(low, high)} {group}")
        for run, mean, low, high, group in zip(
            by.scores.runs, by.scores.means.tolist(), by.low.tolist(), by.high.tolist(), by.groups, strict=True
        )
    ]
    published = [
        (means[by.measure.name], f"*{run}*", f"*{means[by.measure.name]:.4f}*")
        for run, means in others.items()
        if by.measure.name in means
    ]
    return [(run, text) for _, run, text in sorted([*own, *published], key=lambda row: row[0])]


def _significance(language: str, by_name: Mapping[str, MeasureComparison]) -> Table:
    """Return, for each measure, the best run and the p-values of its differences from the others."""
    rows = []
    for name, by in by_name.items():
        best, *rest = by.order
        others = ", ".join(f"{by.scores.runs[run]} {show_p(float(by.test.p[best, run]))}" for run in rest)
        rows.append([name, by.scores.runs[best], others])
    return Table(f"{LANGUAGES[language]}: the best run against each other one", ["measure", "best run", "p"], rows)


def _ratios(comparison: Comparison) -> dict[str, tuple[float, float]]:
    """Return each run's NMD, averaged over A, S and E, and JSD, divided by those of the train-set means."""
    means = {
        by.measure.name: dict(zip(by.scores.runs, by.scores.means.tolist(), strict=True)) for by in comparison.measures
    }

    def nmd(run: str) -> float:
        return float(np.mean([means[name][run] for name in QUALITY]))

    return {run: (nmd(run) / nmd("mean"), means["JSD"][run] / means["JSD"]["mean-by-turn"]) for run in comparison.runs}


def _ratio_table(language: str, ratios: Mapping[str, tuple[float, float]]) -> Table:
    cards = {run: FOLDS / f"train_{language}" / f"{run}.yaml" for run in ratios}
    rows = []
    for run, (quality, nugget) in sorted(ratios.items(), key=lambda item: item[1]):
        card = msgspec.yaml.decode(cards[run].read_bytes(), type=FoldsCard) if cards[run].is_file() else None
        taken = f"{np.mean(card.training_seconds):.1f} s" if card else ""
        rows.append([run, f"{quality:.3f}", f"{nugget:.3f}", taken])
    note = (
        "NMD is averaged over A, S and E and divided by that of `mean`; JSD is divided by that of `mean-by-turn`. "
        "`bl-popularity` is an oracle that looks at the truth. Training is a fold's mean wall-clock time, on a machine "
        "that did other work too."
    )
    header = ["run", "NMD / train-set mean", "JSD / mean by turn", "training"]
    return Table(f"{LANGUAGES[language]}: ratios to the train-set means", header, rows, (note,))


def _goals(language: str, ratios: Mapping[str, tuple[float, float]]) -> list[Goal]:
    systems = {run: found for run, found in ratios.items() if run != "bl-popularity"}
    goals = []
    for place, (name, aim) in enumerate(zip(("NMD / mean", "JSD / mean by turn"), AIMS[language], strict=True)):
        best = min(systems, key=lambda run: systems[run][place])
        value = systems[best][place]
        goals.append(Goal(f"{LANGUAGES[language]} {name} at most {aim}", f"{value:.3f} ({best})", value <= aim))
    return goals


def _against_lstm(language: str, comparison: Comparison, ratios: Mapping[str, tuple[float, float]]) -> list[Goal]:
    """Return whether BL-lstm beats the train-set means in every cell, and whether the best run beats it in each.

    The test over all runs is wide: it asks what chance does to the most different of them, and some are baselines that
    are far worse than both. So the two are compared alone as well.
    """
    lstm = "bl-lstm" if language == "en" else "bl-lstm-cn"
    if lstm not in comparison.runs:
        return []
    best = min(ratios.keys() - {"bl-popularity"}, key=lambda run: sum(ratios[run]))
    name, cells = LANGUAGES[language], len(comparison.measures)
    worse = [by.measure.name for by in comparison.measures if not _beats_means(by, lstm)]
    goals = [Goal(f"{name}: {lstm} better than the train-set means in every cell", _count(cells, worse), not worse)]
    runs = [FOLDS / f"train_{language}" / f"{run}.json" for run in (best, lstm)]
    alone = evaluate(Request(truth=_path(language), runs=runs, settings=Settings(seed=0))).comparison
    for how, compared in (("among all runs", comparison), ("the two alone", alone)):
        close = [by.measure.name for by in compared.measures if not _beats(by, best, lstm)]
        aim = f"{name}: {best} better than {lstm} in every cell, p < 0.05, {how}"
        goals.append(Goal(aim, _count(cells, close), not close))
    return goals


def _beats_means(by: MeasureComparison, run: str) -> bool:
    means = dict(zip(by.scores.runs, by.scores.means.tolist(), strict=True))
    return bool(means[run] < min(means["mean"], means["mean-by-turn"]))


def _beats(by: MeasureComparison, run: str, other: str) -> bool:
    first, second = by.scores.runs.index(run), by.scores.runs.index(other)
    return bool(by.scores.means[first] < by.scores.means[second] and by.test.p[first, second] < 0.05)


def _count(cells: int, missed: list[str]) -> str:
    return f"{cells - len(missed)} of {cells}" + (f", not {', '.join(missed)}" if missed else "")


def _breakdowns() -> Table:
    """Cross-validate on DBDC3, another set of labels."""
    folder, out = FOLDS / "breakdowns", FOLDS / "dbdc3"
    if not folder.is_dir():
        with tempfile.TemporaryDirectory() as unpacked, tarfile.open(DATA / "dbdc3-en-dev.tar.xz") as archive:
            archive.extraction_filter = getattr(tarfile, "data_filter", None)  # from Python 3.11.4 on
            archive.extractall(unpacked)
            logs = sorted({path.parent for path in Path(unpacked).rglob("*.log.json")})
            measuring.run([REJOINDER, "import", "dbdc3", *logs, "--out", folder])
    task = load_judgement_task(folder)
    for name in BREAKDOWNS:
        if not (out / f"{name}.parquet").is_file():
            write_crossvalidated(out, read_recipe(name), task, fingerprint(folder), Folds())
    runs = sorted(out.glob("*.parquet"))
    comparison = evaluate(Request(truth=folder, runs=runs, settings=Settings(seed=0))).comparison
    rows = []
    for number, name in enumerate(comparison.runs):
        cells = (
            f"{by.scores.means[number]:.4f} {show_interval(by.low[number], by.high[number])} {by.groups[number]}"
            for by in comparison.measures
        )
        rows.append([name, *cells])
    note = f"{comparison.examples:,} dialogues, 30 annotators, labels O, T, X for each turn of the system; 5 folds."
    header = ["run", *(f"{by.measure.name} [95%], tie group" for by in comparison.measures)]
    return Table("Breakdown detection: DBDC3, English development data", header, rows, (note,))


def _plain(table: ReportTable, *notes: str) -> Table:
    rows = [[cell.text for cell in row] for row in table.rows]
    return Table(table.title, [name or " " for name in table.header], rows, notes)
