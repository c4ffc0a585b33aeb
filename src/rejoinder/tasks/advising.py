"""Build DSTC7's Advising subtasks: choose a paraphrase for every message, cut at random, add wrong options.

rejoinder build advising --dialogues dialogues.json --courses courses.json --out advising
"""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np

from rejoinder.corpora.advising import ADVISOR, AdvisingRecord, without_preferences
from rejoinder.files import BadInputError
from rejoinder.tasks.build import Cut
from rejoinder.text import counted

SHARES = {"train": 500 / 815, "dev": 100 / 815, "test": 100 / 815}
"""Of 815 conversations; the remaining 115 are a source of wrong options."""
MOST_CORRECT = 5
VERSIONS = 5
"""Test examples out of one conversation: that many cuts, each of a version of its own."""


class Sides(msgspec.Struct, frozen=True):
    """Conversations for each purpose; none serves two."""

    train: list[AdvisingRecord]
    dev: list[AdvisingRecord]
    test: list[AdvisingRecord]
    wrong: list[AdvisingRecord]


def divide(records: Sequence[AdvisingRecord], rng: np.random.Generator) -> Sides:
    """Divide the conversations at random, in the paper's proportions."""
    usable = [record for record in records if record.answers]
    counts = {name: max(1, round(share * len(usable))) for name, share in SHARES.items()}
    if sum(counts.values()) >= len(usable):
        raise BadInputError("dialogues", f"{counted(len(usable), 'usable conversation')}; at least 8 are needed")
    order = [usable[place] for place in rng.permutation(len(usable))]
    borders = np.cumsum(list(counts.values())).tolist()
    return Sides(
        order[: borders[0]], order[borders[0] : borders[1]], order[borders[1] : borders[2]], order[borders[2] :]
    )


class Partial(msgspec.Struct, frozen=True):
    """A partial conversation and whose it is."""

    cut: Cut
    profile: dict[str, Any]


def sample_partials(records: Sequence[AdvisingRecord], count: int, rng: np.random.Generator) -> Iterator[Partial]:
    """Draw partial conversations: any conversation, any cut, any paraphrase of every message."""
    for number in rng.integers(len(records), size=count).tolist():
        record = records[number]
        yield Partial(_cut(record, int(rng.choice(record.answers)), rng), record.profile)


def versions(records: Sequence[AdvisingRecord], rng: np.random.Generator) -> Iterator[Partial]:
    """Make five versions of each conversation, cut at different places where there are as many.

    At test time only what the advisor knows of the student is given.
    """
    for record in records:
        places = rng.permutation(record.answers).tolist()
        for version in range(VERSIONS):
            cut = _cut(record, places[version % len(places)], rng)
            yield Partial(cut, without_preferences(record.profile))


def _cut(record: AdvisingRecord, place: int, rng: np.random.Generator) -> Cut:
    said = record.utterances[:place]
    turns = tuple((utterance.speaker, utterance.ways[int(rng.integers(len(utterance.ways)))]) for utterance in said)
    ways = record.utterances[place].ways
    chosen = rng.permutation(len(ways))[: int(rng.integers(1, MOST_CORRECT + 1))]
    return Cut(turns, tuple(ways[number] for number in chosen), alike=ways)


def first_reply_only(cut: Cut) -> Cut:
    """Keep one correct reply, for the subtasks that have no paraphrases."""
    return msgspec.structs.replace(cut, replies=cut.replies[:1])


def wrong_utterances(records: Sequence[AdvisingRecord]) -> list[tuple[str, ...]]:
    """Return what advisors said in conversations kept apart, each with its paraphrases."""
    said = [utterance.ways for record in records for utterance in record.utterances if utterance.speaker == ADVISOR]
    return list(dict.fromkeys(said))
