"""Models: a folder that holds a trained system whole, with its recipe and a card that says what it learned from."""

import hashlib
import platform
import shutil
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl

from rejoinder import __version__
from rejoinder.errors import UserError
from rejoinder.files import BadInputError, fingerprint
from rejoinder.folders import alone_in, clear_folder, keep_only, resolved, staged_folder
from rejoinder.prepared import CHECKPOINT, HISTORY, LEARNER, WEIGHTS
from rejoinder.recipe import CARD, Recipe, is_model, make_system, read_parts, read_recipe
from rejoinder.records import read_yaml, write_yaml
from rejoinder.runs import JudgementRun, SelectionRun
from rejoinder.systems.system import (
    AnySystem,
    JudgementSystem,
    Lesson,
    SelectionSystem,
    expect_numbers,
    needed_extra,
)
from rejoinder.tasks.judgement import JudgementTask, Question
from rejoinder.tasks.load import Task
from rejoinder.tasks.selection import SelectionTask
from rejoinder.text import is_chinese
from rejoinder.watch import Watch, unwatched

_PARTS, _MADE = "parts", "made"
_WORK_CARD = "card.json"
_TRAINED = (CHECKPOINT, WEIGHTS, HISTORY)
"""What a training leaves beside what it was prepared by."""
_LATER = ("curve.svg", "index/index.json", "index/[0-9]*/*.npy", "index/[0-9]*/options.parquet")
"""What is drawn when a model is done, and what `rejoinder index` changes in it."""
_NOT_ITS_OWN = (_PARTS, "work", "index")
_MANY_TIES = 0.1
"""The share of a task's lists without a best option from which on that is told."""
_LIBRARIES = ("numpy", "polars", "scikit-learn", "lightgbm", "torch", "transformers")


class Source(msgspec.Struct, frozen=True, omit_defaults=True):
    """Data that a model learned from."""

    name: str
    examples: int
    fingerprint: str
    most_turns: int | None = None
    """Of a dialogue to judge."""
    chinese: bool | None = None
    """Whether dialogues to judge are in Chinese."""
    drawn: bool = False
    """Whether lists were drawn from its pool."""


class TeacherCard(msgspec.Struct, frozen=True, omit_defaults=True):
    """Whom a model learned from, besides its data."""

    recipes: tuple[Recipe, ...]
    """Its own, and those that it is made of."""
    fingerprint: str | None = None
    """Of its weights, if it was trained before."""


class ModelCard(msgspec.Struct, frozen=True, kw_only=True):
    """What a model is, and what it takes to make it again."""

    recipe: Recipe
    seed: int
    train: Source
    also: Source | None = None
    dev: Source | None = None
    teacher: TeacherCard | None = None
    outside: dict[str, str] = {}
    """Fingerprints of the files and folders that its settings name: word vectors, an encoder."""
    questions: tuple[Question, ...] | None = None
    """What it was taught to judge."""
    versions: dict[str, str]
    notes: tuple[str, ...] = ()
    """What is worth telling of how it learned."""
    files: dict[str, str] = {}
    """Fingerprints of what it learned, but for its parts, which have their own cards; older models have none."""


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """What to train on what."""

    recipe: Recipe
    train: tuple[Path, Task]
    also: tuple[Path, Task] | None = None
    """Dialogues to judge that are learned from as well."""
    dev: tuple[Path, Task] | None = None
    pool: Path | None = None
    """The file that the options of `train` and `dev` were read from, where their own files have none."""
    drawn: bool = False
    """Whether dev has lists that were drawn from its pool."""
    seed: int = 0


class _Shared(NamedTuple):
    """Recipes that are trained once for all parts of a training that are made of them or taught by them."""

    folder: Path
    made: set[str]


