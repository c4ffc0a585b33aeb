"""What the commands show and write."""

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path

import msgspec

from rejoinder import published
from rejoinder.comparison import Comparison
from rejoinder.errors import UserError
from rejoinder.evaluation import Evaluation
from rejoinder.files import BadInputError, open_binary, write_atomically
from rejoinder.folders import clear_folder
from rejoinder.report.overview import Results, agreement, agreement_table, overview_table
from rejoinder.report.tables import (
    Cell,
    Table,
    correlation_table,
    note_on_intervals,
    score_table,
    scores_to_csv,
    significance_table,
    significance_to_csv,
    table_of,
    to_csv,
    to_latex,
    to_markdown,
    to_object,
)
from rejoinder.report.terminal import print_table


class Style(StrEnum):
    """How a table is printed."""

    TERMINAL = "terminal"
    JSON = "json"
    CSV = "csv"
    MARKDOWN = "markdown"
    LATEX = "latex"


_TEXT: dict[Style, Callable[[Table], str]] = {Style.CSV: to_csv, Style.MARKDOWN: to_markdown, Style.LATEX: to_latex}


def show(table: Table, style: Style) -> None:
    """Print one table."""
    print_table(table) if style == Style.TERMINAL else print(_TEXT[style](table).rstrip("\n"))


def show_scores(evaluation: Evaluation, style: Style, log2: bool) -> None:
    """Print what `rejoinder score` found."""
    comparison = evaluation.comparison
    if log2:
        _check_log2(comparison, style)
    if style == Style.JSON:
        print(msgspec.json.encode(_with_groups(evaluation)).decode())
    elif style == Style.CSV:
        print(scores_to_csv(comparison, evaluation.by), end="")
    else:
        for table in (score_table(comparison, log2), *_group_tables(evaluation, log2)):
            show(table, style)
            print()
        print(f"{'% ' if style == Style.LATEX else ''}{comparison.signature}{'|display:-log2' if log2 else ''}")


def _check_log2(comparison: Comparison, style: Style) -> None:
    if style in (Style.JSON, Style.CSV):
        raise UserError(f"--log2 is for tables; --{style} gives the scores themselves")
    rising = [by.measure.name for by in comparison.measures if by.measure.higher_is_better]
    if rising:
        raise UserError(f"--log2 is for distances, and {rising[0]} is none")


def _with_groups(evaluation: Evaluation) -> dict[str, object]:
    found = to_object(evaluation.comparison)
    if evaluation.column:
        groups = {value: to_object(comparison)["runs"] for value, comparison in evaluation.by.items()}
        found["by"] = {"column": evaluation.column, "groups": groups}
    return found


def _group_tables(evaluation: Evaluation, log2: bool) -> list[Table]:
    """Return a table for each measure: a row a run, in the order of the scores over all groups; a column a group."""
    groups = {value: score_table(comparison, log2) for value, comparison in evaluation.by.items()}
    header = ("run", *(f"{value} (n={evaluation.by[value].examples})" for value in groups))
    tables = []
    for place, by in enumerate(evaluation.comparison.measures, 1):
        rows = []
        for run in filter(by.scores.runs.__contains__, evaluation.comparison.ranked):
            cells = (next(row[place] for row in table.rows if row[0].text == run) for table in groups.values())
            rows.append((Cell(run), *cells))
        note = "; ".join(note_on_intervals(part.measures[place - 1] for part in evaluation.by.values()))
        tables.append(Table(f"{by.measure.name} by {evaluation.column}", header, rows, note))
    return tables if evaluation.by else []


def show_comparison(comparison: Comparison) -> None:
    """Print what `rejoinder compare` found."""
    for table in _tables(comparison).values():
        print_table(table)
        print()
    print(comparison.signature)


def _tables(comparison: Comparison) -> dict[str, Table]:
    tables = {"scores": score_table(comparison)}
    tables |= {f"significance-{by.measure.name}": significance_table(by) for by in comparison.measures}
    return tables | ({"correlations": correlation_table(comparison.correlations)} if comparison.correlations else {})


