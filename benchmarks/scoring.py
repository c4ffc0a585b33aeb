"""Scoring rankings in memory: R@1, R@10, R@50, MRR and MAP of 20,000 examples with 100 candidates each."""

import os
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import ir_measures
import numpy as np
import polars as pl
import pytrec_eval
from ir_measures import AP, RR, R

from benchmarks.measuring import Timing, clock, in_child, interleave, run
from benchmarks.results import Goal, Section, Table, ratio, seconds, timing
from rejoinder.measures import selection
from rejoinder.runs.selection import LISTING_SCHEMA, Listing, SelectionRun, check
from rejoinder.tasks.selection import SelectionTruth, to_pairs

Figures = Mapping[str, Any]

MEASURES = {  # ours: ir_measures', pytrec_eval's, ranx's
    "R@1": (R @ 1, "recall_1", "recall@1"),
    "R@10": (R @ 10, "recall_10", "recall@10"),
    "R@50": (R @ 50, "recall_50", "recall@50"),
    "MRR": (RR, "recip_rank", "mrr"),
    "MAP": (AP, "map", "map"),
}
IR_MEASURES = [names[0] for names in MEASURES.values()]
TOLERANCE = 1e-9


class Data(NamedTuple):
    """What every library's own form is made from: for each example, options, their scores, and the correct ones."""

    ids: list[str]
    options: list[list[str]]
    scores: list[list[float]]
    correct: list[list[str]]


def draw(examples: int, candidates: int, most: int, seed: int = 0) -> Data:
    """Draw scores that differ within an example also in single precision, by which trec_eval ranks: no ties."""
    rng = np.random.default_rng(seed)
    places = rng.permuted(np.tile(np.arange(candidates), (examples, 1)), axis=1)
    scores = ((places + 1) * 1000 + rng.integers(1000, size=places.shape)) / 2**17
    options = [[f"{example:05}-{option:03}" for option in range(candidates)] for example in range(examples)]
    counts = rng.integers(1, most + 1, size=examples)
    correct = [rng.choice(own, count, replace=False).tolist() for own, count in zip(options, counts, strict=True)]
    return Data([str(example) for example in range(examples)], options, scores.tolist(), correct)


def to_truth(data: Data) -> SelectionTruth:
    examples = [example for example, correct in enumerate(data.correct) for _ in correct]
    return SelectionTruth(pl.Series("id", data.ids), to_pairs(examples, _flat(data.correct)))


def _flat(lists: list[list[Any]]) -> list[Any]:
    return [value for own in lists for value in own]


def to_tables(data: Data) -> tuple[SelectionRun, SelectionTruth]:
    ids = [id_ for id_, own in zip(data.ids, data.options, strict=True) for _ in own]
    columns = {"id": ids, "option": _flat(data.options), "score": _flat(data.scores)}
    listing = Listing(Path("run"), pl.DataFrame(columns, schema=LISTING_SCHEMA), [])
    truth = to_truth(data)
    return check(listing, truth, "run", lenient=False), truth


def to_unranked(data: Data) -> tuple[pl.DataFrame, SelectionTruth]:
    """Return the choices in the order of the data, with nothing checked: as little as the other libraries do."""
    examples = np.repeat(np.arange(len(data.ids), dtype=np.uint32), [len(own) for own in data.options])
    columns = {"example": examples, "option": _flat(data.options), "score": _flat(data.scores)}
    return pl.DataFrame(columns), to_truth(data)


def score_tables(run: SelectionRun, truth: SelectionTruth) -> Figures:
    return selection.score(run, truth, list(MEASURES))


def rank_and_score(choices: pl.DataFrame, truth: SelectionTruth) -> Figures:
    ranked = choices.sort("example", "score", descending=[False, True], maintain_order=True)
    return score_tables(SelectionRun("run", ranked), truth)


def to_dictionaries(data: Data) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, int]]]:
    ranked = zip(data.ids, data.options, data.scores, strict=True)
    rankings = {id_: dict(zip(options, scores, strict=True)) for id_, options, scores in ranked}
    return rankings, {id_: dict.fromkeys(own, 1) for id_, own in zip(data.ids, data.correct, strict=True)}


