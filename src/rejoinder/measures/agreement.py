"""How far annotators agree: Krippendorff's alpha, and each annotator against the others."""

from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rejoinder.tasks.judgement import JudgementTask, Question

Floats = NDArray[np.float64]
Level = Literal["nominal", "ordinal", "interval"]


def krippendorff_alpha(votes: Floats, level: Level = "nominal") -> float:
    """Return Krippendorff's alpha of units x labels counts of votes (Krippendorff 2011, "Computing Krippendorff's
    Alpha-Reliability", section D); NaN where no unit has two votes, or all votes are for one label.

    Labels stand in the order of their scale; for the interval level they are one apart.
    """
    votes = votes[votes.sum(axis=1) > 1]
    if not len(votes):
        return float("nan")
    paired = votes / (votes.sum(axis=1, keepdims=True) - 1)
    coincidences = paired.T @ votes - np.diag(paired.sum(axis=0))
    totals = coincidences.sum(axis=0)
    distance = _distance(totals, level)
    expected = float(totals @ distance @ totals) / (totals.sum() - 1)
    return 1 - float((coincidences * distance).sum()) / expected if expected else float("nan")


def _distance(totals: Floats, level: Level) -> Floats:
    """Return the squared distances of labels; the ordinal one counts the votes between them (equation for delta)."""
    places = np.arange(len(totals))
    if level == "nominal":
        return np.asarray(places[:, None] != places, dtype=np.float64)
    if level == "interval":
        return np.asarray((places[:, None] - places) ** 2, dtype=np.float64)
    below = np.cumsum(totals) - totals / 2
    return np.asarray((below[:, None] - below) ** 2)


def agreement_table(task: JudgementTask) -> pl.DataFrame:
    """Return alpha for each question: ordinal and interval for scales, nominal for others, for each role apart.

    Turns of different speakers have different labels; taken together, they would seem to agree by that alone.
    """
    rows = []
    for name, answers in task.truth().answers.items():
        roles = [None] if answers.question.roles is None else list(answers.question.roles)
        for place, role in enumerate(roles):
            votes = answers.votes[(answers.role == place) & answers.voted]
            levels: tuple[Level, ...] = ("ordinal", "interval") if answers.question.ordered else ("nominal",)
            for level in levels:
                rows.append((name, role, level, krippendorff_alpha(votes, level), len(votes), int(votes.sum())))
    schema = {"question": pl.String, "role": pl.String, "level": pl.String, "alpha": pl.Float64, "units": pl.Int64}
    return pl.DataFrame(rows, schema={**schema, "votes": pl.Int64}, orient="row")


def annotator_table(task: JudgementTask) -> pl.DataFrame:
    """Return, for each annotator and question, the votes, the share of the others who agree and, for scales, the bias.

    The bias is how many labels an annotator's votes lie on average above the others' mean (towards the scale's start).
    """
    if task.votes is None:
        raise ValueError("this task has no votes")
    return pl.concat([_by_annotator(task.votes, question) for question in task.questions])


def _by_annotator(votes: pl.DataFrame, question: Question) -> pl.DataFrame:
    unit = ["dialogue", "turn"]
    own = votes.filter(pl.col("question") == question.name).with_columns(
        pl.col("label").cast(pl.Enum(question.labels)).to_physical().cast(pl.Float64).alias("place"),
        others=pl.len().over(unit) - 1,
        same=pl.len().over([*unit, "label"]) - 1,
    )
    compared = own.filter(pl.col("others") > 0).with_columns(
        mean=(pl.col("place").sum().over(unit) - pl.col("place")) / pl.col("others")
    )
    bias = (pl.col("mean") - pl.col("place")).mean() if question.ordered else pl.lit(None, pl.Float64)
    return (
        compared.group_by("annotator", maintain_order=True)
        .agg(
            pl.lit(question.name).first().alias("question"),
            pl.len().alias("votes"),
            (pl.col("same") / pl.col("others")).mean().alias("agreement"),
            bias.alias("bias"),
        )
        .select("question", "annotator", "votes", "agreement", "bias")
    )
