"""Neural rankers: a dual encoder, ESIM, and pretrained bi-, poly- and cross-encoders, by their recipes.

rejoinder train dual-encoder --task ubuntu/subtask_1 --out dual.model
rejoinder train bi-encoder --task ubuntu/turns/train --dev ubuntu/subtask_1/dev --out bi.model
"""

import json
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray
from torch import Tensor

from rejoinder.errors import UserError, expect_least, expect_share
from rejoinder.nn.dialogues import Dialogues, Options, RankingSettings, encode_replies, place_letters
from rejoinder.nn.encoders import WORD_VECTORS, swift
from rejoinder.nn.matching import MatchSettings, Towers, make_matcher
from rejoinder.prepared import HISTORY, LEARNER, WEIGHTS, Training, prepare, save_arrays, save_weights
from rejoinder.records import read_json
from rejoinder.runs.selection import SelectionRun
from rejoinder.systems.neural import expect_dense, load_trained, train_folders
from rejoinder.systems.neural_data import Utterances, copy_encoder, task_arrays
from rejoinder.systems.ranking import (
    KEPT,
    Pairs,
    best_columns,
    draw_lists,
    first_lists,
    join_pairs,
    narrowed,
    offered,
    pools,
    to_run,
)
from rejoinder.systems.sentence_encoder import pretrained_source
from rejoinder.systems.stacking import with_shares
from rejoinder.systems.system import Lesson, SelectionSystem, existing
from rejoinder.systems.vocabulary import WordVocabulary, load_vocabulary
from rejoinder.tasks.selection import EXAMPLE_SCHEMA, OPTION_SCHEMA, SelectionTask
from rejoinder.watch import Watch, unwatched

_NOTE = "note.txt"
"""What is worth telling of the data, beside them: they may be prepared long before the model is written."""
_COMPARED = 4096
"""Replies of a pool that are compared at once: poly-encoders make as many vectors of each context."""


@dataclass(frozen=True)
class Stage:
    """One training of a network; a recipe's stages follow each other, each starting from the last one's encoder."""

    network: MatchSettings = field(default_factory=MatchSettings)
    training: Training = field(default_factory=Training)
    loss: Literal["softmax", "binary"] = "softmax"
    """binary: right or wrong, for networks that encode context and reply apart."""
    negatives: int = 0
    """Wrong replies for each context, besides the batch's; at least one where the network reads both together."""
    hard: float = 0.0
    """Share of these that are, to the last two-tower stage before this one, the likeliest of those `drawn`."""
    drawn: int = 64
    """Replies at random, of which the hard ones are the likeliest."""
    taught: float = 0.0
    """How much of the target is what the teacher would say; the rest is the right reply."""

    def __post_init__(self) -> None:
        """Refuse what nothing can be learned by."""
        expect_least(self, negatives=0, drawn=1)
        expect_share(self, "hard")
        expect_share(self, "taught")
        expect_dense(self.training)
        if self.loss == "binary" and not self.has_towers:
            raise ValueError(f"loss is binary; expected softmax, for {self.network.match} reads both together")
        if self.hard and not round(self.negatives * self.hard):
            raise ValueError(f"hard is {self.hard} of {self.negatives} negatives: none; expected more of either")
        if self.loss == "binary" and self.negatives:
            raise ValueError("loss is binary, which takes one wrong reply of the batch; expected no negatives")
        if self.has_towers and self.training.batch < 2 and not self.negatives:
            raise ValueError("batch is 1; expected more, or negatives, for replies are told from others of a batch")
        if self.taught and self.loss == "binary":
            raise ValueError("taught says how much of a softmax over replies is the teacher's; here is none")

    @property
    def has_towers(self) -> bool:
        """Whether contexts and replies are encoded apart, and can be compared afterwards."""
        return self.network.match in ("dot", "bilinear", "poly", "late", "memory")

    @property
    def can_search(self) -> bool:
        """Whether a reply is one vector, so that very many of them can be kept and compared."""
        return self.has_towers and self.network.match != "late"


