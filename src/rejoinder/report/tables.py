"""Tables that print alike to a terminal, Markdown, LaTeX, CSV and HTML."""

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np

from rejoinder.comparison import Comparison, Correlation, MeasureComparison


class Cell(msgspec.Struct, frozen=True):
    """A value with what belongs below or behind it: an interval, a tie group."""

    text: str
    detail: str = ""
    strong: bool = False

    def plain(self) -> str:
        """Return all of it on one line."""
        return f"{self.text} {self.detail}".strip()


class Table(msgspec.Struct, frozen=True):
    """Rows of cells under a header."""

    title: str
    header: tuple[str, ...]
    rows: Sequence[tuple[Cell, ...]]
    note: str = ""
    keys: int = 1
    """How many columns say what a row is about: they are repeated where a wide table goes on below."""


def table_of(
    title: str, header: Sequence[str], rows: Sequence[Sequence[object]], note: str = "", keys: int = 1
) -> Table:
    """Build a table of plain values."""
    return Table(title, tuple(header), [tuple(Cell(_text(value)) for value in row) for row in rows], note, keys)


def _text(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.4f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


LEGEND = "mean [95% interval]; runs with a letter in common cannot be told apart, the best group is marked"
NO_FIGURE = "–"
"""What stands where there is none."""
NO_INTERVAL = f"[{NO_FIGURE}]"
_WHY_NONE = f"{NO_INTERVAL} no interval, as all scores are equal"


def show_interval(low: float, high: float, digits: int = 4) -> str:
    """Print an interval, or that there is none."""
    return NO_INTERVAL if math.isnan(low) else f"[{low:.{digits}f}, {high:.{digits}f}]"


def note_on_intervals(measures: Iterable[MeasureComparison]) -> list[str]:
    """Say why some means have no interval, where that is so."""
    return [_WHY_NONE] if any(np.isnan(by.low).any() for by in measures) else []


def score_table(comparison: Comparison, log2: bool = False) -> Table:
    """Tabulate means with intervals and tie groups: a row a run, in order of the first measure."""
    names = comparison.ranked
    rows = [(Cell(run), *(_score_cell(by, run, log2) for by in comparison.measures)) for run in names]
    for run, means in comparison.references.items():
        published = (means.get(by.measure.name) for by in comparison.measures)
        rows.append((Cell(run), *(Cell("" if m is None else show(m, log2)) for m in published)))
    header = ("run", *(f"{by.measure.name} {'↑' if _rises(by, log2) else '↓'}" for by in comparison.measures))
    notes = [*([LEGEND] if len(names) > 1 else []), *note_on_intervals(comparison.measures)]
    if comparison.references:
        notes.append("rows with a source are published figures on other test data, and not tested")
    return Table(comparison.title, header, rows, "; ".join(notes))


def _rises(by: MeasureComparison, log2: bool) -> bool:
    return by.measure.higher_is_better or log2


def show(mean: float, log2: bool = False) -> str:
    """Print a score with four digits; `log2` shows -log2 of it, as DialEval-1's site did (section 3.3)."""
    if not log2:
        return f"{mean:.4f}".replace("-0.0000", "0.0000")
    return "inf" if mean <= 0 else f"{-np.log2(mean):.4f}"


def _score_cell(by: MeasureComparison, run: str, log2: bool) -> Cell:
    if run not in by.scores.runs:
        return Cell("")
    place = by.scores.runs.index(run)
    interval = NO_INTERVAL
    if not np.isnan(by.low[place]):
        interval = f"[{', '.join(sorted((show(float(end[place]), log2) for end in (by.low, by.high)), key=float))}]"
    letters = f" {by.groups[place]}" if len(by.scores.runs) > 1 else ""
    return Cell(show(float(by.scores.means[place]), log2), interval + letters, by.is_best(place))


def show_p(p: float) -> str:
    """Print a p-value as the papers do."""
    return "p < 0.0001" if p < 0.0001 else f"p = {p:.4f}"


def significance_table(by: MeasureComparison) -> Table:
    """Tabulate which runs are significantly better than which (the layout of DialEval-1, tables 14-29)."""
    rows = []
    for run in by.order:
        for number, other in enumerate(by.better_than(run)):
            effect = abs(by.test.effect_size[run, other])
            size = f"({show_p(float(by.test.p[run, other]))}, ES_E1 = {effect:.3f})"
            rows.append((Cell(by.scores.runs[run] if number == 0 else ""), Cell(by.scores.runs[other]), Cell(size)))
    how = "exact, all arrangements" if by.test.exact else f"B = {by.test.trials:,} trials"
    title = f"Statistical significance in terms of {by.measure.name}, randomised Tukey HSD test ({how})"
    return Table(
        title,
        ("run", "significantly better than", "how sure and how much"),
        rows,
        "" if rows else "No pair differs significantly.",
    )


def correlation_table(correlations: list[Correlation]) -> Table:
    """Tabulate how far measures rank the runs alike (the layout of DialEval-1, tables 8 and 13)."""
    rows = [
        (Cell(" vs ".join(c.measures)), Cell(f"{c.tau.estimate:.3f}", show_interval(c.tau.low, c.tau.high, 3)))
        for c in correlations
    ]
    unknown = any(math.isnan(c.tau.low) for c in correlations)
    note = f"{NO_INTERVAL} no interval, as any of these runs are ranked alike" if unknown else ""
    return Table("Rank correlation between measures", ("measures", "Kendall's tau [95% interval]"), rows, note)


def to_markdown(table: Table) -> str:
    """Return the table as Markdown."""

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    rows = [line([f"**{c.text}** {c.detail}".strip() if c.strong else c.plain() for c in row]) for row in table.rows]
    rule = "|" + "---|" * len(table.header)
    note = [f"\n{table.note}"] if table.note else []
    return "\n".join([f"**{table.title}**\n", line(table.header), rule, *rows, *note])


_LATEX = str.maketrans(
    {"&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "$": r"\$", "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}",
     "^": r"\textasciicircum{}", "\\": r"\textbackslash{}", "↑": r"$\uparrow$", "↓": r"$\downarrow$",
     "<": r"$<$", ">": r"$>$"}
)  # fmt: skip


