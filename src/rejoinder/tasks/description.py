"""Describe data as the papers' tables do, and find replies that two splits have in common."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from rejoinder.files import write_atomically
from rejoinder.tasks.judgement import JudgementTask
from rejoinder.text import is_chinese

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    Vectors = csr_array[np.float64, tuple[int, int]]

Flags = NDArray[np.bool_]

ALIKE = 0.9
"""Cosine of two replies' TF-IDF vectors from which they count as near-duplicates."""


def write_description(out: Path, description: object, lines: Iterable[str]) -> None:
    """Write what was built as `description.json`, and for people as `description.md`."""
    with write_atomically(out / "description.json") as file:
        file.write(msgspec.json.format(msgspec.json.encode(description)) + b"\n")
    with write_atomically(out / "description.md") as file:
        file.write("\n".join(lines).encode())


class Diversity(msgspec.Struct, frozen=True):
    """Size and diversity of some dialogues; tokens are split on white space (DSTC7, table 1)."""

    dialogues: int
    utterances_per_dialogue: float
    tokens_per_utterance: float
    utterances_per_unique_utterance: float
    tokens_per_unique_token: float


def describe(dialogues: Iterable[Sequence[str]]) -> Diversity:
    """Count dialogues, utterances and tokens."""
    count = utterances = tokens = 0
    distinct: set[str] = set()
    vocabulary: set[str] = set()
    for dialogue in dialogues:
        count += 1
        for utterance in dialogue:
            words = utterance.split()
            utterances += 1
            tokens += len(words)
            distinct.add(utterance)
            vocabulary.update(words)
    return Diversity(
        count,
        utterances / max(count, 1),
        tokens / max(utterances, 1),
        utterances / max(len(distinct), 1),
        tokens / max(len(vocabulary), 1),
    )


class Overlap(msgspec.Struct, frozen=True):
    """How many of one split's replies another split has too, word for word or nearly."""

    replies: int
    same: int
    alike: int


def overlap(known: Sequence[str], new: Sequence[str]) -> Overlap:
    """Count the new replies that equal, or nearly equal, a known one."""
    same, alike = _repeated(known, new)
    return Overlap(len(new), int(same.sum()), int(alike.sum()))


def is_known(known: Sequence[str], new: Sequence[str]) -> Flags:
    """Say of each new reply whether it equals, or nearly equals, a known one."""
    return _repeated(known, new)[1]


def _repeated(known: Sequence[str], new: Sequence[str]) -> tuple[Flags, Flags]:
    """Say of each new reply whether it is a known one, and whether at least nearly; case and spacing do not matter."""
    plain_known, plain_new = ([" ".join(text.lower().split()) for text in texts] for texts in (known, new))
    seen = dict.fromkeys(plain_known)
    same = np.array([text in seen for text in plain_new], dtype=bool)
    alike = same.copy()
    alike[~same] = _near(list(seen), [text for text in plain_new if text not in seen])
    return same, alike


def _near(known: list[str], new: list[str]) -> Flags:
    from scipy.sparse import csr_array
    from sklearn.feature_extraction.text import TfidfVectorizer

    if not known or not new:
        return np.zeros(len(new), dtype=bool)
    vectors = TfidfVectorizer(token_pattern=r"(?u)\S+", sublinear_tf=True)
    references = csr_array(vectors.fit_transform(known))
    rarest_first = np.argsort(np.bincount(references.indices, minlength=references.shape[1]), kind="stable")
    return _near_rows(references[:, rarest_first], csr_array(vectors.transform(new))[:, rarest_first])


def _near_rows(known: "Vectors", new: "Vectors") -> Flags:
    """Say of each new row, of length 1 or 0, whether its cosine with some known row reaches `ALIKE`.

    Prefix filtering (Bayardo, Ma and Srikant 2007): what a row has after its prefix is too short to make up the cosine
    with any row, so the first column that two rows share lies in the prefixes of both. Only rows that share one there
    are compared, and as the rarest words come first these are few.
    """
    index = _prefixes(known).T.tocsr()
    prefixes = _prefixes(new)
    near = np.zeros(new.shape[0], dtype=bool)
    for start in range(0, new.shape[0], 512):
        pairs = (prefixes[start : start + 512] @ index).tocoo()
        rows = pairs.row + start
        for part in range(0, len(rows), 1 << 18):
            some = slice(part, part + (1 << 18))
            cosines: NDArray[np.float64] = new[rows[some]].multiply(known[pairs.col[some]]).sum(axis=1)
            near[rows[some][cosines >= ALIKE]] = True
    return near


def _prefixes(vectors: "Vectors") -> "Vectors":
    """Keep of each row the first columns, as many as it takes that the length of the rest is below `ALIKE`."""
    prefixes = vectors.sorted_indices()
    squares = np.concatenate([[0.0], np.cumsum(prefixes.data**2)])
    ends = np.repeat(squares[prefixes.indptr[1:]], np.diff(prefixes.indptr))
    prefixes.data[ends - squares[:-1] < ALIKE**2 - 1e-6] = 0  # sums of millions of squares are not exact
    prefixes.eliminate_zeros()
    return prefixes


class JudgedData(msgspec.Struct, frozen=True):
    """Dialogues with votes, in the layout of DialEval-1's table 3; lengths in characters or tokens."""

    dialogues: int
    annotators_per_dialogue: str
    posts_per_dialogue: float
    turns_per_dialogue: float
    post_length: float
    turn_length: float
    unit: str
    """char for Chinese (letters and digits, no marks), token for others (split on white space), as the paper counts."""
    questions: dict[str, tuple[str, ...]]
    """Each question's labels."""


def describe_judged(task: JudgementTask) -> JudgedData:
    """Count dialogues, annotators, posts, turns and their lengths."""
    turns = [turn for dialogue in task.dialogues for turn in dialogue.turns]
    posts = [post for turn in turns for post in turn.posts]
    chinese = is_chinese(posts)
    length = sum(len(re.findall(r"\w", post)) if chinese else len(post.split()) for post in posts)
    return JudgedData(
        len(task.dialogues),
        _annotators(task),
        len(posts) / len(task.dialogues),
        len(turns) / len(task.dialogues),
        length / max(len(posts), 1),
        length / max(len(turns), 1),
        "char" if chinese else "token",
        {question.name: question.labels for question in task.questions},
    )


def _annotators(task: JudgementTask) -> str:
    if task.votes is None:
        return "0"
    counts = task.votes.group_by("dialogue").agg(pl.col("annotator").n_unique())["annotator"].to_list()
    least, most = min(counts), max(counts)
    return str(least) if least == most else f"{least}-{most}"
