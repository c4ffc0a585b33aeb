# ruff: noqa: A005
"""Randomised Tukey HSD, the paired test and BCa intervals, against a plain loop and SciPy."""

from collections.abc import Mapping

import numpy as np
from scipy import stats

from benchmarks.measuring import Timing, clock, in_child, interleave, run
from benchmarks.results import Goal, Section, Table, megabytes, ratio, seconds, timing
from rejoinder.statistics import Floats, mean_intervals, paired_test, randomised_tukey_hsd

HEADER = ("what", "Rejoinder", "first call", "peer", "peer's time", "ratio", "agreement")
TRIALS = 10_000
RESAMPLES = 2_000


def draw(runs: int, examples: int, seed: int = 0) -> Floats:
    """Draw scores of runs that share the examples' difficulty; the best is a little better than the worst."""
    rng = np.random.default_rng(seed)
    return rng.random(examples) / 2 + rng.random((runs, examples)) / 2 + np.linspace(0, 0.04, runs)[:, None]


def tukey_by_loop(scores: Floats, trials: int, seed: int) -> Floats:
    """Return the p-values of the test as it is usually written: one shuffle of the whole matrix a trial."""
    rng = np.random.default_rng(seed)
    ranges = np.array([np.ptp(rng.permuted(scores, axis=0).mean(axis=1)) for _ in range(trials)])
    means = scores.mean(axis=1)
    differences = np.abs(means[:, None] - means[None, :])
    return ((ranges[:, None, None] >= differences - 1e-12).sum(axis=0) + 1) / (trials + 1)


def measure(quick: bool) -> Section:
    trials, repetitions = (500, 1) if quick else (TRIALS, 7)
    scores = draw(13, 30 if quick else 300)
    size = f"{len(scores)} runs x {scores.shape[1]} examples"
    tukey, goals = _tukey(scores, trials, repetitions)
    rows = [
        [f"Tukey HSD, {size}, {trials:,} trials", *tukey],
        *_two_runs(scores, trials, repetitions),
        [f"BCa intervals, {size}, {RESAMPLES:,} resamples", *_intervals(scores, repetitions)],
    ]
    large = (5, 200, 500) if quick else (50, 20_000, TRIALS)
    return Section("Statistics", [Table("Against peers", HEADER, rows, NOTES), _alone(*large)], goals)


NOTES = (
    "The plain loop takes `np.ptp(rng.permuted(scores, axis=0).mean(axis=1))` in every trial. p-values agree within "
    "Monte Carlo error if they are no more than about four of its standard errors apart. Ends of intervals are "
    "compared in widths of the interval, beside the distance of SciPy from itself with another seed. `paired_test` "
    "also gives the interval of the difference, which SciPy's test does not.",
)


def _row(timings: Mapping[str, Timing], agreement: str) -> list[str]:
    (_, ours), (peer, theirs) = timings.items()
    faster = ratio(theirs.median, ours.median)
    return [timing(ours), seconds(ours.first), peer, timing(theirs), faster, agreement]


def _tukey(scores: Floats, trials: int, repetitions: int) -> tuple[list[str], list[Goal]]:
    calls = {
        "Rejoinder": lambda: randomised_tukey_hsd(scores, trials, seed=1).p,
        "plain NumPy loop": lambda: tukey_by_loop(scores, trials, seed=2),
    }
    timings, p = interleave(calls, repetitions)
    ours, loop = timings.values()
    errors = standard_errors(*p.values(), trials)
    goals = [
        Goal(
            "Tukey HSD in a quarter of the plain loop's time, the first call too",
            f"{ours.median / loop.median:.2f}, first {ours.first / loop.median:.2f}",
            max(ours.median, ours.first) <= loop.median / 4,
        ),
        Goal("Tukey HSD's p-values within Monte Carlo error", f"{errors:.1f} standard errors", errors <= 4),
    ]
    return _row(timings, f"p: {errors:.1f} standard errors"), goals


def standard_errors(first: Floats, second: Floats, trials: int) -> float:
    """Return the largest difference of two estimates of p, in standard errors of such a difference."""
    pooled = (np.asarray(first) + np.asarray(second)) / 2
    error = np.sqrt(np.maximum(pooled * (1 - pooled), 1 / trials) * 2 / trials)
    return float((np.abs(np.asarray(first) - np.asarray(second)) / error).max())


def _difference(x: Floats, y: Floats, axis: int) -> Floats:
    return np.asarray(x.mean(axis=axis) - y.mean(axis=axis))


def _two_runs(scores: Floats, trials: int, repetitions: int) -> list[list[str]]:
    pair = scores[0], scores[len(scores) // 2]
    calls = {
        "randomised_tukey_hsd": lambda: randomised_tukey_hsd(np.stack(pair), trials, seed=1).p[0, 1],
        "paired_test": lambda: paired_test(*pair, trials, seed=1).p,
        "scipy permutation_test": lambda: (
            stats.permutation_test(
                pair, _difference, permutation_type="samples", vectorized=True, n_resamples=trials, rng=2
            ).pvalue
        ),
    }
    timings, p = interleave(calls, repetitions)
    peer = "scipy permutation_test"
    size = f"{len(pair[0])} examples, {trials:,} trials"
    return [
        [
            f"Two runs (`{name}`), {size}",
            *_row(
                {name: timings[name], f"`{peer}`": timings[peer]},
                f"p: {standard_errors(p[name], p[peer], trials):.1f} standard errors",
            ),
        ]
        for name in calls
        if name != peer
    ]


def _scipy_intervals(scores: Floats, seed: int) -> tuple[Floats, Floats]:
    found = stats.bootstrap(
        (scores,), np.mean, axis=1, vectorized=True, n_resamples=RESAMPLES, method="BCa", rng=seed
    ).confidence_interval
    return found.low, found.high


def _intervals(scores: Floats, repetitions: int) -> list[str]:
    calls = {
        "Rejoinder": lambda: mean_intervals(scores, resamples=RESAMPLES, seed=1),
        "`scipy bootstrap`": lambda: _scipy_intervals(scores, seed=2),
    }
    timings, ends = interleave(calls, repetitions)
    ours, theirs = (np.array(found) for found in ends.values())
    again = np.array(_scipy_intervals(scores, seed=3))
    width = theirs[1] - theirs[0]
    apart, itself = (float((np.abs(other - theirs) / width).max()) for other in (ours, again))
    return _row(timings, f"ends: {apart:.1%} of the width (SciPy from itself: {itself:.1%})")


def tukey_alone(runs: int, examples: int, trials: int) -> float:
    scores = draw(runs, examples)
    return clock(lambda: randomised_tukey_hsd(scores, trials))[0]


def _alone(runs: int, examples: int, trials: int) -> Table:
    usage = run(in_child("benchmarks.statistics", "tukey_alone", runs, examples, trials))
    size = f"Tukey HSD, {runs} runs x {examples:,} examples, {trials:,} trials"
    row = [size, seconds(float(usage.output)), megabytes(usage.peak)]
    return Table("Rejoinder alone, run once in a fresh process", ("what", "time", "peak memory"), [row])
