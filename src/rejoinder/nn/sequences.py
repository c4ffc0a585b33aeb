"""Token sequences of different lengths as two flat arrays, and batches of them as padded tensors on the device."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Ints = NDArray[np.integer[Any]]


@dataclass(frozen=True)
class Special:
    """Tokens with a meaning of their own; of words from scratch, 1 is any unknown one and 4 is not used."""

    pad: int = 0
    start: int = 2
    end: int = 3
    speakers: tuple[int, int] = (5, 6)
    """What stands before a turn of the speaker to be answered, and of the one who will reply."""


class Sequences:
    """Many sequences, laid end to end on a device."""

    def __init__(self, tokens: Ints, offsets: Ints, device: torch.device) -> None:
        self.tokens = torch.from_numpy(np.array(tokens, dtype=np.int32)).to(device)
        self.offsets = torch.from_numpy(np.array(offsets, dtype=np.int64)).to(device)
        self.device = device

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Tensor:
        """Return how many tokens each sequence has."""
        return self.offsets.diff()

    def first_alike(self, rows: Ints, limit: int) -> Ints:
        """Return for each of some sequences which of these is the first that begins as it does, up to `limit` tokens.

        What it is known by is the sum of its tokens, each times an odd number of its place, modulo 2 to the 64th.
        """
        tokens, offsets = self.tokens.cpu().numpy(), self.offsets.cpu().numpy()
        starts = offsets[rows]
        sizes = np.minimum(offsets[rows + 1] - starts, limit)
        ends = np.concatenate([[0], np.cumsum(sizes)])
        place = np.arange(ends[-1]) - np.repeat(ends[:-1], sizes)
        factors = np.random.default_rng(0).integers(2**63, size=int(sizes.max(initial=0)), dtype=np.uint64) * 2 + 1
        sums = np.cumsum((tokens[np.repeat(starts, sizes) + place].astype(np.uint64) + 1) * factors[place])
        known = np.diff(np.concatenate([np.zeros(1, np.uint64), sums])[ends])
        _, first, again = np.unique(known, return_index=True, return_inverse=True)
        found: Ints = first[again]
        return found

    def padded(self, rows: Tensor, limit: int, special: Special, from_end: bool = False) -> tuple[Tensor, Tensor]:
        """Return (tokens, mask) of some sequences, each cut to its first `limit` tokens, or its last."""
        starts, ends = self.offsets[rows], self.offsets[rows + 1]
        kept = (ends - starts).clamp(max=limit)
        starts = ends - kept if from_end else starts
        places = torch.arange(max(1, int(kept.max())), device=self.device)
        mask = places < kept.unsqueeze(1)
        if not len(self.tokens):
            return torch.full(mask.shape, special.pad, dtype=torch.long, device=self.device), mask
        found = self.tokens[(starts.unsqueeze(1) + places).clamp(max=len(self.tokens) - 1)]
        return torch.where(mask, found, special.pad).long(), mask


def framed(tokens: Tensor, mask: Tensor, special: Special) -> tuple[Tensor, Tensor]:
    """Put the start token before each padded sequence, and the end token after its last token."""
    rows = torch.arange(len(tokens), device=tokens.device)
    tokens = torch.nn.functional.pad(tokens, (1, 1), value=special.pad)
    mask = torch.nn.functional.pad(mask, (1, 1), value=False)
    ends = mask.sum(1) + 1
    tokens[:, 0] = special.start
    tokens[rows, ends] = special.end
    mask[:, 0] = True
    mask[rows, ends] = True
    return tokens, mask


def stacked(first: tuple[Tensor, Tensor], second: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Return (tokens, mask) of two padded batches as one; padding is 0, which the mask hides."""
    width = max(first[0].shape[1], second[0].shape[1])
    tokens, mask = (
        torch.cat([torch.nn.functional.pad(part, (0, width - part.shape[1])) for part in parts])
        for parts in zip(first, second, strict=True)
    )
    return tokens, mask


