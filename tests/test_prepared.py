import numpy as np
import pytest

pytest.importorskip("torch")

from rejoinder.prepared import load_arrays, save_arrays


def test_arrays_may_be_saved_one_after_the_other(tmp_path):
    save_arrays(tmp_path, {"x": np.arange(3), "y": np.zeros((2, 0))})
    save_arrays(tmp_path, {"z": np.array(5), "x": np.arange(4)})
    np.save(tmp_path / "stray.npy", np.arange(9))
    found = {name: array.tolist() for name, array in load_arrays(tmp_path).items()}
    assert found == {"x": [0, 1, 2, 3], "y": [[], []], "z": 5}
