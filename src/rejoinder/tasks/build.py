"""Turn dialogues into selection examples as DSTC7 did ("Data"): cut each one, and add wrong options."""

import hashlib
from base64 import b32encode
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice, pairwise
from typing import Any

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from rejoinder.errors import UserError
from rejoinder.tasks.selection import EXAMPLE_SCHEMA, OPTION_SCHEMA, SelectionTask
from rejoinder.text import WORD_OR_MARK

Rows = NDArray[np.intp]


class Cut(msgspec.Struct, frozen=True):
    """A dialogue cut before one of its turns: what was said, and all ways to say what comes next."""

    turns: tuple[tuple[str, str], ...]
    """(speaker, text)"""
    replies: tuple[str, ...]
    """The turn that followed; where it has paraphrases, all of them are correct."""
    alike: tuple[str, ...] = ()
    """Other ways to say the same, which must not be offered as wrong."""


Similar = Callable[[Sequence[Cut], Sequence[tuple[str, ...]]], Iterator[Rows]]
"""For each cut, the utterances that are most like a right reply, as places in a list of utterances with paraphrases."""


def option_id(text: str) -> str:
    """Return an id of twelve letters and digits that depends on the text alone."""
    return b32encode(hashlib.blake2b(text.encode(), digest_size=8).digest()).decode()[:12]


def build_task(
    cuts: Sequence[Cut],
    wrong: Sequence[tuple[str, ...]],
    candidates: int = 100,
    without_answer: float = 0.0,
    seed: int = 0,
    similar: Similar | None = None,
    first_id: int = 1,
) -> SelectionTask:
    """Give every cut `candidates` options, filled up with utterances of `wrong`, each with its paraphrases.

    Wrong options are drawn at random, or from what `similar` finds. In a share `without_answer` of the examples the
    correct options are replaced by wrong ones (subtask 4).
    """
    rng = np.random.default_rng(seed)
    texts: dict[str, int] = {}
    groups = [[texts.setdefault(text, len(texts)) for text in ways] for ways in wrong]
    replies = [[texts.setdefault(text, len(texts)) for text in cut.replies] for cut in cuts]
    alike = [{texts[text] for text in cut.alike if text in texts} for cut in cuts]
    bare = set(rng.choice(len(cuts), round(without_answer * len(cuts)), replace=False).tolist())
    found = similar(cuts, wrong) if similar else None
    options = np.empty((len(cuts), candidates), dtype=np.uint32)
    correct = []
    for number, right in enumerate(replies):
        kept = [] if number in bare else right[:candidates]
        preferred = [] if found is None else rng.permutation(next(found)).tolist()
        drawn = _draw_wrong(groups, alike[number].union(right), candidates - len(kept), preferred, rng)
        options[number] = rng.permutation(np.array(kept + drawn, dtype=np.uint32))
        correct.append(kept)
    return _to_task(cuts, options, correct, list(texts), first_id)


def _draw_wrong(
    groups: Sequence[Sequence[int]], right: set[int], count: int, preferred: list[int], rng: np.random.Generator
) -> list[int]:
    drawn: dict[int, None] = {}
    for _ in range(100):
        chosen = [groups[number] for number in preferred + rng.integers(len(groups), size=count + 8).tolist()]
        drawn |= dict.fromkeys(chain.from_iterable(group for group in chosen if right.isdisjoint(group)))
        if len(drawn) >= count:
            return list(islice(drawn, count))
    raise UserError(
        f"only {len(drawn)} different wrong options where {count} are needed; take more dialogues or fewer candidates"
    )


def build_pool_task(cuts: Sequence[Cut], pool: Sequence[str], first_id: int = 1) -> SelectionTask:
    """Let every cut choose from one pool, which must hold its reply (subtask 2)."""
    rows = {text: row for row, text in enumerate(pool)}
    return _to_task(cuts, None, [[rows[text] for text in cut.replies] for cut in cuts], pool, first_id)


def _to_task(
    cuts: Sequence[Cut],
    options: NDArray[np.uint32] | None,
    correct: list[list[int]],
    texts: Sequence[str],
    first_id: int,
) -> SelectionTask:
    examples = pl.DataFrame(
        {
            "id": [str(first_id + number) for number in range(len(cuts))],
            "turns": _turns(cuts),
            "options": [None] * len(cuts) if options is None else pl.Series(options).arr.to_list(),
            "correct": correct,
        },
        schema=EXAMPLE_SCHEMA,
    )
    ids = [option_id(text) for text in texts]
    return SelectionTask(examples, pl.DataFrame({"id": ids, "text": list(texts)}, schema=OPTION_SCHEMA))


def _turns(cuts: Sequence[Cut]) -> pl.Series:
    """Return the turns of each cut as a column, without an object for each turn."""
    said = pl.DataFrame(
        {
            "cut": np.repeat(np.arange(len(cuts)), [len(cut.turns) for cut in cuts]),
            "speaker": [speaker for cut in cuts for speaker, _ in cut.turns],
            "text": [text for cut in cuts for _, text in cut.turns],
        }
    )
    grouped = said.group_by("cut", maintain_order=True).agg(pl.struct("speaker", "text").alias("turns"))
    if grouped.height < len(cuts):
        raise ValueError("a cut has no turn before the reply")
    return grouped["turns"]


CHAMPIONS = 2_000
"""Utterances looked at for each word: few enough to be quick, and what is found is nearly as similar as what is not."""


def similar_by_words(most: int = 500, champions: int = CHAMPIONS) -> Similar:
    """Find utterances that share telling words with the context (TF-IDF), for harder wrong options.

    Of a word that more than `champions` utterances have, those are looked at in which it weighs most (champion lists:
    Manning, Raghavan and Schuetze 2008, section 7.1.3): however many there are, a context takes the same time.
    """

    def search(cuts: Sequence[Cut], wrong: Sequence[tuple[str, ...]]) -> Iterator[Rows]:
        from sklearn.feature_extraction.text import TfidfVectorizer

        vectors = TfidfVectorizer(sublinear_tf=True, token_pattern=WORD_OR_MARK)
        index = _keep_champions(vectors.fit_transform([ways[0] for ways in wrong]).T.tocsr(), champions)
        for start in range(0, len(cuts), 64):
            contexts = [" ".join(text for _, text in cut.turns) for cut in cuts[start : start + 64]]
            found = (vectors.transform(contexts) @ index).tocsr()
            for first, end in pairwise(found.indptr.tolist()):
                rows, scores = found.indices[first:end], found.data[first:end]
                yield rows[np.argpartition(-scores, most)[:most]] if len(rows) > most else rows

    return search


def _keep_champions(index: Any, count: int) -> Any:
    """Leave each row of a sparse matrix its greatest values."""
    for row in np.flatnonzero(np.diff(index.indptr) > count):
        values = index.data[index.indptr[row] : index.indptr[row + 1]]
        values[np.argpartition(-values, count)[count:]] = 0
    index.eliminate_zeros()
    return index
