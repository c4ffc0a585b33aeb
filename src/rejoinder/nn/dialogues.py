"""Contexts, replies and options as a network reads them, and the settings that say how much of them.

Arrays of a data folder: every utterance once (`tokens`, `offsets`); for `train` and `dev` the contexts (`_turns` and
`_speakers` by `_bounds`) and correct replies (`_correct` by `_correct_bounds`), and the options (`_options` by
`_option_bounds`) where examples have their own; `letters` where words have characters; `teacher_contexts` and
`teacher_replies`, a vector for each of `train`'s contexts and for each utterance, where a teacher has an opinion.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rejoinder.errors import UserError
from rejoinder.nn.encoders import EncoderSettings, FromWords
from rejoinder.nn.matching import Esim, MatchSettings, Padded, Towers
from rejoinder.nn.sequences import Ints, Sequences, Special, lay_contexts
from rejoinder.watch import Step, unheard

Arrays = Mapping[str, Ints]

_ROOM = 2**27
"""Numbers that encoded replies may come to at once: half a gigabyte."""
_READ, _READ_BY_CPU = 2**15, 2**11
"""Tokens of replies that are read at once, with their padding: a CPU takes longer for many, and more memory."""
_FEWEST = 8
"""Replies that are read at once, however long."""
_PAIRS = 256
"""Options that are read together with their context at once."""


@dataclass(frozen=True)
class RankingSettings:
    """What a ranking learner needs besides its arrays."""

    network: MatchSettings = field(default_factory=MatchSettings)
    special: Special = field(default_factory=Special)
    known: int = 0
    """Words of the vocabulary."""
    loss: Literal["softmax", "binary"] = "softmax"
    """softmax: the right reply among the batch's, or among `negatives`; binary, for networks that encode both apart:
    right or wrong, one wrong for each."""
    negatives: int = 0
    """Wrong replies for each context, besides the batch's; at least one where the network reads both together."""
    hard: float = 0.0
    """Share of these that the network of `miner` holds for the likeliest of those `drawn`; the others are any."""
    drawn: int = 64
    taught: float = 0.0
    """How much of the target is what a teacher would say; the rest is the right reply."""
    batch: int = 128
    data: str = "../data"
    start: str = ""
    """A folder whose weights the encoder starts from."""
    miner: str = ""
    """A folder with a trained two-tower network."""


def restore(data: dict[str, Any]) -> RankingSettings:
    """Read settings back from JSON."""
    network = dict(data["network"])
    encoder = dict(network.pop("encoder"))
    encoder["widths"] = tuple(encoder["widths"])
    special = dict(data["special"])
    special["speakers"] = tuple(special["speakers"])
    others = {key: value for key, value in data.items() if key not in ("network", "special")}
    try:
        matcher = MatchSettings(**network, encoder=EncoderSettings(**encoder))
        return RankingSettings(network=matcher, special=Special(**special), **others)
    except TypeError as error:
        raise UserError(f"this was prepared by another version ({error}); prepare it anew") from None


class Dialogues:
    """Contexts and replies of one split, on the device."""

    def __init__(self, arrays: Arrays, split: str, settings: RankingSettings, device: torch.device) -> None:
        tokens, offsets = arrays["tokens"], arrays["offsets"]
        turns, speakers, bounds = last_turns(
            arrays[f"{split}_turns"],
            arrays[f"{split}_speakers"],
            arrays[f"{split}_bounds"],
            lengths=np.diff(offsets),
            most=settings.network.turns,
            tokens=settings.network.context,
        )
        laid, ends = lay_contexts(tokens, offsets, turns, speakers, bounds, settings.special)
        self.settings, self.device = settings, device
        self.context = Sequences(laid, ends, device)
        self.utterances = Sequences(tokens, offsets, device)
        self.correct = torch.as_tensor(arrays[f"{split}_correct"].astype(np.int64)).to(device)
        self.correct_bounds = arrays[f"{split}_correct_bounds"].astype(np.int64)

        padded = np.full((len(self), max(1, int(np.diff(self.correct_bounds).max(initial=1)))), -1)
        row = np.repeat(np.arange(len(self)), np.diff(self.correct_bounds))
        padded[row, np.arange(len(row)) - self.correct_bounds[row]] = self.correct.cpu().numpy()
        self.correct_padded = torch.from_numpy(padded).to(device)

    def __len__(self) -> int:
        return len(self.context)

    def is_correct(self, rows: Tensor, utterances: Tensor) -> Tensor:
        """Say of each row's utterances (rows x any) which are correct replies."""
        return (utterances.unsqueeze(2) == self.correct_padded[rows].unsqueeze(1)).any(2)

    def contexts(self, rows: Tensor) -> Padded:
        """Return padded contexts."""
        return self.context.padded(rows, self.settings.network.context, self.settings.special, from_end=True)

    def replies(self, utterances: Tensor) -> Padded:
        """Return padded replies, by their utterances' rows."""
        return self.utterances.padded(utterances, self.settings.network.reply, self.settings.special)