def train_model(
    given: Assignment,
    out: Path,
    work: Path | None = None,
    prepare_only: bool = False,
    watch: Watch = unwatched,
    shared: _Shared | None = None,
) -> ModelCard:
    """Train a system and write the model's folder, whole or not at all.

    An interrupted training goes on from the folder `work`, by default a hidden one beside `out` that is removed in
    the end. A folder in which something else was trained, or began to be, is refused.
    """
    if work is not None and shared is None:
        _expect_apart(work, out)
    system = make_system(given.recipe)
    for recipe in (given.recipe, *read_parts(given.recipe)):
        _check_sources(make_system(recipe), out)
    if given.dev is not None:
        _check_asked(system, [_unlearned(source) for source in system.part_sources()], given.dev[1], given.seed)
    for path, task in filter(None, (given.train, given.also, given.dev)):
        _check_kind(given.recipe, system, path, task)
        _check_votes(path, task, given.train)
    if given.dev is not None:
        check_answers(*given.dev)
    card = ModelCard(
        recipe=given.recipe,
        seed=given.seed,
        train=_source(*given.train, given.pool),
        also=_source(*given.also) if given.also else None,
        dev=msgspec.structs.replace(_source(*given.dev, given.pool), drawn=given.drawn) if given.dev else None,
        teacher=teacher_card(system),
        outside={str(path): fingerprint(path) for path in system.outside_sources()},
        questions=given.train[1].questions if isinstance(given.train[1], JudgementTask) else None,
        versions=_versions(),
    )
    if work is not None:
        clear_folder(work, _WORK_CARD)  # it is emptied for another card: never a folder of something else
    with staged_folder(out, mark=CARD, kept="work", later=_LATER) as folder:
        own = work or folder / "work"
        lesson: Any = Lesson(
            train=_joined(given),
            dev=given.dev[1] if given.dev else None,
            seed=given.seed,
            work=own,
            watch=watch,
            prepare_only=prepare_only,
        )
        system.check(lesson)
        with alone_in(own, own):
            _renew_work(own, card)
            _learn(given, system, lesson, folder, shared or _Shared(own / _MADE, set()))
        system.save(folder)
        notes = (*_doubts(given, card), *system.notes)
        card = msgspec.structs.replace(card, notes=notes, files=_learned_files(folder))
        write_yaml(folder / CARD, card)
    shutil.rmtree(out / "work", ignore_errors=True)  # not before the model is in its place, whenever this is killed
    return card


def _learn(given: Assignment, system: AnySystem, lesson: Any, folder: Path, shared: _Shared) -> None:
    """Make the parts and the teacher, and let the system learn; the model that is written has its own parts."""
    given_to_parts = _given_to_parts(given, system)
    parts = [_made(given_to_parts, source, lesson, shared) for source in system.part_sources()]
    system.parts = _load_parts(system, parts)  # from where they are, by which what is wrong with one is told
    for number, part in enumerate(parts):
        shutil.copytree(part, folder / _PARTS / str(number))
    teacher = system.teacher_source()
    if teacher is not None:
        made = _made(given, teacher, lesson, shared)
        lesson = msgspec.structs.replace(lesson, teacher=load_model(made)[1])
    with needed_extra(given.recipe.name):
        system.fit(lesson)


def _joined(given: Assignment) -> Task:
    task, also = given.train[1], given.also[1] if given.also else None
    if also is None:
        return task
    if not isinstance(task, JudgementTask) or not isinstance(also, JudgementTask):
        raise UserError("--also is for dialogues to judge")
    return task.join(also)


def card_of(folder: Path) -> ModelCard | None:
    """Return the card of a model, where there is one that can be read."""
    try:
        return read_yaml(folder / CARD, ModelCard)
    except BadInputError:
        return None


def load_model(folder: Path) -> tuple[ModelCard, AnySystem]:
    """Read a model's folder."""
    if not (folder / CARD).is_file():
        raise BadInputError(folder, f"not a model: it has no {CARD}" if folder.exists() else "no such model")
    card = read_yaml(folder / CARD, ModelCard)
    system = make_system(card.recipe, folder / CARD)
    system.parts = _load_parts(system, [folder / _PARTS / str(place) for place, _ in enumerate(system.part_sources())])
    with needed_extra(card.recipe.name):
        _load(system, folder, card)
    if isinstance(system, JudgementSystem) and card.questions is not None:
        system.questions = card.questions
    return card, system


def _load(system: AnySystem, folder: Path, card: ModelCard) -> None:
    """Read what a system learned; what it does not refuse itself may still not be what was written with the card."""
    try:
        system.load(folder)
    except UserError:
        raise
    except Exception:
        _expect_unchanged(folder, card)
        raise
    _expect_unchanged(folder, card)


def _expect_unchanged(folder: Path, card: ModelCard) -> None:
    for name, digits in card.files.items():
        if fingerprint(folder / name) != digits:
            raise BadInputError(folder / name, f"is not what was written with {CARD}; train the model anew")


def _learned_files(folder: Path) -> dict[str, str]:
    """Return the fingerprints of a model's own files, but for those that change later."""
    found = ((path.relative_to(folder), path) for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(name): fingerprint(path) for name, path in found if name.parts[0] not in _NOT_ITS_OWN}


def _given_to_parts(given: Assignment, system: Any) -> Assignment:
    if given.dev is None or not system.part_sources():
        return given
    path, dev = given.dev
    listed = system.dev_of_parts(dev, given.seed)
    return msgspec.structs.replace(given, dev=(path, listed), drawn=given.drawn or listed is not dev)


