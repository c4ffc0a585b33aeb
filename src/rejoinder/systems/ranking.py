"""From scores to runs: which options an example has, products of contexts with options, and the best of them."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from rejoinder.arrays import find
from rejoinder.corpora.ragged import Ragged, to_starts
from rejoinder.errors import UserError
from rejoinder.runs.selection import SelectionRun
from rejoinder.tasks.selection import SelectionTask
from rejoinder.watch import Watch, unwatched

Rows = NDArray[np.intp]
Floats = NDArray[np.float32]
Vectors = Any
"""A row of floats for each text: an array, or a sparse matrix whose columns are in order."""

KEPT = 100
"""How many choices of a pool a run keeps, as in DSTC7's submissions."""
_LISTED = 100
"""Options of a list that is drawn from a pool, as many as in DSTC7's subtask 1."""
_BLOCK = 1 << 16


class Pairs(NamedTuple):
    """Examples (by number) and options (by row), one pair a place."""

    example: Rows
    row: Rows


def offered(task: SelectionTask) -> Pairs:
    """Return every example with each of its own options; those that choose from the pool have none."""
    if task.examples["options"].null_count() == task.examples.height:
        return Pairs(np.zeros(0, np.intp), np.zeros(0, np.intp))
    own = task.examples["options"].list.len().fill_null(0).to_numpy().astype(np.intp)
    rows = task.examples["options"].explode(empty_as_null=False, keep_nulls=False).to_numpy().astype(np.intp)
    return Pairs(np.repeat(np.arange(task.examples.height), own), rows)


def answers_of(task: SelectionTask) -> Ragged:
    """Return the correct options of each example, by row."""
    correct = task.examples["correct"]
    rows = correct.explode(empty_as_null=False, keep_nulls=False).to_numpy().astype(np.int32)
    return Ragged(to_starts(correct.list.len().fill_null(0).to_numpy()), rows)


def pools(task: SelectionTask) -> list[tuple[Rows, int]]:
    """Return which examples choose from how many of the first options besides their own."""
    whole = task.examples["options"].is_null().to_numpy()
    if whole.any() and not task.options.height:
        raise UserError("the pool is empty: there is nothing to choose from")
    found = ((np.flatnonzero(whole), task.options.height), (np.flatnonzero(~whole), task.shared))
    return [(examples, size) for examples, size in found if len(examples) and size]


def draw_lists(task: SelectionTask, seed: int, count: int = _LISTED) -> SelectionTask:
    """Return the task with lists in the place of a pool: each example's right and own options, others drawn from it."""
    if not pools(task):
        return task
    rng = np.random.default_rng(seed)
    lists, whole, shared = [], task.options.height, task.shared
    for own, correct in task.examples.select("options", "correct").iter_rows():
        size = whole if own is None else shared
        kept = np.union1d(own or [], correct or []).astype(np.intp)
        drawn = rng.choice(size, min(count, size), replace=False)
        others = drawn[~np.isin(drawn, kept)][: max(0, count - len(kept))]
        lists.append(np.union1d(kept, others))
    return _listing(task, lists)


def first_lists(task: SelectionTask, count: int) -> SelectionTask:
    """Return a task's first examples with what they choose from; a pool stays whole."""
    few = msgspec.structs.replace(task, examples=task.examples.head(count))
    return few if pools(few) else _listing(few, few.examples["options"].to_list())


def _listing(task: SelectionTask, lists: Sequence[Any]) -> SelectionTask:
    """Return the task with a list of options, by row, for each example, and without options that are in none."""
    used = np.unique(np.concatenate(lists)).astype(np.intp)

    def renumbered(rows: Iterable[Any]) -> pl.Series:
        return pl.Series([np.searchsorted(used, few).tolist() for few in rows], dtype=pl.List(pl.UInt32))

    correct = renumbered(task.examples["correct"].fill_null([]).to_list())
    examples = task.examples.with_columns(options=renumbered(lists), correct=correct)
    return msgspec.structs.replace(task, examples=examples, options=task.options.select("id", "text")[used])


def narrowed(task: SelectionTask, kept: Pairs) -> SelectionTask:
    """Return the task with no options but those kept, each example's as its own.

    Nothing is known to be correct; an example of which nothing is kept has no options.
    """
    used, row = np.unique(kept.row, return_inverse=True)
    rows = pl.DataFrame({"example": kept.example.astype(np.uint32), "row": row.astype(np.uint32)})
    every = pl.DataFrame({"example": np.arange(task.examples.height, dtype=np.uint32)})
    lists = every.join(rows.group_by("example").agg("row"), on="example", how="left", maintain_order="left")
    own, nothing = lists["row"].fill_null([]), pl.lit(None, dtype=pl.List(pl.UInt32))
    examples = task.examples.with_columns(options=own, correct=nothing)
    return msgspec.structs.replace(task, examples=examples, options=task.options.select("id", "text")[used])


def pairs_of(task: SelectionTask, chosen: pl.DataFrame) -> Pairs:
    """Return what was chosen (columns `example`, `option`) by the options' rows; one id may be several examples'."""
    own = offered(task)
    listed = pl.DataFrame(
        {"example": own.example.astype(np.uint32), "option": task.options["id"].gather(own.row), "row": own.row}
    )
    pooled = pl.DataFrame({"option": task.options["id"], "shared": np.arange(task.options.height)})
    size = max((size for _, size in pools(task)), default=0)
    found = chosen.join(listed, on=["example", "option"], how="left", maintain_order="left")
    found = found.join(pooled.head(size), on="option", how="left", maintain_order="left")
    rows = found.select(pl.coalesce("row", "shared")).to_series()
    if rows.null_count():
        option = chosen["option"].filter(rows.is_null())[0]
        raise UserError(f"{option!r} is chosen, which no list and no pool holds; it cannot be ranked anew")
    return Pairs(chosen["example"].to_numpy().astype(np.intp), rows.to_numpy().astype(np.intp))


