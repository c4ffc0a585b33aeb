"""A model that links each message to the message it answers, and its file.

Three steps, each on fewer candidates and with more knowledge: a few trees prune the window to the likeliest candidates;
the first scorer guesses all links; the second sees the conversations that the guess makes and decides.
"""

import io
import zipfile
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import msgspec
import numpy as np

from rejoinder.corpora.irc import SPOKEN, Post
from rejoinder.corpora.link_block import AHEAD, WINDOW, Block, Flags, Floats, Ints
from rejoinder.corpora.link_boosting import Scorer, Trees, softmax
from rejoinder.corpora.link_features import PRUNING, pair_features
from rejoinder.corpora.link_files import Link
from rejoinder.corpora.link_lexicon import Lexicon
from rejoinder.corpora.link_messages import Message, MessageReader
from rejoinder.corpora.link_structure import NEEDED, Guess, follow, structure_features
from rejoinder.files import BadInputError, open_binary, write_atomically

BLOCK = 512
# candidates below these chances are not worth the time of the next step
_UNLIKELY_AT_ALL = 0.002
_UNLIKELY = 0.005
_FORMAT = "rejoinder link model 1"


class Settings(msgspec.Struct, frozen=True):
    """How a model is trained and how it decides; the defaults were chosen on parts of the training logs."""

    candidates: int = 16
    folds: int = 3
    bags: int = 2
    pruner: Trees = Trees(trees=40, rate=0.25, features=0.4)
    first: Trees = Trees(trees=120, rate=0.12, features=0.4)
    second: Trees = Trees(trees=300, leaves=63, rate=0.04, features=0.2, smallest_leaf=200)
    # a conversation cut in two costs more than two joined by one link: starting must be this much likelier (log)
    reluctance: float = 0.5
    # a message answers every other candidate with at least this chance too
    also: float = 0.35


QUICK = Settings(
    candidates=8,
    folds=2,
    bags=1,
    pruner=Trees(trees=10, leaves=15, rate=0.3),
    first=Trees(trees=15, leaves=15, rate=0.3),
    second=Trees(trees=15, leaves=15, rate=0.3),
)


class Candidates(msgspec.Struct, frozen=True):
    """The likeliest columns of each row, what is known about them, and the window's features that structure needs."""

    columns: Ints
    valid: Flags
    values: Floats
    pairs: dict[str, Floats]

    def spread(self, chances: Floats, width: int) -> Floats:
        """Return chances over all columns of the window."""
        wide = np.zeros((len(chances), width), dtype=np.float32)
        np.put_along_axis(wide, self.columns, np.where(self.valid, chances, 0), axis=1)
        return wide


def candidates(block: Block, pruner: Scorer, count: int) -> Candidates:
    """Keep the columns that the pruner finds likeliest, the message itself always first."""
    table = pair_features(block)
    chances = softmax(pruner.scores(table.where(block.valid, PRUNING), block.valid))
    chances[:, 0] = 1
    columns = np.argsort(-chances, axis=1, kind="stable")[:, :count]
    likely = np.take_along_axis(chances, columns, axis=1) > _UNLIKELY_AT_ALL
    return Candidates(columns, likely, table.taken(columns), {name: table.features[name] for name in NEEDED})


