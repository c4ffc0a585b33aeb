"""Damaged examples, keys, qrels, film dialogues and rankings: refused, or scored for what they still say."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.damage.files import (
    NAMES,
    damaged_selection,
    dumped,
    example_records,
    ranking_records,
    selections,
    trec_lines,
    truth_lines,
)
from tests.damage.package import assert_equal_scores, assert_refused_or_right, package_scores, put
from tests.damage.plain import judge

from rejoinder.tasks.truth import read_truth


@pytest.mark.parametrize("run_format", ["dstc7", "trec"])
@pytest.mark.parametrize("truth_format", ["dstc7", "key", "qrels", "moviedialog"])
@settings(max_examples=200)
@given(data=st.data())
def test_damaged_selections(folder, data, truth_format, run_format):
    truth, run = data.draw(damaged_selection(truth_format, run_format))
    paths = put(folder / "truth", truth), put(folder / "run", run)
    assert_refused_or_right(paths[0], truth_format, paths[1], run_format, data.draw(st.booleans()))


@pytest.mark.parametrize("run_format", ["dstc7", "trec"])
@pytest.mark.parametrize("truth_format", ["dstc7", "key", "qrels"])
@settings(max_examples=25)
@given(pair=selections(NAMES.filter(lambda name: "," not in name)))
def test_whole_selections_are_accepted(folder, pair, truth_format, run_format):
    examples, choices = pair
    truth = dumped(example_records(examples), False) if truth_format == "dstc7" else truth_lines(truth_format, examples)
    run = dumped(ranking_records(choices), True) if run_format == "dstc7" else trec_lines(choices)
    paths = put(folder / "truth", truth), put(folder / "run", run)
    found, notes = package_scores(read_truth(paths[0]), paths[1], None, False)
    expected, clean = judge(paths[0], truth_format, paths[1], run_format)
    assert clean
    assert not notes
    assert_equal_scores(found, expected)
