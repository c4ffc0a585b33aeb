"""Trains supervised embeddings; it needs torch and numpy alone, like the loop that it is for."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rejoinder.nn.embeddings import Embeddings, EmbeddingSettings, bags
from rejoinder.training import load_arrays

_DEV = 2_000
_MOST_CORRECT = 8


class EmbeddingLearner:
    """Learns from `contexts` and `options` (flat symbols and starts) and the correct options of each example."""

    def __init__(self, settings: dict[str, Any], folder: Path, seed: int, device: torch.device) -> None:
        self.settings, self.seed, self.device = EmbeddingSettings(**settings), seed, device
        torch.sparse.check_sparse_tensor_invariants.disable()  # else it warns
        self.network: nn.Module = Embeddings(self.settings)
        names = ("contexts", "options", "correct", "dev_contexts", "dev_correct")
        arrays = load_arrays(folder)
        self.rows = {name: (arrays[name], arrays[f"{name}_starts"]) for name in names}
        self.answers = np.unique(self.rows["correct"][0])

    def batches(self, epoch: int) -> Sequence[NDArray[np.int64]]:
        """Shuffle the examples, and draw one of each one's correct options and wrong ones for all of a batch."""
        rng = np.random.default_rng([self.seed, epoch])
        correct, starts = self.rows["correct"]
        order = rng.permutation(np.flatnonzero(np.diff(starts)))
        drawn = correct[starts[order] + (rng.random(len(order)) * np.diff(starts)[order]).astype(np.int64)]
        size = self.settings.batch
        wrong = rng.choice(self.answers, (len(order) // size + 1, self.settings.negatives))
        return [
            np.concatenate([order[start : start + size], drawn[start : start + size], wrong[start // size]])
            for start in range(0, len(order), size)
        ]

    def loss(self, batch: NDArray[np.int64]) -> Tensor:
        """Return how far the best of the wrong options comes within the margin of the true one.

        The batch's other answers are wrong ones too. (The mean over all wrong ones learns far more slowly: most of
        tens of thousands of entities are no rivals.)
        """
        size = (len(batch) - self.settings.negatives) // 2
        examples, offered = batch[:size], batch[size:]
        said, replied = self.network(self._bags("contexts", examples), self._bags("options", offered))
        scores = said @ replied.T
        right = scores.diagonal()
        rivals = scores.masked_fill(self._correct(examples, offered), -torch.inf).max(dim=1).values
        return torch.relu(self.settings.margin - right + rivals).mean()

    def _correct(self, examples: NDArray[np.int64], offered: NDArray[np.int64]) -> Tensor:
        """Say which of the offered options are correct after all."""
        correct, starts = self.rows["correct"]
        most = int(min((starts[examples + 1] - starts[examples]).max(), _MOST_CORRECT))
        places = np.minimum(starts[examples][:, None] + np.arange(most), starts[examples + 1][:, None] - 1)
        right = torch.from_numpy(np.asarray(correct)[places].astype(np.int64)).to(self.device)
        others = torch.from_numpy(offered).to(self.device)
        found: Tensor = (right[:, :, None] == others).any(dim=1)
        return found

    def _bags(self, name: str, chosen: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        symbols, starts = bags(*self.rows[name], chosen)
        return torch.from_numpy(symbols).to(self.device), torch.from_numpy(starts).to(self.device)

    def evaluate(self) -> float | None:
        """Return the mean reciprocal rank of the first correct one of all options, on dev."""
        correct, starts = self.rows["dev_correct"]
        examples = np.flatnonzero(np.diff(starts))[:_DEV]
        if not len(examples):
            return None
        options = np.arange(len(self.rows["options"][1]) - 1)
        said, replied = self.network(self._bags("dev_contexts", examples), self._bags("options", options))
        ranks = []
        for start in range(0, len(examples), 200):
            scores = said[start : start + 200] @ replied.T
            for row, example in enumerate(examples[start : start + 200]):
                right = torch.from_numpy(correct[starts[example] : starts[example + 1]].astype(np.int64))
                ranks.append((scores[row] > scores[row, right.to(self.device)].max()).sum().item())
        return float(np.mean([1 / (1 + rank) for rank in ranks]))
