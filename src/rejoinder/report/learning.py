"""The curve of a training: loss and score on dev, check by check."""

import json
from pathlib import Path

import altair as alt
import polars as pl

from rejoinder.files import write_atomically
from rejoinder.report.plots import BEST, INK, styled, to_svg


def draw_curves(folder: Path) -> list[Path]:
    """Draw a `curve.svg` beside every `history.json` of a model's folder; a model without networks has none."""
    drawn = []
    for path in sorted(folder.rglob("history.json")):
        history = json.loads(path.read_text())
        if len(history) > 1:
            drawn.append(path.with_name("curve.svg"))
            with write_atomically(drawn[-1]) as file:
                file.write(to_svg(learning_chart(history)).encode())
    return drawn


def learning_chart(history: list[dict[str, float]]) -> alt.Chart:
    """Plot the loss and, where there is one, the score on dev by the steps taken."""
    columns = {"loss": INK, "dev": BEST} if "dev" in history[0] else {"loss": INK}
    base = alt.Chart(pl.DataFrame(history)).mark_line(point=True).encode(x=alt.X("step:Q", title="steps"))
    lines = [
        base.encode(y=alt.Y(f"{name}:Q", title=name, scale=alt.Scale(zero=False)), color=alt.value(colour)).properties(
            width=320, height=180
        )
        for name, colour in columns.items()
    ]
    return styled(alt.hconcat(*lines))
