import numpy as np
import pytest

from rejoinder.comparison import Settings, compare, unwatched
from rejoinder.measures.measure import Measure, Scores

HIGHER = Measure("MRR", "a sentence", "a source", higher_is_better=True)
LOWER = Measure("NMD(A)", "a sentence", "a source", higher_is_better=False)
QUICK = Settings(seed=1, trials=500, resamples=500)


@pytest.fixture
def scores():
    rng = np.random.default_rng(0)
    values = (rng.random((4, 80)) + np.array([0.0, 0.5, 0.02, 1.0])[:, None]) / 2
    return Scores(HIGHER, ("a", "b", "c", "d"), values)


def test_order_and_groups_follow_the_direction_of_the_measure(scores):
    by = compare([scores], "title", QUICK).measures[0]
    assert [scores.runs[place] for place in by.order][:2] == ["d", "b"]
    assert by.groups == ["c", "b", "c", "a"]
    reverse = compare([Scores(LOWER, scores.runs, scores.values)], "title", QUICK).measures[0]
    assert {scores.runs[place] for place in reverse.order[:2]} == {"a", "c"}
    assert reverse.groups == ["a", "b", "a", "c"]


def test_better_than_lists_the_significant_differences_nearest_first(scores):
    by = compare([scores], "title", QUICK).measures[0]
    assert next(scores.runs[place] for place in by.better_than(3)) == "b"
    assert {scores.runs[place] for place in by.better_than(3)} == {"a", "b", "c"}
    assert by.better_than(by.order[-1]) == []


def test_intervals_hold_the_means(scores):
    by = compare([scores], "title", QUICK).measures[0]
    assert (by.low < scores.means).all()
    assert (scores.means < by.high).all()


def test_measures_of_one_question_are_correlated_and_direction_does_not_matter(scores):
    runs = ("a", "b", "c", "d", "e")
    values = np.concatenate([scores.values, scores.values[:1] / 2])
    mirrored = Scores(Measure("X", "", "", higher_is_better=False), runs, 1 - values)
    other = Scores(LOWER, runs, values)
    found = compare([Scores(HIGHER, runs, values), mirrored, other], "title", QUICK).correlations
    assert [c.measures for c in found] == [("MRR", "X")]
    assert found[0].tau.estimate == 1


def test_four_runs_are_too_few_to_correlate(scores):
    assert compare([scores, scores], "title", QUICK).correlations == []


def test_a_measure_that_ranks_all_alike_is_not_correlated():
    runs = tuple("abcde")
    flat, steep = (Scores(HIGHER, runs, np.tile(np.array([v]).T, 6)) for v in ([0.5] * 5, [0.1, 0.2, 0.3, 0.4, 0.5]))
    assert compare([flat, steep], "title", QUICK).correlations == []


def test_the_signature_says_what_the_figures_depend_on(scores):
    signature = compare([scores], "title", QUICK, {"ties": "listed-order"}).signature
    assert signature.startswith("n:80|ties:listed-order|ci:BCa95x500|test:tukey-hsd-x500|seed:1|rejoinder:")


def test_progress_adds_up_to_the_announced_total(scores):
    from contextlib import contextmanager

    seen = {}

    @contextmanager
    def watch(title, total):
        seen["total"], seen["done"] = total, 0

        def advance(amount):
            seen["done"] += amount

        yield advance

    compare([scores], "title", QUICK, watch=watch)
    assert seen["done"] == seen["total"] == 500 * 80
    with unwatched("title", 1) as advance:
        assert advance(1) is None
