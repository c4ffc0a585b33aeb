"""An index of options, to be found by words and by vectors: memory-mapped, and changed without being built again.

    index.json         the segments in order, and which of their rows were removed
    1/, 2/, ...        one segment for each addition: options.parquet, vectors.npy, codes.npy, words.npy, starts.npy,
                       rows.npy, weights.npy

Additions write a segment and then the list; removals write the list alone. Both are done when index.json is renamed.
"""

import shutil
from collections.abc import Sequence
from copy import deepcopy
from itertools import accumulate
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from rejoinder.arrays import find
from rejoinder.errors import UserError
from rejoinder.files import BadInputError, UnwrittenError, open_binary, read_parquet, write_atomically
from rejoinder.systems.ranking import first_best

Floats = NDArray[np.float32]
Rows = NDArray[np.intp]

_LIST = "index.json"
_OPTIONS = {"id": pl.String, "text": pl.String}
_ARRAYS = ("vectors", "codes", "words", "starts", "rows", "weights")
_MOST_SEGMENTS = 16
_ANEW = "the index is damaged: train the model anew"
_LOPSIDED, _UNEVEN = 0.15, 0.1
"""How far from a half, in the mean of components, the share of positive ones may be, and how different the lengths."""
RESCORED = 2048
"""Options whose vectors are compared exactly, after a look at the signs alone."""