def to_latex(table: Table) -> str:
    """Return the table as LaTeX (booktabs)."""

    def cell(c: Cell) -> str:
        text = c.text.translate(_LATEX)
        bold = rf"\textbf{{{text}}}" if c.strong else text
        return f"{bold} {c.detail.translate(_LATEX)}".strip()

    # an empty group keeps a row that starts with a bracket from being read as the line end's option
    rows = ["{}" + " & ".join(cell(c) for c in row) + r" \\" for row in table.rows]
    columns = "l" * len(table.header)
    return "\n".join(
        [
            r"\begin{table}",
            rf"\caption{{{table.title.translate(_LATEX)}}}",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            " & ".join(name.translate(_LATEX) for name in table.header) + r" \\",
            r"\midrule",
            *rows,
            r"\bottomrule",
            r"\end{tabular}",
            *([r"\\[2pt] \footnotesize " + table.note.translate(_LATEX)] if table.note else []),
            r"\end{table}",
        ]
    )


def to_csv(table: Table) -> str:
    """Return the table as CSV, one line a row."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.header)
    writer.writerows([cell.plain() for cell in row] for row in table.rows)
    return text.getvalue()


def significance_to_csv(comparison: Comparison) -> str:
    """Return every pair of runs that differs significantly: measure, run, better_than, p, effect_size."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("measure", "run", "better_than", "p", "effect_size"))
    for by in comparison.measures:
        for run in by.order:
            for other in by.better_than(run):
                figures = float(by.test.p[run, other]), abs(float(by.test.effect_size[run, other]))
                writer.writerow((by.measure.name, by.scores.runs[run], by.scores.runs[other], *figures))
    return text.getvalue()


def scores_to_csv(comparison: Comparison, by_group: Mapping[str, Comparison]) -> str:
    """Return means and intervals in long form: group (empty: all), run, measure, n, mean, low, high, letters.

    Low and high are empty where there is no interval.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("by", "run", "measure", "n", "mean", "low", "high", "group"))
    for group, part in (("", comparison), *by_group.items()):
        for by in part.measures:
            for place in by.order:
                found = (float(values[place]) for values in (by.scores.means, by.low, by.high))
                figures = ("" if math.isnan(value) else value for value in found)
                name = by.scores.runs[place]
                writer.writerow((group, name, by.measure.name, part.examples, *figures, by.groups[place]))
    return text.getvalue()


def to_object(comparison: Comparison) -> dict[str, object]:
    """Return means and intervals as one object for JSON, which has null where there is no interval."""
    return {
        "signature": comparison.signature,
        "runs": [
            {"run": run, "n": comparison.examples, "measures": _measures(comparison, run)} for run in comparison.runs
        ],
        **({"published": comparison.references} if comparison.references else {}),
        **({"notes": list(comparison.notes)} if comparison.notes else {}),
    }


def _measures(comparison: Comparison, run: str) -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = {}
    for by in comparison.measures:
        if run in by.scores.runs:
            place = by.scores.runs.index(run)
            found[by.measure.name] = {
                "mean": float(by.scores.means[place]),
                "low": float(by.low[place]),
                "high": float(by.high[place]),
                "group": by.groups[place],
            }
    return found
