"""Tables of judged data: statistics, agreement and annotators."""

import math
from collections.abc import Mapping

from rejoinder.measures.agreement import agreement_table, annotator_table
from rejoinder.report.tables import NO_FIGURE, Table, table_of
from rejoinder.tasks.description import JudgedData, describe_judged
from rejoinder.tasks.judgement import JudgementTask

_ROWS = {
    "#dialogues": "dialogues",
    "#annotators/dialogue": "annotators_per_dialogue",
    "Avg. #posts/dialogue": "posts_per_dialogue",
    "Avg. #turns/dialogue": "turns_per_dialogue",
    "Avg. post length": "post_length",
    "Avg. turn length": "turn_length",
    "Unit of length": "unit",
}


def statistics_table(tasks: Mapping[str, JudgementTask]) -> Table:
    """Return the layout of DialEval-1's table 3, a column for each task."""
    data = {name: describe_judged(task) for name, task in tasks.items()}
    rows = [(label, *(_value(getattr(own, field)) for own in data.values())) for label, field in _ROWS.items()]
    labels = ("Questions and labels", *(_labels(own) for own in data.values()))
    return table_of("Statistics (layout of DialEval-1, table 3)", ("", *data), [*rows, labels])


def _labels(data: JudgedData) -> str:
    return "; ".join(f"{name}: {', '.join(labels)}" for name, labels in data.questions.items())


def _value(value: object) -> str:
    return f"{value:,.3f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def alpha_table(name: str, task: JudgementTask) -> Table:
    """Return Krippendorff's alpha for each question."""
    rows = [
        (question, role or "dialogue", level, _alpha(alpha), f"{units:,}", f"{votes:,}")
        for question, role, level, alpha, units, votes in agreement_table(task).iter_rows()
    ]
    header = ("question", "of", "level", "Krippendorff's alpha", "units", "votes")
    unknown = any(row[3] == NO_FIGURE for row in rows)
    note = f"{NO_FIGURE} none, as no two people voted on the same, or all votes are alike" if unknown else ""
    return table_of(f"Agreement: {name}", header, rows, note)


def _alpha(alpha: float) -> str:
    return NO_FIGURE if math.isnan(alpha) else f"{alpha:.3f}"


def annotators_table(name: str, task: JudgementTask) -> Table:
    """Return what can be said of each annotator."""
    rows = [
        (question, annotator, f"{votes:,}", f"{agreement:.3f}", NO_FIGURE if bias is None else f"{bias:+.3f}")
        for question, annotator, votes, agreement, bias in annotator_table(task).iter_rows()
    ]
    header = ("question", "annotator", "votes", "share of the others who agree", "labels above the others' mean")
    note = f"{NO_FIGURE} no scale" if any(row[4] == NO_FIGURE for row in rows) else ""
    return table_of(f"Annotators: {name}", header, rows, note, keys=2)
