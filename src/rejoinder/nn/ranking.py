"""The learner that trains matching networks to prefer the right reply."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rejoinder.nn.dialogues import (
    Arrays,
    Dialogues,
    Options,
    RankingSettings,
    bucketed,
    encode_replies,
    place_letters,
    restore,
)
from rejoinder.nn.encoders import load_encoder, swift
from rejoinder.nn.matching import Towers, make_matcher, products
from rejoinder.prepared import WEIGHTS, load_arrays, load_weights, read_learner


class Ranking:
    """Trains a matching network to prefer the right reply."""

    def __init__(self, settings: dict[str, Any], folder: Path, seed: int, device: torch.device) -> None:
        self.settings, self.seed, self.device = restore(settings), seed, device
        data = folder / self.settings.data
        self.network: nn.Module = make_matcher(
            self.settings.network, self.settings.special, self.settings.known, data / "encoder"
        )
        arrays = load_arrays(data)
        listed = "train_options" in arrays
        self.train = (Options if listed else Dialogues)(arrays, "train", self.settings, device)
        self.dev = Options(arrays, "dev", self.settings, device) if "dev_options" in arrays else None
        taught = np.diff(self.train.correct_bounds) > 0
        if isinstance(self.train, Options) and not isinstance(self.network, Towers):
            taught &= self.train.has_wrong()  # it learns from its own options alone
        self.answered = np.flatnonzero(taught)
        place_letters(self.network, arrays, device)
        if self.settings.start:
            load_encoder(self.network, folder / self.settings.start)
        self.teacher = Teacher(arrays, device) if self.settings.taught else None
        self.likeness = Likeness(folder / self.settings.miner, arrays, device) if self.settings.hard else None

    def batches(self, epoch: int) -> list[Tensor]:
        """Return rows of contexts with a correct reply, in batches of similar length."""
        rng = np.random.default_rng([self.seed, epoch])
        lengths = self.train.context.lengths.cpu().numpy()
        alone = isinstance(unwrapped(self.network), Towers) and not self.settings.negatives  # has no wrong reply
        fewest = 2 if alone else 1
        parts = bucketed(rng.permutation(self.answered), lengths, self.settings.batch, rng, fewest)
        return [torch.as_tensor(part) for part in parts]

    def loss(self, batch: Tensor) -> Tensor:
        """Return the mean loss of one batch of contexts."""
        rows = batch.to(self.device)
        right = self._right(batch)
        if isinstance(unwrapped(self.network), Towers):
            return self._loss_in_batch(rows, right)
        return self._loss_of_pairs(rows, right)

    def _right(self, batch: Tensor) -> Tensor:
        """Return one correct reply for each context; of several, now one and now another."""
        bounds = self.train.correct_bounds
        first, count = bounds[batch.numpy()], np.diff(bounds)[batch.numpy()]
        chosen = first + (torch.rand(len(count)).numpy() * count).astype(np.int64)
        return self.train.correct[torch.as_tensor(chosen).to(self.device)]

    def _loss_in_batch(self, rows: Tensor, right: Tensor) -> Tensor:
        replies = torch.cat([right, self._wrong(rows).flatten()]) if self.settings.negatives else right
        scores = self.network(self.train.contexts(rows), self.train.replies(replies))
        if self.settings.loss == "binary":
            return self._binary_loss(scores, rows, right)
        return self._softmax_loss(scores, rows, replies, torch.arange(len(rows), device=self.device))

    def _binary_loss(self, scores: Tensor, rows: Tensor, right: Tensor) -> Tensor:
        """Return the loss of saying whether each row's own reply, and its neighbour's, is right.

        A neighbour's that is right as well does not count.
        """
        wrong = scores.roll(1, 1).diagonal()[~self.train.is_correct(rows, right.roll(1).unsqueeze(1)).squeeze(1)]
        targets = torch.cat([torch.ones(len(rows), device=self.device), torch.zeros_like(wrong)])
        both = torch.cat([scores.diagonal(), wrong])
        return nn.functional.binary_cross_entropy_with_logits(both, targets)

    def _loss_of_pairs(self, rows: Tensor, right: Tensor) -> Tensor:
        options = torch.cat([right.unsqueeze(1), self._wrong(rows)], dim=1)
        scores = self.network(self.train.contexts(rows), self.train.replies(options.flatten())).view(options.shape)
        return self._softmax_loss(scores.float(), rows, options, torch.zeros_like(rows))

    def _softmax_loss(self, scores: Tensor, rows: Tensor, options: Tensor, place: Tensor) -> Tensor:
        """Return the loss of rows' scores for options, the same for all or their own; the one at its place is right.

        Others that are right as well do not count. A teacher's shares, by a softmax over its own scores, are targets
        beside the right option's (Hinton, Vinyals and Dean 2015, section 2, at a temperature of 1).
        """
        own = nn.functional.one_hot(place, scores.shape[1]).bool()
        also_right = self.train.is_correct(rows, options.expand(len(rows), -1)) & ~own
        scores = scores.masked_fill(also_right, -1e4)
        if self.teacher is None:
            return nn.functional.cross_entropy(scores, place)
        opinion = self.teacher(rows, options).masked_fill(also_right, -1e4).softmax(1)
        return nn.functional.cross_entropy(scores, torch.lerp(own.float(), opinion, self.settings.taught))

    def _wrong(self, rows: Tensor) -> Tensor:
        """Draw replies from an example's own options, where it has them, else from all."""
        count = max(1, self.settings.negatives)
        if self.likeness is None:
            return self._any(rows, count)
        hard = round(count * self.settings.hard)
        return torch.cat([self._likeliest(rows, hard), self._any(rows, count - hard)], dim=1)

    def _any(self, rows: Tensor, count: int) -> Tensor:
        if isinstance(self.train, Options):
            return self.train.draw(rows, count)
        chance = torch.rand(len(rows), count).to(self.device)
        return self.train.correct[(chance * len(self.train.correct)).long()]

    def _likeliest(self, rows: Tensor, count: int) -> Tensor:
        """Return the likeliest of some replies that were drawn, for the whole batch where all have the same options.

        The likeliest of all are too often right as well, though somebody else gave them.
        """
        assert self.likeness is not None
        shared = not isinstance(self.train, Options)
        drawn = self._any(rows[:1] if shared else rows, max(count, self.settings.drawn)).sort(1).values
        again = nn.functional.pad(drawn[:, 1:] == drawn[:, :-1], (1, 0))
        scores = self.likeness(rows, drawn[0] if shared else drawn)
        drawn = drawn.expand(len(rows), -1)
        scores = scores.masked_fill(again, -1e4).masked_fill(self.train.is_correct(rows, drawn), -2e4)
        return drawn.gather(1, scores.topk(count, dim=1).indices)

    def evaluate(self) -> float | None:
        """Return MRR on dev."""
        if self.dev is None:
            return None
        return self.dev.mean_reciprocal_rank(unwrapped(self.network))


