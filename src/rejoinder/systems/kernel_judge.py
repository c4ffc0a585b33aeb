"""A judge from cheap features: kernel ridge regression on n-grams and cues, first of the turns, then of the dialogues.

What is predicted of a turn (never by a model that saw its dialogue) is a feature of its dialogue. It is the roots of
probabilities that are predicted: sums of squared differences of roots are Hellinger's distance, which orders
predictions much as the Jensen-Shannon divergence does, and squaring the roots keeps small probabilities small.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from rejoinder.arrays import read_arrays, write_arrays
from rejoinder.files import write_atomically
from rejoinder.records import read_json
from rejoinder.runs.judgement import JudgementRun, uniform
from rejoinder.systems.grams import Grams, Matrix, unit_rows
from rejoinder.systems.kernel_ridge import Dense, KernelRidge, Texts, fit
from rejoinder.systems.system import JudgementSystem, Lesson
from rejoinder.systems.turn_features import (
    TurnTable,
    describe_answers,
    describe_dialogues,
    describe_turns,
)
from rejoinder.tasks.judgement import Answers, JudgementTask, Question
from rejoinder.watch import Watch, unwatched

Floats = NDArray[np.float32]
Integers = NDArray[np.intp]
Positive = Annotated[float, msgspec.Meta(gt=0)]
View = TypeVar("View", Matrix, Floats)


class Views(msgspec.Struct, frozen=True):
    """Dialogues as tables of numbers."""

    table: TurnTable
    dialogues: int
    group: Integers
    """By dialogue: those of one id, the same in two languages, are of one group."""
    grams: Matrix


class KernelJudge(JudgementSystem):
    """Predicts each question's votes, those on turns first."""

    class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
        """How much each kernel counts, and how smooth the solution is."""

        neighbours: float = 0.5
        """Weight of the n-grams of the turns before and after, against 1 of the turn's own."""
        turn_cues: float = 6.0
        dialogue_cues: float = 3.0
        answers: float = 5.0
        """Weight of what was predicted of the turns, in a question about the dialogue."""
        turn_penalty: Positive = 2.0
        dialogue_penalty: Positive = 3.0
        power: Positive = 0.5
        """Which power of the probabilities is predicted."""
        most: Annotated[int, msgspec.Meta(ge=1)] = 12_000
        """Rows to learn a question from; of more, dialogues are drawn at random."""

    speakers: tuple[str, ...]
    questions: tuple[Question, ...]
    grams: Grams
    models: dict[str, KernelRidge]
    """By question and, for questions about turns, role."""

    def fit(self, lesson: Lesson[JudgementTask]) -> None:
        """Learn from a task with votes."""
        task = lesson.train
        self.speakers = tuple(dict.fromkeys(turn.speaker for dialogue in task.dialogues for turn in dialogue.turns))
        self.questions = task.questions
        self.grams = Grams.of([turn.text for dialogue in task.dialogues for turn in dialogue.turns])
        self.models = {}
        views, truth = self._views(task), task.truth()
        rng = np.random.default_rng(lesson.seed)
        of_turns, of_dialogues = self._divided()
        with lesson.watch("learning", len(of_turns) + 1) as advance:
            left_out = []
            for question in of_turns:
                left_out.append(self._fit_turns(views, truth.answers[question.name], rng))
                advance(1)
            if of_dialogues:
                self._fit_dialogues(views, [truth.answers[question.name] for question in of_dialogues], left_out, rng)
            advance(1)

    def _divided(self) -> tuple[list[Question], list[Question]]:
        """Return the questions about turns and those about dialogues."""
        of_turns = [question for question in self.questions if question.roles is not None]
        return of_turns, [question for question in self.questions if question.roles is None]

    def _views(self, task: JudgementTask) -> Views:
        table = TurnTable.of(task.dialogues, self.speakers)
        group = np.unique([dialogue.id for dialogue in task.dialogues], return_inverse=True)[1]
        return Views(table, len(task.dialogues), group, self.grams.transform(table.texts))

    def _fit_turns(self, views: Views, answers: Answers, rng: np.random.Generator) -> Floats:
        """Learn a question about turns; return each turn's prediction without its dialogue."""
        found = np.zeros((len(views.table.place), len(answers.question.labels)), dtype=np.float32)
        rows = views.table.rows(answers.example, answers.turn)
        texts, dense = self._turn_views(views)
        for role in range(len(answers.question.roles or ())):
            columns = _columns(answers.question, role)
            own = _sample(
                np.flatnonzero((answers.role == role) & answers.voted), answers.example, self.settings.most, rng
            )
            if not len(own):
                continue
            values = answers.distribution[own][:, columns]
            own_texts, own_dense = _pick(texts, rows[own]), _pick(dense, rows[own])
            penalty = self.settings.turn_penalty
            group = views.group[answers.example[own]]
            model, predicted = self._solve(own_texts, own_dense, values, penalty, group)
            self.models[f"{answers.question.name}-{role}"] = model
            found[np.ix_(rows[own], columns)] = predicted
            others = rows[np.setdiff1d(np.flatnonzero(answers.role == role), own)]
            if len(others):  # nobody voted on them, or they were not drawn
                found[np.ix_(others, columns)] = self._apply(model, _pick(texts, others), _pick(dense, others))
        return found

    def _fit_dialogues(
        self, views: Views, answers: Sequence[Answers], turns: list[Floats], rng: np.random.Generator
    ) -> None:
        """Learn all questions about dialogues at once: they share the kernel, and every dialogue has votes on each."""
        texts, dense = self._dialogue_views(views, turns)
        own = _sample(np.arange(views.dialogues), np.arange(views.dialogues), self.settings.most, rng)
        values = np.hstack([asked.distribution[own] for asked in answers])
        penalty = self.settings.dialogue_penalty
        self.models[_DIALOGUES], _ = self._solve(
            _pick(texts, own), _pick(dense, own), values, penalty, views.group[own]
        )

    def _turn_views(self, views: Views) -> tuple[Texts, Dense]:
        around = [(self.settings.neighbours, _shifted(views.grams, views.table.neighbours(by))) for by in (-1, 1)]
        cues = describe_turns(views.table, views.dialogues)
        return [(1.0, views.grams), *around], [(self.settings.turn_cues, cues)]

    def _dialogue_views(self, views: Views, turns: list[Floats]) -> tuple[Texts, Dense]:
        from scipy import sparse

        table, count = views.table, views.dialogues
        by_speaker = []
        for speaker in range(len(self.speakers)):
            rows = np.flatnonzero(table.speaker == speaker)
            shape = (count, len(table.place))
            adding = sparse.csr_matrix((np.ones(len(rows), np.float32), (table.dialogue[rows], rows)), shape=shape)
            by_speaker.append((1.0, unit_rows(adding @ views.grams)))
        ends = [
            (1.0, _shifted(views.grams, table.last_rows(count))),
            (0.5, _shifted(views.grams, table.place_rows(count, 0))),
        ]
        dense = [(self.settings.dialogue_cues, describe_dialogues(table, count))]
        if turns:
            found = np.hstack([describe_answers(table, count, answers) for answers in turns])
            dense.append((self.settings.answers, found))
        return [*by_speaker, *ends], dense

    def _solve(
        self, texts: Texts, dense: Dense, values: NDArray[np.float64], penalty: float, groups: Integers
    ) -> tuple[KernelRidge, Floats]:
        powers = (values**self.settings.power).astype(np.float32)
        model, left_out = fit(texts, dense, powers, penalty, groups)
        return model, self._to_probabilities(left_out)

    def _apply(self, model: KernelRidge, texts: Texts, dense: Dense) -> Floats:
        return self._to_probabilities(model.predict(texts, dense))

    def _to_probabilities(self, values: Floats) -> Floats:
        positive = np.clip(values, 0.01, None) ** (1 / self.settings.power)
        return np.asarray(positive / positive.sum(axis=1, keepdims=True), dtype=np.float32)

    def predict(self, task: JudgementTask, watch: Watch = unwatched) -> JudgementRun:
        """Judge every dialogue; questions that it did not learn stay without an answer."""
        views, asked = self._views(task), task.unanswered().answers
        of_turns, of_dialogues = self._divided()
        found: dict[str, Floats] = {}
        with watch("judging", len(of_turns) + 1) as advance:
            for question in of_turns:
                found[question.name] = self._predict_turns(views, question)
                advance(1)
            if of_dialogues:
                found |= self._predict_dialogues(views, of_dialogues, list(found.values()))
            advance(1)
        known = {question.name: question for question in self.questions}
        answered = {}
        for name, answers in asked.items():
            if known.get(name) == answers.question:
                about_turns = answers.question.roles is not None
                rows = views.table.rows(answers.example, answers.turn) if about_turns else slice(None)
                answered[name] = _normalised(found[name][rows], answers)
        return JudgementRun("kernel", answered)

    def _predict_dialogues(self, views: Views, questions: list[Question], turns: list[Floats]) -> dict[str, Floats]:
        predicted = self.models[_DIALOGUES].predict(*self._dialogue_views(views, turns))
        borders = np.cumsum([len(question.labels) for question in questions])[:-1]
        parts = np.split(predicted, borders, axis=1)
        return {question.name: self._to_probabilities(part) for question, part in zip(questions, parts, strict=True)}

    def _predict_turns(self, views: Views, question: Question) -> Floats:
        found = np.zeros((len(views.table.place), len(question.labels)), dtype=np.float32)
        texts, dense = self._turn_views(views)
        for role, speaker in enumerate(question.roles or ()):
            model = self.models.get(f"{question.name}-{role}")
            if model is not None:  # else nobody of that role spoke in training
                rows = np.flatnonzero(views.table.speaker == self.speakers.index(speaker))
                columns = _columns(question, role)
                found[np.ix_(rows, columns)] = self._apply(model, _pick(texts, rows), _pick(dense, rows))
        return found

    def save(self, folder: Path) -> None:
        """Write what was learned into a folder."""
        write_arrays(folder / "grams.npz", {"columns": self.grams.columns, "weights": self.grams.weights})
        for name, model in self.models.items():
            write_arrays(folder / f"{name}.npz", model.to_arrays())
        learned = _Learned(self.speakers, self.questions, {name: model.views for name, model in self.models.items()})
        with write_atomically(folder / _LEARNED) as file:
            file.write(msgspec.json.encode(learned))

    def load(self, folder: Path) -> None:
        """Read what `save` wrote."""
        learned = read_json(folder / _LEARNED, _Learned)
        self.speakers, self.questions = learned.speakers, learned.questions
        self.grams = Grams(**read_arrays(folder / "grams.npz", ("columns", "weights")))
        self.models = {
            name: KernelRidge.from_arrays(*views, read_arrays(folder / f"{name}.npz", KernelRidge.array_names(*views)))
            for name, views in learned.views.items()
        }


