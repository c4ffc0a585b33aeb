"""Arrays: several in one file, and many values looked up in an ordered one.

What networks are trained on is kept otherwise, by `prepared`: there every array is a file of its own, so that it can be
mapped rather than read, and nothing but numpy is needed.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.files import BadInputError, write_atomically


def write_arrays(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    """Write arrays to one file (.npz), whole or not at all."""
    with write_atomically(path) as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


def read_arrays(path: Path, names: Sequence[str] | None = None) -> dict[str, NDArray[Any]]:
    """Read the arrays that `write_arrays` wrote, or those of these names."""
    try:
        with path.open("rb") as opened, np.load(opened) as file:
            return {name: file[name] for name in names or file.files}
    except FileNotFoundError:
        raise BadInputError(path, "no such file; the model is not whole, or an old one: train it anew") from None
    except PermissionError as error:
        raise BadInputError(path, f"cannot be read ({error.strerror})") from None
    except KeyError:
        raise BadInputError(
            path, "something is missing in it; the model is damaged, or an old one: train it anew"
        ) from None
    except Exception:  # whatever zip and pickle make of a damaged file, and what they advise
        raise BadInputError(path, "damaged; train the model anew") from None


def read_shaped(path: Path, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, NDArray[Any]]:
    """Read the arrays of these names, each of its shape."""
    arrays = read_arrays(path, list(shapes))
    expect_shapes(path, arrays, shapes)
    return arrays


def expect_shapes(path: Path, arrays: Mapping[str, NDArray[Any]], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Refuse arrays of a file that have not these shapes, or are no numbers."""
    for name, shape in shapes.items():
        array = arrays[name]
        if array.shape != shape:
            found = f"{name} has the shape {array.shape}, expected {shape}"
            raise BadInputError(path, f"{found}; the model is damaged, or an old one: train it anew")
        if array.dtype.kind not in "biuf" or not np.isfinite(array).all():
            raise BadInputError(path, f"{name} holds what is no number; the model is damaged: train it anew")


def find(ordered: NDArray[Any], wanted: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return a place among ordered values for each one wanted, and whether it is there."""
    if not len(ordered):
        return np.zeros(len(wanted), np.intp), np.zeros(len(wanted), np.bool_)
    places = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
    return places, np.asarray(ordered[places] == wanted)
