"""Build Movie Dialog's five tasks (Dodge et al. 2016) from a knowledge base, ratings and discussions."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
import polars as pl

from rejoinder.corpora.discussions import read_discussions
from rejoinder.corpora.entities import Parser
from rejoinder.corpora.film_table import write_films
from rejoinder.corpora.films import KnowledgeBase
from rejoinder.corpora.movielens import read_likes, read_tags, with_tags
from rejoinder.corpora.ragged import Ragged
from rejoinder.errors import UserError
from rejoinder.files import BadInputError
from rejoinder.tasks.card import SPLITS, Card, write_card
from rejoinder.tasks.film_dialogues import Playwright, converse
from rejoinder.tasks.film_joint import write_joint
from rejoinder.tasks.film_questions import (
    Patterns,
    Questions,
    all_questions,
    ask,
    divide,
    mixed,
    packaged_patterns,
    question_keys,
    read_patterns,
)
from rejoinder.tasks.film_talk import FEWEST, Dialogue, divide_discussions, write_talk
from rejoinder.tasks.film_tastes import FEWEST_USERS, divide_users, recommend
from rejoinder.tasks.film_transfer import FILMS, Source
from rejoinder.tasks.writer import TaskWriter
from rejoinder.text import counted
from rejoinder.watch import Step

Batch = tuple[pl.DataFrame, pl.DataFrame]
_BATCH = 20_000
_FEWEST = 30
"""Questions without which there are not three splits."""


class FilmPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes, as in the paper."""

    questions: int = 96_000
    recommendations: int = 1_000_000
    dialogues: int = 1_000_000
    discussions: int = 1_000_000
    joint: int = 1_000_000
    evaluation: int = 10_000
    """Dialogues of dev, and of test, for each task."""
    candidates: int = 10_000
    by_entity: bool = False
    """Whether the questions of two splits may not be about the same entity."""
    seed: int = 0

    def exchanges(self, sources: "Sources") -> int:
        """Return about how many exchanges will be made."""
        made = self.questions + 4 * self.evaluation
        made += 0 if sources.likes is None else self.recommendations + 3 * self.dialogues + 8 * self.evaluation
        return made + min(self.discussions, 2 * len(sources.discussions)) + min(self.joint, made)

    def sizes(self, train: int) -> dict[str, int]:
        """Return how many dialogues each split has."""
        return {"train": train, "dev": self.evaluation, "test": self.evaluation}


class Sources(msgspec.Struct, frozen=True):
    """What the tasks are made of; a task without its source is left out."""

    kb: KnowledgeBase
    patterns: Patterns
    likes: Ragged | None = None
    discussions: Sequence[Dialogue] = ()
    held_out: frozenset[int] = frozenset()
    """Questions that must not be asked, by `Questions.keys`."""


def gather_sources(
    kb: KnowledgeBase,
    ratings: Path | None,
    questions: Path | None,
    threads: Path | None,
    tags: Path | None,
    official: Sequence[Source],
) -> Sources:
    """Read what there is; questions of official files are held out."""
    kb = kb if tags is None else with_tags(kb, read_tags(tags, kb))
    discussions = [] if threads is None else list(read_discussions(threads))
    if threads and len(discussions) < FEWEST:
        problem = f"holds {counted(len(discussions), 'discussion')} with a reply; task 4 needs {FEWEST} at least"
        raise BadInputError(threads, problem)
    likes = None if ratings is None else _read_likes(ratings, kb)
    parser = Parser(kb.entities, kb.rank)
    return Sources(
        kb,
        packaged_patterns() if questions is None else read_patterns(questions, kb, parser),
        likes,
        discussions,
        frozenset(key for one in official if one.task == 1 for key in question_keys(one.path, kb, parser)),
    )


def _read_likes(ratings: Path, kb: KnowledgeBase) -> Ragged:
    likes = read_likes(ratings, kb)
    if len(likes) < FEWEST_USERS:
        who = f"{counted(len(likes), 'user')} with five stars for two films of the knowledge base"
        raise BadInputError(ratings, f"holds {who}; tasks 2 and 3 need {FEWEST_USERS} at least")
    return likes