_LEARNED = "learned.json"
_DIALOGUES = "dialogues"
"""The model of all questions about dialogues."""


class _Learned(msgspec.Struct, frozen=True):
    speakers: tuple[str, ...]
    questions: tuple[Question, ...]
    views: dict[str, tuple[int, int]]


def _columns(question: Question, role: int) -> Integers:
    return np.array([question.labels.index(label) for label in question.allowed(role)])


def _sample(rows: Integers, dialogue: Integers, most: int, rng: np.random.Generator) -> Integers:
    """Return all rows, or those of dialogues drawn at random until there are as many as wanted."""
    if len(rows) <= most:
        return rows
    order = rng.permutation(int(dialogue.max()) + 1)
    ranks = order[dialogue[rows]]
    return np.asarray(rows[ranks <= np.sort(ranks)[most]])


def _shifted(matrix: Matrix, rows: Integers) -> Matrix:
    """Return these rows of a matrix; an empty one where there is none (-1)."""
    from scipy import sparse

    there = np.flatnonzero(rows >= 0)
    shape = (len(rows), matrix.shape[0])
    moving = sparse.csr_matrix((np.ones(len(there), np.float32), (there, rows[there])), shape=shape)
    moved: Matrix = (moving @ matrix).tocsr()
    return moved


def _pick(views: Sequence[tuple[float, View]], rows: Integers) -> list[tuple[float, View]]:
    return [(weight, view[rows]) for weight, view in views]


def _normalised(predicted: Floats, answers: Answers) -> NDArray[np.float64]:
    """Make rows sum to one exactly; a row that nothing was predicted for is uniform."""
    found = predicted.astype(np.float64)
    nothing = ~found.any(axis=1)
    found[nothing] = uniform(answers)[nothing]
    return np.asarray(found / found.sum(axis=1, keepdims=True))
