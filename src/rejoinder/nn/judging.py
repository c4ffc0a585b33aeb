"""Networks that judge: turn vectors in, distributions over labels out, for whole dialogues and for their turns.

The loss is either the measures of DialEval-1 (Zeng et al. 2020, section 3), so that what is learned is what is scored,
or the soft cross-entropy of its baseline.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rejoinder.nn.distances import jsd, nmd, rnss, rsnod
from rejoinder.nn.encoders import recur
from rejoinder.prepared import load_arrays

_PLACES = 8
"""Places and counts of turns that have a marker of their own; beyond, they share the last."""


@dataclass(frozen=True)
class Asked:
    """One question: how many labels, whether they are a scale, and which of them each role's turns can have."""

    labels: int
    ordered: bool
    allowed: list[list[bool]] | None = None
    """Roles x labels for a question about turns; None: asked of the dialogue."""


@dataclass(frozen=True)
class Reader:
    """A network over turns."""

    inputs: int = 0
    """Length of a turn's vector."""
    roles: int = 2
    halves: bool = False
    """Give each role a part of the input of its own ("sender-aware"); else the role is a marker."""
    markers: int = 0
    """Length of the markers of role, place from the start, place from the end, and count of turns; 0: none."""
    width: int = 0
    """Turn vectors are projected to this length first; 0: taken as they are."""
    cell: Literal["lstm", "gru"] = "gru"
    layers: int = 1
    hidden: int = 128
    pooling: Literal["sum", "several"] = "several"
    """How turns make a dialogue: their sum, or mean, maximum and last."""
    dropout: float = 0.3
    loss: Literal["votes", "measures"] = "measures"
    """votes: soft cross-entropy on the votes; measures: NMD and RSNOD for scales, JSD and RNSS for the rest."""


class JudgeNetwork(nn.Module):
    """Reads a dialogue's turns one after another, both ways, and answers every question."""

    def __init__(self, reader: Reader, questions: Sequence[Asked]) -> None:
        super().__init__()
        self.reader, self.questions = reader, questions
        inputs = reader.inputs * (reader.roles if reader.halves else 1)
        self.project = nn.Linear(inputs, reader.width) if reader.width else None
        self.marks = nn.ModuleList(
            nn.Embedding(count, reader.markers)
            for count in ((reader.roles, _PLACES, _PLACES, _PLACES) if reader.markers else ())
        )
        cell = nn.LSTM if reader.cell == "lstm" else nn.GRU
        self.memory = cell(
            (reader.width or inputs) + 4 * reader.markers,
            reader.hidden,
            reader.layers,
            batch_first=True,
            bidirectional=True,
            dropout=reader.dropout if reader.layers > 1 else 0.0,
        )
        self.dropout = nn.Dropout(reader.dropout)
        known = 2 * reader.hidden
        pooled = known * (1 if reader.pooling == "sum" else 3)
        self.heads = nn.ModuleList(
            nn.Linear(pooled, asked.labels) if asked.allowed is None else nn.Linear(known, reader.roles * asked.labels)
            for asked in questions
        )

    def forward(self, vectors: Tensor, role: Tensor, sizes: Tensor) -> list[Tensor]:
        """Return logits for each question: dialogues x labels, or dialogues x turns x labels.

        `vectors` is dialogues x turns x inputs; `role` and whatever lies beyond a dialogue's size are padded with 0.
        """
        within = torch.arange(role.shape[1], device=role.device) < sizes[:, None]
        states = recur(self.memory, self._mark(self._input(vectors, role), role, sizes), within)
        pooled = self.dropout(self._pool(states, sizes))
        states = self.dropout(states)
        return [
            head(pooled) if asked.allowed is None else _by_role(head(states), asked, role)
            for head, asked in zip(self.heads, self.questions, strict=True)
        ]

    def _input(self, vectors: Tensor, role: Tensor) -> Tensor:
        if self.reader.halves:
            own = nn.functional.one_hot(role, self.reader.roles).to(vectors.dtype)
            vectors = (own[..., :, None] * vectors[..., None, :]).flatten(-2)
        vectors = self.dropout(vectors)
        return vectors if self.project is None else self.dropout(nn.functional.gelu(self.project(vectors)))

    def _mark(self, vectors: Tensor, role: Tensor, sizes: Tensor) -> Tensor:
        if not self.marks:
            return vectors
        places = torch.arange(role.shape[1], device=role.device).expand_as(role)
        counted = (role, places, sizes[:, None] - 1 - places, sizes[:, None].expand_as(role))
        limits = (self.reader.roles, _PLACES, _PLACES, _PLACES)
        parts = [
            mark(count.clamp(0, limit - 1)) for mark, count, limit in zip(self.marks, counted, limits, strict=True)
        ]
        return torch.cat([vectors, *parts], dim=-1)

    def _pool(self, states: Tensor, sizes: Tensor) -> Tensor:
        total = states.sum(1)  # beyond a dialogue's size there are zeros
        if self.reader.pooling == "sum":
            return total
        beyond = torch.arange(states.shape[1], device=states.device)[None, :, None] >= sizes[:, None, None]
        last = states[torch.arange(len(sizes), device=states.device), sizes - 1]
        return torch.cat([total / sizes[:, None], states.masked_fill(beyond, -1.0).amax(1), last], dim=-1)


def _by_role(logits: Tensor, asked: Asked, role: Tensor) -> Tensor:
    """Take each turn's logits from its role's head, and leave no chance to labels that the role cannot have."""
    by_role = logits.view(*role.shape, -1, asked.labels)
    chosen = by_role.gather(2, role[..., None, None].expand(-1, -1, 1, asked.labels)).squeeze(2)
    allowed = torch.tensor(asked.allowed, device=logits.device)[role]
    return chosen.masked_fill(~allowed, -1e4)