def to_run(task: SelectionTask, name: str, pairs: Pairs, scores: NDArray[Any]) -> SelectionRun:
    """Put the scored options of each example in order, best first; equal ones stay as they were offered."""
    order = np.lexsort((-scores, pairs.example))
    choices = pl.DataFrame(
        {
            "example": pairs.example[order].astype(np.uint32),
            "option": task.options["id"].gather(pairs.row[order]),
            "score": scores[order].astype(np.float64),
        }
    )
    return SelectionRun(name, choices)


def best_columns(scores: NDArray[Any], count: int) -> Rows:
    """Return the columns of each row's best scores, best first; of equal ones, the first."""
    place = np.arange(scores.shape[1])
    found = [first_best(row, place, count) for row in scores]
    return np.array(found, np.intp).reshape(len(scores), min(count, len(place)))


def first_best(scores: NDArray[Any], place: Rows, count: int) -> Rows:
    """Return where the best scores are, best first; of equal ones, those of the least place."""
    kept = np.arange(len(scores))
    if count < len(scores):
        kept = np.flatnonzero(scores >= -np.partition(-scores, count - 1)[count - 1])
    return kept[np.lexsort((place[kept], -scores[kept]))][:count]


def rank_by_products(
    task: SelectionTask, name: str, contexts: Vectors, options: Vectors, watch: Watch = unwatched
) -> SelectionRun:
    """Rank by the product of each context's row with the rows of its options, or with all of the pool.

    Of equal products, those of a shared pool come first: an example's own option beside it is the correct one.
    """
    if _is_sparse(contexts):
        contexts, options = same_columns(contexts, options)
    parts: list[Pairs] = []
    with watch("ranking", sum(len(examples) for examples, _ in pools(task))) as advance:
        for examples, size in pools(task):
            for block, products in _blocks(contexts, options[:size], examples):
                columns = np.sort(best_columns(products, KEPT), axis=1)
                parts.append(Pairs(np.repeat(block, columns.shape[1]), columns.ravel()))
                advance(len(block))
    parts.append(offered(task))
    # pair by pair: what products of whole blocks round off goes by the place of an option
    scores = [pair_products(contexts, options, pairs) for pairs in parts]
    return to_run(task, name, join_pairs(parts), np.concatenate(scores))


def join_pairs(parts: Sequence[Pairs]) -> Pairs:
    """Put pairs one after the other."""
    return Pairs(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def _is_sparse(vectors: Vectors) -> bool:
    return sparse.issparse(vectors)


def pair_products(contexts: Vectors, options: Vectors, pairs: Pairs) -> Floats:
    """Return the product of the two rows of every pair."""
    product = _sparse_products if _is_sparse(contexts) else _dense_products
    found = np.empty(len(pairs.row), dtype=np.float32)
    for start in range(0, len(found), _BLOCK):
        block = slice(start, start + _BLOCK)
        found[block] = product(contexts, options, Pairs(pairs.example[block], pairs.row[block]))
    return found


def _dense_products(contexts: Floats, options: Floats, pairs: Pairs) -> Floats:
    found: Floats = np.einsum("ij,ij->i", contexts[pairs.example], options[pairs.row].astype(np.float32))
    return found


def _sparse_products(contexts: sparse.csr_matrix, options: sparse.csr_matrix, pairs: Pairs) -> NDArray[Any]:
    """Look every word of an option up in its context: contexts' words are in order, row by row."""
    width = np.int64(contexts.shape[1])
    first, last = pairs.example[0], pairs.example.max() + 1
    held = contexts[first:last]
    known = np.repeat(np.arange(held.shape[0]), np.diff(held.indptr)) * width + held.indices
    taken = options[pairs.row]
    pair = np.repeat(np.arange(len(pairs.row)), np.diff(taken.indptr))
    if not len(known) or not len(pair):
        return np.zeros(len(pairs.row))
    wanted = (pairs.example[pair] - first) * width + taken.indices
    place, there = find(known, wanted)
    products = np.where(there, held.data[place] * taken.data, 0)
    return np.bincount(pair, products, minlength=len(pairs.row))


def _blocks(contexts: Vectors, options: Vectors, examples: Rows) -> Iterator[tuple[Rows, Floats]]:
    turned = options.T.tocsr() if _is_sparse(options) else options.T
    for start in range(0, len(examples), 64):
        block = examples[start : start + 64]
        products = contexts[block] @ turned
        yield block, products.toarray() if _is_sparse(products) else products


def same_columns(
    contexts: sparse.csr_matrix, options: sparse.csr_matrix
) -> tuple[sparse.csr_matrix, sparse.csr_matrix]:
    """Number sparse options' columns from 0 on and leave out all others, so that matrices can be turned."""
    columns = np.unique(options.indices)
    known = np.isin(contexts.indices, columns)
    ends = np.concatenate([[0], np.cumsum(known)])[contexts.indptr]
    width = max(1, len(columns))
    return (
        sparse.csr_matrix(
            (contexts.data[known], np.searchsorted(columns, contexts.indices[known]), ends),
            shape=(contexts.shape[0], width),
        ),
        sparse.csr_matrix(
            (options.data, np.searchsorted(columns, options.indices), options.indptr), shape=(options.shape[0], width)
        ),
    )


def blocks(size: int, block: int) -> list[slice]:
    """Cut a range into blocks."""
    return [slice(start, end) for start, end in pairwise([*range(0, size, block), size])]
