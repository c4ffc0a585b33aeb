"""Judges with a network over turn vectors: DialEval-1's LSTM baseline, and better ones by other settings.

Several networks (`members`) are averaged. Where no dev task is given, each of them keeps another part of the training
dialogues back, to know when to stop.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
from numpy.typing import NDArray

from rejoinder.files import write_atomically
from rejoinder.nn.judging import Asked, DialogueVectors, JudgeNetwork, Reader, predict
from rejoinder.prepared import Training
from rejoinder.records import read_json
from rejoinder.runs.judgement import JudgementRun
from rejoinder.systems.neural import Network, expect_dense, keep_trained, load_trained, train_networks
from rejoinder.systems.system import JudgementSystem, Lesson, existing
from rejoinder.systems.turn_features import TurnTable
from rejoinder.systems.turn_vectors import TurnVectors
from rejoinder.tasks.judgement import Answers, JudgementTask, JudgementTruth, Question
from rejoinder.watch import Watch, unwatched

Floats = NDArray[np.float64]
_PARTS = 10
"""One of so many parts of the training dialogues is kept back where there is no dev task."""
_LEARNED = "learned.json"


class JudgeSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a network reads, how it is built and trained, and how many there are."""

    turns: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)] = ("use", "grams", "cues")
    """Vectors of a turn: `cues`, `grams`, `words`, `use`, `minilm`, or the folder of an encoder."""
    words: str = "glove"
    """Word vectors: `glove`, `learned`, or a file in the text format."""
    standardise: bool = True
    """Whether each number of a turn's vector is brought to mean 0 and deviation 1."""
    together: bool = True
    """Whether one network answers all questions, or one those about dialogues and one those about turns."""
    members: Annotated[int, msgspec.Meta(ge=1)] = 1
    reader: Reader = Reader()
    training: Training = Training()

    def __post_init__(self) -> None:
        """Refuse what these networks cannot learn by."""
        expect_dense(self.training)


@dataclass(frozen=True)
class LearnerSettings:
    """What the learner takes."""

    reader: Reader
    questions: list[Asked]
    batch: int
    member: int


class _Learned(msgspec.Struct, frozen=True):
    speakers: tuple[str, ...]
    questions: tuple[Question, ...]
    inputs: int


class NeuralJudge(JudgementSystem):
    """Predicts the votes on dialogues and turns."""

    Settings = JudgeSettings
    has_network = True
    settings: JudgeSettings
    learned: _Learned

    def __init__(self, settings: JudgeSettings) -> None:
        super().__init__(settings)
        self.turns = TurnVectors(settings.turns, settings.words, settings.standardise)
        self.folders: dict[str, Path] = {}
        """Where the weights of each network are."""

    def outside_sources(self) -> tuple[Path, ...]:
        """Return the folders of sentence encoders and the file of word vectors, where these are such."""
        return existing(*self.settings.turns, self.settings.words)

    def fit(self, lesson: Lesson[JudgementTask]) -> None:
        """Train all networks."""
        tasks = [lesson.train, *([lesson.dev] if lesson.dev else [])]
        speakers = _speakers(lesson.train)
        tables = [TurnTable.of(task.dialogues, speakers) for task in tasks]
        with lesson.watch("reading turns", None):
            vectors = [self.turns.fit(tables[0]), *(self.turns.vectors(table) for table in tables[1:])]
        self.learned = _Learned(speakers, lesson.train.questions, vectors[0].shape[1])
        arrays = {
            "vectors": np.concatenate(vectors),
            "role": np.concatenate([table.speaker for table in tables]),
            "sizes": np.concatenate([_sizes(task) for task in tasks]),
        }
        truths = [_truths(task.truth(), table) for task, table in zip(tasks, tables, strict=True)]
        held = _held_back(lesson, self.settings.members)
        networks = {}
        for name, questions, member in self._networks():
            own = {
                f"truth_{place}": np.concatenate([truth[question.name] for truth in truths])
                for place, question in enumerate(questions)
            }
            settings = LearnerSettings(self._reader(), self._asked(questions), self.settings.training.batch, member)
            networks[name] = Network(settings, arrays | own | {"dev": held[member]})
        learner = "rejoinder.nn.judging:JudgeLearner"
        self.folders = train_networks(lesson, learner, self.settings.training, networks)

    def _networks(self) -> list[tuple[str, tuple[Question, ...], int]]:
        """Return each network's name, the questions that it answers, and which member it is."""
        about = self.learned.questions
        groups = {"all": about}
        if not self.settings.together:
            groups = {
                "dialogues": tuple(question for question in about if question.roles is None),
                "turns": tuple(question for question in about if question.roles is not None),
            }
        return [
            (f"{name}-{member}", questions, member)
            for member in range(self.settings.members)
            for name, questions in groups.items()
            if questions
        ]

    def _reader(self) -> Reader:
        return replace(self.settings.reader, inputs=self.learned.inputs, roles=len(self.learned.speakers) + 1)

    def _asked(self, questions: Sequence[Question]) -> list[Asked]:
        return [
            Asked(len(question.labels), question.ordered, _allowed(question, self.learned.speakers))
            for question in questions
        ]

    def predict(self, task: JudgementTask, watch: Watch = unwatched) -> JudgementRun:
        """Judge every dialogue by the mean of all members; questions that were not learned stay without an answer."""
        table = TurnTable.of(task.dialogues, self.learned.speakers)
        with watch("reading turns", None):
            vectors = self.turns.vectors(table)
        dialogues = DialogueVectors(vectors, table.speaker, _sizes(task))
        asked = task.unanswered().answers
        found: dict[str, list[Floats]] = {}
        networks = self._networks()
        with watch("judging", len(networks)) as advance:
            for name, questions, _ in networks:
                network = JudgeNetwork(self._reader(), self._asked(questions))
                load_trained(network, self.folders[name])
                for question, values in zip(questions, predict(network, dialogues), strict=True):
                    if question.name in asked and asked[question.name].question == question:
                        rows = _rows(table, asked[question.name])
                        found.setdefault(question.name, []).append(values[rows])
                advance(1)
        return JudgementRun("neural", {name: np.mean(found[name], axis=0) for name in asked if name in found})

    def save(self, folder: Path) -> None:
        """Write what was learned into a folder."""
        self.turns.save(folder)
        for name, trained in self.folders.items():
            keep_trained(trained, folder / name)
        with write_atomically(folder / _LEARNED) as file:
            file.write(msgspec.json.encode(self.learned))

    def load(self, folder: Path) -> None:
        """Read what `save` wrote."""
        self.learned = read_json(folder / _LEARNED, _Learned)
        self.turns.load(folder)
        self.folders = {name: folder / name for name, _, _ in self._networks()}


