"""`rejoinder fuse` and `reliability`: commands on run files."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rejoinder.cli.app import Pool, RunFormat, app

if TYPE_CHECKING:
    from rejoinder.measures.calibration import Forecasts
    from rejoinder.runs.selection import SelectionRun
    from rejoinder.tasks.selection import SelectionTask


class Fusion(StrEnum):
    """How rankings are put together."""

    RANKS = "ranks"
    SCORES = "scores"
    STACK = "stack"


@app.command(epilog="Example: rejoinder fuse bm25.json bi.json --task test --out fused.json")
def fuse(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="Runs on the same task, in any format.")],
    task: Annotated[Path, typer.Option("--task", help="The task that they answer.")],
    out: Annotated[Path, typer.Option("--out", help="Run file to write.")],
    method: Annotated[
        Fusion, typer.Option("--method", help="Reciprocal ranks, mean of scores, or weights learned on dev (stack).")
    ] = Fusion.RANKS,
    dev: Annotated[Path | None, typer.Option("--dev", help="For stack: a task with answers to learn from.")] = None,
    dev_runs: Annotated[
        list[Path] | None,
        typer.Option(
            "--dev-run", metavar="RUN", help="For stack: the same systems' runs on it, in the same order (repeatable)."
        ),
    ] = None,
    pool: Pool = None,
    format_: Annotated[
        RunFormat | None,
        typer.Option("--format", help="Default: dstc7; parquet for OUT.parquet or negative scores."),
    ] = None,
) -> None:
    """Put the rankings of several runs together."""
    from rejoinder.files import BadInputError, fingerprint, spare_inputs
    from rejoinder.model import check_answers
    from rejoinder.runs.convert import default_format, write_run
    from rejoinder.systems.stacking import fuse_ranks, fuse_scores, learn_stack, stack

    spare_inputs(out, task, dev, pool, *runs, *(dev_runs or ()))
    if len(runs) < 2:
        raise BadInputError(runs[0], "one run alone; give at least two to put together")
    if method != "stack" and (dev is not None or dev_runs):
        raise BadInputError("--dev", f"nothing is learned from it by --method {method}; expected --method stack")
    if method == "stack":
        if dev is None or len(dev_runs or []) != len(runs):
            problem = f"needs --dev and a --dev-run for each of the {len(runs)} runs"
            raise BadInputError("--method stack", f"{problem} (give --dev-run once for each)")
        (asked, found), (known, known_runs) = _read([(task, runs), (dev, dev_runs or [])], pool)
        if fingerprint(dev) == fingerprint(task):
            raise BadInputError(dev, "is the task that is answered; its own answers would be learned", field="--dev")
        check_answers(dev, known)
        fused = stack(found, learn_stack(known_runs, known.truth().correct))
    else:
        [(asked, found)] = _read([(task, runs)], pool)
        fused = fuse_ranks(found) if method == "ranks" else fuse_scores(found)
    chosen = format_.value if format_ else default_format(fused, asked.unanswered(), out)
    for note in write_run(out, fused, asked.unanswered(), chosen):
        typer.echo(f"note: {note}", err=True)
    typer.echo(f"{len(runs)} runs fused, written to {out} ({chosen})")


def _read(given: list[tuple[Path, list[Path]]], pool: Path | None) -> "list[tuple[SelectionTask, list[SelectionRun]]]":
    """Read tasks, and the runs that answer each."""
    from rejoinder.files import BadInputError
    from rejoinder.report.terminal import progress
    from rejoinder.runs import read_selection_run
    from rejoinder.tasks.load import load_tasks
    from rejoinder.tasks.selection import SelectionTask

    read = []
    with progress("reading runs", sum(1 + len(runs) for _, runs in given)) as advance:
        for asked, (path, runs) in zip(load_tasks([path for path, _ in given], pool), given, strict=True):
            if not isinstance(asked, SelectionTask):
                raise BadInputError(path, "holds dialogues to judge; only rankings of options can be fused")
            advance(1)
            found, offer = [], asked.offer()
            for run in runs:
                found.append(read_selection_run(run, offer))
                advance(1)
            read.append((asked, found))
    return read


@app.command(epilog="Example: rejoinder reliability ubuntu/subtask_4/test run.json --out reliability.svg")
def reliability(
    truth: Annotated[Path, typer.Argument(metavar="TRUTH", help="A task with answers, or an answer key.")],
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run with confidences between 0 and 1.")],
    out: Annotated[Path | None, typer.Option("--out", help="Chart to write: .svg or .png.")] = None,
) -> None:
    """Say whether a run's confidences are deserved.

    And how much can be answered at which precision.
    """
    import polars as pl

    from rejoinder.files import BadInputError, spare_inputs
    from rejoinder.measures.calibration import (
        answered,
        area_under,
        calibration_error,
        coverage_at,
        of_best_option,
        of_none,
        risk_coverage,
        sums,
    )
    from rejoinder.report.tables import table_of
    from rejoinder.report.terminal import print_table
    from rejoinder.runs import read_selection_run
    from rejoinder.tasks.card import title_of
    from rejoinder.tasks.selection import SelectionTruth
    from rejoinder.tasks.truth import read_truth

    if out is not None and out.suffix not in (".svg", ".png"):
        raise BadInputError(out, "a chart is written as .svg or .png")
    if out is not None:
        spare_inputs(out, truth, run)
    answers = read_truth(truth, None, None, None)
    if not isinstance(answers, SelectionTruth):
        raise BadInputError(truth, "holds judgements; confidences in options are asked for")
    found = read_selection_run(run, answers)
    wrong = found.choices.filter(~pl.col("score").is_between(0, 1))
    if wrong.height:
        example, score = wrong.select("example", "score").row(0)
        problem = f"{score} is no confidence; expected 0 to 1, or nothing can be said of it"
        raise BadInputError(run, problem, f"example {answers.ids[example]}", "confidence")
    forecasts = {"best option": of_best_option(found, answers)}
    none = of_none(found, answers)
    if none is not None:
        forecasts["none of these"] = none
    curve = risk_coverage(forecasts["best option"])
    rows = [(f"calibration error, {name} ↓", f"{calibration_error(given):.4f}") for name, given in forecasts.items()]
    rows.append(("area under risk and coverage ↓", f"{area_under(curve):.4f}"))
    rows += [
        (f"can be answered at a precision of {wanted} ↑", f"{coverage_at(curve, wanted):.1%}")
        for wanted in (0.5, 0.7, 0.9)
    ]
    if none is not None:
        count, right = answered(found, answers)
        rows += [
            ("answered (the best option ahead of NONE)", f"{count / len(answers.ids):.1%}"),
            ("precision of these ↑", f"{right / count:.4f}" if count else "-"),
        ]
    print_table(table_of(f"{found.name} on {title_of(truth)}", ("confidences", "value"), rows))
    _note_sums(sums(found, answers))
    if out is not None:
        _draw(forecasts, out)


_FAR = 1.5
"""How many times more or less than what is right confidences may sum to, and still pass for probabilities."""


def _note_sums(found: tuple[float, float] | None) -> None:
    if found is None or found[1] / _FAR <= found[0] <= found[1] * _FAR:
        return
    sizes = "note: confidences sum to {:.2g} a list, where probabilities would sum to {:.2g}".format(*found)
    typer.echo(f"{sizes}: they put options in order, but their calibration means little", err=True)


def _draw(forecasts: "dict[str, Forecasts]", out: Path) -> None:
    from rejoinder.files import write_atomically
    from rejoinder.report.plots import save_png, to_svg
    from rejoinder.report.reliability import reliability_chart

    chart = reliability_chart(forecasts)
    if out.suffix == ".png":
        save_png(chart, out)
        return
    with write_atomically(out) as file:
        file.write(to_svg(chart).encode())
