"""Sample helpdesk dialogues in English and Chinese with 19 simulated annotators' votes, as DialEval-1 has them."""

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count, islice
from pathlib import Path
from random import Random
from typing import IO
from zlib import crc32

import msgspec
import numpy as np

from rejoinder.files import write_atomically
from rejoinder.sample.helpdesk_script import LANGUAGES, Script, write_scripts
from rejoinder.sample.helpdesk_votes import Votes, hire, vote
from rejoinder.tasks.dialeval import AnnotationRecord, DialogueRecord, QualityRecord, TurnRecord

CHUNK = 512
FIRST_ID = 3_000_000_000_000_000
SUFFIXES = ("en", "cn")
SMALLEST_SPLIT = 30


class Judged(msgspec.Struct, frozen=True):
    """A dialogue in no language yet, with its votes."""

    index: int
    script: Script
    annotations: list[AnnotationRecord]

    def spoken(self, language: int) -> DialogueRecord:
        """Put it into words (DialEval-1, section 4.3: translations share their annotations)."""
        said = enumerate(self.script.turns(language))
        turns = [TurnRecord("helpdesk" if place % 2 else "customer", list(posts)) for place, posts in said]
        return DialogueRecord(str(FIRST_ID + self.index), turns, self.annotations)


def annotations(votes: Votes) -> list[AnnotationRecord]:
    """Return the votes, one record per annotator."""
    return [
        AnnotationRecord(QualityRecord(*scores), list(labels))
        for scores, labels in zip(votes.quality, votes.nuggets, strict=True)
    ]


def judged(seed: int) -> Iterator[Judged]:
    """Draw dialogues without end; numpy votes on a chunk of them at a time."""
    pool = hire(seed)
    for chunk in count():
        scripts = list(write_scripts(Random(f"helpdesk {seed} {chunk}"), CHUNK))
        votes = vote(scripts, pool, np.random.default_rng([seed, chunk]))
        for place, (script, given) in enumerate(zip(scripts, votes, strict=True)):
            yield Judged(chunk * CHUNK + place, script, annotations(given))


def dialogues(size: int, seed: int, language: str = "english") -> Iterator[DialogueRecord]:
    """Draw dialogues; those of the same seed and place are translations of each other."""
    if language not in LANGUAGES:
        raise ValueError(f"unknown language {language!r}: expected one of {', '.join(LANGUAGES)}")
    spoken = LANGUAGES.index(language)
    return (dialogue.spoken(spoken) for dialogue in islice(judged(seed), size))


class Split:
    """One split of the corpus, written to a file per language until it is full."""

    def __init__(self, stack: ExitStack, out: Path, name: str, size: int) -> None:
        paths = [out / f"{name}_{suffix}.json" for suffix in SUFFIXES]
        self.files: list[IO[bytes]] = [stack.enter_context(write_atomically(path)) for path in paths]
        self.wanted, self.size = size, size

    def add(self, dialogue: Judged) -> None:
        """Write the dialogue in both languages."""
        for language, file in enumerate(self.files):
            file.write(b"[" if self.wanted == self.size else b",\n")
            file.write(msgspec.json.encode(dialogue.spoken(language)))
        self.wanted -= 1

    def close(self) -> None:
        """End the JSON list."""
        for file in self.files:
            file.write(b"]\n" if self.size else b"[]\n")


def place_of(dialogue: Judged) -> int:
    """Return which split (0 train, 1 dev, 2 test) the first turn belongs to, so that no two splits share one."""
    bucket = crc32(" ".join(dialogue.script.turns(0)[0]).encode()) % 12
    return max(0, bucket - 9)


def write(out: Path, size: int, seed: int) -> None:
    """Write {train,dev,test}_{en,cn}.json: `size` dialogues to train on, a tenth (at least 30) for dev and for test."""
    if size < 0:
        raise ValueError(f"size is {size}: expected 0 or more")
    rest = max(SMALLEST_SPLIT, size // 10)
    with ExitStack() as stack:
        named = zip(("train", "dev", "test"), (size, rest, rest), strict=True)
        splits = [Split(stack, out, name, wanted) for name, wanted in named]
        for dialogue in judged(seed):
            split = splits[place_of(dialogue)]
            if split.wanted:
                split.add(dialogue)
            elif not any(each.wanted for each in splits):
                break
        for split in splits:
            split.close()
