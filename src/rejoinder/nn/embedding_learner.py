"""Trains supervised embeddings; it needs torch and numpy alone, like the loop that it is for."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rejoinder.nn.embeddings import Embeddings, EmbeddingSettings, bags
from rejoinder.prepared import load_arrays

_DEV, _BLOCK = 2_000, 200


class EmbeddingLearner:
    """Learns from `contexts` and `options` (flat symbols and starts) and the correct options of each example."""

    def __init__(self, settings: dict[str, Any], folder: Path, seed: int, device: torch.device) -> None:
        self.settings, self.seed, self.device = EmbeddingSettings(**settings), seed, device
        self.network: nn.Module = Embeddings(self.settings)
        names = ["contexts", "options", "correct", "dev_contexts", "dev_options", "dev_correct", "dev_named"]
        arrays = load_arrays(folder)
        self.rows = {name: (arrays[name], arrays[f"{name}_starts"]) for name in names}
        self.answers = np.unique(self.rows["correct"][0])

    def batches(self, epoch: int) -> Sequence[NDArray[np.int64]]:
        """Shuffle the examples, and draw one of each one's correct options and wrong ones for all of a batch.

        Wrong ones are drawn from all answers alike: were they the batch's other answers, an answer that is often
        correct would be as often wrong, and the model would not learn that it is likely.
        """
        rng = np.random.default_rng([self.seed, epoch])
        correct, starts = self.rows["correct"]
        order = rng.permutation(np.flatnonzero(np.diff(starts)))
        if not len(order):
            return []
        drawn = correct[starts[order] + (rng.random(len(order)) * np.diff(starts)[order]).astype(np.int64)]
        size = self.settings.batch
        wrong = np.sort(rng.choice(self.answers, (len(order) // size + 1, self.settings.negatives)))
        return [
            np.concatenate([order[start : start + size], drawn[start : start + size], wrong[start // size]])
            for start in range(0, len(order), size)
        ]

    def loss(self, batch: NDArray[np.int64]) -> Tensor:
        """Return how far the best of the wrong options comes within the margin of the true one.

        (The mean over all wrong ones learns far more slowly: most of tens of thousands of entities are no rivals.)
        """
        size = (len(batch) - self.settings.negatives) // 2
        examples, right, wrong = np.split(batch, [size, 2 * size])
        rivals, none = self._rivals(examples, wrong)
        said, replied = self.network(
            self._bags("contexts", examples), self._bags("options", np.concatenate([right, rivals]))
        )
        best, rival = (said * replied[:size]).sum(dim=1), (said * replied[size:]).sum(dim=1)
        return torch.relu(self.settings.margin - best + rival.masked_fill(none, -torch.inf)).mean()

    @torch.no_grad()
    def _rivals(self, examples: NDArray[np.int64], wrong: NDArray[np.int64]) -> tuple[NDArray[np.int64], Tensor]:
        """Return the best of the wrong options for each example, and where there is none, all being correct."""
        said, replied = self.network(self._bags("contexts", examples), self._bags("options", wrong))
        scores = said @ replied.T
        scores[self._correct(examples, wrong)] = -torch.inf
        best, place = scores.max(dim=1)
        return wrong[place.cpu().numpy()], best == -torch.inf

    def _correct(self, examples: NDArray[np.int64], offered: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        """Return which examples have which of the offered options, which are in order, as a correct one."""
        correct, starts = bags(*self.rows["correct"], examples)
        owners = np.repeat(np.arange(len(examples)), np.diff(np.append(starts, len(correct))))
        first, last = (np.searchsorted(offered, correct, side) for side in ("left", "right"))  # one may be drawn twice
        found = last - first
        places = np.arange(found.sum()) + np.repeat(first - (np.cumsum(found) - found), found)
        return torch.from_numpy(np.repeat(owners, found)).to(self.device), torch.from_numpy(places).to(self.device)

    def _bags(self, name: str, chosen: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        symbols, starts = bags(*self.rows[name], chosen)
        return torch.from_numpy(symbols).to(self.device), torch.from_numpy(starts).to(self.device)

    def evaluate(self) -> float | None:
        """Return the mean reciprocal rank of the first correct one of dev's options that its contexts do not name."""
        examples = np.flatnonzero(np.diff(self.rows["dev_correct"][1]))[:_DEV]
        if not len(examples):
            return None
        options = np.arange(len(self.rows["dev_options"][1]) - 1)
        said, replied = self.network(self._bags("dev_contexts", examples), self._bags("dev_options", options))
        ranks = []
        with torch.autocast(self.device.type, enabled=False):  # in half precision many would score the same
            for start in range(0, len(examples), _BLOCK):
                few = slice(start, start + _BLOCK)
                ranks.append(self._ranks(said[few].float() @ replied.float().T, examples[few]))
        return float((1 / (1 + torch.cat(ranks))).mean())

    def _ranks(self, scores: Tensor, examples: NDArray[np.int64]) -> Tensor:
        """Return how many options are above the first correct one; of equals the one listed first is above."""
        named, correct = (self._pairs(name, examples) for name in ("dev_named", "dev_correct"))
        right = scores.new_full((len(examples),), -torch.inf)
        right.scatter_reduce_(0, correct[0], scores[correct], "amax")
        best = scores[correct] == right[correct[0]]
        place = torch.full_like(right, scores.shape[1], dtype=torch.long)
        place.scatter_reduce_(0, correct[0][best], correct[1][best], "amin")
        scores[named] = -torch.inf
        before = torch.arange(scores.shape[1], device=scores.device) < place.unsqueeze(1)
        return ((scores > right.unsqueeze(1)) | ((scores == right.unsqueeze(1)) & before)).sum(dim=1)

    def _pairs(self, name: str, examples: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        """Return the place of each example, once for each of its options, and these."""
        options, starts = self._bags(name, examples)
        ends = torch.cat([starts[1:], torch.tensor([len(options)], device=starts.device)])
        return torch.repeat_interleave(torch.arange(len(starts), device=starts.device), ends - starts), options