def write_comparison(comparison: Comparison, out: Path) -> None:
    """Write the report, its charts and its tables to a folder, in place of an earlier report there."""
    from rejoinder.report import plots  # a second's import that only reports need
    from rejoinder.report.html import write_html

    clear_folder(out, mark="report.html", parts=("tables", "charts"))
    texts = {"scores.csv": scores_to_csv(comparison, {}), "significance.csv": significance_to_csv(comparison)}
    for name, table in _tables(comparison).items():
        texts |= {f"{name}.md": to_markdown(table), f"{name}.tex": to_latex(table)}
    for name, text in texts.items():
        with write_atomically(out / "tables" / name) as file:
            file.write((text.rstrip("\n") + "\n").encode())
    charts = {"means": plots.means_chart(comparison)}
    for by in comparison.measures:
        if len(by.scores.runs) > 1:
            charts[f"p-values-{by.measure.name}"] = plots.p_value_chart(by)
            if by.has_examples:
                charts[f"differences-{by.measure.name}"] = plots.differences_chart(by)
    for name, chart in charts.items():
        plots.save_png(chart, out / "charts" / f"{name}.png")
        with write_atomically(out / "charts" / f"{name}.svg") as file:
            file.write(plots.to_svg(chart).encode())
    with write_atomically(out / "scores.json") as file:
        file.write(msgspec.json.format(msgspec.json.encode(to_object(comparison))))
    write_html(out / "report.html", f"Comparison on {comparison.title}", [comparison])


class _Mean(msgspec.Struct):
    mean: float


class _RunScores(msgspec.Struct):
    run: str
    measures: dict[str, _Mean]


class _Scored(msgspec.Struct):
    runs: list[_RunScores]


def read_results(arguments: list[str]) -> Results:
    """Read what `rejoinder score --json` printed, named TASK=FILE each; or DSTC7's published results."""
    if arguments == ["published"]:
        return published_dstc7()
    results = {}
    for argument in arguments:
        task, equals, name = argument.partition("=")
        if not equals:
            raise BadInputError(argument, "expected TASK=FILE")
        with open_binary(Path(name)) as file:
            try:
                scored = msgspec.json.decode(file.read(), type=_Scored)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise BadInputError(name, f"not what `rejoinder score --json` prints ({error})") from None
        if task in results:
            raise BadInputError(argument, f"the task {task!r} is given twice")
        results[task] = {row.run: {m: value.mean for m, value in row.measures.items()} for row in scored.runs}
    return results


def published_dstc7() -> Results:
    """Return table 4's results on Ubuntu and the final Advising test set, with the ranking score."""
    results = {}
    for dataset, subtasks in (("ubuntu", "1245"), ("advising-2", "1345")):
        for subtask in subtasks:
            rows = published.reference(f"dstc7/{dataset}/{subtask}")
            results[f"{dataset}/{subtask}"] = rows
    return results


LOWER = ("NMD", "RSNOD", "JSD", "RNSS")


def show_overview(arguments: list[str], measure: str | None, style: Style) -> None:
    """Print what `rejoinder overview` found, by DSTC7's score or, where no task has it, by the first measure."""
    results = read_results(arguments)
    given = [name for systems in results.values() for means in systems.values() for name in means]
    known = sorted(set(given))
    if measure is None:
        measure = given[0] if given and "DSTC7" not in known else "DSTC7"
    if measure not in known:
        raise BadInputError("overview", f"no measure {measure!r}; there are {', '.join(known)}")
    higher = not measure.startswith(LOWER)
    same_direction = [name for name in known if name.startswith(LOWER) != higher and name != "DSTC7"]
    show(overview_table(results, measure, higher), style)
    found = agreement(results, same_direction, higher)
    if found.cases and style != Style.CSV:
        print()
        show(agreement_table(found, same_direction), style)


def show_published(paper: str | None, name: str | None, where: list[str], style: Style) -> None:
    """Print a published table, or the list of them."""
    if name is None:
        rows = [(table.paper, table.name, table.source, table.title) for table in published.tables(paper)]
        show(table_of("Published tables", ("paper", "table", "source", "content"), rows, keys=2), style)
        return
    if paper is None:
        raise UserError(f"--table needs a paper: {', '.join(published.PAPERS)}")
    table = published.find(paper, name)
    every = table.rows()
    chosen = _where(every, where)
    title = f"{published.PAPERS[paper]}, {table.source}: {table.title}"
    cells = [list(row.values()) for row in chosen]
    show(table_of(title, list(chosen[0]), cells, " ".join(table.notes), _keys(every)), style)


def _keys(rows: list[dict[str, str]]) -> int:
    """Return how many columns, from the first on, it takes to tell all rows apart."""
    cells = [tuple(row.values()) for row in rows]
    return next(count for count in range(1, len(rows[0]) + 1) if len({row[:count] for row in cells}) == len(cells))


def _where(rows: list[dict[str, str]], conditions: list[str]) -> list[dict[str, str]]:
    for condition in conditions:
        column, equals, value = condition.partition("=")
        if not equals or column not in rows[0]:
            raise UserError(f"--where {condition}: expected COLUMN=VALUE, with a column of {', '.join(rows[0])}")
        values = sorted({row[column] for row in rows})
        rows = [row for row in rows if row[column] == value]
        if not rows:
            raise UserError(f"--where {condition}: no such row; {column} is one of {', '.join(values)}")
    return rows
