"""Honest comparison of runs: every function takes a matrix of scores, runs x examples, and a seed.

test = randomised_tukey_hsd(scores, trials=10_000, seed=0)
test.p[i, j], test.effect_size[i, j], tie_groups(means, test.p)
"""

import math
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations
from statistics import NormalDist
from string import ascii_letters
from threading import Event

import msgspec
import numpy as np
from numpy.typing import NDArray

from rejoinder.watch import Step, unheard

Floats = NDArray[np.float64]

TRIALS = 10_000
RESAMPLES = 2_000
ALPHA = 0.05

_BLOCK = 5_000  # trials that share one pool of permutations, and one thread
_POOL = 1_000  # permutations in a pool
_SLACK = 1e-9  # differences below this share of the scores are rounding
_CACHE_BYTES = 1 << 16  # rows summed at a time, so that they stay in the processor's cache


class TukeyHSD(msgspec.Struct, frozen=True):
    """What the randomised Tukey HSD test says of every pair of runs."""

    means: Floats
    p: Floats
    effect_size: Floats
    trials: int
    exact: bool


class Interval(msgspec.Struct, frozen=True):
    """An estimate with its confidence interval, which is NaN where nothing can be said."""

    estimate: float
    low: float
    high: float


class PairedTest(msgspec.Struct, frozen=True):
    """How much better the first of two runs is, example by example."""

    difference: Interval
    p: float
    effect_size: float
    exact: bool


def randomised_tukey_hsd(scores: Floats, trials: int = TRIALS, seed: int = 0, advance: Step = unheard) -> TukeyHSD:
    """Test all pairs of runs at once (Carterette 2012, algorithm 1; Sakai 2014, section 4.5).

    In every trial each example's scores are permuted among the runs; a pair's p-value is the share of trials whose
    largest difference between two means reaches that pair's difference. It counts the observed arrangement as one
    trial more (Phipson and Smyth 2010), so it is never zero. When all arrangements together are no more than `trials`,
    they are enumerated and p is exact.
    """
    scores = _matrix(scores)
    runs, examples = scores.shape
    means = scores.mean(axis=1)
    differences = np.abs(means[:, None] - means[None, :])
    exact = math.lgamma(runs + 1) * (examples - 1) <= math.log(trials) + 1e-9
    listed = scores[sorted(range(runs), key=lambda run: scores[run].tobytes())]  # in whichever order runs were named
    ranges = _all_ranges(listed) if exact else _sampled_ranges(listed, trials, seed, advance)
    ranges = np.sort(ranges / examples)
    # scores such as 0/1 make many arrangements tie with the observed one: rounding must not tear them apart
    slack = _SLACK * max(float(np.abs(scores).max()), 1e-300)
    reached = ranges.size - np.searchsorted(ranges, differences - slack)
    p = reached / ranges.size if exact else (reached + 1) / (ranges.size + 1)
    return TukeyHSD(means, np.asarray(p), effect_sizes(scores), int(ranges.size), exact)


def effect_sizes(scores: Floats) -> Floats:
    """Return ES_E1: differences of means over the residual deviation of one-way ANOVA (Sakai 2018; one per table)."""
    scores = _matrix(scores)
    runs, examples = scores.shape
    means = scores.mean(axis=1)
    differences = means[:, None] - means[None, :]
    residual = float(((scores - means[:, None]) ** 2).sum()) / max(runs * (examples - 1), 1)
    if residual <= (_SLACK * float(np.abs(scores).max())) ** 2:
        residual = 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        sizes = differences / math.sqrt(residual)
    return np.where(differences == 0, 0.0, sizes)


def _matrix(scores: Floats) -> Floats:
    scores = np.asarray(scores, dtype=np.float64)
    if scores.ndim != 2 or scores.shape[0] < 1 or scores.shape[1] < 1:
        raise ValueError(f"expected a matrix of runs x examples, got shape {scores.shape}")
    if not np.isfinite(scores).all():
        raise ValueError("every score must be a finite number")
    return scores


def _all_ranges(scores: Floats) -> Floats:
    """Largest difference of sums in every arrangement; the first example stays, as relabelling runs changes nothing."""
    sums = scores[:, 0][None, :]
    if scores.shape[1] == 1:
        return np.asarray(np.ptp(sums, axis=1))
    table = np.array(list(permutations(range(len(scores)))))
    for example in scores.T[1:]:
        sums = (sums[:, None, :] + example[table][None, :, :]).reshape(-1, len(scores))
    return np.asarray(np.ptp(sums, axis=1))


