"""The Ladder: which online scores are released, so that a leaderboard cannot be climbed by asking often.

Blum and Hardt (2015), "The Ladder: a reliable leaderboard for machine learning competitions", section 4: the
parameter-free mechanism. A run's score is released only if it beats the team's best released score by more than one
standard error of the difference between the two runs, example by example; what is released is rounded.
"""

import math

import numpy as np

from rejoinder.measures.measure import Floats


def round_to(digits: int, value: float | None) -> float | None:
    """Return a figure as it is released; an interval that is not there has no ends."""
    return None if value is None else round(value, digits)


def climbs(new: Floats, best: Floats, released: float, digits: int, higher_is_better: bool) -> bool:
    """Whether a run's scores beat those of the team's best run, and its released score, by more than noise."""
    sign = 1.0 if higher_is_better else -1.0
    mean = float(new.mean())
    error = float(np.std(new - best, ddof=1)) / math.sqrt(len(new)) if len(new) > 1 else 0.0
    return sign * (mean - released) > error and sign * (round(mean, digits) - released) > 0