class Likeness:
    """How likely replies are to a two-tower network, which has read every context and every reply once."""

    @torch.no_grad()
    def __init__(self, folder: Path, arrays: Arrays, device: torch.device) -> None:
        settings = restore(read_learner(folder)["settings"])
        self.towers = load_towers(settings, folder, device)
        dialogues = Dialogues(arrays, "train", settings, device)  # cut as this network has learned to read them
        told = [arrays[name] for name in ("train_correct", "train_options") if name in arrays]
        texts = torch.as_tensor(np.unique(np.concatenate(told)).astype(np.int64)).to(device)  # none but replies
        self.place = torch.full((len(dialogues.utterances),), -1, device=device)
        self.place[texts] = torch.arange(len(texts), device=device)
        contexts = []
        with swift(self.towers, device):
            self.replies = encode_replies(self.towers, dialogues, texts)
            for rows in torch.arange(len(dialogues), device=device).split(512):
                contexts.append(self.towers.contexts(dialogues.contexts(rows)).float())
        self.contexts = torch.cat(contexts)

    def __call__(self, rows: Tensor, utterances: Tensor) -> Tensor:
        """Score utterances for rows: the same for all, or each row's own (rows x any)."""
        return self.towers.compare(self.contexts[rows], self.replies[self.place[utterances]])


class Teacher:
    """What another two-tower network thinks of replies, by the vectors that it left."""

    def __init__(self, arrays: Arrays, device: torch.device) -> None:
        self.contexts = torch.as_tensor(np.array(arrays["teacher_contexts"])).to(device)
        self.replies = torch.as_tensor(np.array(arrays["teacher_replies"])).to(device)

    def __call__(self, rows: Tensor, utterances: Tensor) -> Tensor:
        """Score utterances for rows: the same for all, or each row's own (rows x any)."""
        return products(self.contexts[rows].float(), self.replies[utterances].float())


def unwrapped(network: nn.Module) -> nn.Module:
    """Return the network itself where accelerate wrapped it."""
    found: nn.Module = getattr(network, "module", network)
    return found


def load_towers(settings: RankingSettings, folder: Path, device: torch.device) -> Towers:
    """Read a trained two-tower network."""
    data = folder / settings.data
    network = make_matcher(settings.network, settings.special, settings.known, data / "encoder")
    assert isinstance(network, Towers)
    load_weights(network, folder / WEIGHTS)
    place_letters(network, load_arrays(data), device)
    return network.to(device).eval()
