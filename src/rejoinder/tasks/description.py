"""Describe data as the papers' tables do, and find replies that two splits have in common."""

import re
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from rejoinder.tasks.judgement import JudgementTask
from rejoinder.text import is_chinese

Flags = NDArray[np.bool_]

ALIKE = 0.9
"""Cosine of two replies' TF-IDF vectors from which they count as near-duplicates."""


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
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectors = TfidfVectorizer(token_pattern=r"(?u)\S+", sublinear_tf=True)
    references = vectors.fit_transform(known).T.tocsr()
    near = np.zeros(len(new), dtype=bool)
    for start in range(0, len(new), 512):
        cosines = vectors.transform(new[start : start + 512]) @ references
        near[start : start + 512] = cosines.max(axis=1).toarray().ravel() >= ALIKE
    return near


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