def _made(given: Assignment, source: str, lesson: Any, shared: _Shared) -> Path:
    """Return the folder of a trained model: the one that is named, or that of a recipe, which is trained only once."""
    if is_model(source):
        return Path(source)
    recipe = read_recipe(source)
    made_of = [recipe, read_parts(recipe), teacher_card(make_system(recipe)), given.drawn, given.seed]
    name = f"{Path(source).stem}-{hashlib.sha256(msgspec.json.encode(made_of)).hexdigest()[:8]}"
    if name not in shared.made:
        part, work = msgspec.structs.replace(given, recipe=recipe), shared.folder / f"{name}.work"
        train_model(part, shared.folder / name, work, lesson.prepare_only, lesson.watch, shared)
        shared.made.add(name)
    return shared.folder / name


def _check_sources(system: AnySystem, out: Path) -> None:
    """Refuse parts and teachers that a system can do nothing with, or that would be lost, before any is trained."""
    teacher = system.teacher_source()
    for source in (*system.part_sources(), *filter(None, [teacher])):
        if is_model(source) and _overlap(Path(source), out):
            raise BadInputError(
                out, "is, holds or lies in a part or the teacher of what is to be trained; name another folder"
            )
    for source in system.part_sources():
        part = _unlearned(source)
        if part.task is not system.task:
            raise UserError(f"{source} answers another kind of task")
        system.expect_part(source, part)
    if teacher is not None:
        system.expect_teacher(teacher, make_system(_recipe_of(teacher)))


def _check_asked(system: Any, parts: list[Any], dev: Any, seed: int) -> None:
    """Refuse a dev that a part will not be able to answer, before any is trained."""
    if not isinstance(system, SelectionSystem) or not parts:
        return
    asked = system.dev_of_parts(dev, seed)
    for source, part in zip(system.part_sources(), parts, strict=True):
        try:
            part.expect_task(asked)
        except UserError as error:
            raise UserError(f"{source}: {error}") from None
        _check_asked(part, part.parts, asked, seed)


def _unlearned(source: str) -> AnySystem:
    """Return a system that has learned nothing, made of such."""
    system = make_system(_recipe_of(source))
    parts = enumerate(system.part_sources())
    held = is_model(source)
    system.parts = [_unlearned(str(Path(source) / _PARTS / str(number)) if held else part) for number, part in parts]
    return system


def _recipe_of(source: str) -> Recipe:
    return read_yaml(Path(source) / CARD, ModelCard).recipe if is_model(source) else read_recipe(source)


def teacher_card(system: AnySystem) -> TeacherCard | None:
    """Return who is to teach a system."""
    source = system.teacher_source()
    if source is None:
        return None
    recipe = _recipe_of(source)
    if is_model(source):
        return TeacherCard((recipe,), fingerprint(Path(source)))
    return TeacherCard((recipe, *read_parts(recipe)))


def _load_parts(system: AnySystem, folders: list[Path]) -> list[AnySystem]:
    parts = [load_model(folder) for folder in folders]
    for source, (card, part) in zip(system.part_sources(), parts, strict=True):
        if part.task is not system.task:
            raise UserError(f"{source} ({card.recipe.name}) answers another kind of task")
    return [part for _, part in parts]


def predict(
    card: ModelCard, system: AnySystem, path: Path, task: Task, watch: Watch = unwatched
) -> SelectionRun | JudgementRun:
    """Answer a task with a model."""
    _check_kind(card.recipe, system, path, task)
    asked: Any = task
    with needed_extra(card.recipe.name):
        run = system.predict(asked, watch)
    if isinstance(run, SelectionRun):
        run = _with_ties_told(_completed(expect_numbers(card.recipe.name, run), asked))
    elif not run.distributions:
        learned = ", ".join(question.name for question in card.questions or ())
        raise BadInputError(path, f"asks nothing that {card.recipe.name} has learned ({learned}, with their labels)")
    return msgspec.structs.replace(run, name=card.recipe.name)


def _completed(run: SelectionRun, task: SelectionTask) -> SelectionRun:
    """Give examples for which nothing was found their first option: a run has to answer them all."""
    missing = np.setdiff1d(np.arange(task.examples.height), run.choices["example"].to_numpy()).tolist()
    first = {example: int(rows[0]) for example in missing if len(rows := task.candidates(example))}
    if not first:
        return run
    options = task.options["id"].gather(list(first.values()))
    added = pl.DataFrame({"example": list(first), "option": options, "score": 0.0}).cast(run.choices.schema)
    note = f"nothing was found for {len(first):,} of {task.examples.height:,} examples; they choose their first option"
    choices = pl.concat([run.choices, added]).sort("example", maintain_order=True)
    return msgspec.structs.replace(run, choices=choices, notes=(*run.notes, note))


