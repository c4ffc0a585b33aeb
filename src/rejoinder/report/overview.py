"""Several tasks at once: systems x tasks by one measure, and how often the measures agree on the ranking."""

from collections.abc import Mapping

import msgspec
import numpy as np

from rejoinder.measures.scoring import sentence_of
from rejoinder.report.tables import NO_FIGURE, Cell, Table

Results = Mapping[str, Mapping[str, Mapping[str, float]]]
"""task -> system -> measure -> mean."""

_DIGITS = 12
"""Means that are equal to so many digits differ by rounding alone: they are tied."""


class Agreement(msgspec.Struct, frozen=True):
    """How far apart one system's ranks by several measures are, over all systems and tasks."""

    cases: int
    spread: tuple[int, ...]
    """How many cases have the same rank by every measure, ranks one place apart, two, ..."""


def average_ranks(results: Results, measure: str, higher_is_better: bool = True) -> dict[str, float]:
    """Return each system's mean rank over the tasks that it entered, best first (DSTC7, table 2)."""
    ranks: dict[str, list[float]] = {}
    for systems in results.values():
        scored = {system: means[measure] for system, means in systems.items() if measure in means}
        for system, rank in _ranks(scored, higher_is_better).items():
            ranks.setdefault(system, []).append(rank)
    means = {system: float(np.mean(entered)) for system, entered in ranks.items()}
    return dict(sorted(means.items(), key=lambda item: item[1]))


def _ranks(scored: Mapping[str, float], higher_is_better: bool) -> dict[str, float]:
    values = np.round(np.array(list(scored.values())), _DIGITS) * (-1 if higher_is_better else 1)
    ranked = np.searchsorted(np.sort(values), values) + 1.0  # tied systems share the best of their ranks
    return dict(zip(scored, ranked.tolist(), strict=True))


def overview_table(results: Results, measure: str, higher_is_better: bool = True) -> Table:
    """Tabulate systems x tasks by one measure, ordered by average rank; the best of each task is marked."""
    order = average_ranks(results, measure, higher_is_better)
    best = {task: _best(systems, measure, higher_is_better) for task, systems in results.items()}
    rows = [
        (
            Cell(system),
            *(_cell(results[task].get(system, {}).get(measure), best[task]) for task in results),
            Cell(f"{rank:.2f}"),
            Cell(f"{sum(measure in systems.get(system, {}) for systems in results.values())} of {len(results)}"),
        )
        for system, rank in order.items()
    ]
    sentence = sentence_of(measure)
    notes = [f"{measure}: {sentence}"] if sentence else []
    notes += ["ordered by the average rank over the tasks that each system entered, ties sharing the better rank"]
    notes += [f"{NO_FIGURE} no score"] if any(cell.text == NO_FIGURE for row in rows for cell in row) else []
    return Table(f"Overview by {measure}", ("system", *results, "average rank", "tasks"), rows, "; ".join(notes))


def _best(systems: Mapping[str, Mapping[str, float]], measure: str, higher_is_better: bool) -> float | None:
    values = [means[measure] for means in systems.values() if measure in means]
    return None if not values else round(max(values) if higher_is_better else min(values), _DIGITS)


def _cell(value: float | None, best: float | None) -> Cell:
    return Cell(NO_FIGURE) if value is None else Cell(f"{value:.4f}", strong=round(value, _DIGITS) == best)


def agreement(results: Results, measures: list[str], higher_is_better: bool = True) -> Agreement:
    """Count by how many places a system's ranks differ between measures (DSTC7, "Metrics")."""
    spreads: list[int] = []
    for systems in results.values():
        known = [m for m in measures if all(m in means for means in systems.values())]
        ranks = [_ranks({s: means[m] for s, means in systems.items()}, higher_is_better) for m in known]
        if len(ranks) > 1:
            spreads += [int(max(r[s] for r in ranks) - min(r[s] for r in ranks)) for s in systems]
    return Agreement(len(spreads), tuple(np.bincount(spreads).tolist()) if spreads else ())


def agreement_table(found: Agreement, measures: list[str]) -> Table:
    """Tabulate how often ranks by different measures differ by how many places."""
    rows = [
        (Cell(str(places)), Cell(str(count)), Cell(f"{count / found.cases:.0%}"))
        for places, count in enumerate(found.spread)
        if count
    ]
    title = f"How far {', '.join(measures)} agree on a system's rank"
    note = "a case is one system on one task; places apart: its worst rank by these measures less its best"
    return Table(title, ("places apart", "cases", "share"), rows, note)