def write_tasks(out: Path, sources: Sources, plan: FilmPlan, advance: Step) -> dict[str, int]:
    """Write every task and split, and return how many examples each has."""
    kb, seed = sources.kb, plan.seed
    write_films(out / FILMS, kb)
    batches: dict[tuple[int, str], Iterator[Batch]] = {}
    for split, asked in _questions(sources, plan).items():
        batches[1, split] = _asked(kb, asked, sources.patterns, _rng(seed, 1, split))
    users = {} if sources.likes is None else divide_users(sources.likes, _rng(seed, 2, "users"))
    for split, likes in users.items():
        size = plan.sizes(plan.recommendations)[split]
        batches[2, split] = _recommended(kb, likes, size, _rng(seed, 2, split))
        size = plan.sizes(plan.dialogues)[split]
        batches[3, split] = _conversed(kb, likes, size, _rng(seed, 3, split))
    built = {}
    for (task, split), made in batches.items():
        folder = out / f"task_{task}" / split
        built[f"task_{task}/{split}"] = _write(folder, kb, made, advance)
        _write_card(folder, task, split, built[f"task_{task}/{split}"], len(kb), seed)
    if sources.discussions:
        built |= _write_discussions(out, sources, plan, advance)
    for split, size in plan.sizes(plan.joint).items():
        folder = out / "task_5" / split
        built[f"task_5/{split}"], options = write_joint(out, split, size, _rng(seed, 5, split), advance)
        _write_card(folder, 5, split, built[f"task_5/{split}"], options, seed)
    return dict(sorted(built.items(), key=lambda item: (item[0][:6], SPLITS.index(item[0][7:]))))


def _rng(seed: int, *parts: object) -> np.random.Generator:
    return np.random.default_rng([seed, *"/".join(map(str, parts)).encode()])


def _write_card(folder: Path, task: int, split: str, examples: int, options: int, seed: int) -> None:
    write_card(folder, Card("films", task, split, examples, options, seed, knowledge=f"../../{FILMS}"))


def _write(folder: Path, kb: KnowledgeBase, batches: Iterator[Batch], advance: Step) -> int:
    with TaskWriter(folder) as writer:
        for name in kb.entities:
            writer.row((name, name))
        for examples, groups in batches:
            writer.extend(examples, groups)
            advance(examples.height)
    return writer.examples


def _questions(sources: Sources, plan: FilmPlan) -> dict[str, Questions]:
    """Choose the questions of each split; where they run out, training questions are asked again, in drawn words."""
    rng = _rng(plan.seed, 1, "split")
    asked = all_questions(sources.kb, sources.patterns)
    allowed = ~np.isin(asked.keys(sources.kb), np.fromiter(sources.held_out, np.int64))
    asked = asked.take(np.flatnonzero(allowed))
    if len(asked) < _FEWEST:
        raise UserError(
            f"the knowledge base answers {counted(len(asked), 'question')}; it takes {_FEWEST} to divide them"
        )
    evaluation = min(plan.evaluation, len(asked) // 10)
    asked = mixed(asked, sources.patterns, plan.questions + 2 * evaluation, rng)
    dev, test, train = divide(asked, [evaluation, evaluation], plan.by_entity, rng)
    more = rng.integers(len(train), size=plan.questions - len(train)) if len(train) < plan.questions else ()
    return {"train": train.take(np.append(np.arange(len(train)), more).astype(np.int64)), "dev": dev, "test": test}


def _asked(kb: KnowledgeBase, asked: Questions, patterns: Patterns, rng: np.random.Generator) -> Iterator[Batch]:
    for start in range(0, len(asked), _BATCH):
        part = asked.take(np.arange(start, min(start + _BATCH, len(asked))))
        yield ask(kb, part, patterns, rng)


def _recommended(kb: KnowledgeBase, likes: Ragged, size: int, rng: np.random.Generator) -> Iterator[Batch]:
    for start in range(0, size, _BATCH):
        yield recommend(kb, likes, min(_BATCH, size - start), rng)


def _conversed(kb: KnowledgeBase, likes: Ragged, size: int, rng: np.random.Generator) -> Iterator[Batch]:
    playwright = Playwright(kb, likes)
    made = 0
    while made < size:
        script = playwright.write(min(_BATCH, size - made + 100), rng)
        script = script.take(np.arange(min(len(script.film), size - made)))
        if not len(script.film):
            raise UserError("no dialogue of three exchanges can be made of these users' films; give more ratings")
        made += len(script.film)
        yield converse(kb, script, rng)


def _write_discussions(out: Path, sources: Sources, plan: FilmPlan, advance: Step) -> dict[str, int]:
    rng = _rng(plan.seed, 4, "split")
    splits, wrong = divide_discussions(sources.discussions, plan.discussions, plan.evaluation, plan.candidates, rng)
    parser = Parser(sources.kb.entities, sources.kb.rank)
    built = {}
    for split in SPLITS:
        folder = out / "task_4" / split
        examples, options = write_talk(folder, splits[split], wrong.get(split, ()), parser)
        _write_card(folder, 4, split, examples, options, plan.seed)
        built[f"task_4/{split}"] = examples
        advance(examples)
    return built
