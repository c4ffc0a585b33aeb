"""The papers' own result tables, as data: `rejoinder published dialeval1 --table results`."""

import csv
from importlib.resources import files

import msgspec

from rejoinder.errors import UserError

PAPERS = {
    "dstc7": "Gunasekara et al., DSTC7 Task 1: Noetic End-to-End Response Selection (2019)",
    "moviedialog": "Dodge et al., Evaluating Prerequisite Qualities for Learning End-to-End Dialog Systems (2016)",
    "dialeval1": "Zeng et al., Overview of the NTCIR-15 Dialogue Evaluation (DialEval-1) Task (2020)",
}


class PublishedTable(msgspec.Struct, frozen=True):
    """A table of a paper: where it stands there, and what is known to be wrong with it."""

    paper: str
    name: str
    file: str
    title: str
    source: str
    notes: tuple[str, ...] = ()

    def rows(self) -> list[dict[str, str]]:
        """Return the rows as printed in the paper; an empty value was not given there."""
        text = files("rejoinder.published").joinpath(self.file).read_text("utf-8")
        return list(csv.DictReader(text.splitlines()))


def tables(paper: str | None = None) -> list[PublishedTable]:
    """Return the tables of one paper, or of all."""
    if paper is not None and paper not in PAPERS:
        raise UserError(f"no paper {paper!r}; there are {', '.join(PAPERS)}")
    text = files("rejoinder.published").joinpath("tables.json").read_bytes()
    known = msgspec.json.decode(text, type=list[PublishedTable])
    return [table for table in known if paper in (None, table.paper)]


def find(paper: str, name: str) -> PublishedTable:
    """Return one table by its name."""
    found = {table.name: table for table in tables(paper)}
    if name not in found:
        raise UserError(f"{paper} has no table {name!r}; there are {', '.join(found)}")
    return found[name]


def reference(name: str) -> dict[str, dict[str, float]]:
    """Return published rows for a report, run -> measure -> mean.

    `dialeval1/english`, `dialeval1/chinese`, `dstc7/ubuntu/1` (also advising-1, advising-2), `moviedialog/qa`.
    """
    match name.split("/"):
        case ["dialeval1", language]:
            rows = _dialeval1(language)
        case ["dstc7", dataset, subtask]:
            rows = _dstc7(dataset, subtask)
        case ["moviedialog", task]:
            rows = _moviedialog(task)
        case _:
            rows = {}
    if not rows:
        raise UserError(f"no published rows {name!r}; expected one of {', '.join(references())}")
    return rows


def references() -> list[str]:
    """Return the names of all published rows."""
    results = {paper: find(paper, "results").rows() for paper in PAPERS}
    names = [
        *(f"dialeval1/{row['language']}" for row in results["dialeval1"]),
        *(f"dstc7/{row['dataset']}/{row['subtask']}" for row in results["dstc7"]),
        *(f"moviedialog/{row['task']}" for row in results["moviedialog"]),
    ]
    return sorted(set(names))


def _collect(cells: list[tuple[str, str, str]], scale: float = 1.0) -> dict[str, dict[str, float]]:
    rows: dict[str, dict[str, float]] = {}
    for run, measure, value in cells:
        if value:
            rows.setdefault(run, {})[measure] = float(value) * scale
    return rows


def _dialeval1(language: str) -> dict[str, dict[str, float]]:
    rows = [row for row in find("dialeval1", "results").rows() if row["language"] == language]

    def measure(row: dict[str, str]) -> str:
        return row["measure"].upper() + (f"({row['criterion'].upper()})" if row["criterion"] else "")

    return _collect([(row["run"], measure(row), row["mean"]) for row in rows])


def _dstc7(dataset: str, subtask: str) -> dict[str, dict[str, float]]:
    names = {"recall_1": "R@1", "recall_10": "R@10", "recall_50": "R@50", "mrr": "MRR", "map": "MAP"}
    if subtask == "3":  # with several correct options, the paper's recall is our hits
        names |= {"recall_1": "hits@1", "recall_10": "hits@10", "recall_50": "hits@50"}
    rows = [row for row in find("dstc7", "results").rows() if (row["dataset"], row["subtask"]) == (dataset, subtask)]
    misprints = {f"team {row['team']}" for row in rows if row["note"].startswith("mrr inconsistent")}
    teams = _collect([(f"team {row['team']}", name, row[column]) for row in rows for column, name in names.items()])
    printed = _dstc7_scores(dataset.removesuffix("-2"), subtask)
    for team, means in teams.items():
        if team not in misprints:
            means["DSTC7"] = round((means[names["recall_10"]] + means["MRR"]) / 2, 4)
            continue
        del means["MRR"]  # more than the recalls allow; table 2 was made of the right one
        if team in printed:
            means["DSTC7"] = printed[team]
    return teams


def _dstc7_scores(dataset: str, subtask: str) -> dict[str, float]:
    """Return table 2's scores, which there are of the final test sets alone."""
    rows = [row for row in find("dstc7", "summary").rows() if (row["dataset"], row["subtask"]) == (dataset, subtask)]
    return {f"team {row['team']}": float(row["score"]) for row in rows if row["score"]}


def _moviedialog(task: str) -> dict[str, dict[str, float]]:
    rows = [row for row in find("moviedialog", "results").rows() if row["task"] == task]
    return _collect([(row["method"], row["measure"], row["value"]) for row in rows], scale=0.01)
