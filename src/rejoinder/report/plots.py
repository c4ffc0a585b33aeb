"""Charts of a comparison; each is an Altair chart that becomes SVG, PNG or JSON alike."""

import io
from pathlib import Path
from typing import cast

import altair as alt
import numpy as np
import polars as pl

from rejoinder.comparison import Comparison, MeasureComparison
from rejoinder.files import write_atomically

BEST, OTHER = "#0f766e", "#94a3b8"
INK = "#7b8794"  # readable on white and on black: the page may be either
_WIDTH = 560
MOST_RUNS = 40
"""Runs in a chart of pairs: more cannot be read."""
_P_LEVELS = {"p < 0.001": 0.001, "p < 0.01": 0.01, "p < 0.05": 0.05, "p ≥ 0.05": 2.0}
_P_COLOURS = ["#0f766e", "#2dba9d", "#a7ded2", "#cbd5e133"]


def styled(chart: alt.Chart | alt.LayerChart | alt.ConcatChart | alt.HConcatChart) -> alt.Chart:
    """Give a chart the colours that all have."""
    styled = chart.configure(background="transparent", font="system-ui, sans-serif", padding=14)
    styled = styled.configure_axis(
        labelColor=INK, titleColor=INK, gridColor="#94a3b840", domainColor=INK, labelLimit=220
    )
    styled = styled.configure_legend(labelColor=INK, titleColor=INK, labelLimit=260).configure_title(
        color=INK, anchor="start"
    )
    return cast(alt.Chart, styled.configure_view(stroke=None))


def means_chart(comparison: Comparison) -> alt.Chart:
    """Plot means with 95% intervals by every measure, best first; the best tie group in colour."""
    return styled(alt.concat(*(_means(by) for by in comparison.measures), columns=2, spacing=28))


def _means(by: MeasureComparison) -> alt.LayerChart:
    runs = [by.scores.runs[place] for place in by.order]
    table = pl.DataFrame(
        {
            "run": runs,
            "mean": by.scores.means[by.order],
            "low": by.low[by.order],
            "high": by.high[by.order],
            "group": ["best group" if by.is_best(place) else "other" for place in by.order],
        }
    )
    better = "higher is better" if by.measure.higher_is_better else "lower is better"
    colour = alt.Color("group:N", scale=alt.Scale(domain=["best group", "other"], range=[BEST, OTHER]), legend=None)
    base = alt.Chart(table, title=f"{by.measure.name} ({better})").encode(
        y=alt.Y("run:N", sort=runs, title=None), color=colour
    )
    x = alt.X("low:Q", title=None, scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=5))
    bars = base.mark_rule(strokeWidth=2.5).encode(x=x, x2="high:Q")
    points = base.mark_point(filled=True, size=90, opacity=1).encode(x="mean:Q")
    return cast(alt.LayerChart, (bars + points).properties(width=300, height=alt.Step(24)))


def p_value_chart(by: MeasureComparison) -> alt.Chart:
    """Plot the p-value of every pair: the row's run is better than the column's."""
    order = by.order[:MOST_RUNS]
    runs = [by.scores.runs[place] for place in order]
    pairs = [
        (by.scores.runs[better], by.scores.runs[worse], float(by.test.p[better, worse]))
        for place, better in enumerate(order)
        for worse in order[place + 1 :]
    ]
    limited = f" (best {MOST_RUNS} runs)" if len(by.order) > MOST_RUNS else ""
    table = pl.DataFrame(pairs, schema=["better", "worse", "p"], orient="row").with_columns(
        level=pl.col("p").map_elements(_level, return_dtype=pl.String),
        shown=pl.col("p").map_elements(lambda p: "<.001" if p < 0.001 else f"{p:.3f}", return_dtype=pl.String),
    )
    colour = alt.Color(
        "level:N", title=None, scale=alt.Scale(domain=list(_P_LEVELS), range=_P_COLOURS), sort=list(_P_LEVELS)
    )
    base = alt.Chart(table, title=f"{by.measure.name}: is the row better than the column?{limited}").encode(
        x=alt.X("worse:N", sort=runs, title=None, axis=alt.Axis(labelAngle=-40)),
        y=alt.Y("better:N", sort=runs, title=None),
    )
    cells = base.mark_rect(cornerRadius=4).encode(color=colour)
    ink = alt.when(alt.datum.p < _P_LEVELS["p < 0.01"]).then(alt.value("white")).otherwise(alt.value(INK))
    labels = base.mark_text(fontSize=10).encode(text="shown:N", color=ink)
    width = max(44 * (len(runs) - 1), 340)  # wide enough for the title
    return styled((cells + labels).properties(width=width, height=alt.Step(30)))


def _level(p: float) -> str:
    return next(name for name, bound in _P_LEVELS.items() if p < bound)


def differences_chart(by: MeasureComparison, points: int = 200) -> alt.Chart:
    """Plot by how much the best run beats each other one, example by example, from its worst loss to its best win."""
    best, *others = by.order
    sign = 1 if by.measure.higher_is_better else -1
    share = np.linspace(0, 1, points)
    tables = [
        pl.DataFrame(
            {
                "run": by.scores.runs[other],
                "share": share,
                "difference": np.quantile(sign * (by.scores.values[best] - by.scores.values[other]), share),
            }
        )
        for other in others[:6]
    ]
    title = f"{by.measure.name}: {by.scores.runs[best]} against the next {len(tables)}, example by example"
    lines = (
        alt.Chart(pl.concat(tables), title=title)
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X("share:Q", title="share of the examples", axis=alt.Axis(format="%")),
            y=alt.Y("difference:Q", title="better by"),
            color=alt.Color("run:N", title="against", sort=[by.scores.runs[other] for other in others[:6]]),
        )
    )
    zero = alt.Chart(pl.DataFrame({"y": [0.0]})).mark_rule(color=INK, strokeDash=[4, 4]).encode(y="y:Q")
    return styled((lines + zero).properties(width=_WIDTH, height=240))


def to_svg(chart: alt.Chart) -> str:
    """Render as SVG text."""
    text = io.StringIO()
    chart.save(text, format="svg")
    return text.getvalue()


def save_png(chart: alt.Chart, path: Path) -> None:
    """Render as a PNG file at twice the screen's resolution, on white."""
    picture = io.BytesIO()
    chart.configure(background="white").save(picture, format="png", scale_factor=2)
    with write_atomically(path) as file:
        file.write(picture.getvalue())