def last_turns(
    turns: Ints, speakers: Ints, bounds: Ints, lengths: Ints, most: int, tokens: int
) -> tuple[Ints, Ints, Ints]:
    """Keep the last turns of each context, by the utterances' lengths no more of them than its last tokens are from."""
    sizes = np.minimum(np.diff(bounds), most)
    ends = np.concatenate([[0], np.cumsum(sizes)])
    rows = np.repeat(np.asarray(bounds)[1:] - ends[1:], sizes) + np.arange(ends[-1])
    turns, speakers = np.asarray(turns)[rows], np.asarray(speakers)[rows]
    laid = np.concatenate([[0], np.cumsum(lengths[turns] + 1)])  # one more for the speaker
    kept = np.repeat(laid[ends[1:]], sizes) - laid[1:] < tokens
    return turns[kept], speakers[kept], np.concatenate([[0], np.cumsum(kept)])[ends]


class Options(Dialogues):
    """Contexts with options to rank."""

    def __init__(self, arrays: Arrays, split: str, settings: RankingSettings, device: torch.device) -> None:
        super().__init__(arrays, split, settings, device)
        self.options = torch.as_tensor(arrays[f"{split}_options"].astype(np.int64)).to(device)
        self.option_bounds = arrays[f"{split}_option_bounds"].astype(np.int64)
        self.bounds = torch.from_numpy(np.array(self.option_bounds)).to(device)

    def draw(self, rows: Tensor, count: int) -> Tensor:
        """Return so many wrong options of each row, none twice; in the place of those that it has not, a right one."""
        first, end = (self.bounds[rows + step].unsqueeze(1) for step in (0, 1))
        width = max(count, int((end - first).max()))
        places = first + torch.arange(width, device=self.device)
        own = self.options[places.clamp(max=len(self.options) - 1)]
        own = torch.where(places < end, own, self.correct_padded[rows, :1])
        chance = torch.rand(own.shape).to(self.device).masked_fill(self.is_correct(rows, own), -1)
        return own.gather(1, chance.topk(count, dim=1).indices)

    def has_wrong(self) -> NDArray[np.bool_]:
        """Say which rows have an option that is not correct."""
        row, right = (
            np.repeat(np.arange(len(self)), np.diff(ends)) for ends in (self.option_bounds, self.correct_bounds)
        )
        texts = len(self.utterances)
        wrong = ~np.isin(row * texts + self.options.cpu().numpy(), right * texts + self.correct.cpu().numpy())
        return np.bincount(row, wrong, minlength=len(self)) > 0

    @torch.no_grad()
    def scores(self, network: nn.Module, advance: Step = unheard) -> Tensor:
        """Score all options of all contexts, one after the other; those of which the same is read score the same."""
        network.eval()
        lists, place = self._distinct
        advance(len(place) - len(lists.options))
        if not len(place):
            return torch.zeros(0, device=self.device)
        if isinstance(network, Towers):
            return self._score_apart(network, lists, advance)[place]
        if isinstance(network, Esim):
            return self._score_lists(network, lists, advance)[place]
        return self._score_pairs(network, lists, advance)[place]

    @cached_property
    def _distinct(self) -> tuple["_Lists", Tensor]:
        """Return each example's options without those of which another one says as much, and where each is scored.

        Otherwise rounding, which goes by their places, would tell them apart.
        """
        texts, number = np.unique(self.options.cpu().numpy(), return_inverse=True)
        alike = self.utterances.first_alike(texts, self.settings.network.reply)
        row = np.repeat(np.arange(len(self)), np.diff(self.option_bounds))
        pairs, place = np.unique(row * len(texts) + alike[number], return_inverse=True)
        bounds = np.searchsorted(pairs, np.arange(len(self) + 1) * len(texts))
        distinct = texts[pairs % len(texts)] if len(texts) else texts
        return _Lists(torch.as_tensor(distinct).to(self.device), bounds), torch.as_tensor(place).to(self.device)

    def _score_pairs(self, network: nn.Module, lists: "_Lists", advance: Step) -> Tensor:
        sizes = np.diff(lists.bounds)
        context = torch.as_tensor(np.repeat(np.arange(len(sizes)), sizes)).to(self.device)
        lengths = self.context.lengths[context] + self.utterances.lengths[lists.options]
        order = lengths.argsort()
        scores = torch.zeros(len(context), device=self.device)
        for rows in order.split(_PAIRS if self.device.type == "cuda" else 8):  # on a CPU less padding counts for more
            scores[rows] = network(self.contexts(context[rows]), self.replies(lists.options[rows])).float()
            advance(len(rows))
        return scores

    def _score_apart(self, network: Towers, lists: "_Lists", advance: Step) -> Tensor:
        parts = []
        for first, end in lists.stretches(max(1, _ROOM // network.reply_size)):
            own = slice(lists.bounds[first], lists.bounds[end])
            distinct, places = lists.options[own].unique(return_inverse=True)
            replies = encode_replies(network, self, distinct)
            bounds = lists.bounds[first : end + 1] - lists.bounds[first]
            for start in range(first, end, 64):
                rows = torch.arange(start, min(start + 64, end), device=self.device)
                contexts = network.contexts(self.contexts(rows))
                for row, context in zip(rows.tolist(), contexts, strict=True):
                    few = replies[places[bounds[row - first] : bounds[row - first + 1]]]
                    parts.append(network.compare(context.unsqueeze(0), few).squeeze(0))
                    advance(len(few))
        return torch.cat(parts)

    def _score_lists(self, network: Esim, lists: "_Lists", advance: Step) -> Tensor:
        """Score the options of one context after those of another, so that each context is encoded once."""
        parts = []
        for row in range(len(self)):
            own = lists.options[lists.bounds[row] : lists.bounds[row + 1]]
            context = self.contexts(torch.tensor([row], device=self.device))
            for few in own.split(_PAIRS) if len(own) else ():
                parts.append(network(context, self.replies(few)).float())
                advance(len(few))
        return torch.cat(parts)

    def mean_reciprocal_rank(self, network: nn.Module) -> float:
        """Return MRR; of tied options the one listed first counts as better."""
        scores = self.scores(network).cpu()
        options, correct = self.options.cpu(), self.correct.cpu()
        found = []
        for row in range(len(self)):
            own = slice(self.option_bounds[row], self.option_bounds[row + 1])
            order = scores[own].argsort(descending=True, stable=True)
            right = correct[self.correct_bounds[row] : self.correct_bounds[row + 1]]
            hits = torch.isin(options[own][order], right).nonzero()
            if len(right):
                found.append(1 / (1 + int(hits[0])) if len(hits) else 0.0)
        return float(np.mean(found)) if found else 0.0


class _Lists(NamedTuple):
    """Options, one example's after another's."""

    options: Tensor
    bounds: Ints

    def stretches(self, room: int) -> Iterator[tuple[int, int]]:
        """Divide examples into stretches whose different options number no more than `room`, or one example's do."""
        options, first, end = self.options.cpu().numpy(), 0, len(self.bounds) - 1
        seen: set[int] = set()
        for row in range(end):
            own = set(options[self.bounds[row] : self.bounds[row + 1]].tolist())
            if seen and len(seen) + len(own - seen) > room:
                yield first, row
                first, seen = row, set()
            seen |= own
        if first < end:
            yield first, end


def encode_replies(network: Towers, dialogues: Dialogues, utterances: Tensor, advance: Step = unheard) -> Tensor:
    """Return the vectors of replies, by their utterances' rows; those of similar length are encoded together."""
    lengths = dialogues.utterances.lengths[utterances].clamp(max=network.settings.reply)
    order = lengths.argsort()
    portions = order.split(_portions(lengths[order].cpu().numpy(), _READ if order.is_cuda else _READ_BY_CPU))
    found = torch.zeros(0, device=order.device)
    for rows in reversed(portions):  # the longest first: where each token has a vector, they say for how many is room
        part = network.replies(dialogues.replies(utterances[rows])).float()
        found = found if len(found) else part.new_zeros(len(order), *part.shape[1:])
        found[rows, : part.shape[1]] = part
        advance(len(rows))
    return found


def _portions(lengths: Ints, room: int) -> list[int]:
    """Return how many texts are read at once, of which later ones are longer: as many as fit when padded to the last.

    Each is led and closed by a token of its own.
    """
    sizes: list[int] = []
    done = 0
    while done < len(lengths):
        next_ones = lengths[done : done + room // (int(lengths[done]) + 2)] + 2
        fitting = int((next_ones * np.arange(1, len(next_ones) + 1) <= room).sum())
        sizes.append(min(max(_FEWEST, fitting), len(lengths) - done))
        done += sizes[-1]
    return sizes


def bucketed(
    rows: Ints, lengths: Ints, batch: int, rng: np.random.Generator, fewest: int = 1, span: int = 50
) -> list[Ints]:
    """Divide shuffled rows into batches of similar length, and shuffle these; leave out any of less than `fewest`."""
    parts = []
    for first in range(0, len(rows), batch * span):
        near = rows[first : first + batch * span]
        near = near[np.argsort(lengths[near], kind="stable")]
        parts += [near[place : place + batch] for place in range(0, len(near), batch)]
    parts = [part for part in parts if len(part) >= fewest]
    return [parts[place] for place in rng.permutation(len(parts))]


def place_letters(network: nn.Module, arrays: Arrays, device: torch.device) -> None:
    """Give the network the letters of the data's words."""
    encoder = getattr(network, "encoder", None)
    if isinstance(encoder, FromWords) and "letters" in arrays:
        encoder.words.letters = torch.as_tensor(np.array(arrays["letters"])).to(device)
