"""Tables and progress for people: bars at a terminal, lines in a log; progress goes to the error stream."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table as RichTable
from rich.text import Text

from rejoinder.report.tables import Cell, Table
from rejoinder.watch import Advance


def print_table(table: Table) -> None:
    """Print to standard output; a table wider than the terminal goes on below, with its key columns again."""
    console = Console()
    console.print(Text(table.title, style="bold"), soft_wrap=True)
    for columns in _fitting(table, console.width):
        grid = RichTable(box=None, pad_edge=False, header_style="dim", padding=(0, _GAP, 0, 0))
        for column in columns:
            grid.add_column(Text(table.header[column]), overflow="fold")
        for row in table.rows:
            grid.add_row(*(_rich(row[column]) for column in columns))
        console.print(grid)
    if table.note:
        console.print(Text(table.note, style="dim"))


_GAP = 2


def _fitting(table: Table, width: int) -> Iterator[list[int]]:
    """Yield stretches of columns that fit side by side, each led by the key columns, or as many as leave room."""
    widths = [
        max([len(name), *(max(len(row[place].text), len(row[place].detail)) for row in table.rows)]) + _GAP
        for place, name in enumerate(table.header)
    ]
    keys = [place for place in range(table.keys) if sum(widths[: place + 1]) < 0.7 * width] or [0]
    columns, used = list(keys), sum(widths[place] for place in keys)
    for place in (place for place in range(len(widths)) if place not in keys):
        if len(columns) > len(keys) and used + widths[place] > width:
            yield columns
            columns, used = list(keys), sum(widths[key] for key in keys)
        columns.append(place)
        used += widths[place]
    yield columns


def _rich(cell: Cell) -> Text:
    text = Text(cell.text, style="bold green" if cell.strong else "")
    return text.append(f"\n{cell.detail}", style="dim not bold") if cell.detail else text


@contextmanager
def progress(title: str, total: int | None) -> Iterator[Advance]:
    """Show how far work came; call the value with each amount."""
    console = Console(stderr=True)
    with _bar(console, title, total) if console.is_terminal else _lines(title, total) as advance:
        yield advance


@contextmanager
def _bar(console: Console, title: str, total: int | None) -> Iterator[Advance]:
    """Show a bar, a moving one where the total is not known."""
    note = TextColumn("{task.fields[note]}", style="dim")
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn(), note)
    with Progress(*columns, console=console, transient=True) as bars:
        bar = bars.add_task(title, total=total, note="")

        def advance(amount: int, note: str = "") -> None:
            bars.update(bar, advance=amount, note=note or bars.tasks[bar].fields["note"])

        yield advance


_QUIET, _BETWEEN = 10, 60
"""Seconds of work of which a log says nothing, and between two lines, unless there is something new to say."""


@contextmanager
def _lines(title: str, total: int | None) -> Iterator[Advance]:
    """Say of work that takes long, line by line, how far it came."""
    done, said, started = 0, "", time.monotonic()
    due = started + _QUIET

    def advance(amount: int, note: str = "") -> None:
        nonlocal done, said, due
        done += amount
        now = time.monotonic()
        if now >= due or (note not in ("", said) and now >= started + _QUIET):
            parts = (title, f"{done / total:.0%}" if total else "", note)
            print(*filter(None, parts), sep=", ", file=sys.stderr, flush=True)
            said, due = note, now + _BETWEEN

    yield advance