def _with_ties_told(run: SelectionRun) -> SelectionRun:
    """Note it where many examples have no best option, for then the order of their list, or of the pool, decides."""
    tied = run.choices.group_by("example").agg((pl.col("score") == pl.col("score").max()).sum() > 1)["score"]
    if tied.sum() < _MANY_TIES * len(tied):
        return run
    note = (
        f"several options share the best score in {tied.sum():,} of {len(tied):,} examples; they stay in the order in "
        "which they were listed, so that a file with right ones first would be well answered by chance"
    )
    return msgspec.structs.replace(run, notes=(*run.notes, note))


def _check_kind(recipe: Recipe, system: AnySystem, path: Path, task: Task) -> None:
    if not isinstance(task, system.task):
        kinds = {"SelectionTask": "options to rank", "JudgementTask": "dialogues to judge"}
        raise UserError(
            f"{recipe.name} answers tasks with {kinds[system.task.__name__]}; {path} has {kinds[type(task).__name__]}"
        )


def check_answers(path: Path, task: Task) -> None:
    """Refuse a task to choose by that has no answers, or not everywhere."""
    if not isinstance(task, SelectionTask):
        return
    if not task.examples["correct"].list.len().sum():
        raise BadInputError(path, "has no answers to choose by; expected a correct option in some of its examples")
    unknown = task.examples.filter(pl.col("correct").is_null())["id"]
    if len(unknown):
        raise BadInputError(
            path, "has no answer, unlike others; none right would be an empty list", f"example {unknown[0]}", "correct"
        )


def _check_votes(path: Path, task: Task, train: tuple[Path, Task]) -> None:
    if not isinstance(task, JudgementTask) or not isinstance(train[1], JudgementTask):
        return
    if task.votes is None:
        raise BadInputError(path, "has no votes to learn from")
    if task.questions != train[1].questions:
        raise BadInputError(path, f"asks other questions than {train[0]}, or with other labels")


def _source(path: Path, task: Task, pool: Path | None = None) -> Source:
    name = path.name if path.is_file() else "/".join(path.parts[-3:])
    if isinstance(task, SelectionTask):
        return Source(name, task.examples.height, fingerprint(path, *filter(None, [pool])))
    chinese = is_chinese(turn.text for dialogue in task.dialogues for turn in dialogue.turns)
    most = max(len(dialogue.turns) for dialogue in task.dialogues)
    return Source(name, len(task.dialogues), fingerprint(path), most, chinese)


def _versions() -> dict[str, str]:
    found = {"rejoinder": __version__, "python": platform.python_version()}
    for library in _LIBRARIES:
        try:
            found[library] = version(library)
        except PackageNotFoundError:
            continue
    return found


def _expect_apart(work: Path, out: Path) -> None:
    """Refuse folders of which one lies in the other: either is emptied for something new."""
    if _overlap(work, out):
        raise BadInputError(work, f"lies in {out}, or {out} in it; name another --work")


def _overlap(one: Path, other: Path) -> bool:
    first, second = resolved(one), resolved(other)
    return first == second or first in second.parents or second in first.parents


def _spare_trained(work: Path) -> None:
    """Refuse to empty a folder in which something was trained, to its end or not, perhaps on another machine."""
    if _has_trained(work):
        raise BadInputError(
            work,
            "holds what another recipe, seed or task has trained, or began to; remove it to give that up, or name "
            "another --work or --out",
        )


def _has_trained(work: Path) -> bool:
    """Whether something was trained in a folder, besides its parts, which have their own."""
    found = [path for name in _TRAINED for path in work.rglob(name) if path.relative_to(work).parts[0] != _MADE]
    return any((path.parent / LEARNER).is_file() for path in found)


def _is_work_of(work: Path, card: ModelCard) -> bool:
    """Whether a folder is left from a training of the same card, by whatever versions."""
    mark = work / _WORK_CARD
    return mark.is_file() and mark.read_bytes() == _mark_of(card)


def _mark_of(card: ModelCard) -> bytes:
    return msgspec.json.encode(msgspec.structs.replace(card, versions={}))


def _renew_work(work: Path, card: ModelCard) -> None:
    """Keep what an interrupted training of the same card left behind; of another, its parts, which have own cards."""
    if _is_work_of(work, card):
        return
    _spare_trained(work)
    try:
        keep_only(work, _MADE)
        (work / _WORK_CARD).write_bytes(_mark_of(card))
    except OSError as error:
        raise BadInputError(work, f"cannot be written ({error.strerror})") from None


def _doubts(given: Assignment, card: ModelCard) -> list[str]:
    """Say what is odd about data that can be learned from all the same."""
    found, train = [], given.train[1]
    if card.dev is not None and card.dev.fingerprint == card.train.fingerprint:
        found.append("dev is what it learned from: what was chosen there may be wrong elsewhere")
    if isinstance(train, SelectionTask) and (silent := train.examples["correct"].null_count()):
        found.append(f"{silent:,} of {train.examples.height:,} examples to learn from say nothing of what is right")
    return found
