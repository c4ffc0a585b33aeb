"""Cross-validation of judges: every dialogue is judged by a system that did not see it in training.

rejoinder crossvalidate kernel-judge mean --task dialeval/train_en --out folds
rejoinder compare dialeval/train_en folds/*.json
"""

import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from zlib import crc32

import msgspec
import numpy as np
from numpy.typing import NDArray

from rejoinder import __version__
from rejoinder.files import write_atomically
from rejoinder.recipe import Recipe, make_system
from rejoinder.runs.convert import default_format, write_run
from rejoinder.runs.judgement import JudgementRun
from rejoinder.systems.system import JudgementSystem, Lesson, needed_extra
from rejoinder.systems.words import load_arrays, save_arrays
from rejoinder.tasks.judgement import JudgementTask
from rejoinder.watch import Watch, unwatched

Integers = NDArray[np.intp]


class Folds(msgspec.Struct, frozen=True, kw_only=True):
    """How dialogues are divided."""

    count: int = 5
    seed: int = 0

    def of(self, ids: Sequence[str]) -> Integers:
        """Return each dialogue's fold, which hangs on its id alone: a translation falls into the same fold."""
        return np.array([crc32(f"{self.seed} {id_}".encode()) % self.count for id_ in ids])


class FoldsCard(msgspec.Struct, frozen=True, kw_only=True):
    """What a cross-validated run is, and how long it took."""

    recipe: Recipe
    folds: Folds
    task: str
    """The task's fingerprint."""
    training_seconds: list[float]
    judging_seconds: list[float]
    rejoinder: str = __version__


class Fold(msgspec.Struct, frozen=True):
    """What one system answered of the dialogues that it did not see."""

    distributions: dict[str, NDArray[np.float64]]
    training_seconds: float
    judging_seconds: float


def crossvalidate(
    recipe: Recipe, task: JudgementTask, folds: Folds, work: Path, watch: Watch = unwatched
) -> tuple[JudgementRun, list[Fold]]:
    """Judge each fold by a system trained on the others; folds that `work` holds are not done again."""
    fold = folds.of([dialogue.id for dialogue in task.dialogues])
    asked = task.unanswered().answers
    found = {name: np.zeros_like(answers.votes) for name, answers in asked.items()}
    done = []
    with watch(f"cross-validating {recipe.name}", folds.count) as advance:
        for number in np.unique(fold).tolist():
            result = _judge_fold(recipe, task, fold, number, folds.seed, work / f"fold_{number}", watch)
            for name, distribution in result.distributions.items():
                found[name][fold[asked[name].example] == number] = distribution
            done.append(result)
            advance(1)
    answered = {name: found[name] for name in found if all(name in result.distributions for result in done)}
    return JudgementRun(recipe.name, answered), done


def _judge_fold(
    recipe: Recipe, task: JudgementTask, fold: Integers, number: int, seed: int, work: Path, watch: Watch
) -> Fold:
    finished = work.with_suffix(".npz")
    if finished.is_file():
        arrays = load_arrays(finished)
        training, judging = arrays.pop(_SECONDS).tolist()
        return Fold(arrays, training, judging)
    system = make_system(recipe)
    assert isinstance(system, JudgementSystem)
    work.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    with needed_extra(recipe.name):
        system.fit(Lesson(train=task.pick(np.flatnonzero(fold != number)), seed=seed, work=work, watch=watch))
    trained = time.perf_counter()
    run = system.predict(task.pick(np.flatnonzero(fold == number)), watch)
    seconds = np.array([trained - start, time.perf_counter() - trained])
    save_arrays(finished, {**run.distributions, _SECONDS: seconds})
    shutil.rmtree(work)
    return Fold(run.distributions, *seconds.tolist())


_SECONDS = "seconds of training and judging"


def write_crossvalidated(
    out: Path, recipe: Recipe, task: JudgementTask, fingerprint: str, folds: Folds, watch: Watch = unwatched
) -> Path:
    """Cross-validate a recipe and write its run and its card; an interrupted one goes on where it was."""
    mark = f"{fingerprint}-{folds.count}-{folds.seed}-{crc32(msgspec.json.encode(recipe)):08x}"
    work = out / f".{recipe.name}-{mark}"
    run, done = crossvalidate(recipe, task, folds, work, watch)
    format_ = default_format(run)
    path = out / f"{recipe.name}.{'json' if format_ == 'dialeval' else format_}"
    write_run(path, run, task.unanswered(), format_)
    card = FoldsCard(
        recipe=recipe,
        folds=folds,
        task=fingerprint,
        training_seconds=[round(fold.training_seconds, 2) for fold in done],
        judging_seconds=[round(fold.judging_seconds, 2) for fold in done],
    )
    with write_atomically(out / f"{recipe.name}.yaml") as file:
        file.write(msgspec.yaml.encode(card))
    shutil.rmtree(work)
    return path
