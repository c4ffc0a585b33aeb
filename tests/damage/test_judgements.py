"""Damaged votes and distributions: refused, or scored for what they still say."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.damage.files import damaged_pair, damaged_records, dumped, judgements
from tests.damage.package import assert_equal_scores, assert_refused_or_right, package_scores, put
from tests.damage.plain import judge

from rejoinder.tasks.truth import read_truth


@settings(max_examples=600)
@given(data=st.data())
def test_damaged_judgements(folder, data):
    records = list(data.draw(judgements()))
    damaged = data.draw(st.sampled_from([0, 1, None]))
    if damaged is not None:
        records[damaged] = data.draw(damaged_records(records[damaged]))
    raw = tuple(dumped(part, data.draw(st.booleans())) for part in records)
    truth, run = raw if damaged is not None else data.draw(damaged_pair(*raw))
    paths = put(folder / "truth", truth), put(folder / "run", run)
    assert_refused_or_right(paths[0], "dialeval", paths[1], "dialeval", data.draw(st.booleans()))


@settings(max_examples=50)
@given(pair=judgements())
def test_whole_judgements_are_accepted(folder, pair):
    truth, run = (put(folder / name, dumped(part, False)) for name, part in zip(("truth", "run"), pair, strict=True))
    found, notes = package_scores(read_truth(truth), run, None, False)
    expected, clean = judge(truth, "dialeval", run, "dialeval")
    assert clean
    assert not notes
    assert_equal_scores(found, expected)
