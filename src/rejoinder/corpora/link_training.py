"""Training of a link model from annotated logs.

The first scorer is fitted once per fold without that fold's logs, so that the second learns from guesses of the quality
that it will meet; together the folds' models are the first scorer.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from rejoinder.corpora.irc import SPOKEN
from rejoinder.corpora.link_block import WINDOW, Block, Flags, Floats, Ints
from rejoinder.corpora.link_boosting import Scorer, Trees, fit, softmax
from rejoinder.corpora.link_features import PRUNING, pair_features
from rejoinder.corpora.link_files import AnnotatedLog
from rejoinder.corpora.link_lexicon import Lexicon, rarities, vectors
from rejoinder.corpora.link_messages import MessageReader
from rejoinder.corpora.link_model import Candidates, LinkModel, Settings, candidates, extend, second_values
from rejoinder.corpora.link_structure import Guess
from rejoinder.files import BadInputError

if TYPE_CHECKING:
    import lightgbm

Progress = Callable[[str], None]

# enough messages before the first annotated one for the guess at conversations to settle
_CONTEXT = 150
_NEAREST = 7
_QUARTER = 15
_SHARE_OF_OTHERS = 0.08


# values of candidates, whether each is correct, and how many each message has
_Rows = tuple[Floats, Floats, Ints]


class _Example(msgspec.Struct, frozen=True):
    """A log's messages as a block, the answered columns, and which rows people annotated."""

    block: Block
    correct: Flags
    annotated: Flags


class _Pruned(msgspec.Struct, frozen=True):
    """A log's candidates after pruning."""

    block: Block
    kept: Candidates
    correct: Flags
    annotated: Flags

    def rows(self, values: Floats) -> _Rows:
        """Return what a model is fitted to."""
        use = self.kept.valid & self.annotated[:, None]
        return values[use], self.correct[use].astype(np.float32), use.sum(1)[self.annotated]


def train_on(logs: Sequence[AnnotatedLog], seed: int, settings: Settings, progress: Progress) -> LinkModel:
    """Train a model on annotated logs."""
    lexicon = learn_lexicon(logs)
    progress("learning which messages to consider")
    pruner = _fit_pruner(logs, lexicon, settings.pruner, seed)
    parts = [_pruned(example, pruner, settings.candidates) for example in _examples(logs, lexicon)]
    progress("learning first guesses")
    folds = min(settings.folds, len(parts))
    first = [_fit_first(parts, fold, folds, settings.first, seed) for fold in range(folds)]
    progress("learning from the conversations that they make")
    chances = [_guess(part, first[i % folds]) for i, part in enumerate(parts)]
    rows = _joined([part.rows(_second_values(part, guess)) for part, guess in zip(parts, chances, strict=True)])
    second = [fit(*rows, settings.second, seed + bag) for bag in range(settings.bags)]
    return LinkModel(lexicon, pruner, Scorer(first), Scorer(second), settings)


def learn_lexicon(logs: Sequence[AnnotatedLog]) -> Lexicon:
    """Learn the weights and meanings of words from all that is said, annotated or not."""
    rarity = rarities(post.text for log in logs for post in log.posts if post.kind in SPOKEN)
    documents: dict[tuple[str, int, int], set[int]] = {}
    for log in logs:
        for message in MessageReader(rarity).read(log.posts):
            key = log.name, message.person, message.minute // _QUARTER
            documents.setdefault(key, set()).update(message.words)
    return Lexicon(rarity, vectors([sorted(words) for words in documents.values()]))


def _examples(logs: Sequence[AnnotatedLog], lexicon: Lexicon) -> Iterator[_Example]:
    for log in logs:
        example = _example(log, lexicon)
        if example.annotated.any():
            yield example


def _example(log: AnnotatedLog, lexicon: Lexicon) -> _Example:
    messages = list(MessageReader(lexicon.rarity).read(log.posts))
    lines = {b for _, b in log.links}
    begin = next((i for i, message in enumerate(messages) if message.line >= min(lines)), len(messages))
    block = Block(messages, max(0, begin - _CONTEXT), len(messages), lexicon)
    annotated = np.array([int(line) in lines for line in block.line[block.rows]], dtype=bool)
    return _Example(block, _correct(block, log), annotated)


def _correct(block: Block, log: AnnotatedLog) -> Flags:
    place = {int(line): i for i, line in enumerate(block.line)}
    correct = np.zeros(block.other.shape, dtype=bool)
    first = int(block.rows[0]) if len(block.rows) else 0
    for a, b in log.links:
        if a in place and b in place and place[b] - place[a] <= WINDOW:
            correct[place[b] - first, place[b] - place[a]] = True
    return correct


def _fit_pruner(logs: Sequence[AnnotatedLog], lexicon: Lexicon, trees: Trees, seed: int) -> Scorer:
    """Fit on the nearest messages, the answered ones, and a sample of the others."""
    random = np.random.default_rng(seed)
    taken = [_sample(example, random) for example in _examples(logs, lexicon)]
    if not taken:
        raise BadInputError("annotations", "no link answers a message; all answer events such as joins")
    return Scorer([fit(*_joined(taken), trees, seed)])


def _sample(example: _Example, random: np.random.Generator) -> _Rows:
    use = random.random(example.correct.shape) < _SHARE_OF_OTHERS
    use[:, :_NEAREST] = True
    use = (use | example.correct) & example.block.valid & example.annotated[:, None]
    values = pair_features(example.block).where(use, PRUNING)
    return values, example.correct[use].astype(np.float32), use.sum(1)[example.annotated]


def _joined(rows: Sequence[_Rows]) -> _Rows:
    values, correct, sizes = zip(*rows, strict=True)
    return np.concatenate(values), np.concatenate(correct), np.concatenate(sizes)


def _pruned(example: _Example, pruner: Scorer, count: int) -> _Pruned:
    kept = candidates(example.block, pruner, count)
    correct = np.take_along_axis(example.correct, kept.columns, axis=1)
    return _Pruned(example.block, kept, correct, example.annotated)


def _fit_first(parts: Sequence[_Pruned], fold: int, folds: int, trees: Trees, seed: int) -> "lightgbm.Booster":
    # a single log has no other fold to learn from
    others = [part for i, part in enumerate(parts) if i % folds != fold] or parts
    return fit(*_joined([part.rows(part.kept.values) for part in others]), trees, seed + fold)


def _guess(part: _Pruned, model: "lightgbm.Booster") -> Guess:
    chances = softmax(Scorer([model]).scores(part.kept.values[part.kept.valid], part.kept.valid))
    nothing = Guess(np.zeros((0, WINDOW + 1), np.float32), np.zeros(0, np.int64), 0)
    return extend(nothing, part.kept.spread(chances, WINDOW + 1), part.block, 0)


def _second_values(part: _Pruned, guess: Guess) -> Floats:
    return second_values(part.block, part.kept, guess, len(part.block.rows))
