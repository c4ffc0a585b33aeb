import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon
from scipy.stats import wasserstein_distance

from rejoinder.measures.judgement import default_names, jsd, nmd, parse, rnss, rsnod, score
from rejoinder.measures.measure import UnknownMeasureError
from rejoinder.runs.judgement import JudgementRun
from rejoinder.tasks.dialeval import NUGGET, QUALITY
from rejoinder.tasks.judgement import Answers, JudgementTruth

MEASURES = (nmd, rsnod, jsd, rnss)


def arrays(*values):
    return [np.array(value, dtype=float) for value in values]


def test_nmd_by_hand():
    p, q = arrays([0.5, 0.5, 0, 0, 0], [0, 0, 0, 0.5, 0.5])
    # cumulative differences 0.5, 1, 1, 0.5, 0 over four steps
    assert nmd(p, q) == pytest.approx(3 / 4)


def test_rsnod_by_hand():
    p, q = arrays([0.6, 0.4, 0], [0.2, 0.3, 0.5])
    squares = [0.16, 0.01, 0.25]
    weighted = [squares[1] + 2 * squares[2], squares[0] + squares[2], 2 * squares[0] + squares[1]]
    over_truth = sum(weighted) / 3
    over_p = (weighted[0] + weighted[1]) / 2
    assert rsnod(p, q) == pytest.approx(math.sqrt((over_truth + over_p) / 2 / 2))


def test_jsd_by_hand():
    p, q = arrays([1, 0, 0, 0], [0.5, 0.5, 0, 0])
    expected = (1 * math.log2(1 / 0.75) + 0.5 * math.log2(0.5 / 0.75) + 0.5 * math.log2(0.5 / 0.25)) / 2
    assert jsd(p, q) == pytest.approx(expected)


def test_rnss_by_hand():
    p, q = arrays([1, 0, 0], [0, 0, 1])
    assert rnss(p, q) == pytest.approx(1)
    p, q = arrays([0.5, 0.5, 0], [0.2, 0.5, 0.3])
    assert rnss(p, q) == pytest.approx(math.sqrt((0.09 + 0.09) / 2))


@st.composite
def pairs(draw):
    labels = draw(st.integers(2, 7))
    weights = st.lists(st.sampled_from([0, 0, 1, 2, 3, 7, 19]), min_size=labels, max_size=labels).filter(any)
    return [np.array(draw(weights), dtype=float) for _ in range(2)]


@settings(deadline=None, max_examples=300, derandomize=True)
@given(pairs())
def test_properties(pair):
    p, q = (weights / weights.sum() for weights in pair)
    for measure in MEASURES:
        value = float(measure(p, q))
        assert 0 <= value <= 1 + 1e-12
        assert value == pytest.approx(float(measure(q, p)), abs=1e-12)
        assert float(measure(p, p)) == pytest.approx(0, abs=1e-12)
        assert (value < 1e-12) == bool(np.allclose(p, q))
        assert value == pytest.approx(float(measure(p[::-1], q[::-1])), abs=1e-12)


@settings(deadline=None, max_examples=200, derandomize=True)
@given(pairs())
def test_agreement_with_scipy(pair):
    p, q = (weights / weights.sum() for weights in pair)
    bins = np.arange(len(p))
    assert nmd(p, q) == pytest.approx(wasserstein_distance(bins, bins, p, q) / (len(p) - 1), abs=1e-12)
    assert jsd(p, q) == pytest.approx(np.nan_to_num(jensenshannon(p, q, base=2)) ** 2, abs=1e-9)
    assert rnss(p, q) == pytest.approx(np.linalg.norm(p - q) / math.sqrt(2), abs=1e-12)


def naive_rsnod(p, q):
    """Equations 3 to 6, term by term."""
    labels = range(len(p))

    def divergence(other):
        support = [i for i in labels if other[i] > 0]
        return sum(sum(abs(i - j) * (p[j] - q[j]) ** 2 for j in labels) for i in support) / len(support)

    return math.sqrt((divergence(q) + divergence(p)) / 2 / (len(p) - 1))