def _sampled_ranges(scores: Floats, trials: int, seed: int, advance: Step) -> Floats:
    examples = np.ascontiguousarray((scores - scores.mean(axis=0)).T)
    blocks = [min(_BLOCK, trials - start) for start in range(0, trials, _BLOCK)]
    generators = np.random.SeedSequence(seed).spawn(len(blocks))
    stop = Event()
    with ThreadPoolExecutor(min(os.cpu_count() or 1, len(blocks))) as threads:
        tasks = [
            threads.submit(_block_ranges, examples, size, np.random.default_rng(generator), advance, stop)
            for size, generator in zip(blocks, generators, strict=True)
        ]
        try:
            return np.concatenate([task.result() for task in tasks])
        except BaseException:  # Ctrl-C: let the threads end at once
            stop.set()
            threads.shutdown(cancel_futures=True)
            raise


def _block_ranges(examples: Floats, trials: int, rng: np.random.Generator, advance: Step, stop: Event) -> Floats:
    """Permute within each example by drawing rows of a table that holds the example under a pool of permutations.

    Drawing a row costs a fraction of shuffling anew. Each example's runs are relabelled at random before the pool is
    applied, so that within every trial the permutations are uniform and independent: each trial is an exact draw.
    """
    runs = examples.shape[1]
    pool, complete = _permutation_pool(runs, rng)
    sums = np.zeros((trials, runs))
    step = max(1, _CACHE_BYTES // (8 * runs))
    drawn = np.empty((step, runs))
    every = max(1, len(examples) // 100)
    for number, example in enumerate(examples, 1):
        table = (example if complete else example[rng.permutation(runs)])[pool]
        rows = rng.integers(len(pool), size=trials)
        for start in range(0, trials, step):
            part = sums[start : start + step]
            part += np.take(table, rows[start : start + step], axis=0, out=drawn[: len(part)], mode="clip")
        if number % every == 0:
            advance(trials * every)
        if stop.is_set():
            break
    return np.asarray(sums.max(axis=1) - sums.min(axis=1))


def _permutation_pool(runs: int, rng: np.random.Generator) -> tuple[NDArray[np.intp], bool]:
    """Return all permutations where they are few, else random ones with all their rotations.

    With its rotations, every run gets every score equally often over the pool, which keeps the trials of a block
    centred where independent shuffles would be.
    """
    if math.factorial(runs) <= _POOL:
        return np.array(list(permutations(range(runs)))), True
    bases = rng.permuted(np.tile(np.arange(runs), (-(-_POOL // runs), 1)), axis=1)
    rotations = (np.arange(runs)[:, None] + np.arange(runs)[None, :]) % runs
    return bases[:, rotations].reshape(-1, runs), False


def mean_intervals(
    scores: Floats, confidence: float = 1 - ALPHA, resamples: int = RESAMPLES, seed: int = 0, advance: Step = unheard
) -> tuple[Floats, Floats]:
    """Return the ends of a BCa bootstrap interval for the mean of every row (Efron 1987); rows share the resamples.

    A row whose scores are all equal, such as a single one, has none (NaN): all its resamples are equal, too.
    """
    scores = _matrix(scores)
    means = scores.mean(axis=1)
    centred = scores - means[:, None]
    resampled = _resampled_means(centred, resamples, seed, advance)
    # discrete scores make many resamples equal to the mean: rounding must not tear them from it
    slack = _SLACK * np.abs(scores).max(axis=1)
    below = ((resampled < -slack).mean(axis=0) + (resampled <= slack).mean(axis=0)) / 2
    spread = (centred**2).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        acceleration = np.where(spread > 0, (centred**3).sum(axis=1) / (6 * spread**1.5), 0.0)
    levels = (1 - confidence) / 2, (1 + confidence) / 2
    low, high = np.full((2, len(scores)), np.nan)
    for row in np.flatnonzero(np.ptp(scores, axis=1) > slack):
        at = [_bca_level(level, float(below[row]), float(acceleration[row])) for level in levels]
        low[row], high[row] = means[row] + np.quantile(resampled[:, row], at)
    return low, high


_NORMAL = NormalDist()


def _bca_level(level: float, below: float, acceleration: float) -> float:
    """Return which quantile of the resampled means ends the interval: bias-corrected and accelerated."""
    if not 0 < below < 1:
        return level
    bias = _NORMAL.inv_cdf(below)
    shifted = bias + _NORMAL.inv_cdf(level)
    return _NORMAL.cdf(bias + shifted / (1 - acceleration * shifted))


def _resampled_means(scores: Floats, resamples: int, seed: int, advance: Step) -> Floats:
    """Means of bootstrap samples, resamples x rows: how often each example was drawn, times its scores."""
    examples = scores.shape[1]
    columns = np.ascontiguousarray(scores.T)
    step = max(1, 500_000 // examples)
    sizes = [min(step, resamples - start) for start in range(0, resamples, step)]
    seeds = np.random.SeedSequence(seed).spawn(len(sizes))

    def block(size: int, seed: np.random.SeedSequence) -> Floats:
        counts = _draw_counts(size, examples, np.random.default_rng(seed))
        advance(size)
        return np.asarray(counts @ columns / examples)

    with ThreadPoolExecutor(os.cpu_count() or 1) as threads:
        return np.concatenate(list(threads.map(block, sizes, seeds)))


def _draw_counts(resamples: int, items: int, rng: np.random.Generator) -> Floats:
    drawn = rng.integers(items, size=(resamples, items))
    drawn += (np.arange(resamples) * items)[:, None]
    counts = np.bincount(drawn.ravel(), minlength=resamples * items)
    return counts.reshape(resamples, items).astype(np.float64)


def kendall_tau(
    x: Floats, y: Floats, resamples: int = TRIALS, confidence: float = 1 - ALPHA, seed: int = 0
) -> Interval:
    """Return Kendall's tau-b of two rankings of the same runs, with a percentile bootstrap interval over the runs.

    This is what DialEval-1 used (section 5.1, note 2: NSM3's kendall.ci with bootstrap): its k-th smallest and k-th
    largest resampled tau, k = floor((B + 1) alpha / 2). Resamples in which a ranking is constant have no tau. Where all
    others have the same, as those of equal rankings do, there is no interval (NaN): they say nothing of other runs.
    """
    listed = np.lexsort((y, x))  # in whichever order runs were named
    agreement = _order(x[listed]), _order(y[listed])
    estimate = _weighted_tau(np.ones((1, len(x))), *agreement)
    counts = _draw_counts(resamples, len(x), np.random.default_rng(seed))
    taus = _weighted_tau(counts, *agreement)
    taus = np.sort(taus[~np.isnan(taus)])
    if not len(taus) or taus[-1] - taus[0] <= _SLACK:
        return Interval(float(estimate[0]), math.nan, math.nan)
    k = max(1, math.floor((len(taus) + 1) * (1 - confidence) / 2))
    return Interval(float(estimate[0]), float(taus[k - 1]), float(taus[-k]))


def _order(values: Floats) -> Floats:
    """Return the sign of every difference; means that differ by rounding alone are tied."""
    differences = values[:, None] - values[None, :]
    return np.where(np.abs(differences) <= _SLACK * np.abs(values).max(), 0.0, np.sign(differences))


def _weighted_tau(counts: Floats, x: Floats, y: Floats) -> Floats:
    def pairs(agreement: Floats) -> Floats:
        return np.asarray(((counts @ agreement) * counts).sum(axis=1))

    with np.errstate(invalid="ignore"):
        return np.asarray(pairs(x * y) / np.sqrt(pairs(x * x) * pairs(y * y)))


def paired_test(first: Floats, second: Floats, trials: int = TRIALS, seed: int = 0) -> PairedTest:
    """Test two runs by flipping the signs of their differences; the effect size is the mean over the deviation of them.

    For two runs the randomised Tukey HSD test is this sign-flip test, so it is the same code.
    """
    scores = np.stack([first, second])
    test = randomised_tukey_hsd(scores, trials, seed)
    differences = (scores[0] - scores[1])[None, :]
    low, high = mean_intervals(differences, seed=seed)
    mean, deviation = float(differences.mean()), float(differences.std(ddof=1)) if differences.size > 1 else 0.0
    effect = mean / deviation if deviation > 0 else math.copysign(math.inf, mean) if mean else 0.0
    return PairedTest(Interval(mean, float(low[0]), float(high[0])), float(test.p[0, 1]), effect, test.exact)


def tie_groups(means: Floats, p: Floats, higher_is_better: bool, alpha: float = ALPHA) -> list[str]:
    """Give runs that cannot be told apart a letter in common; `a` is the best group (Piepho 2004's letter display).

    p falls as the difference of means grows, so each maximal group is a stretch of the ranking.
    """
    order = np.argsort(-means if higher_is_better else means, kind="stable")
    ranked = p[np.ix_(order, order)] >= alpha
    letters = [""] * len(means)
    for group, members in enumerate(_maximal_stretches(ranked)):
        for place in members:
            letters[order[place]] += _letter(group)
    return letters


def _maximal_stretches(together: NDArray[np.bool_]) -> Iterator[range]:
    reached = 0
    for start, row in enumerate(together):
        apart = np.flatnonzero(~row[start + 1 :])
        end = start + 1 + int(apart[0]) if len(apart) else len(row)
        if end > reached:
            yield range(start, end)
            reached = end


def _letter(group: int) -> str:
    return ascii_letters[group] if group < len(ascii_letters) else f"({group + 1})"
