"""Scoring distributions: NMD, RSNOD, JSD and RNSS, against the equations in plain Python and SciPy."""

import math
from collections.abc import Callable, Sequence

import numpy as np
import polars as pl
from scipy.spatial.distance import jensenshannon
from scipy.stats import wasserstein_distance

from benchmarks.measuring import interleave
from benchmarks.results import Goal, Section, Table, ratio, seconds, timing
from rejoinder.measures import judgement
from rejoinder.measures.measure import Floats
from rejoinder.runs.judgement import JudgementRun
from rejoinder.tasks.dialeval import NUGGET, QUALITY
from rejoinder.tasks.judgement import Answers, JudgementTruth

ANNOTATORS = 19
TURNS = 6
TOLERANCE = 1e-9
Distribution = Sequence[float]


def nmd(p: Distribution, q: Distribution) -> float:
    return sum(abs(sum(p[: i + 1]) - sum(q[: i + 1])) for i in range(len(p))) / (len(p) - 1)


def _order_aware(p: Distribution, q: Distribution) -> float:
    bins = [i for i in range(len(p)) if p[i] > 0]
    weighted = [sum(abs(i - j) * (p[j] - q[j]) ** 2 for j in range(len(p))) for i in bins]
    return sum(weighted) / len(bins)


def rsnod(p: Distribution, q: Distribution) -> float:
    return math.sqrt((_order_aware(p, q) + _order_aware(q, p)) / 2 / (len(p) - 1))


def jsd(p: Distribution, q: Distribution) -> float:
    total = 0.0
    for a, b in zip(p, q, strict=True):
        middle = (a + b) / 2
        total += sum(x * math.log2(x / middle) for x in (a, b) if x > 0)
    return total / 2


def rnss(p: Distribution, q: Distribution) -> float:
    return math.sqrt(sum((a - b) ** 2 for a, b in zip(p, q, strict=True)) / 2)


def _each(measure: Callable[[Distribution, Distribution], float], p: Floats, truth: Floats) -> Callable[[], Floats]:
    rows = list(zip(p.tolist(), truth.tolist(), strict=True))
    return lambda: np.array([measure(a, b) for a, b in rows])


def _wasserstein(p: Floats, truth: Floats) -> Floats:
    places = range(p.shape[1])
    distances = [wasserstein_distance(places, places, a, b) for a, b in zip(p, truth, strict=True)]
    return np.array(distances) / (len(places) - 1)


MEASURES = {"JSD": jsd, "NMD": nmd, "RNSS": rnss, "RSNOD": rsnod}
SCIPY = {  # and how many dialogues it gets: it takes distributions one by one where the number is small
    "JSD": ("`scipy jensenshannon`, squared", lambda p, truth: jensenshannon(p, truth, base=2, axis=1) ** 2, 10**9),
    "NMD": ("`scipy wasserstein_distance`", _wasserstein, 1_000),
}


def draw(rows: int, labels: int, seed: int) -> tuple[Floats, Floats]:
    """Draw estimates, of which a tenth leave bins empty, and the annotators' votes, which often do."""
    rng = np.random.default_rng(seed)
    votes = rng.multinomial(ANNOTATORS, rng.dirichlet(np.full(labels, 0.7), rows)).astype(np.float64)
    estimates = rng.dirichlet(np.ones(labels), rows)
    estimates[::10, : labels // 2] = 0
    return estimates / estimates.sum(axis=1, keepdims=True), votes


def measure(quick: bool) -> Section:
    sizes = (20, 40) if quick else (300, 100_000)
    repetitions = 1 if quick else 3
    rows, apart = [], []
    for name in MEASURES:
        for size in sizes:
            found, distances = _compare(name, size, repetitions)
            rows += found
            apart += distances
    goal = Goal("NMD, RSNOD, JSD and RNSS as in plain Python and SciPy, to 1e-9", f"{max(apart):.1e}",
                max(apart) <= TOLERANCE)  # fmt: skip
    header = ("measure", "dialogues", "Rejoinder", "peer", "peer's time", "ratio", "largest difference")
    whole = Table("All eight scores of a run", ("dialogues", "Rejoinder", "first call"),
                  [_whole(size, repetitions) for size in sizes], WHOLE)  # fmt: skip
    return Section("Judging distributions", [Table("One distribution a dialogue", header, rows), whole], [goal])


def _compare(name: str, size: int, repetitions: int) -> tuple[list[list[str]], list[float]]:
    ours = getattr(judgement, name.lower())
    p, votes = draw(size, 5, seed=1)
    truth = votes / votes.sum(axis=1, keepdims=True)
    calls = {"Rejoinder": lambda: ours(p, truth), "plain Python": _each(MEASURES[name], p, truth)}
    if name in SCIPY and size <= SCIPY[name][2]:
        peer, function, _ = SCIPY[name]
        calls[peer] = lambda: function(p, truth)
    timings, found = interleave(calls, repetitions)
    own = timings.pop("Rejoinder")
    apart = {peer: float(np.abs(found[peer] - found["Rejoinder"]).max()) for peer in timings}
    rows = [
        [name, f"{size:,}", timing(own), peer, timing(taken), ratio(taken.median, own.median), f"{apart[peer]:.1e}"]
        for peer, taken in timings.items()
    ]
    return rows, list(apart.values())


WHOLE = (
    f"NMD and RSNOD of three criteria, JSD and RNSS of {TURNS} turns with seven labels each; each dialogue's scores.",
)


def _whole(size: int, repetitions: int) -> list[str]:
    example = np.arange(size)
    distributions, answers = {}, {}
    for seed, question in enumerate(QUALITY):
        distributions[question.name], votes = draw(size, 5, seed)
        answers[question.name] = Answers(question, example, np.zeros_like(example), np.zeros_like(example), votes)
    distributions[NUGGET.name], votes = draw(size * TURNS, len(NUGGET.labels), seed=9)
    turns = np.tile(np.arange(TURNS) % 2, size)
    answers[NUGGET.name] = Answers(NUGGET, np.repeat(example, TURNS), np.tile(np.arange(TURNS), size), turns, votes)
    truth = JudgementTruth(pl.Series("id", example).cast(pl.String), answers, pl.DataFrame({"turns": [TURNS] * size}))
    run = JudgementRun("run", distributions)
    names = judgement.default_names(truth)
    timings, _ = interleave({"Rejoinder": lambda: judgement.score(run, truth, names)}, repetitions)
    return [f"{size:,}", timing(timings["Rejoinder"]), seconds(timings["Rejoinder"].first)]