@settings(deadline=None, max_examples=200, derandomize=True)
@given(pairs())
def test_rsnod_term_by_term(pair):
    p, q = (weights / weights.sum() for weights in pair)
    assert rsnod(p, q) == pytest.approx(naive_rsnod(p, q), abs=1e-12)


def test_cross_bin_measures_tell_near_from_far():
    truth, near, far = arrays([1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 0, 0, 1])
    for measure in (nmd, rsnod):
        assert measure(near, truth) < measure(far, truth)
    for measure in (jsd, rnss):
        assert measure(near, truth) == measure(far, truth)


def truth_with(roles, votes):
    """One dialogue for each list of roles (0 customer, 1 helpdesk)."""
    example = np.array([number for number, turns in enumerate(roles) for _ in turns])
    role = np.array([role for turns in roles for role in turns])
    answers = Answers(NUGGET, example, np.zeros_like(example), role, np.array(votes, dtype=float))
    ids = pl.Series("id", [str(number) for number in range(len(roles))])
    return JudgementTruth(ids, {"nugget": answers}, pl.DataFrame({"turns": [len(turns) for turns in roles]}))


CNUG, CNAN, HNUG, HNAN = (np.eye(7)[NUGGET.labels.index(label)] for label in ("CNUG", "CNaN", "HNUG", "HNaN"))


def test_nugget_scores_weigh_customer_and_helpdesk_turns():
    truth = truth_with([[0, 1, 0]], [CNUG, HNUG, CNUG])
    run = JudgementRun("run", {"nugget": np.array([CNUG, HNAN, CNAN])})
    # customer turns 0 and 1, helpdesk turn 1
    assert score(run, truth, ["RNSS"], alpha=0.5)["RNSS"].tolist() == pytest.approx([0.5 * 0.5 + 0.5 * 1])
    assert score(run, truth, ["RNSS"], alpha=0.2)["RNSS"].tolist() == pytest.approx([0.2 * 0.5 + 0.8 * 1])


def test_a_dialogue_of_one_speaker_is_scored_by_his_turns():
    truth = truth_with([[0, 0], [1]], [CNUG, CNUG, HNUG])
    run = JudgementRun("run", {"nugget": np.array([CNUG, CNAN, HNAN])})
    assert score(run, truth, ["RNSS"], alpha=0.9)["RNSS"].tolist() == pytest.approx([0.5, 1])


def test_a_run_without_nuggets_is_not_scored_by_them():
    rows = np.arange(2)
    quality = {
        question.name: Answers(
            question,
            rows,
            np.zeros_like(rows),
            np.zeros_like(rows),
            np.array([[1, 0, 0, 0, 0], [0, 0, 1, 1, 0]], float),
        )
        for question in QUALITY
    }
    truth = truth_with([[0], [1]], [CNUG, HNUG])
    truth = JudgementTruth(truth.ids, truth.answers | quality, truth.groups)
    run = JudgementRun("run", {name: np.full((2, 5), 0.2) for name in quality})
    found = score(run, truth, default_names(truth))
    assert sorted(found) == ["NMD(A)", "NMD(E)", "NMD(S)", "RSNOD(A)", "RSNOD(E)", "RSNOD(S)"]
    assert found["NMD(A)"].tolist() == pytest.approx([(0.8 + 0.6 + 0.4 + 0.2) / 4, (0.2 + 0.4 + 0.1 + 0.2) / 4])


def test_unknown_measures_are_named():
    truth = truth_with([[0]], [CNUG])
    with pytest.raises(UnknownMeasureError, match=r"no measure 'NMD\(X\)' of these judgements; there are JSD, RNSS"):
        parse("NMD(X)", truth)
    assert parse("JSD", truth).higher_is_better is False