class Segment(msgspec.Struct, frozen=True):
    """Options that were added together."""

    options: pl.DataFrame
    """Columns `id` and `text`."""
    vectors: NDArray[np.float16]
    codes: NDArray[np.uint64]
    """The signs of the vectors' components, 64 in a word; words x options."""
    words: NDArray[np.int32]
    """Hashes of all words, in order; word k is in the options rows[starts[k]:starts[k + 1]]."""
    starts: NDArray[np.int64]
    rows: NDArray[np.int32]
    weights: NDArray[np.float32]
    lopsided: bool
    """Whether most components have one sign in most vectors, so that signs tell little."""

    @classmethod
    def of(cls, options: pl.DataFrame, vectors: Floats, weights: sparse.csr_matrix) -> "Segment":
        """Turn options' vectors and words' weights into a segment."""
        row = np.repeat(np.arange(options.height, dtype=np.int32), np.diff(weights.indptr))
        order = np.argsort(weights.indices, kind="stable")
        words, starts = np.unique(weights.indices[order], return_index=True)
        return cls(
            options.select("id", "text"),
            vectors.astype(np.float16),
            _codes(vectors),
            words.astype(np.int32),
            np.append(starts, len(order)).astype(np.int64),
            row[order],
            weights.data[order].astype(np.float32),
            _is_lopsided(vectors),
        )

    def save(self, folder: Path) -> None:
        """Write to a folder."""
        try:
            folder.mkdir(parents=True)
            self.options.write_parquet(folder / "options.parquet")
            for name in _ARRAYS:
                np.save(folder / f"{name}.npy", getattr(self, name))
        except PermissionError as error:
            raise UnwrittenError(folder, error.strerror) from None

    @classmethod
    def load(cls, folder: Path) -> "Segment":
        """Map a folder."""
        options = _read_options(folder / "options.parquet")
        arrays = {name: _map(folder / f"{name}.npy") for name in _ARRAYS}
        segment = cls(options, **arrays, lopsided=_is_lopsided(arrays["vectors"]))
        if not segment.is_whole():
            raise BadInputError(folder, f"its files do not belong together; {_ANEW}")
        return segment

    def is_whole(self) -> bool:
        """Whether all arrays are of one size."""
        if self.vectors.ndim != 2 or self.codes.ndim != 2 or not len(self.starts):
            return False
        codes = (-(-self.vectors.shape[1] // 64), self.options.height)
        words, entries = len(self.starts) - 1, self.starts[-1]
        return bool(
            len(self.vectors) == self.options.height
            and self.codes.shape == codes
            and len(self.words) == words
            and len(self.rows) == len(self.weights) == entries
            and self.starts[0] == 0
            and (np.diff(self.starts) >= 0).all()
            and _are_within(self.rows, self.options.height)
        )

    def word_scores(self, context: sparse.csr_matrix) -> Floats:
        """Return the product of one context's words with every option's."""
        place, known = find(self.words, context.indices)
        spans = [slice(self.starts[word], self.starts[word + 1]) for word in place[known]]
        if not spans:
            return np.zeros(self.options.height, dtype=np.float32)
        rows = np.concatenate([self.rows[span] for span in spans])
        sizes = [span.stop - span.start for span in spans]
        weights = np.concatenate([self.weights[span] for span in spans]) * np.repeat(context.data[known], sizes)
        return np.bincount(rows, weights, minlength=self.options.height).astype(np.float32)

    def differences(self, code: NDArray[np.uint64]) -> NDArray[np.int16]:
        """Return by how many signs options differ from a code."""
        differing = np.zeros(self.options.height, dtype=np.int16)
        for held, asked in zip(self.codes, code, strict=True):
            differing += np.bitwise_count(held ^ asked)
        return differing


class _Entry(msgspec.Struct):
    name: str
    removed: Rows = msgspec.field(default_factory=lambda: np.zeros(0, dtype=np.intp))


class _List(msgspec.Struct):
    segments: list[_Entry] = []


class Index:
    """Segments of options; a row counts through all of them. In a folder, if one is named, that has none yet."""

    def __init__(self, folder: Path | None = None) -> None:
        if folder is not None:
            _expect_none(folder)
        self.folder = folder
        self.shown: Path | str = folder or "index"
        self.list = _List()
        self.segments: list[Segment] = []

    @classmethod
    def open(cls, folder: Path) -> "Index":
        """Map an index that was written; one that is changed while it is read is read again."""
        listed = _read_list(folder)
        while True:
            try:
                return cls._of(folder, listed)
            except BadInputError:
                before, listed = listed, _read_list(folder)
                if [entry.name for entry in listed.segments] == [entry.name for entry in before.segments]:
                    raise

    @classmethod
    def _of(cls, folder: Path, listed: _List) -> "Index":
        index = cls()
        index.folder = index.shown = folder
        index.list = listed
        index.segments = [Segment.load(folder / entry.name) for entry in index.list.segments]
        for segment, entry in zip(index.segments, index.list.segments, strict=True):
            if not _are_within(entry.removed, segment.options.height):
                raise BadInputError(folder / _LIST, f"removes what the index does not hold; {_ANEW}")
            if segment.vectors.shape[1] != index.segments[0].vectors.shape[1]:
                raise BadInputError(folder, f"its segments do not belong together; {_ANEW}")
        return index

    def __len__(self) -> int:
        return len(self.kept())

    def copy(self) -> "Index":
        """Return another index of the same segments, in memory, that can be changed by itself."""
        other = Index()
        other.shown = self.shown
        other.segments, other.list = list(self.segments), deepcopy(self.list)
        return other

    def kept(self) -> Rows:
        """Return the rows of the options that were not removed."""
        return np.delete(np.arange(sum(segment.options.height for segment in self.segments)), self.removed())

    def options(self) -> pl.DataFrame:
        """Return all options, removed ones too, by row."""
        return pl.concat([pl.DataFrame(schema=_OPTIONS), *(segment.options for segment in self.segments)])

    def removed(self) -> Rows:
        """Return the rows of removed options."""
        parts = [first + entry.removed for first, entry in zip(self._firsts(), self.list.segments, strict=True)]
        return np.concatenate([np.zeros(0, dtype=np.intp), *parts])

    def add(self, options: pl.DataFrame, vectors: Floats, weights: sparse.csr_matrix, instead: bool = False) -> None:
        """Add options (columns `id`, `text`) with their vectors and words' weights.

        Known ids are an error, or, with `instead`, are from now on what is added.
        """
        known = options["id"].head(0) if instead else self.options()["id"].gather(self.kept())
        again = options.filter(options["id"].is_in(known.implode()) | options["id"].is_duplicated())
        if again.height:
            raise BadInputError(self.shown, f"{again['id'][0]!r} is in the index already", field="id")
        if not options.height == len(vectors) == weights.shape[0]:
            raise UserError(f"{options.height} options, {len(vectors)} vectors and words of {weights.shape[0]} to add")
        if not (np.abs(vectors) <= np.finfo(np.float16).max).all():
            raise UserError("a vector to add holds what is no number, or none that half precision has")
        self._check_width(vectors.shape[1])
        segment = Segment.of(options, vectors, weights)
        if instead:
            self._drop(options["id"].to_list())
        self._append(segment)
        if len(self.segments) > _MOST_SEGMENTS:
            self.merge()
        self._write()

    def remove(self, ids: Sequence[str]) -> int:
        """Remove options; return how many there were. Once most are gone, those that stay are written anew."""
        found = self._drop(ids)
        if found and 0 < len(self) < len(self.removed()):
            self.merge()
        self._write()
        return found

    def _drop(self, ids: Sequence[str]) -> int:
        found = 0
        for segment, entry in zip(self.segments, self.list.segments, strict=True):
            rows = segment.options["id"].is_in(list(ids)).arg_true().to_numpy()
            before = len(entry.removed)
            entry.removed = np.union1d(entry.removed, rows).astype(np.intp)
            found += len(entry.removed) - before
        return found

    def merge(self) -> None:
        """Put all segments into one and drop what was removed; nothing is encoded again."""
        kept = self.kept()
        options = self.options()[kept]
        vectors = np.concatenate([segment.vectors for segment in self.segments])[kept]
        weights = sparse.vstack([_by_option(segment) for segment in self.segments]).tocsr()[kept]
        name = str(1 + max(int(entry.name) for entry in self.list.segments))
        self.segments, self.list.segments = [], []
        self._append(Segment.of(options, vectors.astype(np.float32), weights), name)

    def word_scores(self, context: sparse.csr_matrix) -> Floats:
        """Return the product of one context's words with every option's, by row; removed ones have none."""
        nothing = np.zeros(0, dtype=np.float32)
        scores = np.concatenate([nothing, *(segment.word_scores(context) for segment in self.segments)])
        scores[self.removed()] = 0
        return self._expect_numbers(scores)

    def nearest(self, vector: Floats, count: int, rescored: int = RESCORED, place: Rows | None = None) -> Rows:
        """Return the rows with the largest products with a vector: those of like signs are compared exactly.

        At least ten times as many are compared as are asked for, or signs would decide; where signs tell little, all.
        Of equal ones those of the least place, by row, come first; without places, the first rows.
        """
        self._check_width(len(vector))
        rows = self._alike(vector, max(rescored, 10 * count), place)
        return rows[first_best(self.products(vector, rows), rows if place is None else place[rows], count)]

    def _alike(self, vector: Floats, count: int, place: Rows | None) -> Rows:
        """Return so many rows whose signs differ least from a vector's, and all of segments where signs tell little."""
        code = _codes(vector[None])[:, 0]
        every, looked, differing = np.zeros(0, np.intp), np.zeros(0, np.intp), np.zeros(0, np.int16)
        for first, segment, entry in zip(self._firsts(), self.segments, self.list.segments, strict=True):
            kept = np.delete(np.arange(segment.options.height), entry.removed)
            if segment.lopsided:
                every = np.append(every, first + kept)
            else:
                looked = np.append(looked, first + kept)
                differing = np.append(differing, segment.differences(code)[kept])
        least = first_best(-differing, looked if place is None else place[looked], count)
        return np.append(every, looked[least])

    def products(self, vector: Floats, rows: Rows) -> Floats:
        """Return the products of a vector with those of some rows."""
        found = np.empty(len(rows), dtype=np.float32)
        for first, segment in zip(self._firsts(), self.segments, strict=True):
            inside = (rows >= first) & (rows < first + segment.options.height)
            # not by `@`: the threads of BLAS would go on waiting for more, in the way of the encoder's
            found[inside] = np.einsum("rc,c->r", segment.vectors[rows[inside] - first].astype(np.float32), vector)
        return self._expect_numbers(found)

    def _expect_numbers(self, scores: Floats) -> Floats:
        """Refuse what a damaged file may come to; to look through the files themselves would take too long."""
        if not np.isfinite(scores).all():
            raise BadInputError(self.shown, f"holds what is no number; {_ANEW}")
        return scores

    def save(self, folder: Path) -> None:
        """Write an index that was only in memory."""
        _expect_none(folder)
        self.folder = self.shown = folder
        for segment, entry in zip(self.segments, self.list.segments, strict=True):
            segment.save(folder / entry.name)
        self._write()

    def _firsts(self) -> list[int]:
        return list(accumulate((segment.options.height for segment in self.segments), initial=0))[:-1]

    def _check_width(self, width: int) -> None:
        held = self.segments[0].vectors.shape[1] if self.segments else width
        if width != held:
            raise BadInputError(self.shown, f"holds vectors of {held}, not of {width} components")

    def _append(self, segment: Segment, name: str | None = None) -> None:
        name = name or str(1 + max((int(entry.name) for entry in self.list.segments), default=0))
        if self.folder is not None:
            shutil.rmtree(self.folder / name, ignore_errors=True)  # left by an addition that was interrupted
            segment.save(self.folder / name)
            segment = Segment.load(self.folder / name)
        self.segments.append(segment)
        self.list.segments.append(_Entry(name))

    def _write(self) -> None:
        if self.folder is None:
            return
        with write_atomically(self.folder / _LIST) as file:
            file.write(msgspec.json.encode(self.list, enc_hook=np.ndarray.tolist))
        named = {entry.name for entry in self.list.segments}
        for stale in self.folder.iterdir():
            if stale.is_dir() and stale.name.isdigit() and stale.name not in named:
                shutil.rmtree(stale)


def _expect_none(folder: Path) -> None:
    if (folder / _LIST).exists():
        raise UserError(f"{folder}: there is an index; Index.open takes it as it is")


def _read_list(folder: Path) -> _List:
    with open_binary(folder / _LIST) as file:
        try:
            listed = msgspec.json.decode(file.read(), type=_List, dec_hook=_to_rows)
        except msgspec.DecodeError as error:
            raise BadInputError(folder / _LIST, f"damaged ({error})") from None
    _check_names(folder / _LIST, [entry.name for entry in listed.segments])
    return listed


def _check_names(path: Path, names: list[str]) -> None:
    for name in names:
        if not (name.isascii() and name.isdecimal()):
            raise BadInputError(path, f"names a segment {name!r}, which is no number; {_ANEW}")
        if names.count(name) > 1:
            raise BadInputError(path, f"names the segment {name} twice; {_ANEW}")


def _read_options(path: Path) -> pl.DataFrame:
    options = read_parquet(path)
    for name in _OPTIONS:
        if options.schema.get(name) != pl.String:
            raise BadInputError(path, f"no column {name!r} of texts; {_ANEW}")
    return options.select(*_OPTIONS)


def _to_rows(_: type, value: object) -> Rows:
    return np.array(msgspec.convert(value, list[int]), dtype=np.intp)


def _are_within(rows: NDArray[Any], size: int) -> bool:
    return not len(rows) or (int(rows.min()) >= 0 and int(rows.max()) < size)


def _codes(vectors: NDArray[Any]) -> NDArray[np.uint64]:
    bits = np.packbits(vectors > 0, axis=1)
    padded = np.pad(bits, ((0, 0), (0, -bits.shape[1] % 8)))
    return np.ascontiguousarray(padded.view(np.uint64).T)


def _is_lopsided(vectors: NDArray[Any]) -> bool:
    """Whether signs alone tell too little of vectors: most have the same, or their lengths differ."""
    some = vectors[:: 1 + len(vectors) // 256].astype(np.float32)
    if not some.size:
        return False
    lengths = np.linalg.norm(some, axis=1)
    same = np.abs((some > 0).mean(axis=0) - 0.5).mean() > _LOPSIDED
    return bool(same or lengths.std() > _UNEVEN * lengths.mean())


def _by_option(segment: Segment) -> sparse.csr_matrix:
    column = np.repeat(segment.words, np.diff(segment.starts))
    order = np.argsort(segment.rows, kind="stable")
    ends = np.searchsorted(segment.rows[order], np.arange(segment.options.height + 1))
    return sparse.csr_matrix((segment.weights[order], column[order], ends), (segment.options.height, 2**31 - 1))


def _map(path: Path) -> NDArray[Any]:
    try:
        found: NDArray[Any] = np.load(path, mmap_mode="r").view(np.ndarray)  # as mapped, and quicker to cut
    except FileNotFoundError:
        raise BadInputError(path, "no such file; the index is not whole: train the model anew") from None
    except PermissionError as error:
        raise BadInputError(path, f"cannot be read ({error.strerror})") from None
    except (ValueError, OSError, EOFError):  # and what they advise
        raise BadInputError(path, f"damaged; {_ANEW}") from None
    return found
