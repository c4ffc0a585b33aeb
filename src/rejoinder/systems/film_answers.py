"""Answers from the knowledge base: which way through it a message means is learned from messages and their answers.

In training, the ways that lead to the answers are the meanings of a message, and how messages of each meaning are
worded is learned. Asked something, every way from every entity is tried: the wording decides, which also tells films
from tags and people of the same name. It has the role of Bordes et al. (2014) in Dodge et al. (2016), section 3.4;
with a recommender it ranks the films that a way leads to, and answers where none does.
"""

from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from rejoinder.corpora.films import RELATIONS
from rejoinder.corpora.ragged import Ints, Ragged, group
from rejoinder.errors import UserError
from rejoinder.runs.selection import SelectionRun
from rejoinder.systems.film_patterns import Observations, Patterns, Reading, choose_vocabulary, read
from rejoinder.systems.film_recommender import Recommender, load_learned, save_learned
from rejoinder.systems.film_ways import ASIDE, MEANINGS, Ways, explain, find_ways, follow
from rejoinder.systems.film_world import (
    FilmWorld,
    Matrix,
    as_matrix,
    entities_of,
    last_turns,
    load_world,
    mentions,
    world_of,
)
from rejoinder.systems.ranking import KEPT, Pairs, answers_of, best_columns, blocks, join_pairs, to_run
from rejoinder.systems.system import Lesson, SelectionSystem
from rejoinder.tasks.selection import SelectionTask
from rejoinder.text import counted
from rejoinder.watch import Watch, unwatched

Floats = NDArray[np.float64]
_BLOCK = 500
_LEAST = 1e-4
"""Less likely ways are not followed."""
_ROUNDS = 2
"""How often the weights of equally good explanations are revised."""
_FEWEST = 0.05
"""Share of the training answers that a fact must explain: of questions it is nearly all, of recommendations 1%."""
_PATTERNS = "patterns.npz"


