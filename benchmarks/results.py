"""What was measured, as Markdown."""

import datetime
import os
import platform
import re
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple

from benchmarks.measuring import Timing

LIBRARIES = (
    "flashtext",
    "ir-measures",
    "msgspec",
    "numpy",
    "polars",
    "pytrec-eval-terrier",
    "ranx",
    "rejoinder",
    "scipy",
    "typer",
)


class Goal(NamedTuple):
    """Something that was aimed for, what came out, and whether that is enough."""

    aim: str
    found: str
    met: bool


class Table(NamedTuple):
    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()


class Section(NamedTuple):
    title: str
    tables: Sequence[Table] = ()
    goals: Sequence[Goal] = ()
    needs: str = ""
    """What it could not be measured without."""


def to_markdown(sections: Iterable[Section], quick: bool, page: str = "") -> str:
    """Return the page with these sections in it; others that it has, and what cannot be measured, stay as they are."""
    parts = {title: text.rstrip() for title, text in re.findall(r"^## ([^\n]*)\n\n(.*?)(?=^## |\Z)", page, re.M | re.S)}
    for section in sections:
        if section.needs:
            parts.setdefault(section.title, f"Not measured: it needs {section.needs}.")
        else:
            parts[section.title] = _section(section)
    return "\n\n".join([_head(quick), *(f"## {title}\n\n{text}" for title, text in sorted(parts.items()))]) + "\n"


def _section(section: Section) -> str:
    python = f"{platform.python_implementation()} {platform.python_version()}"
    where = f"{_cores()}, {platform.system()}, {python}; {', '.join(_versions())}"
    parts = [f"Measured on {datetime.date.today()}: {where}.", *_goals(section)]
    for table in section.tables:
        parts += [f"**{table.title}**", _grid(table.header, table.rows), *table.notes]
    return "\n\n".join(parts)


def _head(quick: bool) -> str:
    small = "\n\nA quick run on tiny sizes: it shows that everything runs, and no figure of it means anything."
    return (
        "<!-- Written by `make bench` and `python -m benchmarks TOPIC`. Edits are lost. -->\n\n# Results\n\n"
        "Peers and Rejoinder took turns in one run. Times are medians, with the least and the most in brackets. Where "
        "a call is timed and not a process, the first one, which may compile or load, is not among them. Ratios are "
        "the peer's time over Rejoinder's: above 1, Rejoinder is faster." + (small if quick else "")
    )


def _cores() -> str:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return f"{usable} core{'s' if usable > 1 else ''}"


def _versions() -> Iterable[str]:
    for library in LIBRARIES:
        try:
            yield f"{library} {version(library)}"
        except PackageNotFoundError:
            yield f"{library} not installed"


def _goals(section: Section) -> list[str]:
    rows = [(goal.aim, goal.found, "yes" if goal.met else "**no**") for goal in section.goals]
    return [_grid(("goal", "measured", "met"), rows)] if rows else []


def _grid(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def seconds(value: float) -> str:
    if value >= 100:
        return f"{value:.0f} s"
    if value >= 0.9995:
        return f"{value:.3g} s"
    return f"{value * 1e3:.3g} ms" if value >= 0.9995e-3 else f"{value * 1e6:.3g} µs"


def timing(taken: Timing) -> str:
    return f"{seconds(taken.median)} ({seconds(taken.low)} to {seconds(taken.high)})"


def ratio(peer: float, ours: float) -> str:
    value = peer / ours
    return f"{value:.0f}x" if value >= 100 else f"{value:.2g}x" if value < 10 else f"{value:.3g}x"


def megabytes(value: float) -> str:
    return f"{value:.0f} MB"
