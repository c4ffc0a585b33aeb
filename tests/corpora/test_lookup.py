import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.corpora.lookup import Lookup

NUMBERS = st.integers(0, 2**62)


@given(st.lists(NUMBERS, unique=True), st.lists(NUMBERS))
def test_places_are_those_of_a_dict(numbers, others):
    asked = np.array([*numbers, *others], np.int64)
    known = {number: place for place, number in enumerate(numbers)}
    assert Lookup(np.array(numbers, np.int64)).find(asked).tolist() == [known.get(n, -1) for n in asked.tolist()]


def test_numbers_that_want_the_same_slot():
    numbers = np.arange(100_000) * 2**40
    table = Lookup(numbers)
    assert np.array_equal(table.find(numbers), np.arange(100_000))
    assert (table.find(numbers + 1) == -1).all()
