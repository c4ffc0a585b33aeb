"""What a model thinks of a team's dialogues: a table or records for programs, one HTML page for people."""

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

import altair as alt
import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from rejoinder.files import write_atomically
from rejoinder.judging import FEWEST, Course, Judgements, TrendPoint, values_of
from rejoinder.model import ModelCard, Source
from rejoinder.report.page import write_page
from rejoinder.report.plots import styled, to_svg
from rejoinder.statistics import mean_intervals
from rejoinder.tasks.judgement import Question
from rejoinder.text import counted, is_chinese

MEANINGS = {
    "A": "task accomplishment",
    "S": "customer satisfaction",
    "E": "effectiveness",
    "CNUG0": "states the problem",
    "CNUG": "helps to solve it",
    "CNUG*": "says it is solved",
    "CNaN": "does not help",
    "HNUG": "helps to solve it",
    "HNUG*": "gives the solution",
    "HNaN": "does not help",
}
"""What the names of DialEval-1's questions and labels stand for."""

_COLOURS = ("#0f766e", "#5eb8a8", "#cbd5e1", "#f0a58f", "#c2410c")


def write_judgements(path: Path, found: Judgements) -> None:
    """Write a table (CSV) of one row a dialogue, or else JSON lines with every distribution."""
    with write_atomically(path) as file:
        if ".csv" in path.suffixes:
            file.write(_csv(found).encode())
        else:
            file.writelines(msgspec.json.encode(record) + b"\n" for record in records(found))


def _csv(found: Judgements) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    scores = {question.name: found.scores(question) for question in found.scales}
    if scores:
        scores["overall"] = found.overall()
    writer.writerow(["id", "time", "turns", *scores])
    for number, dialogue in enumerate(found.dialogues):
        own = ["" if np.isnan(values[number]) else f"{values[number]:.4f}" for values in scores.values()]
        time = "" if dialogue.time is None else dialogue.time.isoformat()
        writer.writerow([dialogue.id, time, len(dialogue.turns), *own])
    return text.getvalue()


def records(found: Judgements) -> Iterator[dict[str, object]]:
    """Yield what is said of each dialogue: id, overall score if known, for each question its rows' distributions."""
    overall = found.overall()
    for number, dialogue in enumerate(found.dialogues):
        record: dict[str, object] = {"id": dialogue.id}
        if not np.isnan(overall[number]):
            record["overall"] = round(float(overall[number]), 4)
        if dialogue.time is not None:
            record["time"] = dialogue.time
        for name in found.distributions:
            rows = _rows(found, name, number)
            record[name] = rows[0] if found.answers[name].question.roles is None else rows
        yield record


def _rows(found: Judgements, name: str, number: int) -> list[dict[str, object]]:
    answers, own = found.answers[name], found.of_dialogue(name, number)
    rows: list[dict[str, object]] = []
    for row in range(own.start, own.stop):
        labels = answers.question.allowed(int(answers.role[row]))
        p = dict(zip(answers.question.labels, found.distributions[name][row].tolist(), strict=True))
        rows.append(
            {
                **({} if answers.question.roles is None else {"turn": int(answers.turn[row]) + 1}),
                "likely": max(labels, key=p.__getitem__),
                "probabilities": {label: round(p[label], 4) for label in labels},
            }
        )
    return rows


class Report(msgspec.Struct, frozen=True):
    """What the page shows."""

    title: str
    found: Judgements
    worst: Sequence[int]
    """Numbers of the dialogues to show, worst first where there is a scale."""
    courses: Sequence[Course]
    """How each of them went, turn by turn."""
    trend: Sequence[TrendPoint]
    card: ModelCard


def write_report(path: Path, report: Report) -> None:
    """Write the page."""
    found = report.found
    write_page(
        path,
        "judgements.html",
        title=report.title,
        dialogues=len(found.dialogues),
        turns=sum(len(dialogue.turns) for dialogue in found.dialogues),
        period=_period(found),
        summaries=[_summary(found, question) for question in found.scales],
        colours=_COLOURS,
        trend=to_svg(_trend_chart(report.trend)) if report.trend else None,
        stretch=report.trend[0].stretch if report.trend else None,
        cases=[_case(found, number, course) for number, course in zip(report.worst, report.courses, strict=True)],
        card=report.card,
        sources=_sources(report.card),
        doubts=doubts(report.card, found),
        meanings=MEANINGS,
    )


def _period(found: Judgements) -> str | None:
    times = [dialogue.time for dialogue in found.dialogues if dialogue.time is not None]
    if not times:
        return None
    days = dict.fromkeys(f"{time:%Y-%m-%d}" for time in (min(times), max(times)))
    timeless = len(found.dialogues) - len(times)
    return " to ".join(days) + (f" ({timeless:,} without a time)" if timeless else "")


def _summary(found: Judgements, question: Question) -> dict[str, object]:
    scores = found.scores(question)
    scores = scores[~np.isnan(scores)]
    p = found.distributions[question.name].mean(axis=0)
    return {
        "name": question.name,
        "mean": float(scores.mean()),
        "interval": _interval(scores),
        "spread": float(found.spread(question).mean()),
        "shares": _shares(question, p),
        "ends": (question.labels[-1], question.labels[0]),
    }