def joined(
    first: tuple[Tensor, Tensor], second: tuple[Tensor, Tensor], special: Special
) -> tuple[Tensor, Tensor, Tensor]:
    """Return (tokens, mask, part) of `start first end second end` without a gap; part is 0 for the first, then 1."""
    head, head_mask = framed(*first, special)
    tail, tail_mask = second
    lengths, more = head_mask.sum(1), tail_mask.sum(1) + 1
    width = int((lengths + more).max())
    places = torch.arange(width, device=head.device).unsqueeze(0)
    within = places - lengths.unsqueeze(1)
    tail = torch.nn.functional.pad(tail, (0, 1), value=special.end)
    tail = torch.where(torch.arange(tail.shape[1], device=tail.device) < more.unsqueeze(1) - 1, tail, special.end)
    from_tail = tail.gather(1, within.clamp(0, tail.shape[1] - 1))
    from_head = head.gather(1, places.clamp(max=head.shape[1] - 1).expand(len(head), -1))
    mask = within < more.unsqueeze(1)
    tokens = torch.where(within < 0, from_head, from_tail)
    return torch.where(mask, tokens, special.pad), mask, (within >= 0).long() * mask


_LAID = 100_000
"""Turns that are laid out at once: what is needed for it is ten times as large as the result."""


def lay_contexts(
    tokens: Ints, offsets: Ints, turns: Ints, speakers: Ints, bounds: Ints, special: Special
) -> tuple[Ints, Ints]:
    """Return each context as one sequence: its turns one after the other, each led by a token for its speaker.

    `turns` refers to sequences (tokens, offsets); `bounds` says which stretch of turns and speakers is whose context.
    """
    ends = np.concatenate([[0], np.cumsum(np.diff(offsets)[turns] + 1)])
    found = np.empty(ends[-1], dtype=np.int32)
    for first in range(0, len(turns), _LAID):
        few = slice(first, first + _LAID)
        laid = _lay_some(tokens, offsets, np.asarray(turns[few]), np.asarray(speakers[few]), special)
        found[ends[first] : ends[first] + len(laid)] = laid
    return found, ends[np.asarray(bounds)]


def _lay_some(tokens: Ints, offsets: Ints, turns: Ints, speakers: Ints, special: Special) -> Ints:
    starts = np.asarray(offsets)[turns]
    sizes = np.asarray(offsets)[turns + 1] - starts + 1
    segment = np.repeat(np.arange(len(turns)), sizes)
    within = np.arange(len(segment)) - (np.cumsum(sizes) - sizes)[segment]
    marks = np.asarray(special.speakers)[speakers][segment]
    if not len(tokens):
        return marks
    said = tokens[np.maximum(starts[segment] + within - 1, 0)]
    return np.where(within == 0, marks, said)


def lay_turns(tokens: Tensor, mask: Tensor, special: Special, limit: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the turns of all contexts as rows, each cut to `limit`, whose context each is, and its place in it."""
    marks = torch.isin(tokens, torch.tensor(special.speakers, device=tokens.device))
    marks[:, 0] |= mask[:, 0]
    number = marks.cumsum(1) - 1
    counts = number.amax(1).clamp(min=0) + 1
    starts = counts.cumsum(0) - counts
    row = (starts.unsqueeze(1) + number)[mask]
    total = int(counts.sum())
    sizes = torch.zeros(total, dtype=torch.long, device=tokens.device).index_add_(0, row, torch.ones_like(row))
    firsts = sizes.cumsum(0) - sizes
    column = torch.arange(len(row), device=tokens.device) - firsts[row]
    kept = column < limit
    laid = tokens.new_full((total, int(sizes.max().clamp(1, limit))), special.pad)
    laid[row[kept], column[kept]] = tokens[mask][kept]
    context = torch.repeat_interleave(torch.arange(len(tokens), device=tokens.device), counts)
    return laid, context, torch.arange(total, device=tokens.device) - starts[context]