def _speakers(task: JudgementTask) -> tuple[str, ...]:
    """Return who speaks, and then those who are asked about and never do."""
    speaking = [turn.speaker for dialogue in task.dialogues for turn in dialogue.turns]
    return tuple(
        dict.fromkeys([*speaking, *(speaker for question in task.questions for speaker in question.roles or ())])
    )


def _sizes(task: JudgementTask) -> NDArray[np.intp]:
    return np.array([len(dialogue.turns) for dialogue in task.dialogues], dtype=np.intp)


def _allowed(question: Question, speakers: Sequence[str]) -> list[list[bool]] | None:
    """Return speakers x labels; a speaker whom the question is not about may have any."""
    if question.roles is None:
        return None
    own = [question.roles.get(speaker, question.labels) for speaker in speakers] + [question.labels]
    return [[label in labels for label in question.labels] for labels in own]


def _rows(table: TurnTable, answers: Answers) -> NDArray[np.intp]:
    """Return where each row of the answers is among the dialogues, or among all turns."""
    if answers.question.roles is None:
        return answers.example
    return table.rows(answers.example, answers.turn)


def _truths(truth: JudgementTruth, table: TurnTable) -> dict[str, NDArray[np.float32]]:
    """Return the votes' shares for every dialogue or every turn; zeros where nobody voted."""
    found: dict[str, NDArray[np.float32]] = {}
    for name, answers in truth.answers.items():
        height = len(truth.ids) if answers.question.roles is None else len(table.place)
        found[name] = np.zeros((height, len(answers.question.labels)), np.float32)
        found[name][_rows(table, answers)] = answers.distribution
    return found


def _held_back(lesson: Lesson[JudgementTask], members: int) -> list[NDArray[np.bool_]]:
    """Return, for each member, which dialogues are not to be trained on.

    Dialogues of one id (the same in two languages) are kept back together; a single one is trained on.
    """
    ids = [dialogue.id for dialogue in lesson.train.dialogues]
    if lesson.dev is not None:
        return [np.repeat([False, True], [len(ids), len(lesson.dev.dialogues)])] * members
    distinct, places = np.unique(ids, return_inverse=True)
    part = np.random.default_rng(lesson.seed).permutation(len(distinct)) % max(_PARTS, members)
    return [(part[places] == member) & (len(distinct) > 1) for member in range(members)]
