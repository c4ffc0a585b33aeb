import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.arrays import find, read_arrays, read_shaped, write_arrays


def test_arrays_come_back_all_or_by_name(tmp_path, complaint):
    path = tmp_path / "a.npz"
    write_arrays(path, {"x": np.arange(3), "y": np.array(0.5)})
    assert {name: array.tolist() for name, array in read_arrays(path).items()} == {"x": [0, 1, 2], "y": 0.5}
    assert list(read_arrays(path, ("y",))) == ["y"]
    assert complaint(read_arrays, path, ("z",)).startswith("a.npz: something is missing in it;")
    path.write_bytes(path.read_bytes()[:-30])
    assert complaint(read_arrays, path).startswith("a.npz: damaged; ")
    assert (
        complaint(read_arrays, tmp_path / "b.npz")
        == "b.npz: no such file; the model is not whole, or an old one: train it anew"
    )


def test_arrays_of_another_shape_are_refused(tmp_path, complaint):
    path = tmp_path / "a.npz"
    write_arrays(path, {"x": np.arange(3), "y": np.array(0.5)})
    assert read_shaped(path, {"x": (3,), "y": ()}).keys() == {"x", "y"}
    assert complaint(read_shaped, path, {"y": (), "x": (4,)}) == (
        "a.npz: x has the shape (3,), expected (4,); the model is damaged, or an old one: train it anew"
    )


@given(st.sets(st.integers(0, 20)), st.lists(st.integers(-2, 22)))
def test_values_are_found_where_they_are(held, wanted):
    ordered = np.array(sorted(held), np.int64)
    places, known = find(ordered, np.array(wanted, np.int64))
    assert known.tolist() == [value in held for value in wanted]
    assert ordered[places[known]].tolist() == [value for value in wanted if value in held]
