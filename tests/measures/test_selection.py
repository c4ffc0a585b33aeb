import ir_measures
import numpy as np
import polars as pl
import pytest
from ir_measures import AP, RR, P, R, Success

from rejoinder.measures.measure import UnknownMeasureError
from rejoinder.measures.selection import default_names, parse, score
from rejoinder.runs.selection import SelectionRun
from rejoinder.tasks.selection import NONE, SelectionTruth, to_pairs


def truth_of(*correct: tuple[str, ...]) -> SelectionTruth:
    pairs = [(number, option) for number, options in enumerate(correct) for option in options]
    ids = pl.Series("id", [str(number) for number in range(len(correct))])
    return SelectionTruth(ids, to_pairs(*zip(*pairs, strict=True)))


def run_of(*rankings: dict[str, float]) -> SelectionRun:
    rows = [
        (example, option, confidence)
        for example, ranking in enumerate(rankings)
        for option, confidence in ranking.items()
    ]
    return SelectionRun(
        "run", pl.DataFrame(rows, schema={"example": pl.UInt32, "option": pl.String, "score": pl.Float64}, orient="row")
    )


def test_measures_of_one_correct_option_by_hand():
    truth = truth_of(("a",), ("b",), ("x",))
    run = run_of({"a": 0.9, "b": 0.1}, {"c": 0.5, "a": 0.3, "b": 0.2}, {"y": 1.0, "z": 0.5})
    found = score(run, truth, ["R@1", "R@2", "R@3", "MRR", "MAP", "hits@3", "P@2", "DSTC7"])
    assert found["R@1"].tolist() == [1, 0, 0]
    assert found["R@2"].tolist() == [1, 0, 0]
    assert found["R@3"].tolist() == [1, 1, 0]
    assert found["hits@3"].tolist() == [1, 1, 0]
    assert found["MRR"].tolist() == [1, 1 / 3, 0]
    assert found["MAP"].tolist() == [1, 1 / 3, 0]
    assert found["P@2"].tolist() == [0.5, 0, 0]
    assert found["DSTC7"].tolist() == pytest.approx([1, (1 + 1 / 3) / 2, 0])


def test_measures_of_several_correct_options_by_hand():
    truth = truth_of(("a", "b", "c"))
    run = run_of({"x": 5, "a": 4, "y": 3, "b": 2, "z": 1})
    found = score(run, truth, ["R@1", "R@2", "R@4", "hits@2", "MRR", "MAP"])
    assert found["R@1"] == [0]
    assert found["R@2"] == pytest.approx([1 / 3])
    assert found["R@4"] == pytest.approx([2 / 3])
    assert found["hits@2"] == [1]
    assert found["MRR"] == [0.5]
    # precision 1/2 at a, 2/4 at b; c is not listed and adds nothing, but counts
    assert found["MAP"] == pytest.approx([(1 / 2 + 2 / 4) / 3])


def test_none_is_the_correct_option_where_no_other_is():
    truth = truth_of((NONE,), (NONE,), ("a",))
    run = run_of({NONE: 0.8, "a": 0.1}, {"a": 0.6, NONE: 0.4}, {NONE: 0.9, "a": 0.1})
    found = score(run, truth, ["R@1", "MRR"])
    assert found["R@1"].tolist() == [1, 0, 0]
    assert found["MRR"].tolist() == [1, 0.5, 0.5]


def test_f90_by_hand():
    """Choices that cover 90%: a b of the first example, c of the second, x y z of the third."""
    truth = truth_of(("a",), ("d",), ("x", "z"))
    run = run_of({"a": 0.6, "b": 0.3, "c": 0.1}, {"c": 95.0, "d": 5.0}, {"x": 0.4, "y": 0.3, "z": 0.25, "w": 0.05})
    found = score(run, truth, ["F90"])["F90"]
    selected, right, correct = 2 + 1 + 3, 1 + 0 + 2, 1 + 1 + 2
    precision, recall = right / selected, right / correct
    assert found.mean() == pytest.approx(2 * precision * recall / (precision + recall))


def test_f90_is_linearised_without_bias():
    """The spread of the examples' values gives the interval of the pooled F, as resampling whole examples does."""
    rng = np.random.default_rng(0)
    correct = [("a", "b") if n % 2 else ("a",) for n in range(400)]
    rankings = [sorted(zip("abcdef", rng.dirichlet(np.ones(6)), strict=True), key=lambda c: -c[1]) for _ in range(400)]
    values = score(run_of(*map(dict, rankings)), truth_of(*correct), ["F90"])["F90"]
    counts = []
    for right, ranking in zip(correct, rankings, strict=True):
        covered = np.cumsum([share for _, share in ranking])
        selected = [option for option, _ in ranking[: int(np.searchsorted(covered, 0.9)) + 1]]
        counts.append((len(set(selected) & set(right)), len(selected), len(right)))
    drawn = np.array(counts)[rng.integers(400, size=(4_000, 400))].sum(axis=1)
    pooled = 2 * drawn[:, 0] / (drawn[:, 1] + drawn[:, 2])
    assert values.mean() == pytest.approx(pooled.mean(), abs=0.003)
    assert values.std() / 20 == pytest.approx(pooled.std(), rel=0.05)


