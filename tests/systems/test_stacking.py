import numpy as np
import polars as pl
import pytest
from scipy.special import softmax as scipy_softmax
from sklearn.linear_model import LogisticRegression

from rejoinder.errors import UserError
from rejoinder.runs.selection import SelectionRun
from rejoinder.systems.stacking import (
    fuse_ranks,
    fuse_scores,
    learn_stack,
    learn_weights,
    scale_of,
    softmax,
    stack,
    strengths,
)


def run_of(scores):
    """Take {example: {option: score}}."""
    rows = [
        (example, option, float(score))
        for example, options in enumerate(scores)
        for option, score in sorted(options.items(), key=lambda item: -item[1])
    ]
    schema = {"example": pl.UInt32, "option": pl.String, "score": pl.Float64}
    return SelectionRun("run", pl.DataFrame(rows, schema=schema, orient="row"))


def random_runs(examples, options, seed=0):
    """Make two noisy views of the same truth, the second better, and the truth: option 0 is right."""
    rng = np.random.default_rng(seed)
    truth = np.zeros((examples, options))
    truth[:, 0] = 1
    views = [3 * truth + 3 * rng.normal(size=truth.shape), 30 * truth + 15 * rng.normal(size=truth.shape)]
    runs = [run_of([{f"o{place}": score for place, score in enumerate(row)} for row in view]) for view in views]
    example = pl.Series("example", np.arange(examples), dtype=pl.UInt32)
    return runs, pl.DataFrame([example]).with_columns(option=pl.lit("o0"))


def best(run):
    return run.choices.group_by("example", maintain_order=True).first()["option"].to_list()


def test_a_worked_example_of_both_fusions():
    one, two = run_of([{"a": 9, "b": 5, "c": 1}]), run_of([{"b": 30, "c": 20, "a": 10}])
    fused = fuse_ranks([one, two]).choices
    assert fused["option"].to_list() == ["b", "a", "c"]
    assert fused["score"].to_list() == pytest.approx([1 / 62 + 1 / 61, 1 / 61 + 1 / 63, 1 / 63 + 1 / 62])
    # standard scores: 1, 0, -1 and -1, 1, 0
    assert fuse_scores([one, two]).choices["score"].to_list() == pytest.approx(scipy_softmax([0.5, 0, -0.5]))


def test_what_a_run_lacks_is_worse_than_all_it_has():
    fused = fuse_ranks([run_of([{"a": 2, "b": 1}]), run_of([{"c": 5, "b": 4}])]).choices
    assert fused["option"].to_list() == ["a", "c", "b"]
    assert fused["score"].to_list() == pytest.approx([1 / 61 + 1 / 63, 1 / 61 + 1 / 63, 2 / 62])


def test_equals_share_their_ranks_whatever_comes_first():
    one, two = run_of([{"a": 1, "b": 1, "c": 0}]), run_of([{"c": 3, "b": 2, "a": 1}])
    expected = {"a": 1 / 61.5 + 1 / 63, "b": 1 / 61.5 + 1 / 62, "c": 1 / 63 + 1 / 61}
    other = SelectionRun("other", one.choices[[1, 0, 2]])
    for first in (one, other):
        fused = fuse_ranks([first, two]).choices
        assert dict(zip(fused["option"], fused["score"], strict=True)) == pytest.approx(expected)
    lacking = fuse_ranks([run_of([{"a": 1, "b": 1}]), run_of([{"d": 1}])]).choices
    assert dict(lacking.select("option", "score").iter_rows())["d"] == pytest.approx(1 / 63 + 1 / 61)


def test_stacking_beats_its_members_and_leans_on_the_better_one():
    runs, correct = random_runs(400, 10, seed=1)
    tests, _ = random_runs(400, 10, seed=2)
    learned = learn_stack(runs, correct)
    scores = [np.mean(np.array(best(run)) == "o0") for run in (*tests, stack(tests, learned))]
    assert scores[2] > scores[1] + 0.02 > scores[0]


def test_a_stack_does_not_depend_on_what_else_is_asked():
    runs, correct = random_runs(100, 10)
    learned = learn_stack(runs, correct)
    alone = [SelectionRun("", run.choices.filter(pl.col("example") == 7)) for run in runs]
    whole = stack(runs, learned).choices.filter(pl.col("example") == 7)
    assert stack(alone, learned).choices["score"].to_list() == pytest.approx(whole["score"].to_list())


def test_with_two_options_a_conditional_logit_is_a_logistic_regression_on_differences():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(600, 3))
    values /= values.std(axis=0)
    example = np.repeat(np.arange(300), 2)
    first = rng.random(300) < 1 / (1 + np.exp(-(values[::2] - values[1::2]) @ [1.0, -2.0, 0.5]))
    correct = np.stack([first, ~first], axis=1).ravel()
    peer = LogisticRegression(fit_intercept=False, tol=1e-8).fit(values[::2] - values[1::2], first)
    assert learn_weights(values, example, correct) == pytest.approx(peer.coef_[0], abs=1e-3)


def test_several_correct_options_share_the_credit_and_examples_without_one_teach_nothing():
    values = np.array([[1.0], [1.0], [0.0], [5.0], [6.0]])
    example = np.array([0, 0, 0, 1, 1])
    both = learn_weights(values, example, np.array([True, True, False, False, False]))
    assert both[0] > 0
    assert learn_weights(values[3:], example[3:], np.array([False, False])) == pytest.approx([0])


