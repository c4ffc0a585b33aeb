"""Turn dialogues into selection examples as DSTC7 did ("Data"): cut each one, and add wrong options at random."""

import hashlib
from base64 import b32encode
from collections.abc import Sequence

import msgspec
import numpy as np
import polars as pl

from rejoinder.tasks.selection import EXAMPLE_SCHEMA, OPTION_SCHEMA, SelectionTask


class Cut(msgspec.Struct, frozen=True):
    """A dialogue cut before one of its turns: what was said, and all ways to say what comes next."""

    turns: tuple[tuple[str, str], ...]
    """(speaker, text)"""
    replies: tuple[str, ...]
    """The turn that followed; where it has paraphrases, all of them are correct."""


def option_id(text: str) -> str:
    """Return an id of twelve letters and digits that depends on the text alone."""
    return b32encode(hashlib.blake2b(text.encode(), digest_size=8).digest()).decode()[:12]


def build_task(
    cuts: Sequence[Cut],
    wrong: Sequence[tuple[str, ...]],
    candidates: int = 100,
    without_answer: float = 0.0,
    seed: int = 0,
) -> SelectionTask:
    """Give every cut `candidates` options, filled up with utterances of `wrong`, each with its paraphrases.

    In a share `without_answer` of the examples the correct options are replaced by wrong ones (subtask 4).
    """
    rng = np.random.default_rng(seed)
    texts: dict[str, int] = {}
    bare = set(rng.choice(len(cuts), round(without_answer * len(cuts)), replace=False).tolist())
    table: dict[str, list[object]] = {name: [] for name in EXAMPLE_SCHEMA}
    for number, cut in enumerate(cuts):
        correct = () if number in bare else cut.replies[:candidates]
        options = [*correct, *_draw_wrong(wrong, set(cut.replies), candidates - len(correct), rng)]
        rows = {text: texts.setdefault(text, len(texts)) for text in options}
        table["id"].append(str(number + 1))
        table["turns"].append([{"speaker": speaker, "text": text} for speaker, text in cut.turns])
        table["options"].append(rng.permutation(list(rows.values())).tolist())
        table["correct"].append([rows[text] for text in correct])
    options_ = pl.DataFrame({"id": [option_id(text) for text in texts], "text": list(texts)}, schema=OPTION_SCHEMA)
    return SelectionTask(pl.DataFrame(table, schema=EXAMPLE_SCHEMA), options_)


def _draw_wrong(wrong: Sequence[tuple[str, ...]], right: set[str], count: int, rng: np.random.Generator) -> list[str]:
    drawn: dict[str, None] = {}
    for _ in range(100):
        for utterance in rng.integers(len(wrong), size=2 * count).tolist():
            drawn |= dict.fromkeys(text for text in wrong[utterance] if text not in right)
            if len(drawn) >= count:
                return list(drawn)[:count]
    raise ValueError(f"only {len(drawn)} different wrong options where {count} are needed")
