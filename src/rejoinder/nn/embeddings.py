"""Supervised embeddings (Dodge et al. 2016, section 3.2 and appendix A): sums of symbols' vectors, and their product.

f(x, y) = (U x) · (V y), where x is the bag of symbols of the context, y that of the option; with one dictionary, V is
U. No vector is longer than 1: else those that are often seen grow, and what is seen seldom is never near anything.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

_SPREAD = 0.1
"""How long vectors are at first: short next to the margin, so that none of tens of thousands is near by chance."""


@dataclass(frozen=True)
class EmbeddingSettings:
    """The paper's parameters (appendix B), and those that it does not give."""

    symbols: int
    dimension: int = 50
    dictionaries: int = 1
    margin: float = 0.1
    negatives: int = 50
    batch: int = 128


class Embeddings(nn.Module):
    """One or two tables of vectors."""

    longest = 1.0
    """How long a vector may become."""

    def __init__(self, settings: EmbeddingSettings) -> None:
        super().__init__()
        self.said = _table(settings)
        self.replied = self.said if settings.dictionaries == 1 else _table(settings)

    def forward(self, contexts: tuple[Tensor, Tensor], options: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Return the vectors of contexts and options, each given as flat symbols and where each bag starts.

        A context's sum is divided by the root of its length, so that long ones do not drown the margin.
        """
        return _scaled(self.said, contexts), _scaled(self.replied, options)


def _table(settings: EmbeddingSettings) -> nn.EmbeddingBag:
    table = nn.EmbeddingBag(settings.symbols, settings.dimension, mode="sum", sparse=True)
    nn.init.normal_(table.weight, std=_SPREAD * settings.dimension**-0.5)
    return table


def _scaled(table: nn.EmbeddingBag, bags: tuple[Tensor, Tensor]) -> Tensor:
    symbols, starts = bags
    ends = torch.cat([starts[1:], torch.tensor([len(symbols)], device=starts.device)])
    lengths = (ends - starts).clamp(min=1).unsqueeze(1)
    found: Tensor = table(symbols, starts) / lengths.sqrt()
    return found


def bags(
    symbols: NDArray[Any], starts: NDArray[Any], chosen: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the symbols of some rows, one after the other, and where each row starts."""
    lengths = np.asarray(starts)[chosen + 1] - np.asarray(starts)[chosen]
    ends = np.cumsum(lengths)
    places = np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts[chosen] - (ends - lengths), lengths)
    return np.asarray(symbols)[places].astype(np.int64), ends - lengths
