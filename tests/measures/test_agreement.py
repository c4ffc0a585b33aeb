import krippendorff
import numpy as np
import polars as pl
import pytest

from rejoinder.dialogue import Dialogue, Turn
from rejoinder.measures.agreement import agreement_table, annotator_table, krippendorff_alpha
from rejoinder.tasks.judgement import VOTE_SCHEMA, JudgementTask, Question

# Krippendorff (2011), section C: four observers, twelve units, values 1 to 5, some missing
OBSERVED = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
    [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
]


def counted(observed, labels=5):
    return np.array(
        [[[row[unit] for row in observed].count(label) for label in range(1, labels + 1)] for unit in range(12)], float
    )


@pytest.mark.parametrize(("level", "alpha"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_the_worked_example_of_the_paper(level, alpha):
    assert krippendorff_alpha(counted(OBSERVED), level) == pytest.approx(alpha, abs=5e-4)


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
def test_the_same_as_another_implementation(level):
    rng = np.random.default_rng(2)
    for units, labels in ((3, 2), (40, 5), (200, 7)):
        votes = rng.multinomial(9, rng.dirichlet(np.ones(labels)), size=units).astype(float)
        votes[::7, :] = np.eye(labels)[0]  # units with a single vote count for nothing
        other = krippendorff.alpha(value_counts=votes, value_domain=list(range(labels)), level_of_measurement=level)
        assert krippendorff_alpha(votes, level) == pytest.approx(other)


def test_where_there_is_nothing_to_agree_on():
    assert np.isnan(krippendorff_alpha(np.eye(3)))
    assert np.isnan(krippendorff_alpha(np.array([[2.0, 0], [3, 0]])))
    assert krippendorff_alpha(np.array([[2.0, 0], [0, 3]])) == 1


SCALE = Question("S", ("1", "0", "-1"), ordered=True)
TURNS = Question("t", ("a", "b", "c"), ordered=False, roles={"x": ("a", "b"), "y": ("c",)})
VOTES = [
    (0, "S", 0, "ann", "1"), (0, "S", 0, "bob", "1"), (0, "S", 0, "cem", "-1"),
    (1, "S", 0, "ann", "1"), (1, "S", 0, "bob", "0"),
    (0, "t", 0, "ann", "a"), (0, "t", 0, "bob", "b"), (1, "t", 0, "ann", "c"), (1, "t", 0, "bob", "c"),
]  # fmt: skip


def task():
    dialogues = (Dialogue("1", (Turn("x", ()),)), Dialogue("2", (Turn("y", ()),)))
    return JudgementTask(dialogues, (SCALE, TURNS), pl.DataFrame(VOTES, schema=VOTE_SCHEMA, orient="row"))


def test_questions_are_taken_as_they_are():
    table = agreement_table(task())
    assert table.select("question", "role", "level", "units", "votes").rows() == [
        ("S", None, "ordinal", 2, 5),
        ("S", None, "interval", 2, 5),
        ("t", "x", "nominal", 1, 2),
        ("t", "y", "nominal", 1, 2),
    ]


def test_annotators_against_the_others():
    table = annotator_table(task())
    ann = table.filter((pl.col("annotator") == "ann") & (pl.col("question") == "S")).row(0)
    # unit 1: one of two others agrees, mean of the others one label lower; unit 2: nobody, one label lower
    assert ann == ("S", "ann", 2, 0.25, 1.0)
    cem = table.filter(pl.col("annotator") == "cem").row(0)
    assert cem == ("S", "cem", 1, 0.0, -2.0)
    assert table.filter((pl.col("annotator") == "bob") & (pl.col("question") == "t")).row(0) == (
        "t",
        "bob",
        2,
        0.5,
        None,
    )
