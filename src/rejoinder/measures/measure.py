"""What a measure is, and the matrix of scores that comes out of it."""

import msgspec
import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import UserError

Floats = NDArray[np.float64]


class Measure(msgspec.Struct, frozen=True):
    """A name, what it means, where it is defined, and which end is good."""

    name: str
    sentence: str
    citation: str
    higher_is_better: bool


class Scores(msgspec.Struct, frozen=True):
    """One measure's scores, runs x examples: all that statistics and reports need to know."""

    measure: Measure
    runs: tuple[str, ...]
    values: Floats

    @property
    def means(self) -> Floats:
        """Return each run's mean."""
        return np.asarray(self.values.mean(axis=1))


class UnknownMeasureError(UserError):
    """A measure that does not exist, or not for this kind of truth."""