@dataclass(frozen=True)
class NeuralSettings:
    """What a recipe may say of a neural ranker."""

    stages: tuple[Stage, ...] = (Stage(),)
    dev_examples: int = 1000
    """Most examples of dev that are scored during training."""
    teacher: str | None = None
    """A recipe or model of a network with one vector for each text, larger perhaps, whose scores are learned too."""

    def __post_init__(self) -> None:
        """Refuse stages that do not build on each other."""
        expect_least(self, dev_examples=1)
        if not self.stages:
            raise ValueError("stages are none; expected one or more")
        if (self.teacher is None) == any(stage.taught for stage in self.stages):
            raise ValueError("a teacher, and a stage that says how much it is taught, need each other")
        first = self.stages[0].network.encoder
        if first.kind == "pretrained" and not first.path:
            raise ValueError("a pretrained encoder needs a path")
        for number, stage in enumerate(self.stages, 1):
            if replace(stage.network.encoder, dropout=first.dropout) != first:
                raise ValueError(f"stage {number} has another encoder than stage 1, which it starts from")
            if stage.hard and not any(before.can_search for before in self.stages[: number - 1]):
                raise ValueError(f"stage {number} has hard negatives; expected a stage before it that finds them")


class _Described(msgspec.Struct, frozen=True):
    settings: RankingSettings


