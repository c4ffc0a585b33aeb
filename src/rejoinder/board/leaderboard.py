"""What people see of standings: lines of a table in order of a measure, with intervals and tie groups."""

import math
from typing import Any

import msgspec

from rejoinder.board.ladder import round_to
from rejoinder.board.models import Competition, Submission, Track
from rejoinder.report.tables import NO_FIGURE

TEAM = "team:"
"""What stands before a team's name in standings, so that no team can pass for a baseline."""
BASELINES = ("uniform", "popularity (oracle)")


class Score(msgspec.Struct, frozen=True):
    """A score as it is shown."""

    text: str
    low: str
    high: str
    group: str = ""
    best: bool = False
    bar: tuple[float, float, float] = (0, 0, 0)
    """Low end, score and high end between 0 and 100 over the measure's column."""

    @property
    def interval(self) -> str:
        """Return both ends, or that there are none."""
        return NO_FIGURE if self.low == NO_FIGURE else f"{self.low} – {self.high}"


class Line(msgspec.Struct, frozen=True):
    """A row of a leaderboard."""

    name: str
    team: bool
    scores: dict[str, Score]


def shown(value: float | None, digits: int, log2: bool) -> str:
    """Print a score, or -log2 of it as DialEval-1's site did (section 3.3)."""
    if value is None:
        return NO_FIGURE
    if not log2:
        return f"{value:.{digits}f}"
    return "∞" if value <= 0 else f"{-math.log2(value) + 0.0:.{digits}f}"


def make_score(track: Track, values: dict[str, Any], bar: tuple[float, float, float] = (0, 0, 0)) -> Score:
    """Round a score and its interval as the competition wants them shown."""
    digits, log2 = track.competition.digits, track.competition.log2
    text, *ends = (shown(round_to(digits, values[key]), digits, log2) for key in ("score", "low", "high"))
    low, high = reversed(ends) if log2 else ends
    return Score(text, low, high, values.get("group", ""), values.get("best", False), bar)


def lines_of(track: Track, standings: dict[str, Any] | None, by: str) -> list[Line]:
    """Return the rows in order of a measure, those without a score by it last."""
    columns = {column["name"]: column["rows"] for column in (standings or {}).get("measures", [])}
    names = dict.fromkeys([*columns.get(by, {}), *(name for rows in columns.values() for name in rows)])
    bars = {name: _bars(rows, track.competition) for name, rows in columns.items()}
    return [
        Line(
            name.removeprefix(TEAM),
            name not in BASELINES,
            {of: make_score(track, rows[name], bars[of][name]) for of, rows in columns.items() if name in rows},
        )
        for name in names
    ]


def _bars(rows: dict[str, dict[str, Any]], rules: Competition) -> dict[str, tuple[float, float, float]]:
    """Place the rounded scores, as they are shown: a bar must not tell more than the number beside it."""
    sign = -1 if rules.log2 else 1  # the logarithm of a distance falls as it rises

    def number(row: dict[str, Any], key: str) -> float:
        value: float = row["score"] if row[key] is None else row[key]
        return sign * round(value, rules.digits)

    ends = {name: [number(row, key) for key in ("low", "score", "high")][::sign] for name, row in rows.items()}
    least, most = min(low for low, _, _ in ends.values()), max(high for _, _, high in ends.values())
    width = (most - least) or 1.0

    def place(value: float) -> float:
        return round(2 + 96 * (value - least) / width, 1)

    return {name: (place(low), place(score), place(high)) for name, (low, score, high) in ends.items()}


class Point(msgspec.Struct, frozen=True):
    """A run in the plot of progress."""

    x: float
    y: float
    label: str


class Plot(msgspec.Struct, frozen=True):
    """A team's released scores, run by run, in a box of 600 x 160."""

    points: list[Point]
    path: str
    top: str
    bottom: str


def progress_plot(track: Track, runs: list[Submission], measure: str) -> Plot | None:
    """Plot how a team's released scores went up or down, better ones higher; None where there are too few."""
    scored = [(run.number, run.released[measure]["score"]) for run in runs if measure in run.released]
    if len(scored) < 2:
        return None
    scored.sort()
    higher = next(each["higher"] for each in track.measures if each["name"] == measure)
    worst, best = sorted((score for _, score in scored), reverse=not higher)[:: len(scored) - 1]
    first, last = scored[0][0], scored[-1][0]
    rules = track.competition
    points = [
        Point(
            round(20 + 560 * (number - first) / max(last - first, 1), 1),
            round(140 - 120 * ((score - worst) / (best - worst) if best != worst else 0.5), 1),
            f"run {number}: {shown(score, rules.digits, rules.log2)}",
        )
        for number, score in scored
    ]
    path = " ".join(f"{point.x},{point.y}" for point in points)
    return Plot(points, path, *(shown(end, rules.digits, rules.log2) for end in (best, worst)))