def question_loss(asked: Asked, logits: Tensor, truth: Tensor, role: Tensor, kind: str) -> Tensor:
    """Return the mean loss of one question; rows of `truth` without votes do not count.

    Turns of each role weigh the same in total, as the measures have it (section 3.2, alpha = 0.5).
    """
    voted = truth.sum(-1) > 0
    if not voted.any():
        return logits.sum() * 0.0
    if asked.allowed is None:
        return _row_loss(asked, logits[voted], truth[voted], kind).mean()
    per_role = [voted & (role == own) for own in range(len(asked.allowed))]
    losses = [_row_loss(asked, logits[rows], truth[rows], kind).mean() for rows in per_role if rows.any()]
    return torch.stack(losses).mean()


def _row_loss(asked: Asked, logits: Tensor, truth: Tensor, kind: str) -> Tensor:
    if kind == "votes":
        return -(truth * logits.log_softmax(-1)).sum(-1)
    p = logits.softmax(-1)
    if kind == "root":
        return rsnod(p, truth) if asked.ordered else rnss(p, truth)
    return nmd(p, truth) + rsnod(p, truth) if asked.ordered else jsd(p, truth) + rnss(p, truth)


class DialogueVectors:
    """Dialogues laid out flat, turn after turn, and cut into padded batches."""

    def __init__(self, vectors: NDArray[Any], role: NDArray[Any], sizes: NDArray[Any]) -> None:
        self.vectors, self.role, self.sizes = vectors, role, sizes
        self.starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])

    def rows(self, chosen: NDArray[Any]) -> NDArray[np.intp]:
        """Return dialogues x turns: the row of each turn; beyond a dialogue's size, its first row."""
        places = np.arange(int(self.sizes[chosen].max()))
        rows = self.starts[chosen][:, None] + places
        return np.asarray(np.where(places < self.sizes[chosen][:, None], rows, self.starts[chosen][:, None]))

    def batch(self, chosen: NDArray[Any], device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
        """Return vectors, roles and sizes of some dialogues."""
        rows = self.rows(chosen)
        return (
            torch.from_numpy(np.asarray(self.vectors[rows], dtype=np.float32)).to(device),
            torch.from_numpy(self.role[rows].astype(np.int64)).to(device),
            torch.from_numpy(self.sizes[chosen].astype(np.int64)).to(device),
        )


class JudgeLearner:
    """Trains a judge on the arrays `vectors`, `role`, `sizes`, `dev` (which dialogues) and `truth_NUMBER`."""

    def __init__(self, settings: dict[str, Any], folder: Path, seed: int, device: torch.device) -> None:
        self.seed, self.device, self.size = seed + 1000 * int(settings["member"]), device, int(settings["batch"])
        torch.manual_seed(self.seed)
        self.reader = Reader(**settings["reader"])
        self.questions = [Asked(**asked) for asked in settings["questions"]]
        self.network: nn.Module = JudgeNetwork(self.reader, self.questions)
        arrays = {name: np.array(array) for name, array in load_arrays(folder).items()}
        self.dialogues = DialogueVectors(arrays["vectors"], arrays["role"], arrays["sizes"])
        self.truths = [arrays[f"truth_{number}"] for number in range(len(self.questions))]
        self.train, self.dev = np.flatnonzero(~arrays["dev"]), np.flatnonzero(arrays["dev"])

    def batches(self, epoch: int) -> Sequence[NDArray[np.intp]]:
        """Shuffle the dialogues and cut them into batches."""
        order = np.random.default_rng([self.seed, epoch]).permutation(self.train)
        return np.array_split(order, max(1, round(len(order) / self.size)))

    def loss(self, batch: NDArray[np.intp]) -> Tensor:
        """Return the sum of the questions' losses."""
        return self._loss(batch, self.reader.loss)

    def evaluate(self) -> float | None:
        """Return RSNOD and RNSS on dev, averaged over the questions, as a score: less is better, so negated."""
        if not len(self.dev):
            return None
        return -self._loss(self.dev, "root").item() / len(self.questions)

    def _loss(self, chosen: NDArray[np.intp], kind: str) -> Tensor:
        vectors, role, sizes = self.dialogues.batch(chosen, self.device)
        within = (torch.arange(role.shape[1], device=self.device) < sizes[:, None])[..., None]
        rows = self.dialogues.rows(chosen)
        losses = []
        for asked, logits, truth in zip(self.questions, self.network(vectors, role, sizes), self.truths, strict=True):
            own = torch.from_numpy(truth[chosen if asked.allowed is None else rows]).to(self.device, torch.float32)
            own = own if asked.allowed is None else own * within
            losses.append(question_loss(asked, logits.float(), own, role, kind))
        return torch.stack(losses).sum()


def predict(network: JudgeNetwork, dialogues: DialogueVectors, size: int = 256) -> list[NDArray[np.float64]]:
    """Return each question's distributions: a row for each dialogue, or for each turn."""
    network.eval()
    found: list[list[NDArray[np.float64]]] = [[] for _ in network.questions]
    with torch.inference_mode():
        for first in range(0, len(dialogues.sizes), size):
            chosen = np.arange(first, min(first + size, len(dialogues.sizes)))
            vectors, role, sizes = dialogues.batch(chosen, torch.device("cpu"))
            within = torch.arange(role.shape[1]) < sizes[:, None]
            for asked, logits, parts in zip(network.questions, network(vectors, role, sizes), found, strict=True):
                rows = logits if asked.allowed is None else logits[within]
                parts.append(rows.double().softmax(-1).numpy())
    return [np.concatenate(parts) for parts in found]