class NeuralRanker(SelectionSystem):
    """Ranks options by a matching network."""

    Settings = NeuralSettings
    has_network = True
    settings: NeuralSettings

    def outside_sources(self) -> tuple[Path, ...]:
        """Return the encoder's folder and the file of word vectors, where these are such."""
        encoder = self.settings.stages[0].network.encoder
        return existing(encoder.path if encoder.kind == "pretrained" else "", encoder.words)

    def teacher_source(self) -> str | None:
        """Return the teacher."""
        return self.settings.teacher

    @property
    def can_encode(self) -> bool:
        """Whether the last stage's network compares one vector of a context with one of a reply."""
        last = self.settings.stages[-1]
        return last.can_search and last.network.match != "poly"

    def expect_teacher(self, source: str, teacher: Any) -> None:
        """Refuse what has not one vector for each text, to be compared by their product."""
        if not (isinstance(teacher, NeuralRanker) and teacher.can_encode):
            raise UserError(f"{source} cannot teach; expected a network with one vector for each text, as bi-encoder")

    def expect_task(self, task: SelectionTask) -> None:
        """Refuse a pool where the network compares words with words."""
        if pools(task) and not self.settings.stages[-1].can_search:
            raise UserError("this network compares words with words: it searches no pool, but ranks in a cascade")

    def fit(self, lesson: Lesson[SelectionTask]) -> None:
        """Tokenise once, then train stage by stage."""
        data = lesson.work / "data"
        self._prepare_data(lesson, data)
        folders = self._prepare_stages(lesson)
        train_folders(lesson, folders)
        self.trained = folders[-1]
        self._load(folders[-1], data)

    def _prepare_data(self, lesson: Lesson[SelectionTask], data: Path) -> None:
        ready = data / "ready"
        if not ready.is_file():
            self._tokenise(lesson, data)
            ready.touch()
        if (data / _NOTE).is_file():
            self.notes.append((data / _NOTE).read_text())

    def _tokenise(self, lesson: Lesson[SelectionTask], data: Path) -> None:
        encoder = self.settings.stages[0].network.encoder
        texts = Utterances()
        with lesson.watch("tokenising", None):
            arrays = task_arrays("train", lesson.train, texts)
            if encoder.kind == "pretrained":
                copy_encoder(pretrained_source(encoder.path), data / "encoder")
            else:
                self._count_words(texts, data, lesson.seed)
            if lesson.dev is not None:
                few = first_lists(lesson.dev, self.settings.dev_examples)
                arrays |= task_arrays("dev", draw_lists(few, lesson.seed), texts)
            save_arrays(data, arrays | texts.tokenised(load_vocabulary(data / "encoder")))
        if lesson.teacher is not None:
            save_arrays(data, _opinions(lesson.teacher, lesson.train, texts, lesson.watch))

    def _count_words(self, texts: Utterances, data: Path, seed: int) -> None:
        encoder = self.settings.stages[0].network.encoder
        vocabulary = WordVocabulary.count(texts.numbers, encoder)
        vocabulary.save(data / "encoder")
        if encoder.words:
            vectors, known = vocabulary.vectors(encoder.words, encoder.embedding, texts.numbers, seed)
            save_weights({WORD_VECTORS: torch.as_tensor(vectors)}, data / "encoder" / WEIGHTS)
            note = f"{known:,} of {len(vocabulary.words):,} words start from vectors ({encoder.words})"
            (data / _NOTE).write_text(note)

    def _prepare_stages(self, lesson: Lesson[SelectionTask]) -> list[Path]:
        vocabulary = load_vocabulary(lesson.work / "data" / "encoder")
        folders: list[Path] = []
        start = "../data/encoder" if (lesson.work / "data" / "encoder" / WEIGHTS).is_file() else ""
        miner = ""
        for number, stage in enumerate(self.settings.stages, 1):
            settings = RankingSettings(
                network=stage.network,
                special=vocabulary.special,
                known=vocabulary.size,
                loss=stage.loss,
                negatives=stage.negatives,
                hard=stage.hard,
                drawn=stage.drawn,
                taught=stage.taught,
                batch=stage.training.batch,
                start=start,
                miner=miner,
            )
            learner = "rejoinder.nn.ranking:Ranking"
            folders.append(lesson.work / f"stage_{number}")
            prepare(folders[-1], learner, asdict(settings), stage.training, lesson.seed, {})
            start = f"../stage_{number}"
            if stage.can_search:
                miner = start
        return folders

    def _load(self, folder: Path, data: Path) -> None:
        self.described = read_json(folder / LEARNER, _Described).settings
        self.vocabulary = load_vocabulary(data / "encoder")
        network, known = self.described.network, self.described.known
        self.network = make_matcher(network, self.described.special, known, data / "encoder")
        load_trained(self.network, folder)
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.network.to(self.device).eval()

    def save(self, folder: Path) -> None:
        """Write the weights in half precision, the vocabulary and the learning curve."""
        half = {name: value.half().cpu() for name, value in self.network.state_dict().items()}
        if not all(value.isfinite().all() for value in half.values()):
            raise UserError("weights became too large for half precision, or no numbers; a lower rate may help")
        save_weights(half, folder / WEIGHTS)
        shutil.copyfile(self.trained / HISTORY, folder / HISTORY)
        described = json.loads((self.trained / LEARNER).read_text())
        described["settings"] |= {"data": ".", "start": "", "miner": ""}
        (folder / LEARNER).write_text(json.dumps(described))
        encoder = self.trained.parent / "data" / "encoder"
        shutil.copytree(encoder, folder / "encoder", ignore=shutil.ignore_patterns("*.safetensors"))

    def load(self, folder: Path) -> None:
        """Read the weights and the vocabulary."""
        self._load(folder, folder)

    def predict(self, task: SelectionTask, watch: Watch = unwatched) -> SelectionRun:
        """Rank each example's own options, and what it may choose from a pool."""
        self.expect_task(task)
        found = [self._search(task, watch)] if pools(task) else []
        own = offered(task)
        found.append((own, self._score(task, own, watch) if len(own.row) else np.zeros(0)))
        pairs, scores = join_pairs([pairs for pairs, _ in found]), np.concatenate([scores for _, scores in found])
        ranked = to_run(task, "neural", pairs, scores).choices
        # confidences as DSTC7 wants them: not negative, and of one scale for all examples
        return SelectionRun("neural", with_shares(ranked, ranked["score"].to_numpy()))

    def _score(self, task: SelectionTask, own: Pairs, watch: Watch) -> NDArray[np.float64]:
        """Score each example's own options."""
        listed = narrowed(task, own) if pools(task) else task
        options = Options(self._arrays(listed, Utterances()), "dev", self.described, self.device)
        with watch("ranking", len(options.options)) as advance, swift(self.network, self.device):
            scores: NDArray[np.float64] = options.scores(self.network, advance).double().cpu().numpy()
        return scores

    def _search(self, task: SelectionTask, watch: Watch) -> tuple[Pairs, NDArray[np.float64]]:
        """Find the best of what each example may choose from the pool, and their scores."""
        texts = Utterances()
        pool = task.options.select("id", "text").head(max(size for _, size in pools(task)))
        bare = msgspec.structs.replace(task, examples=_unanswered(task.examples), options=pool)
        dialogues = Dialogues(self._arrays(bare, texts), "dev", self.described, self.device)
        rows, place = np.unique(texts.rows(pool["text"]), return_inverse=True)  # of one text there is one vector
        vectors = self._encode_replies(dialogues, rows, watch)
        parts, scores = [], []
        for examples, size in pools(task):
            with watch("ranking", len(examples)) as advance, torch.no_grad(), swift(self.network, self.device):
                for rows, contexts in self._encoded(dialogues, examples):
                    compared = [self._towers().compare(contexts, few) for few in torch.split(vectors, _COMPARED)]
                    found = torch.cat(compared, dim=1).double().cpu().numpy()[:, place[:size]]
                    columns = best_columns(found, KEPT)
                    parts.append(Pairs(np.repeat(rows, columns.shape[1]), columns.ravel()))
                    scores.append(np.take_along_axis(found, columns, axis=1).ravel())
                    advance(len(rows))
        return join_pairs(parts), np.concatenate(scores)

    def encode_contexts(self, task: SelectionTask, watch: Watch = unwatched) -> NDArray[np.float32]:
        """Return a vector for each context; its dot products with replies' vectors are their scores."""
        bare = msgspec.structs.replace(task, options=task.options.clear(), examples=_unanswered(task.examples))
        dialogues = Dialogues(self._arrays(bare, Utterances()), "dev", self.described, self.device)
        parts = []
        with watch("encoding contexts", len(dialogues)) as advance, torch.no_grad(), swift(self.network, self.device):
            for rows, contexts in self._encoded(dialogues, np.arange(len(dialogues))):
                parts.append(contexts.float().cpu())
                advance(len(rows))
        return torch.cat(parts).numpy()

    def encode_replies(self, texts: list[str], watch: Watch = unwatched) -> NDArray[np.float32]:
        """Return a vector for each reply."""
        known = Utterances()
        rows = known.rows(texts)
        nothing = SelectionTask(pl.DataFrame(schema=EXAMPLE_SCHEMA), pl.DataFrame(schema=OPTION_SCHEMA))
        dialogues = Dialogues(self._arrays(nothing, known), "dev", self.described, self.device)
        vectors = self._encode_replies(dialogues, np.arange(len(known.numbers)), watch).cpu().numpy()
        return vectors if len(vectors) == len(rows) else vectors[rows]

    def _encode_replies(self, dialogues: Dialogues, rows: NDArray[np.integer[Any]], watch: Watch) -> Tensor:
        asked = torch.as_tensor(rows).long().to(self.device)
        with watch("encoding replies", len(rows)) as advance, torch.no_grad(), swift(self.network, self.device):
            return encode_replies(self._towers(), dialogues, asked, advance)

    def _arrays(self, task: SelectionTask, texts: Utterances) -> dict[str, Any]:
        arrays = task_arrays("dev", task, texts)
        arrays |= texts.tokenised(self.vocabulary)
        place_letters(self.network, arrays, self.device)
        return arrays

    def _towers(self) -> Towers:
        assert isinstance(self.network, Towers)  # others are asked for no vectors
        return self.network

    def _encoded(self, dialogues: Dialogues, examples: NDArray[np.intp]) -> Iterator[tuple[NDArray[np.intp], Tensor]]:
        for first in range(0, len(examples), 64):
            rows = examples[first : first + 64]
            yield rows, self._towers().contexts(dialogues.contexts(torch.as_tensor(rows).to(self.device)))


def _opinions(teacher: Any, task: SelectionTask, texts: Utterances, watch: Watch) -> dict[str, NDArray[np.float16]]:
    """Return a teacher's vectors: of each context, and of each utterance that may be a reply."""
    options = task.options["text"].unique(maintain_order=True)
    with np.errstate(over="ignore"):
        contexts = teacher.encode_contexts(task, watch).astype(np.float16)
        replies = np.zeros((len(texts.numbers), contexts.shape[1]), np.float16)
        replies[texts.rows(options)] = teacher.encode_replies(options.to_list(), watch)
    if not (np.isfinite(contexts).all() and np.isfinite(replies).all()):
        raise UserError("the teacher's vectors are too large for half precision; train it with a lower scale")
    return {"teacher_contexts": contexts, "teacher_replies": replies}


def _unanswered(examples: pl.DataFrame) -> pl.DataFrame:
    nothing = pl.lit(None, dtype=pl.List(pl.UInt32))
    return examples.with_columns(options=nothing, correct=nothing)
