"""Gradient-boosted trees that choose one of several candidates: softmax over each message's candidates."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from rejoinder.corpora.link_block import Flags, Floats, Ints

if TYPE_CHECKING:
    import lightgbm

THREADS = 2


class Trees(msgspec.Struct, frozen=True):
    """The size and pace of a boosted model."""

    trees: int
    leaves: int = 31
    rate: float = 0.15
    features: float = 0.5
    smallest_leaf: int = 50


@contextmanager
def _patient() -> Iterator[None]:
    """Let OpenMP's threads sleep while they wait: spinning costs five times the time when the cores are shared."""
    before = os.environ.get("OMP_WAIT_POLICY")
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    yield
    if before is None:
        del os.environ["OMP_WAIT_POLICY"]


def _library() -> Any:
    with _patient():
        import lightgbm
    return lightgbm


class Scorer:
    """One or more boosted models; a candidate's score is their mean."""

    def __init__(self, models: "Sequence[lightgbm.Booster]") -> None:
        self.models = list(models)

    def scores(self, flat: Floats, valid: Flags) -> Floats:
        """Return the scores of the valid candidates, whose values are given, and minus infinity for the others."""
        scores = np.full(valid.shape, -np.inf, dtype=np.float32)
        if len(flat):
            total = sum(np.asarray(model.predict(flat, num_threads=THREADS)) for model in self.models)
            scores[valid] = total / len(self.models)
        return scores

    def texts(self) -> list[str]:
        """Return the models as LightGBM writes them."""
        return [model.model_to_string() for model in self.models]

    @classmethod
    def of_texts(cls, texts: Sequence[str]) -> "Scorer":
        """Read what `texts` gave."""
        return cls([_library().Booster(model_str=text) for text in texts])


def softmax(scores: Floats) -> Floats:
    """Return the chances of the candidates of each row."""
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def fit(values: Floats, correct: Floats, sizes: Ints, trees: Trees, seed: int) -> "lightgbm.Booster":
    """Fit trees to candidates in runs of `sizes`, the candidates of one message after those of another."""
    library = _library()
    parameters = {
        "objective": _choice(sizes),
        "num_leaves": trees.leaves,
        "learning_rate": trees.rate,
        "feature_fraction": trees.features,
        "min_data_in_leaf": max(1, min(trees.smallest_leaf, len(values) // 200)),
        "lambda_l2": 1.0,
        "max_bin": 127,
        "force_col_wise": True,
        "deterministic": True,
        "num_threads": THREADS,
        "seed": seed,
        "verbose": -1,
    }
    return library.train(parameters, library.Dataset(values, correct), trees.trees)  # type: ignore[no-any-return]


def _choice(sizes: Ints) -> "Callable[[Any, lightgbm.Dataset], tuple[Any, Any]]":
    """Return gradient and curvature of the cross-entropy between the softmax and the correct candidates."""
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    group = np.repeat(np.arange(len(sizes)), sizes)

    def objective(scores: Any, data: "lightgbm.Dataset") -> tuple[Any, Any]:
        correct = np.asarray(data.get_label())
        shares = np.exp(scores - np.maximum.reduceat(scores, starts)[group])
        shares /= np.add.reduceat(shares, starts)[group]
        total = np.add.reduceat(correct, starts)[group]
        target = correct / np.maximum(total, 1)
        return (shares - target) * (total > 0), np.maximum(shares * (1 - shares), 1e-6)

    return objective
