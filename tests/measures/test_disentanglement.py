import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import mutual_info_score

from rejoinder.corpora.link_files import write_annotations
from rejoinder.files import BadInputError
from rejoinder.measures.disentanglement import (
    contingency,
    one_to_one,
    partition,
    score,
    score_folders,
    variation_of_information,
)

# lines 10-11-12 are one conversation, 13-14 another, 15 stands alone
GOLD = [(10, 10), (10, 11), (11, 12), (13, 13), (13, 14), (15, 15)]
# 12 is cut off, 14 joined to the first conversation
FOUND = [(10, 10), (10, 11), (12, 12), (13, 13), (11, 14), (15, 15)]


def test_links_by_hand():
    figures = score({"day": GOLD}, {"day": [*FOUND, (10, 14)]})
    assert figures["link precision"] == pytest.approx(100 * 4 / 7)
    assert figures["link recall"] == pytest.approx(100 * 4 / 6)
    assert figures["link F"] == pytest.approx(100 * 8 / 13)


def test_conversations_by_hand():
    figures = score({"day": GOLD}, {"day": FOUND})
    # gold {10 11 12} {13 14} {15}; found {10 11 14} {12} {13} {15}: pairs share 2, 1, 1, 1, 1 lines
    h_gold = 3 / 6 * math.log2(6 / 3) + 2 / 6 * math.log2(6 / 2) + 1 / 6 * math.log2(6)
    h_found = 3 / 6 * math.log2(6 / 3) + 3 * 1 / 6 * math.log2(6)
    h_both = 2 / 6 * math.log2(6 / 2) + 4 * 1 / 6 * math.log2(6)
    distance = 2 * h_both - h_gold - h_found
    assert figures["variation of information"] == pytest.approx(100 * (1 - distance / math.log2(6)))
    assert figures["one-to-one"] == pytest.approx(100 * (2 + 1 + 1) / 6)
    assert figures["exact match F"] == 0


def test_exact_matches_leave_out_single_messages():
    found = [(10, 10), (10, 11), (10, 12), (13, 13), (14, 14), (14, 15)]
    figures = score({"day": GOLD}, {"day": found})
    # found {10 11 12} {14 15}, real {10 11 12} {13 14}; the singles 13 and 15 count on neither side
    assert figures["exact match precision"] == 50
    assert figures["exact match recall"] == 50
    assert figures["exact match F"] == 50


def test_lines_that_nobody_annotated_join_conversations_but_do_not_count():
    gold = [(3, 10), (3, 11), (12, 12)]
    figures = score({"day": gold}, {"day": [(1, 2), (2, 3), *gold, (12, 13)]})
    assert set(figures.values()) == {100.0}
    apart = score({"day": gold}, {"day": [(3, 10), (4, 11), (12, 12)]})
    assert apart["exact match recall"] == 0


def test_a_line_without_a_prediction_is_a_missed_link_and_stands_alone():
    figures = score({"day": GOLD}, {"day": GOLD[:-1]})
    assert (figures["link precision"], figures["link recall"]) == (100, pytest.approx(100 * 5 / 6))
    assert figures["one-to-one"] == 100


def test_the_same_numbers_in_two_files_are_different_lines():
    figures = score({"a": [(0, 0), (0, 1)], "b": [(0, 0), (1, 1)]}, {"a": [(0, 0), (1, 1)], "b": [(0, 0), (0, 1)]})
    assert figures["exact match F"] == 0
    assert figures["one-to-one"] == 50


links = st.lists(st.integers(0, 11), min_size=2, max_size=12).map(
    lambda back: [(max(0, line - step), line) for line, step in enumerate(back)]
)


@st.composite
def two_linkings(draw):
    first = draw(links)
    second = [(max(0, line - draw(st.integers(0, 11))), line) for _, line in first]
    return first, second


@settings(max_examples=150, deadline=None, derandomize=True)
@given(links)
def test_agreement_with_oneself_is_perfect(linking):
    figures = score({"day": linking}, {"day": linking})
    single = all(len(group) == 1 for group in partition(linking, {b for _, b in linking}))
    assert {name: figures[name] for name in figures if not name.startswith("exact")} == pytest.approx(
        {name: 100 for name in figures if not name.startswith("exact")}
    )
    assert figures["exact match F"] == (0 if single else 100)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(two_linkings())
def test_measures_are_symmetric_and_within_bounds(two):
    one, other = score({"day": two[0]}, {"day": two[1]}), score({"day": two[1]}, {"day": two[0]})
    for name in ("link F", "variation of information", "one-to-one", "exact match F"):
        assert one[name] == pytest.approx(other[name])
        assert -1e-9 <= one[name] <= 100 + 1e-9
    assert one["link precision"] == pytest.approx(other["link recall"])


def labels(groups, lines):
    return [next(i for i, group in enumerate(groups) if line in group) for line in lines]


@settings(max_examples=150, deadline=None, derandomize=True)
@given(two_linkings())
def test_variation_of_information_against_mutual_information(two):
    lines = sorted(b for _, b in two[0])
    one, other = (partition(linking, set(lines)) for linking in two)
    a, b = labels(one, lines), labels(other, lines)
    shared = mutual_info_score(a, b)
    distance = (mutual_info_score(a, a) + mutual_info_score(b, b) - 2 * shared) / math.log(2)
    expected = 100 * (1 - distance / math.log2(len(lines)))
    assert variation_of_information([contingency(one, other)]) == pytest.approx(expected)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(st.lists(st.integers(0, 9), min_size=4, max_size=4), min_size=1, max_size=4).filter(np.any))
def test_one_to_one_against_all_pairings(rows):
    table = np.array(rows)
    best = max(sum(table[i, j] for i, j in enumerate(chosen[: len(rows)])) for chosen in permutations(range(4)))
    assert one_to_one([table]) == pytest.approx(100 * best / table.sum())
    assert one_to_one([table.T]) == pytest.approx(100 * best / table.sum())


def test_folders_are_compared_by_name(tmp_path):
    write_annotations(tmp_path / "gold" / "day.annotation.txt", GOLD)
    write_annotations(tmp_path / "ours" / "day.annotation.txt", FOUND)
    write_annotations(tmp_path / "ours" / "another.annotation.txt", FOUND)
    assert score_folders(tmp_path / "gold", tmp_path / "ours") == score({"day": GOLD}, {"day": FOUND})
    with pytest.raises(BadInputError, match=r"gold: another\.annotation\.txt is missing"):
        score_folders(tmp_path / "ours", tmp_path / "gold")
