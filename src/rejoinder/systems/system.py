"""What answers a task: a system is made from a recipe's settings, learns from a lesson, and turns a task into a run."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import msgspec

from rejoinder.errors import UserError, missing_library
from rejoinder.runs import JudgementRun, SelectionRun
from rejoinder.tasks.dialeval import NUGGET, QUALITY
from rejoinder.tasks.judgement import JudgementTask, Question
from rejoinder.tasks.selection import SelectionTask
from rejoinder.watch import Watch, unwatched

TaskT = TypeVar("TaskT", SelectionTask, JudgementTask)
RunT = TypeVar("RunT", SelectionRun, JudgementRun)


class Lesson(msgspec.Struct, Generic[TaskT], frozen=True, kw_only=True):
    """What a system learns from."""

    train: TaskT
    dev: TaskT | None = None
    """For choosing when to stop, thresholds and weights; None: the system makes do without."""
    seed: int = 0
    work: Path
    """A folder for what should survive an interruption; training goes on from what it finds there."""
    watch: Watch = unwatched
    teacher: Any = None
    """The trained system of `teacher_source`."""
    prepare_only: bool = False
    """Stop with `Prepared` where a network would be trained, so that it can be trained elsewhere."""


class Prepared(Exception):  # noqa: N818  # no error
    """A folder is ready for `python -m rejoinder.training FOLDER`."""


class NoSettings(msgspec.Struct, frozen=True):
    """For systems that have nothing to set."""


class System(ABC, Generic[TaskT, RunT]):
    """One system; its class says which settings a recipe may give it."""

    Settings: ClassVar[type] = NoSettings
    task: ClassVar[type]
    """The kind of task that it answers."""
    has_network: ClassVar[bool] = False
    """Whether it trains a network, which can be prepared here and trained elsewhere."""

    def __init__(self, settings: Any) -> None:
        self.settings = settings
        self.parts: list[Any] = []
        """Trained systems that this one is made of, in the order of `part_sources`."""
        self.notes: list[str] = []
        """What is worth telling of how it learned."""

    def part_sources(self) -> Sequence[str]:
        """Return which recipes or models this system is made of; recipes learn from the same lesson, before it."""
        return ()

    def dev_of_parts(self, dev: TaskT, seed: int) -> TaskT:
        """Return what the parts are to learn from as dev, if not from the lesson's own."""
        return dev

    def expect_part(self, source: str, part: Any) -> None:
        """Refuse a part, trained or not, that this system cannot be made of."""

    def outside_sources(self) -> tuple[Path, ...]:
        """Return files and folders that its settings name, besides models, and that it learns from."""
        return ()

    def teacher_source(self) -> str | None:
        """Return a recipe or model to learn from as well, and to do without afterwards; it learns before this one."""
        return None

    def expect_teacher(self, source: str, teacher: Any) -> None:
        """Refuse a teacher, trained or not, that this system cannot learn from."""

    def check(self, lesson: Lesson[TaskT]) -> None:  # most can learn from any
        """Refuse a lesson that nothing can be learned from, before any part is trained."""

    def fit(self, lesson: Lesson[TaskT]) -> None:  # some have nothing to learn
        """Learn."""

    @abstractmethod
    def predict(self, task: TaskT, watch: Watch = unwatched) -> RunT:
        """Answer every example."""

    def save(self, folder: Path) -> None:
        """Write what was learned into a folder."""

    def load(self, folder: Path) -> None:
        """Read what `save` wrote."""


class SelectionSystem(System[SelectionTask, SelectionRun]):
    """Ranks options."""

    task = SelectionTask

    @property
    def says_none(self) -> bool:
        """Whether NONE is among its choices."""
        return False

    @property
    def can_encode(self) -> bool:
        """Whether contexts and options have one vector each, and their product is the score: see `Encoder`."""
        return False

    def expect_task(self, task: SelectionTask) -> None:  # most answer any
        """Refuse a task that it will not be able to answer, however it is trained."""

    def ask(self, place: int, task: SelectionTask, watch: Watch = unwatched) -> SelectionRun:
        """Let a part answer."""
        return expect_numbers(self.part_sources()[place], self.parts[place].predict(task, watch))


def expect_numbers(name: str, run: SelectionRun) -> SelectionRun:
    """Refuse a run with scores that are no numbers, which would spoil all that is made of it."""
    if not run.choices["score"].is_finite().all():
        raise UserError(f"{name} gives scores that are no numbers; a setting or its rate is too high")
    return run


class JudgementSystem(System[JudgementTask, JudgementRun]):
    """Predicts distributions of votes."""

    task = JudgementTask
    questions: tuple[Question, ...] = (*QUALITY, NUGGET)
    """What it can answer: DialEval-1's questions, unless it learned others."""


AnySystem = SelectionSystem | JudgementSystem

SYSTEMS = {
    "random": "rejoinder.systems.retrieval:Random",
    "unsaid": "rejoinder.systems.retrieval:Unsaid",
    "voice": "rejoinder.systems.voice:Voice",
    "tfidf": "rejoinder.systems.retrieval:Tfidf",
    "bm25": "rejoinder.systems.retrieval:Bm25",
    "ensemble": "rejoinder.systems.ensemble:Ensemble",
    "abstain": "rejoinder.systems.abstain:Abstain",
    "uniform-judge": "rejoinder.systems.baselines:Uniform",
    "popularity-judge": "rejoinder.systems.baselines:Popularity",
    "mean-judge": "rejoinder.systems.baselines:Mean",
    "kernel-judge": "rejoinder.systems.kernel_judge:KernelJudge",
    "neural-judge": "rejoinder.systems.neural_judge:NeuralJudge",
    "judge-ensemble": "rejoinder.systems.judge_ensemble:JudgeEnsemble",
    "sentence-encoder": "rejoinder.systems.sentence_encoder:SentenceEncoder",
    "cascade": "rejoinder.systems.cascade:Cascade",
    "informed": "rejoinder.systems.informed:Informed",
    "embeddings": "rejoinder.systems.embeddings:Embeddings",
    "exchanges": "rejoinder.systems.exchanges:Exchanges",
    "film-answers": "rejoinder.systems.film_answers:FilmAnswers",
    "film-recommender": "rejoinder.systems.film_recommender:FilmRecommender",
    "neural-ranker": "rejoinder.systems.neural_ranker:NeuralRanker",
}
"""Where each system that a recipe can name is; imported when used, for some need heavy libraries."""


def find_system(name: str) -> type[AnySystem]:
    """Return a system's class."""
    module, _, class_ = SYSTEMS[name].partition(":")
    with needed_extra(name):
        found: type[AnySystem] = getattr(import_module(module), class_)
    return found


@contextmanager
def needed_extra(name: str) -> Iterator[None]:
    """Say which extra to install where a library is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise missing_library(name, error) from None


def expect_no_none(source: str, part: "SelectionSystem") -> None:
    """Refuse a part that says NONE already."""
    if part.says_none:
        raise UserError(f"{source} says NONE already; let that come last, and name what it is made of here")


def existing(*names: str) -> tuple[Path, ...]:
    """Return those of a recipe's names that are files or folders here, and not names of something packaged."""
    return tuple(Path(name) for name in names if name and Path(name).exists())
