"""One HTML page that opens offline: tables, charts as inline SVG, what was measured and how."""

from collections.abc import Mapping
from pathlib import Path

from rejoinder.comparison import Comparison, MeasureComparison
from rejoinder.report import plots
from rejoinder.report.page import write_page
from rejoinder.report.tables import Table, correlation_table, score_table, significance_table


def write_html(
    path: Path,
    title: str,
    comparisons: list[Comparison],
    overviews: list[Table] | None = None,
    systems: Mapping[str, str] | None = None,
    finding: str = "",
) -> None:
    """Write the page of one or several comparisons: `finding` says what came out, `systems` what the runs are."""
    write_page(
        path,
        "comparisons.html",
        title=title,
        overviews=overviews or [],
        systems=systems or {},
        finding=finding,
        sections=[_section(comparison) for comparison in comparisons],
    )


def _section(comparison: Comparison) -> dict[str, object]:
    several = len(comparison.runs) > 1
    return {
        "comparison": comparison,
        "scores": score_table(comparison),
        "means": plots.to_svg(plots.means_chart(comparison)) if several else None,
        "measures": [_measure(by) for by in comparison.measures if len(by.scores.runs) > 1],
        "correlations": correlation_table(comparison.correlations) if comparison.correlations else None,
    }


def _measure(by: MeasureComparison) -> dict[str, object]:
    charts = [plots.p_value_chart(by), *([plots.differences_chart(by)] if by.has_examples else [])]
    return {
        "measure": by.measure,
        "charts": [plots.to_svg(chart) for chart in charts],
        "significance": significance_table(by),
    }
