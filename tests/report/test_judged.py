import polars as pl

from rejoinder.dialogue import Dialogue, Turn
from rejoinder.report.judged import alpha_table, annotators_table
from rejoinder.tasks.judgement import VOTE_SCHEMA, JudgementTask, Question

SCALE = Question("S", ("1", "0", "-1"), ordered=True)
TURNS = Question("t", ("a", "b"), ordered=False, roles={"x": ("a", "b")})


def task(*votes):
    table = pl.DataFrame([(0, *vote) for vote in votes], schema=VOTE_SCHEMA, orient="row")
    return JudgementTask((Dialogue("1", (Turn("x", ()),)),), (SCALE, TURNS), table)


def test_a_mark_stands_where_there_is_no_agreement_to_tell():
    lone = alpha_table("t", task(("S", 0, "ann", "1"), ("t", 0, "ann", "a"), ("t", 0, "bob", "b")))
    assert [row[3].text for row in lone.rows] == ["–", "–", "0.000"]
    assert lone.note == "– none, as no two people voted on the same, or all votes are alike"
    pair = alpha_table("t", task(("S", 0, "ann", "1"), ("S", 0, "bob", "0")))
    assert [row[3].text for row in pair.rows][:2] == ["0.000", "0.000"]


def test_a_mark_stands_where_labels_are_no_scale():
    votes = [(question, 0, name, label) for question, label in (("S", "1"), ("t", "a")) for name in ("ann", "bob")]
    table = annotators_table("t", task(*votes))
    assert [(row[0].text, row[4].text) for row in table.rows] == [("S", "+0.000")] * 2 + [("t", "–")] * 2
    assert table.note == "– no scale"
