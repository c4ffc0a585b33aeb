"""What the scorer tells of a comparison."""

import csv

import numpy as np

from rejoinder.board.scorer import Compare, Row, compare_rows
from rejoinder.board.vectors import pack

MEASURES = [{"name": "R@1", "sentence": "", "citation": "", "higher": True}]


def row(name, right, examples=800):
    return Row(name, pack({"R@1": (np.arange(examples) < right).astype(float)}))


def test_scores_are_rounded_alike_everywhere(tmp_path):
    """NumPy rounds .00125 to .0012 and Python, who is right, to .0013."""
    rows = [row("one", 1), row("seven", 7)]
    request = Compare("title", MEASURES, rows, 4, str(tmp_path))
    found = compare_rows(request)["measures"][0]["rows"]
    assert {name: each["score"] for name, each in found.items()} == {"seven": 0.0088, "one": 0.0013}
    with (tmp_path / "tables" / "scores.csv").open() as file:
        assert {line["run"]: float(line["mean"]) for line in csv.DictReader(file)} == {"seven": 0.0088, "one": 0.0013}


def test_order_tells_no_more_than_the_rounded_scores(tmp_path):
    """What is shown as equal stands as it was named, on the page as in the tables to take along."""
    rows = [row("A", 400), row("B", 403), row("C", 404)]
    for out in (None, str(tmp_path)):
        found = compare_rows(Compare("title", MEASURES, rows, 2, out))["measures"][0]["rows"]
        assert [(name, each["score"]) for name, each in found.items()] == [("C", 0.51), ("A", 0.5), ("B", 0.5)]


def test_a_page_shows_the_first_of_many_pairs(tmp_path):
    rows = [row(f"run {number}", 32 * number) for number in range(25)]
    (table,) = compare_rows(Compare("title", MEASURES, rows, 4, str(tmp_path)))["significance"]
    with (tmp_path / "tables" / "significance.csv").open() as file:
        pairs = len(list(csv.DictReader(file)))
    assert (len(table["rows"]), pairs > 200) == (200, True)
    assert table["note"].startswith(f"The first 200 of {pairs} pairs")