def to_ranx(data: Data) -> Any:
    import ranx

    rankings, correct = to_dictionaries(data)
    return ranx.Run(rankings), ranx.Qrels(correct)


def score_ranx(rankings: Any, correct: Any) -> Figures:
    import ranx

    with warnings.catch_warnings(action="ignore"):  # from compiling: casts that ranx says are safe
        means = ranx.evaluate(correct, rankings, [names[2] for names in MEASURES.values()])
    return {ours: means[names[2]] for ours, names in MEASURES.items()}


def score_pytrec(rankings: Any, correct: Any) -> Figures:
    return pytrec_eval.RelevanceEvaluator(correct, {"recall.1,10,50", "recip_rank", "map"}).evaluate(rankings)


def _by_example(found: Any) -> Figures:
    """Lay out what pytrec_eval found as arrays, in the order of the examples."""
    rows = [found[id_] for id_ in sorted(found, key=int)]
    return {ours: np.array([row[names[1]] for row in rows]) for ours, names in MEASURES.items()}


def _from_iterator(found: Any) -> Figures:
    scores: dict[Any, dict[int, float]] = {measure: {} for measure in IR_MEASURES}
    for metric in found:
        scores[metric.measure][int(metric.query_id)] = metric.value
    return {
        ours: np.array([scores[names[0]][example] for example in sorted(scores[names[0]])])
        for ours, names in MEASURES.items()
    }


class Library(NamedTuple):
    """The form that a library takes, how it scores, and what it found as ours -> scores by example, or their mean."""

    prepare: Callable[[Data], Any]
    score: Callable[[Any, Any], Any]
    figures: Callable[[Any], Figures] = lambda found: found


OURS = "Rejoinder"
RANKING = "Rejoinder, ranking each time"
LIBRARIES = {
    OURS: Library(to_tables, score_tables),
    RANKING: Library(to_unranked, rank_and_score),
    "ir_measures, `iter_calc`": Library(
        to_dictionaries, lambda run, truth: list(ir_measures.iter_calc(IR_MEASURES, truth, run)), _from_iterator
    ),
    "ir_measures, `calc_aggregate`": Library(
        to_dictionaries,
        lambda run, truth: ir_measures.calc_aggregate(IR_MEASURES, truth, run),
        lambda found: {ours: found[names[0]] for ours, names in MEASURES.items()},
    ),
    "pytrec_eval": Library(to_dictionaries, score_pytrec, _by_example),
    "ranx": Library(to_ranx, score_ranx),
}


