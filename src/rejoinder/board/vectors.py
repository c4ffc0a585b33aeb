"""Scores by example as bytes for the database, and which examples are online."""

import hashlib
import hmac
import io
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from rejoinder.measures.measure import Floats

Chosen = NDArray[np.bool_]


def pack(scores: Mapping[str, Floats]) -> bytes:
    """Return measure -> score of each example as bytes."""
    file = io.BytesIO()
    names = np.array(list(scores), dtype=np.str_)
    np.savez_compressed(file, names=names, values=np.array(list(scores.values()), dtype=np.float64))
    return file.getvalue()


def unpack(content: bytes) -> dict[str, Floats]:
    """Return what was packed."""
    with np.load(io.BytesIO(content), allow_pickle=False) as loaded:
        return dict(zip(loaded["names"].tolist(), loaded["values"], strict=True))


def choose_online(ids: Sequence[str], share: float, secret: str) -> Chosen:
    """Choose the examples that online scores are computed on, at least one and by a keyed hash of their ids.

    Tracks of one competition that share examples, such as translations, so share their online half too: otherwise
    every example could be online somewhere.
    """
    keys = [hmac.digest(secret.encode(), id_.encode(), hashlib.sha256) for id_ in ids]
    chosen = np.zeros(len(ids), dtype=bool)
    order = sorted(range(len(ids)), key=keys.__getitem__)
    chosen[order[: max(1, round(share * len(ids)))]] = True
    return chosen


def pack_chosen(chosen: Chosen) -> bytes:
    """Return a bit an example."""
    return np.packbits(chosen).tobytes()


def unpack_chosen(content: bytes, examples: int) -> Chosen:
    """Return what was packed."""
    return np.unpackbits(np.frombuffer(content, dtype=np.uint8), count=examples).astype(bool)
