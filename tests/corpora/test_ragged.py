import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.corpora.ragged import from_lists, group

ROWS = st.lists(st.lists(st.integers(0, 99), max_size=4), min_size=1, max_size=8)


@given(ROWS, st.lists(st.integers(0, 7), max_size=6))
def test_rows_stay_what_they_were(rows, chosen):
    ragged = from_lists(rows)
    assert ragged.lists() == rows
    assert [ragged[row].tolist() for row in range(len(ragged))] == rows
    assert ragged.lengths.tolist() == [len(row) for row in rows]
    assert ragged.owners().tolist() == [number for number, row in enumerate(rows) for _ in row]
    places = [place % len(rows) for place in chosen]
    assert ragged.take(np.array(places, np.int64)).lists() == [rows[place] for place in places]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 99)), max_size=12))
def test_values_are_grouped_in_order(pairs):
    keys, values = (np.array([pair[place] for pair in pairs], np.int64) for place in (0, 1))
    assert group(keys, values, 5).lists() == [[value for key, value in pairs if key == wanted] for wanted in range(5)]