@contextmanager
def empty_numba_cache() -> Iterator[None]:
    """Let ranx compile as it does when first used: it keeps what it compiled for the processes after."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["NUMBA_CACHE_DIR"] = folder
        try:
            yield
        finally:
            del os.environ["NUMBA_CACHE_DIR"]


def installed() -> dict[str, Library]:
    try:
        import ranx  # noqa: F401
    except ImportError:
        return {name: library for name, library in LIBRARIES.items() if name != "ranx"}
    return LIBRARIES


def measure(quick: bool) -> Section:
    with empty_numba_cache():
        libraries = installed()
        size = (200, 20) if quick else (20_000, 100)
        repetitions = 1 if quick else 5
        large, goals = compare(libraries, draw(*size, most=1), "one correct option each", repetitions)
        several, _ = compare(libraries, draw(*size, most=5), "one to five correct options each", repetitions)
        small, _ = compare(libraries, draw(size[0] // 20, size[1], most=1), "one correct option each", repetitions)
        again = compiled_before(*size) if "ranx" in libraries else "ranx is left out: it is not installed."
    return Section("Scoring rankings", [large._replace(notes=[*large.notes, PREPARING, again]), several, small], goals)


def compare(libraries: Mapping[str, Library], data: Data, title: str, repetitions: int) -> tuple[Table, list[Goal]]:
    forms = {library.prepare.__name__: library.prepare for library in libraries.values()}
    preparing, prepared = interleave({name: lambda form=form: form(data) for name, form in forms.items()}, 1)
    scoring, found = interleave(
        {
            name: lambda library=library: library.score(*prepared[library.prepare.__name__])
            for name, library in libraries.items()
        },
        repetitions,
    )
    prepare = {name: preparing[library.prepare.__name__] for name, library in libraries.items()}
    apart = {name: _distance(libraries[name].figures(found[name]), found[OURS]) for name in libraries}
    size = f"{len(data.ids):,} examples x {len(data.options[0])} candidates, {title}"
    return Table(size, HEADER, _rows(prepare, scoring), [_agreement(apart)]), _goals(prepare, scoring, apart)


HEADER = (
    "library", "scoring", "first call", "ratio", "preparing, first", "preparing, again", "ratio of preparing + scoring"
)  # fmt: skip
PREPARING = (
    "Preparing turns lists of ids, options and scores into a library's own form: checked and ranked tables for "
    "Rejoinder, dictionaries for ir_measures and pytrec_eval, its own `Run` and `Qrels` for ranx. So Rejoinder ranks "
    "while it prepares, ranx in the first call, the others in every call; the line `ranking each time` is Rejoinder "
    "with nothing checked before and the ranking done in every call, as the others do it."
)


def _rows(prepare: Mapping[str, Timing], scoring: Mapping[str, Timing]) -> list[list[str]]:
    whole = {name: prepare[name].median + scoring[name].median for name in scoring}
    return [
        [
            name,
            timing(taken),
            seconds(taken.first),
            ratio(taken.median, scoring[OURS].median),
            seconds(prepare[name].first),
            seconds(prepare[name].median),
            ratio(whole[name], whole[OURS]),
        ]
        for name, taken in scoring.items()
    ]


def _distance(figures: Figures, ours: Figures) -> float:
    """Return how far the figures are from ours: example by example where they are given so, else the means."""
    return max(
        float(np.abs(ours[name] - theirs).max() if np.ndim(theirs) else abs(ours[name].mean() - theirs))
        for name, theirs in figures.items()
    )


def _agreement(apart: Mapping[str, float]) -> str:
    parts = [f"{name} {distance:.1e}" for name, distance in apart.items() if name not in (OURS, RANKING)]
    return f"Largest difference of any figure from Rejoinder's: {', '.join(parts)}."


def _goals(prepare: Mapping[str, Timing], scoring: Mapping[str, Timing], apart: Mapping[str, float]) -> list[Goal]:
    def ratios(ours: str, name: str) -> tuple[str, str]:
        whole = [prepare[each].median + scoring[each].median for each in (name, ours)]
        return ratio(scoring[name].median, scoring[ours].median), ratio(*whole)

    ours = scoring[OURS]
    peer = min((name for name in scoring if name.startswith("ir_measures")), key=lambda name: scoring[name].median)
    (ready, whole), (ranking, _) = ratios(OURS, peer), ratios(RANKING, peer)
    found = f"{ready} ({ranking} if ranking is part of it, {whole} with checks and conversion)"
    return [
        Goal("scoring at least 10x as fast as ir_measures, after reading", found,
             scoring[peer].median >= 10 * ours.median),
        Goal("scoring well under a second, the first call too", seconds(ours.first), ours.first <= 0.5),
        Goal("the same figures as every peer, to 1e-9", f"{max(apart.values()):.1e}", max(apart.values()) <= TOLERANCE),
    ]  # fmt: skip


def ranx_again(examples: int, candidates: int) -> tuple[float, float]:
    data = draw(examples, candidates, most=1)
    preparing, prepared = clock(lambda: to_ranx(data))
    return preparing, clock(lambda: score_ranx(*prepared))[0]


def compiled_before(examples: int, candidates: int) -> str:
    output = run(in_child("benchmarks.scoring", "ranx_again", examples, candidates)).output
    preparing, scoring = (float(part) for part in output.strip("[]\n").split(","))
    return (
        "ranx's first calls compile, and keep the result on disk. In a later process that finds it there, they took "
        f"{seconds(preparing)} (preparing) and {seconds(scoring)} (scoring)."
    )
