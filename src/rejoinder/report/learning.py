"""The curve of a training: loss and score on dev, check by check."""

from pathlib import Path

import altair as alt
import msgspec
import polars as pl

from rejoinder.files import BadInputError, write_atomically
from rejoinder.prepared import HISTORY
from rejoinder.records import read_json
from rejoinder.report.plots import BEST, INK, styled, to_svg

_CURVE = "curve.svg"


class Check(msgspec.Struct, frozen=True):
    """What a history says of one check."""

    step: int
    loss: float
    dev: float | None = None


def draw_curves(folder: Path) -> tuple[list[Path], list[str]]:
    """Draw a curve beside every history that has none yet of a model's folder; a model without networks has none.

    Returns what was drawn, and what is wrong with histories that tell of no curve: the model is none the worse for it.
    """
    drawn, notes = [], []
    for path in sorted(folder.rglob(HISTORY)):
        if path.with_name(_CURVE).exists():
            continue  # of a part that was trained before
        try:
            history = read_json(path, list[Check])
        except BadInputError as error:
            notes.append(f"{error}; the model is whole, but has no curve")
            continue
        if len(history) > 1:
            drawn.append(path.with_name(_CURVE))
            with write_atomically(drawn[-1]) as file:
                file.write(to_svg(learning_chart(history)).encode())
    return drawn, notes


def learning_chart(history: list[Check]) -> alt.Chart:
    """Plot the loss and, where there is one, the score on dev by the steps taken."""
    columns = {"loss": INK} if history[0].dev is None else {"loss": INK, "dev": BEST}
    checks = pl.DataFrame(msgspec.to_builtins(history))
    base = alt.Chart(checks).mark_line(point=True).encode(x=alt.X("step:Q", title="steps"))
    lines = [
        base.encode(y=alt.Y(f"{name}:Q", title=name, scale=alt.Scale(zero=False)), color=alt.value(colour)).properties(
            width=320, height=180
        )
        for name, colour in columns.items()
    ]
    return styled(alt.hconcat(*lines))