def test_f90_refuses_negative_confidences():
    with pytest.raises(UnknownMeasureError, match="negative"):
        score(run_of({"a": 0.5, "b": -0.5}), truth_of(("a",)), ["F90"])


def random_case(rng, examples=60, options=40):
    truth, run = [], []
    for _ in range(examples):
        names = [f"o{n}" for n in rng.permutation(200)[:options]]
        truth.append(tuple(names[: rng.integers(1, 6)]))
        listed = rng.permutation(names)[: rng.integers(1, options + 1)]
        scores = np.sort(rng.random(len(listed)))[::-1]
        run.append(dict(zip(listed.tolist(), scores.tolist(), strict=True)))
    return truth, run


@pytest.mark.parametrize("seed", range(5))
def test_agreement_with_ir_measures_and_pytrec_eval(seed):
    truth, run = random_case(np.random.default_rng(seed))
    theirs = {
        "R@1": R @ 1, "R@10": R @ 10, "R@50": R @ 50, "MRR": RR, "MAP": AP, "hits@1": Success @ 1,
        "hits@10": Success @ 10, "P@5": P @ 5,
    }  # fmt: skip
    qrels = [ir_measures.Qrel(str(n), option, 1) for n, correct in enumerate(truth) for option in correct]
    rows = [ir_measures.ScoredDoc(str(n), option, s) for n, ranking in enumerate(run) for option, s in ranking.items()]
    expected = {name: np.zeros(len(truth)) for name in theirs}
    names = {str(measure): name for name, measure in theirs.items()}
    for metric in ir_measures.iter_calc(list(theirs.values()), qrels, rows):
        expected[names[str(metric.measure)]][int(metric.query_id)] = metric.value
    ours = score(run_of(*run), truth_of(*truth), list(theirs))
    for name in theirs:
        assert ours[name] == pytest.approx(expected[name], abs=1e-12), name


@pytest.mark.parametrize("name", ["R@0", "R@", "recall@1", "R@-1", "MRR@10", "", "hits", "nDCG"])
def test_unknown_measures_are_named(name):
    with pytest.raises(UnknownMeasureError, match=f"'{name}'"):
        parse(name)


def test_every_declared_measure_has_a_sentence_and_a_source():
    for name in ("R@7", "hits@3", "P@5", "MRR", "MAP", "DSTC7", "F90"):
        measure, _ = parse(name)
        assert measure.name == name
        assert measure.sentence
        assert measure.citation


def test_default_measures_follow_the_truth():
    assert default_names(truth_of(("a",))) == ["R@1", "R@10", "R@50", "MRR", "DSTC7"]
    assert "MAP" in default_names(truth_of(("a",), ("a", "b")))
    assert "hits@10" in default_names(truth_of(("a", "b")))


def test_f90_takes_confidences_of_any_size():
    truth = truth_of(("a",), ("a",), ("a",))
    shares = {"a": 0.5, "b": 0.3, "c": 0.2}
    plain = score(run_of(shares, shares, shares), truth, ["F90"])["F90"].mean()
    huge = {option: share * 1e17 for option, share in shares.items()}
    largest = {option: share * 1.7e308 for option, share in shares.items()}
    assert score(run_of(huge, shares, largest), truth, ["F90"])["F90"].mean() == pytest.approx(plain)


def test_f90_of_no_confidence_selects_nothing():
    truth = truth_of(("a",), ("a",))
    run = run_of({"a": 0.0, "b": 0.0}, {"a": 1.0, "b": 0.0})
    # one example selects nothing, the other the right one: F = 2 * 1 / (1 + 2)
    assert score(run, truth, ["F90"])["F90"].mean() == pytest.approx(2 / 3)


def test_some_examples_are_scored_as_if_they_were_all():
    truth = truth_of(("a",), ("b", "c"), ("d",))
    run = run_of({"a": 0.6, "b": 0.4}, {"x": 0.5, "b": 0.3, "c": 0.2}, {"y": 0.9, "d": 0.1})
    alone = score(
        run_of({"a": 0.6, "b": 0.4}, {"y": 0.9, "d": 0.1}), truth_of(("a",), ("d",)), ["F90", "MRR", "MAP", "R@1"]
    )
    chosen = score(run, truth, ["F90", "MRR", "MAP", "R@1"], np.array([True, False, True]))
    for name, values in alone.items():
        assert chosen[name] == pytest.approx(values)