class LinkModel:
    """Links messages to those they answer."""

    def __init__(self, lexicon: Lexicon, pruner: Scorer, first: Scorer, second: Scorer, settings: Settings) -> None:
        self.lexicon = lexicon
        self.pruner, self.first, self.second = pruner, first, second
        self.settings = settings

    def links(self, posts: Iterable[Post], block: int = BLOCK) -> Iterator[Link]:
        """Yield (line answered, line that answers) for every post, in order; events answer nothing."""
        waiting: deque[int] = deque()
        for answered, line in self._message_links(_noting(posts, waiting), block):
            yield from _alone(waiting, line)
            yield answered, line
        yield from _alone(waiting, None)

    def _message_links(self, posts: Iterable[Post], size: int) -> Iterator[Link]:
        stream = MessageReader(self.lexicon.rarity).read(posts)
        messages: list[Message] = []
        past = Guess(np.zeros((0, WINDOW + 1), np.float32), np.zeros(0, np.int64), 0)
        start = offset = 0
        while True:
            wanted = start + size + 2 * AHEAD - len(messages)
            messages.extend(islice(stream, wanted))
            stop = min(start + size, len(messages))
            if start == stop:
                return
            found, past = self._decide(messages, start, stop, past, offset)
            yield from found
            # one more than the window: the message before a candidate says something about it
            drop = max(0, stop - WINDOW - 1)
            messages = messages[drop:]
            past = Guess(past.chances[drop:stop], past.conversations[drop:stop], stop - drop)
            start, offset = stop - drop, offset + drop

    def _decide(
        self, messages: list[Message], start: int, stop: int, past: Guess, offset: int
    ) -> tuple[list[Link], Guess]:
        block = Block(messages, start, min(stop + AHEAD, len(messages)), self.lexicon)
        kept = candidates(block, self.pruner, self.settings.candidates)
        chances = kept.spread(softmax(self.first.scores(kept.values[kept.valid], kept.valid)), WINDOW + 1)
        guess = extend(past, chances, block, offset)
        count = stop - start
        values = second_values(block, kept, guess, count)
        likely = np.take_along_axis(chances[:count], kept.columns[:count], axis=1) > _UNLIKELY
        likely[:, 0] = True
        likely &= kept.valid[:count]
        final = softmax(self.second.scores(values[likely], likely))
        return list(self._chosen(block, kept.columns[:count], final)), guess

    def _chosen(self, block: Block, columns: Ints, chances: Floats) -> Iterator[Link]:
        weighted = chances.copy()
        weighted[:, 0] *= np.exp(-self.settings.reluctance)
        best = weighted.argmax(1)
        chosen = (chances >= self.settings.also) & (best > 0)[:, None]
        chosen[:, 0] = False
        chosen[np.arange(len(best)), best] = True
        for row, column in zip(*np.nonzero(chosen), strict=True):
            place = int(block.rows[row])
            yield int(block.line[place - columns[row, column]]), int(block.line[place])

    def save(self, path: Path) -> None:
        """Write the model as one file."""
        parts = {"pruner": self.pruner, "first": self.first, "second": self.second}
        with write_atomically(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            _put(archive, "format", _FORMAT.encode())
            _put(archive, "settings.json", msgspec.json.encode(self.settings))
            _put(archive, "rarity", self.lexicon.rarity.astype("<f2").tobytes())
            _put(archive, "vectors", self.lexicon.vectors.astype("<f2").tobytes())
            for name, scorer in parts.items():
                for number, text in enumerate(scorer.texts()):
                    _put(archive, f"{name}-{number}.txt", text.encode())

    @classmethod
    def load(cls, path: Path) -> "LinkModel":
        """Read a model."""
        with open_binary(path) as file:
            content = io.BytesIO(file.read())
        try:
            with zipfile.ZipFile(content) as archive:
                parts = {name: archive.read(name) for name in archive.namelist()}
            if parts["format"] != _FORMAT.encode():
                raise BadInputError(path, f"expected `{_FORMAT}`, got {parts['format'][:60]!r}", "format")
            return cls(
                _lexicon(parts),
                _scorer(parts, "pruner"),
                _scorer(parts, "first"),
                _scorer(parts, "second"),
                msgspec.json.decode(parts["settings.json"], type=Settings),
            )
        except (BadInputError, ModuleNotFoundError, MemoryError):
            raise
        except Exception as error:  # whatever zip, numpy and the trees make of a damaged file
            raise BadInputError(path, f"not a model of reply links ({error})") from None


def _put(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    # a fixed time, so that the same model gives the same bytes
    archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content, zipfile.ZIP_DEFLATED)


def _lexicon(parts: dict[str, bytes]) -> Lexicon:
    rarity, vectors = (np.frombuffer(parts[name], "<f2").astype(np.float32) for name in ("rarity", "vectors"))
    return Lexicon(rarity, vectors.reshape(len(rarity), -1))


def _scorer(parts: dict[str, bytes], name: str) -> Scorer:
    return Scorer.of_texts([content.decode() for key, content in parts.items() if key.startswith(f"{name}-")])


def extend(past: Guess, chances: Floats, block: Block, offset: int) -> Guess:
    """Add the guesses for a block's rows to those for the messages before it."""
    start = int(block.rows[0])
    wide = np.zeros((block.size, chances.shape[1]), dtype=np.float32)
    conversations = np.arange(block.size) + offset
    wide[: past.end], conversations[: past.end] = past.chances, past.conversations
    wide[start : start + len(chances)] = chances
    follow(chances, start, conversations, offset)
    return Guess(wide, conversations, start + len(chances))


def second_values(block: Block, kept: Candidates, guess: Guess, count: int) -> Floats:
    """Return what the second scorer sees of a block's first `count` rows."""
    _, structure = structure_features(block, kept.columns[:count], kept.pairs, guess)
    return np.concatenate([kept.values[:count], structure], axis=2)


def _noting(posts: Iterable[Post], waiting: deque[int]) -> Iterator[Post]:
    for post in posts:
        if post.kind not in SPOKEN:
            waiting.append(post.line)
        yield post


def _alone(waiting: deque[int], line: int | None) -> Iterator[Link]:
    while waiting and (line is None or waiting[0] < line):
        first = waiting.popleft()
        yield first, first
