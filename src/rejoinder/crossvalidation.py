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
from rejoinder.arrays import read_arrays, write_arrays
from rejoinder.errors import UserError
from rejoinder.files import BadInputError, file_to_write
from rejoinder.files import fingerprint as fingerprint_of
from rejoinder.folders import new_folders
from rejoinder.recipe import Recipe, make_system, read_parts, read_recipe
from rejoinder.records import read_yaml, write_yaml
from rejoinder.runs.convert import default_format, write_run
from rejoinder.runs.judgement import JudgementRun
from rejoinder.systems.system import JudgementSystem, Lesson, needed_extra
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
    also: str = ""
    """That of the task that was learned from as well."""
    parts: list[Recipe] = []
    """Recipes that the recipe is made of."""
    rejoinder: str = __version__
    training_seconds: list[float] = []
    judging_seconds: list[float] = []
    run: dict[str, str] = {}
    """The run's file, and its fingerprint."""


class Fold(msgspec.Struct, frozen=True):
    """What one system answered of the dialogues that it did not see."""

    distributions: dict[str, NDArray[np.float64]]
    training_seconds: float
    judging_seconds: float
    note: str = ""


def crossvalidate(
    recipe: Recipe,
    task: JudgementTask,
    folds: Folds,
    work: Path,
    watch: Watch = unwatched,
    also: JudgementTask | None = None,
) -> tuple[JudgementRun, list[Fold]]:
    """Judge each fold by a system trained on the others; folds that `work` holds are not done again.

    Of `also`, what is in the same fold (by id: the translations) is not learned from either.
    """
    fold = folds.of([dialogue.id for dialogue in task.dialogues])
    numbers = np.unique(fold).tolist()
    if len(numbers) < 2:
        raise UserError(
            f"too few dialogues to cross-validate ({len(fold)}): the others have to teach how to judge each"
        )
    asked = task.unanswered().answers
    found = {name: np.zeros_like(answers.votes) for name, answers in asked.items()}
    done = []
    with watch(f"cross-validating {recipe.name}", len(numbers)) as advance:
        for number in numbers:
            own, others = task.pick(np.flatnonzero(fold == number)), task.pick(np.flatnonzero(fold != number))
            if also is not None:
                elsewhere = folds.of([dialogue.id for dialogue in also.dialogues]) != number
                others = others.join(also.pick(np.flatnonzero(elsewhere)))
            lesson = Lesson(train=others, seed=folds.seed, work=work / f"fold_{number}", watch=watch)
            result = _judge_fold(recipe, lesson, own)
            for name, distribution in result.distributions.items():
                found[name][fold[asked[name].example] == number] = distribution
            done.append(result)
            advance(1)
    answered = {name: found[name] for name in found if all(name in result.distributions for result in done)}
    return JudgementRun(recipe.name, answered, tuple(fold.note for fold in done if fold.note)), done


def _judge_fold(recipe: Recipe, lesson: Lesson[JudgementTask], asked: JudgementTask) -> Fold:
    finished, note = lesson.work.with_suffix(".npz"), ""
    if finished.is_file():
        try:
            arrays = read_arrays(finished)
            training, judging = arrays.pop(_SECONDS).tolist()
            return Fold(arrays, training, judging)
        except (BadInputError, KeyError):
            note = f"{finished}: damaged; done again"
    start = time.perf_counter()
    system = _train(recipe, lesson)
    trained = time.perf_counter()
    run = system.predict(asked, lesson.watch)
    seconds = trained - start, time.perf_counter() - trained
    write_arrays(finished, {**run.distributions, _SECONDS: np.array(seconds)})
    shutil.rmtree(lesson.work)
    return Fold(run.distributions, *seconds, note)


def _train(recipe: Recipe, lesson: Lesson[JudgementTask]) -> JudgementSystem:
    """Train a system, and first the systems that it is made of."""
    system = make_system(recipe)
    if not isinstance(system, JudgementSystem):
        raise UserError(f"{recipe.name} does not judge dialogues")
    lesson.work.mkdir(parents=True, exist_ok=True)
    system.parts = [
        _train(read_recipe(source), msgspec.structs.replace(lesson, work=lesson.work / f"part_{number}"))
        for number, source in enumerate(system.part_sources())
    ]
    with needed_extra(recipe.name):
        system.fit(lesson)
    return system


_SECONDS = "seconds of training and judging"


class Also(msgspec.Struct, frozen=True):
    """A task to learn from as well, and what to call it."""

    name: str
    task: JudgementTask
    fingerprint: str


def write_crossvalidated(
    out: Path,
    recipe: Recipe,
    task: JudgementTask,
    fingerprint: str,
    folds: Folds,
    watch: Watch = unwatched,
    also: Also | None = None,
) -> tuple[Path, tuple[str, ...]]:
    """Cross-validate a recipe, write its run and its card, and return the run's path and notes.

    An interrupted one goes on where it was; one that is finished, by the same card, is left as it is.
    """
    parts = read_parts(recipe)
    if also is not None:
        recipe = msgspec.structs.replace(recipe, name=f"{recipe.name}+{also.name}")
    card = FoldsCard(recipe=recipe, folds=folds, task=fingerprint, also=also.fingerprint if also else "", parts=parts)
    before = _read_card(out, recipe.name)
    finished = _find_finished(out, card, before)
    if finished is not None:
        return finished, (f"{finished}: finished before, by the same recipe on the same dialogues; kept",)
    work = out / f".{recipe.name}-{crc32(msgspec.json.encode(card)):08x}"
    with new_folders(out):
        run, done = crossvalidate(recipe, task, folds, work, watch, also.task if also else None)
    asked = task.unanswered()
    format_ = default_format(run, asked)
    name = f"{recipe.name}.{'json' if format_ == 'dialeval' else format_}"
    write_run(work / name, run, asked, format_)
    card = msgspec.structs.replace(
        card,
        training_seconds=[round(fold.training_seconds, 2) for fold in done],
        judging_seconds=[round(fold.judging_seconds, 2) for fold in done],
        run={name: fingerprint_of(work / name)},
    )
    write_yaml(out / f"{recipe.name}.yaml", card)
    shutil.move(work / name, file_to_write(out / name))
    shutil.rmtree(work)
    return out / name, run.notes


def _read_card(out: Path, name: str) -> FoldsCard | None:
    """Return what is known of an earlier run of this name; files that are none are not written over."""
    path = out / f"{name}.yaml"
    try:
        card = read_yaml(path, FoldsCard) if path.exists() else None
    except BadInputError:
        raise BadInputError(path, "is no card of a cross-validation, and would be overwritten") from None
    for ending in ("json", "parquet"):
        run = out / f"{name}.{ending}"
        if run.exists() and (card is None or run.name not in card.run):
            raise BadInputError(run, f"would be overwritten, and {path} does not know it")
    return card


def _find_finished(out: Path, wanted: FoldsCard, card: FoldsCard | None) -> Path | None:
    """Return the run that an earlier time wrote by this card, if it is still what was written."""
    if card is None or msgspec.structs.replace(card, training_seconds=[], judging_seconds=[], run={}) != wanted:
        return None
    paths = [
        out / name for name, own in card.run.items() if (out / name).is_file() and fingerprint_of(out / name) == own
    ]
    return paths[0] if paths else None