def _interval(scores: NDArray[np.float64]) -> tuple[float, float] | str:
    """Return the ends of the mean's interval, or why it has none."""
    low, high = (float(end[0]) for end in mean_intervals(scores[None], resamples=1_000))
    if np.isnan(low):
        return "no two scores differ"
    return (low, high) if len(scores) >= FEWEST else f"{counted(len(scores), 'dialogue')} are too few"


def _shares(question: Question, p: Sequence[float]) -> list[dict[str, object]]:
    """Return the segments of a bar, best label first, each with the colour of its place on the scale."""
    places = np.linspace(0, len(_COLOURS) - 1, len(question.labels)).round().astype(int)
    return [
        {"label": label, "percent": 100 * float(share), "colour": _COLOURS[place]}
        for label, share, place in zip(question.labels, p, places, strict=True)
    ]


def _case(found: Judgements, number: int, course: Course) -> dict[str, object]:
    dialogue = found.dialogues[number]
    whole = [question for question in found.scales if question.roles is None]
    labels: list[dict[str, object]] = []
    by_turn: list[list[dict[str, object]]] = [[] for _ in dialogue.turns]
    for name in found.distributions:
        if found.answers[name].question not in whole:
            for row in _rows(found, name, number):
                place = by_turn[cast(int, row["turn"]) - 1] if "turn" in row else labels
                place.append(_label(name, row))
    return {
        "id": dialogue.id,
        "time": dialogue.time and f"{dialogue.time:%Y-%m-%d %H:%M}",
        "overall": None if np.isnan(course.scores[-1]) else course.scores[-1],
        "labels": labels,
        "bars": [
            {
                "name": question.name,
                "score": float(found.distributions[question.name][number] @ values_of(question)),
                "shares": _shares(question, found.distributions[question.name][number].tolist()),
            }
            for question in whole
        ],
        "turns": [
            {
                "side": "left" if turn.speaker == dialogue.turns[0].speaker else "right",
                "speaker": turn.speaker,
                "posts": turn.posts,
                "labels": by_turn[place],
                "score": course.scores[place],
                "wrong": place == course.wrong,
                "before": course.scores[place - 1] if place else None,
            }
            for place, turn in enumerate(dialogue.turns)
        ],
    }


def _label(name: str, row: dict[str, object]) -> dict[str, object]:
    """Return the most likely label of a row, as the page shows it."""
    p, likely = cast(dict[str, float], row["probabilities"]), str(row["likely"])
    return {"label": MEANINGS.get(likely, f"{name} {likely}"), "percent": 100 * p[likely], "all": p}


def _trend_chart(points: Sequence[TrendPoint]) -> alt.Chart:
    table = pl.DataFrame([msgspec.to_builtins(point, builtin_types=(type(points[0].time),)) for point in points])
    named = {name: f"{name} {MEANINGS.get(name, '')}".strip() for name in dict.fromkeys(table["question"])}
    table = table.with_columns(pl.col("question").replace_strict(named))
    base = alt.Chart(table).encode(x=alt.X("time:T", title=None))
    band = base.mark_area(opacity=0.25, color=_COLOURS[0]).encode(
        y=alt.Y("low:Q", title="expected score", scale=alt.Scale(zero=False)), y2="high:Q"
    )
    line = base.mark_line(point=True, color=_COLOURS[0]).encode(y="mean:Q")
    chart = (
        alt.layer(band, line)
        .properties(width=270, height=150)
        .facet(
            facet=alt.Facet(
                "question:N",
                title=None,
                sort=list(named.values()),
                header=alt.Header(labelColor="#7b8794", labelFontWeight="bold"),
            ),
            columns=3,
        )
    )
    return styled(chart)  # type: ignore[arg-type]


def _sources(card: ModelCard) -> list[Source]:
    return [source for source in (card.train, card.also) if source is not None]


def doubts(card: ModelCard, found: Judgements) -> list[str]:
    """Return where this model should not be trusted on these dialogues."""
    notes = []
    sources = _sources(card)
    most = max(source.most_turns or 10**9 for source in sources)
    longer = sum(len(dialogue.turns) > most for dialogue in found.dialogues)
    if longer:
        notes.append(
            f"{counted(longer, 'dialogue')} with more turns than any that it learned from ({most}): "
            "it can only guess there."
        )
    one_sided = sum(len({turn.speaker for turn in dialogue.turns}) < 2 for dialogue in found.dialogues)
    if one_sided:
        who = counted(one_sided, "dialogue")
        notes.append(f"{who} with one side only: nothing was answered, or it is not in the data.")
    here = is_chinese(turn.text for dialogue in found.dialogues for turn in dialogue.turns)
    if here not in {source.chinese for source in sources} and card.train.chinese is not None:
        known, given = ("other languages", "Chinese") if here else ("Chinese", "other languages")
        notes.append(f"It learned from {known} and judges {given} here: do not use these scores.")
    return notes