def test_softmax_within_groups():
    logits = np.array([1.0, 2.0, 1000.0, 3.0, -5.0])
    found = softmax(logits, np.array([0, 2, 3]))
    assert found == pytest.approx([*scipy_softmax([1, 2]), 1, *scipy_softmax([3, -5])])


def test_rounded_shares_are_shares():
    other = run_of([{"a": 10, "b": 20, "c": 30}])
    exact, rounded = (fuse_scores([run_of([{"a": 0.9, "b": 0.09, "c": least}]), other]) for least in (0.01, 0.0101))
    assert rounded.choices["score"].to_list() == pytest.approx(exact.choices["score"].to_list(), rel=1e-2)


def test_shares_are_taken_by_their_logarithm_and_cosines_of_short_lists_are_not():
    shares = run_of([{"a": 0.9, "b": 0.09, "c": 0.01}] * 3)
    huge = SelectionRun("huge", shares.choices.with_columns(score=pl.col("score") * -1e300))
    with pytest.raises(UserError, match=r"huge: -9e\+299 is too large a score to be weighed beside others"):
        scale_of(huge)
    assert strengths(shares, scale_of(shares)).tolist() == pytest.approx(np.log([0.9, 0.09, 0.01] * 3))
    cosines = run_of([{"a": 0.3, "b": 0.1, "c": 0.0}, {"a": 0.7, "b": 0.1, "c": 0.0}, {"a": 0.2, "b": 0.1, "c": 0.0}])
    assert strengths(cosines, scale_of(cosines)) == pytest.approx(
        cosines.choices["score"].to_numpy() / cosines.choices["score"].to_numpy().std()
    )


def test_the_one_choice_of_a_run_is_better_than_what_it_lacks():
    fused = fuse_scores([run_of([{"b": 0.99}]), run_of([{"a": 3, "b": 2, "c": 1}])])
    assert best(fused) == ["b"]


def test_a_stack_learns_nothing_from_lists_of_one():
    alone = run_of([{"a": 1}, {"b": 2}])
    correct = pl.DataFrame({"example": [0, 1], "option": ["a", "b"]}, schema_overrides={"example": pl.UInt32})
    with pytest.raises(UserError, match="dev teaches no weights"):
        learn_stack([alone, alone], correct)


def test_of_what_is_the_same_for_all_nothing_is_learned():
    """Its spread is not exactly nothing: the mean of many logarithms is rounded."""
    rng = np.random.default_rng(0)
    example, constant = np.repeat(np.arange(601), 100), np.full(60_100, np.log(1 / 100))
    assert constant.std() > 0
    weights = learn_weights(np.column_stack([rng.normal(size=60_100), constant]), example, np.arange(60_100) % 100 == 0)
    assert abs(weights[1]) < 1e-9


def test_equal_scores_add_nothing_however_they_are_rounded():
    rng = np.random.default_rng(0)
    names = [f"o{place}" for place in range(100)]
    other = run_of([dict(zip(names, row, strict=True)) for row in rng.normal(size=(20, 100))])
    even = run_of([dict.fromkeys(names, 0.01 + 1e-4 * number) for number in range(20)])
    fused = fuse_scores([even, other]).choices
    assert fused["score"].is_finite().all()
    assert best(SelectionRun("fused", fused)) == best(other)


def test_many_examples_are_fused_as_few_are():
    """Examples are joined a thousand at a time; some run has none of some."""
    rng = np.random.default_rng(1)
    views = [run_of([dict(zip("abc", row, strict=True)) for row in rng.normal(size=(2500, 3))]) for _ in range(2)]
    views[1] = SelectionRun("gaps", views[1].choices.filter(pl.col("example") % 7 != 0))
    whole = fuse_ranks(views).choices
    for first, end in ((0, 3), (998, 1003), (2497, 2500)):
        few = [SelectionRun("few", run.choices.filter(pl.col("example").is_between(first, end - 1))) for run in views]
        assert fuse_ranks(few).choices.equals(whole.filter(pl.col("example").is_between(first, end - 1)))
    assert whole["example"].n_unique() == 2500


def test_the_least_of_shares_stay_apart():
    choices = pl.DataFrame({"example": [0] * 4, "option": list("abcd"), "score": [1.0, 1e-12, 1e-16, 0.0]})
    found = strengths(SelectionRun("", choices), 0.0)
    assert found.tolist() == pytest.approx([0, np.log(1e-12), np.log(1e-16), np.log(1e-16)])
    whole = choices.with_columns(score=pl.Series([0.6, 0.4, 0.0, 0.0]))
    assert strengths(SelectionRun("", whole), 0.0).tolist() == pytest.approx([*np.log([0.6, 0.4]), *[np.log(1e-9)] * 2])


def test_strengths_do_not_depend_on_what_else_is_asked():
    few = run_of([{"a": 1.0, "b": 0.0}])
    many = run_of([{"a": 1.0, "b": 0.0}, {"a": 1.0, "b": 1e-14}])
    assert strengths(many, 0.0)[:2].tolist() == strengths(few, 0.0).tolist() == pytest.approx([0, np.log(1e-9)])


def test_scores_too_small_to_be_squared_are_fused():
    tiny, plain = ([{"a": scale * 3, "b": scale * 2, "c": scale}] * 2 for scale in (1e-200, 1.0))
    found, expected = (fuse_scores([run_of(plain), run_of(other)]).choices for other in (tiny, plain))
    assert found["option"].to_list() == expected["option"].to_list()
    assert found["score"].to_list() == pytest.approx(expected["score"].to_list())
