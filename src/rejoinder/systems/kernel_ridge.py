"""Kernel ridge regression on text and features at once: K = sum of w V V' (TF-IDF) + sum of w exp(-|x - y|^2 / 2d).

One inverse gives the solution and, without fitting again, what would be predicted for a group of rows had they been
left out: y - (inverse of their block of the inverse) alpha, as in generalised least squares (Rasmussen & Williams 2006,
section 5.4.2, for single rows).
"""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from rejoinder.systems.grams import Matrix

Floats = NDArray[np.float32]
Integers = NDArray[np.intp]
Texts = Sequence[tuple[float, Matrix]]
Dense = Sequence[tuple[float, Floats]]

_FAR = 4.0
"""Standard deviations beyond which a feature says no more."""


class KernelRidge(msgspec.Struct, frozen=True):
    """A solution: weights of n-grams for each text view, and of the training rows for each dense view."""

    base: Floats
    text_weights: list[Floats]
    alpha: Floats
    scales: list[Floats]
    """For each dense view: its features' means and deviations."""
    rows: list[Floats]
    """For each dense view: the training rows, scaled."""
    weights: list[float]

    @property
    def views(self) -> tuple[int, int]:
        """How many text views and dense views there are."""
        return len(self.text_weights), len(self.rows)

    @staticmethod
    def array_names(texts: int, dense: int) -> list[str]:
        """Return the names of the arrays that hold a solution with so many views."""
        by_view = [f"{part}{number}" for part in ("scale", "rows") for number in range(dense)]
        return ["base", "alpha", "weights", *(f"text{number}" for number in range(texts)), *by_view]

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return everything by name."""
        arrays = [self.base, self.alpha, np.array(self.weights), *self.text_weights, *self.scales, *self.rows]
        return dict(zip(self.array_names(*self.views), arrays, strict=True))

    @classmethod
    def from_arrays(cls, texts: int, dense: int, arrays: dict[str, NDArray[Any]]) -> "KernelRidge":
        """Make a solution from its arrays."""
        return cls(
            arrays["base"],
            [arrays[f"text{number}"] for number in range(texts)],
            arrays["alpha"],
            [arrays[f"scale{number}"] for number in range(dense)],
            [arrays[f"rows{number}"] for number in range(dense)],
            arrays["weights"].tolist(),
        )

    def predict(self, texts: Texts, dense: Dense) -> Floats:
        """Predict the values of new rows."""
        found = np.tile(self.base, (texts[0][1].shape[0], 1))
        for (_, text), own in zip(texts, self.text_weights, strict=True):
            found += text @ own.astype(np.float32)
        for (_, view), scale, rows, weight in zip(dense, self.scales, self.rows, self.weights, strict=True):
            scaled = _scaled(view, scale)
            for start in range(0, len(view), 4096):
                found[start : start + 4096] += weight * _radial(scaled[start : start + 4096], rows) @ self.alpha
        return found


def fit(texts: Texts, dense: Dense, values: Floats, penalty: float, groups: Integers) -> tuple[KernelRidge, Floats]:
    """Solve, and return also each row's prediction without the rows of its group."""
    scales = [np.stack([view.mean(axis=0), view.std(axis=0) + 1e-6]) for _, view in dense]
    rows = [_scaled(view, scale) for (_, view), scale in zip(dense, scales, strict=True)]
    kernel = np.zeros((len(values), len(values)), dtype=np.float32)
    for weight, text in texts:
        kernel += weight * (text @ text.T).toarray()
    for (weight, _), own in zip(dense, rows, strict=True):
        kernel += weight * _radial(own, own)
    kernel.flat[:: len(kernel) + 1] += penalty
    inverse = _inverse(kernel)
    base = values.mean(axis=0)
    alpha = inverse @ (values - base)
    text_weights = [(weight * (text.T @ alpha)).astype(np.float16) for weight, text in texts]
    model = KernelRidge(base, text_weights, alpha, scales, rows, [weight for weight, _ in dense])
    return model, values - _left_out_errors(inverse, alpha, groups)


def _inverse(kernel: Floats) -> Floats:
    """Invert a positive definite matrix in place."""
    from scipy.linalg import lapack
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="blas"):  # OpenBLAS's threads wait for each other far longer than they work
        factor, failed = lapack.spotrf(kernel.T, lower=1, overwrite_a=1)  # LAPACK's order: it would copy the other
        inverse, failed_too = lapack.spotri(factor, lower=1, overwrite_c=1)
    if failed or failed_too:
        raise ValueError("the kernel is not positive definite")
    return np.asarray(np.tril(inverse) + np.tril(inverse, -1).T)


def _left_out_errors(inverse: Floats, alpha: Floats, groups: Integers) -> Floats:
    errors = np.empty_like(alpha)
    order = np.argsort(groups, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(groups[order])) + 1):
        errors[rows] = np.linalg.solve(inverse[np.ix_(rows, rows)], alpha[rows])
    return errors


def _scaled(view: Floats, scale: Floats) -> Floats:
    return np.asarray(np.clip((view - scale[0]) / scale[1], -_FAR, _FAR), dtype=np.float32)


def _radial(left: Floats, right: Floats) -> Floats:
    squares = (left**2).sum(axis=1)[:, None] + (right**2).sum(axis=1) - 2 * left @ right.T
    return np.asarray(np.exp(-np.maximum(squares, 0) / (2 * left.shape[1])))
