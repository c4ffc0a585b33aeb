"""The chart of a run's confidences: how often they are right, and what is gained by not answering in doubt."""

from collections.abc import Mapping
from typing import cast

import altair as alt
import polars as pl

from rejoinder.measures.calibration import Forecasts, reliability, risk_coverage
from rejoinder.report.plots import BEST, INK, OTHER, styled


def reliability_chart(forecasts: Mapping[str, Forecasts]) -> alt.Chart:
    """Plot, for each kind of forecast, confidence against truth; and risk against coverage for the first kind."""
    first = next(iter(forecasts.values()))
    return styled(alt.hconcat(_reliability(forecasts), _risk(first), spacing=36))


def _reliability(forecasts: Mapping[str, Forecasts]) -> alt.LayerChart:
    tables = [reliability(found).with_columns(what=pl.lit(name)) for name, found in forecasts.items()]
    colours = alt.Scale(domain=list(forecasts), range=[BEST, OTHER])
    x = alt.X("confidence:Q", title="confidence", scale=alt.Scale(domain=[0, 1]))
    y = alt.Y("right:Q", title="share that was right", scale=alt.Scale(domain=[0, 1]))
    base = alt.Chart(pl.concat(tables), title="Is confidence deserved?").encode(
        x=x, y=y, color=alt.Color("what:N", title=None, scale=colours)
    )
    diagonal = (
        alt.Chart(pl.DataFrame({"confidence": [0.0, 1.0], "right": [0.0, 1.0]}))
        .mark_line(color=INK, strokeDash=[4, 4])
        .encode(x=x, y=y)
    )
    layers = diagonal + base.mark_line(strokeWidth=1.5) + base.mark_point(filled=True, size=70, opacity=1)
    return cast(alt.LayerChart, layers.properties(width=280, height=280))


def _risk(forecasts: Forecasts) -> alt.Chart:
    curve = risk_coverage(forecasts).filter(pl.col("coverage") >= 0.01)  # of the first few, one mistake says little
    step = max(1, curve.height // 500)
    chart = alt.Chart(curve.gather_every(step), title="What if only the surest are answered?")
    line = (
        chart.mark_line(color=BEST, strokeWidth=2)
        .encode(
            x=alt.X("coverage:Q", title="share of the examples answered", axis=alt.Axis(format="%")),
            y=alt.Y("risk:Q", title="share of the answers that are wrong", axis=alt.Axis(format="%")),
        )
        .properties(width=280, height=280)
    )
    return cast(alt.Chart, line)