class FilmAnswers(SelectionSystem):
    """Looks answers up, and recommends where there is nothing to look up."""

    class Settings(msgspec.Struct, frozen=True):
        """What it learns."""

        examples: int = 60_000
        """Training examples from which the wording is learned; drawn if there are more."""
        recommend: bool = False
        """Whether to learn what films people like as well."""

    world: FilmWorld
    patterns: Patterns
    recommender: Recommender | None = None

    def fit(self, lesson: Lesson[SelectionTask]) -> None:
        """Learn which ways messages mean."""
        self.world = world_of(lesson.train)
        rng = np.random.default_rng(lesson.seed)
        height = lesson.train.examples.height
        drawn = np.sort(rng.choice(height, min(height, self.settings.examples), replace=False))
        task = msgspec.structs.replace(lesson.train, examples=lesson.train.examples[drawn], groups=None)
        self.patterns = Patterns()
        texts = last_turns(task)
        self.patterns.vocabulary = choose_vocabulary(self.world.parser, texts)
        reading = read(self.world.parser, texts, self.patterns.vocabulary)
        before, answers = self._answered_before(task), answers_of(task)
        answers = Ragged(answers.starts, entities_of(self.world, task)[answers.values])
        parts = []
        with lesson.watch("explaining answers", task.examples.height) as advance:
            for block in blocks(task.examples.height, _BLOCK):
                rows = np.arange(block.start, block.stop)
                part = reading.part(block)
                parts.append((explain(self.world.kb, part, before.take(rows), answers.take(rows)), part))
                advance(len(rows))
        if not self.settings.recommend:
            _check_answers(parts, task.examples.height)
        self._learn(parts)
        if self.settings.recommend:
            self.recommender = Recommender(self.world)
            with lesson.watch("learning tastes", None):
                self.recommender.learn(lesson.train, lesson.dev, lesson.seed)
            self.recommender.learned["constancy"] = np.array(self._constancy(task, answers))

    def _constancy(self, task: SelectionTask, answers: Ragged) -> float:
        """Return by how much the odds of a film rise if it has what was wished for in earlier turns."""
        wishes = mentions(self.world, task, own=True, earlier=True)
        film = self.world.film_of[answers.values]
        rows = np.flatnonzero((film >= 0) & (wishes.lengths[answers.owners()] > 0))[:_BLOCK]
        if not len(rows):
            return 0.0
        having = self.world.having(wishes.take(answers.owners()[rows]))
        answered = np.asarray(having[np.arange(len(rows)), film[rows]] > 0).mean()
        any_film = np.diff(having.indptr).mean() / len(self.world.films)
        odds = (answered + 1e-3) * (1 - any_film) / ((1 - answered + 1e-3) * any_film)
        return float(np.clip(np.log(odds), 0, 5))

    def _learn(self, parts: list[tuple[Observations, Reading]]) -> None:
        """Learn the wording; where several ways explain an answer, wording learned elsewhere weighs them anew."""
        for _ in range(_ROUNDS):
            self.patterns.learn(parts, MEANINGS)
            parts = [(self._revised(part, seen), part) for seen, part in parts]

    def _revised(self, reading: Reading, seen: Observations) -> Observations:
        ways = Ways(seen.example, seen.position, seen.meaning, seen.position)
        return msgspec.structs.replace(seen, weight=self._chances(reading, ways))

    def _answered_before(self, task: SelectionTask) -> Ragged:
        """Return the entities of the other's last turn."""
        last = task.examples["turns"].list.get(-2, null_on_oob=True).struct.field("text").fill_null("")
        parsed = self.world.parser.parse(last)
        known = parsed.entities >= 0
        owners = np.repeat(np.arange(len(parsed)), np.diff(parsed.starts))
        return group(owners[known], parsed.entities[known], len(parsed))

    def predict(self, task: SelectionTask, watch: Watch = unwatched) -> SelectionRun:
        """Answer every example."""
        reading = read(self.world.parser, last_turns(task), self.patterns.vocabulary)
        before = self._answered_before(task)
        rows = self.world.rows_in(task)
        named = as_matrix(self.world, mentions(self.world, task, own=True))
        told = named + as_matrix(self.world, mentions(self.world, task, own=False))
        wishes = mentions(self.world, task, own=True, earlier=True)
        parts, scores = [], []
        with watch("answering", task.examples.height) as advance:
            for block in blocks(task.examples.height, _BLOCK):
                examples = np.arange(block.start, block.stop)
                liking = self._liking(named[block], told[block], wishes.take(examples))
                earlier = before.take(examples)
                example, entity, score = self._answer(reading.part(block), earlier, liking)
                known = rows[entity] >= 0
                pairs, kept = _best(example[known] + block.start, rows[entity[known]], score[known])
                parts.append(pairs)
                scores.append(kept)
                advance(block.stop - block.start)
        return to_run(task, "film answers", join_pairs(parts), np.concatenate(scores))

    def _liking(self, named: Matrix, told: Matrix, wishes: Ragged) -> NDArray[np.float32] | None:
        """Return how likely each film is to be wanted, the likeliest being 1; those named before are not."""
        if self.recommender is None:
            return None
        score = self.recommender.score(named)
        score[self.world.having(wishes).nonzero()] += self.recommender.learned["constancy"]
        score[told.nonzero()] = -np.inf
        liking: NDArray[np.float32] = np.exp(score - score.max(axis=1, keepdims=True))
        return liking

    def _answer(
        self, reading: Reading, before: Ragged, liking: NDArray[np.float32] | None
    ) -> tuple[Ints, Ints, Floats]:
        """Return (example, entity, score): what is reached by ways, by how likely these are meant."""
        examples = np.arange(len(before))
        nowhere = np.full(len(before), -1)
        ways = find_ways(self.world.kb, reading, before)
        ways = Ways(
            np.append(ways.example, examples),
            np.append(ways.position, nowhere),
            np.append(ways.meaning, np.full(len(before), ASIDE)),
            np.append(ways.row, nowhere),
        )
        chance = self._chances(reading, ways)
        likely = np.flatnonzero(chance > _LEAST)
        ways, chance = ways.take(likely), chance[likely]
        number, entity = follow(self.world.kb, ways)
        example, score = ways.example[number], chance[number] * self._agreement(ways, number)
        if liking is not None:
            score = score * self._contentment(liking, ways, number, entity)
            aside = ways.meaning == ASIDE
            wanted = liking[ways.example[aside]] * chance[aside, None]
            best = best_columns(wanted, KEPT)
            example = np.append(example, np.repeat(ways.example[aside], best.shape[1]))
            entity = np.append(entity, self.world.films[best.ravel()])
            score = np.append(score, np.take_along_axis(wanted, best, axis=1).ravel())
        return _summed(example, entity, score, len(self.world.kb))

    def _agreement(self, ways: Ways, number: Ints) -> Floats:
        """Return the share of films that have a fact, where several have the title; 1 for films."""
        forward = np.flatnonzero((ways.meaning < ASIDE) & ~ways.backward)
        counts = self.world.agreement.take(ways.row[forward]).values  # `follow` begins with the same
        share = np.ones(len(number))
        share[: len(counts)] = counts / self.world.namesakes[ways.row[number[: len(counts)]] // len(RELATIONS)]
        return share

    def _contentment(self, liking: NDArray[np.float32], ways: Ways, number: Ints, entity: Ints) -> Floats:
        """Return 1 for facts, and for films how likely they are to be wanted, next to the likeliest of their way."""
        film = self.world.film_of[entity]
        among = np.flatnonzero(ways.backward[number])
        share = np.ones(len(number))
        share[among] = liking[ways.example[number[among]], film[among]]
        most = np.zeros(len(ways.example))
        np.maximum.at(most, number[among], share[among])
        share[among] /= np.maximum(most[number[among]], 1e-30)
        return share

    def _chances(self, reading: Reading, ways: Ways) -> Floats:
        """Return the probability of each way to be what its message means."""
        places, inverse = np.unique(np.stack([ways.example, ways.position]), axis=1, return_inverse=True)
        scores = self.patterns.score(reading, places[0], places[1])
        score = scores[inverse.ravel(), ways.meaning] + self.patterns.prior[ways.meaning]
        best = np.full(len(reading.starts) - 1, -1e30)
        np.maximum.at(best, ways.example, score)
        chance = np.exp(score - best[ways.example])
        total = np.bincount(ways.example, chance, minlength=len(best))
        shares: Floats = chance / np.maximum(total[ways.example], 1e-300)
        return shares

    def save(self, folder: Path) -> None:
        """Write what was learned."""
        self.world.save(folder)
        self.patterns.save(folder / _PATTERNS)
        if self.recommender is not None:
            save_learned(self.recommender, folder)

    def load(self, folder: Path) -> None:
        """Read what `save` wrote."""
        self.world = load_world(folder)
        self.patterns = Patterns()
        self.patterns.load(folder / _PATTERNS)
        if self.settings.recommend:
            self.recommender = Recommender(self.world)
            load_learned(self.recommender, folder)


def _summed(example: Ints, entity: Ints, score: Floats, size: int) -> tuple[Ints, Ints, Floats]:
    """Add the scores of the same entity for the same example."""
    keys, inverse = np.unique(example * size + entity, return_inverse=True)
    return keys // size, keys % size, np.bincount(inverse, score, minlength=len(keys)).astype(np.float64)


def _check_answers(parts: list[tuple[Observations, Reading]], examples: int) -> None:
    explained = sum(len(np.unique(seen.example[seen.meaning < ASIDE])) for seen, _ in parts)
    if explained < _FEWEST * examples:
        found = f"the knowledge base explains {explained:,} of {counted(examples, 'training answer')}"
        raise UserError(f"{found}: these are no questions about facts; films-guide and films-tastes recommend films")


def _best(example: Ints, row: Ints, score: Floats) -> tuple[Pairs, Floats]:
    """Keep the best of each example; examples are in order."""
    order = np.lexsort((-score, example))
    example, row, score = example[order], row[order], score[order]
    rank = np.arange(len(example)) - np.searchsorted(example, example)
    kept = (rank < KEPT) & (score > 0)
    return Pairs(example[kept], row[kept]), score[kept]
