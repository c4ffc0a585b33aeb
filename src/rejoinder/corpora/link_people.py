"""Features of pairs of messages that tell who speaks to whom."""

import msgspec
import numpy as np

from rejoinder.corpora.link_block import AHEAD, NOBODY, WINDOW, Block, Flags, Ints, Table
from rejoinder.corpora.link_messages import FACTS

# neither a person nor NOBODY: the author of a message before the log's first
_NONE = -3


class Pairs(msgspec.Struct, frozen=True):
    """The people of each pair: I wrote the row's message, they wrote the column's."""

    me: Ints
    them: Ints
    mine: Ints
    theirs: Ints
    same: Flags
    to_them: Flags
    to_me: Flags
    shared: Flags

    @property
    def i_address(self) -> Flags:
        """Whether I address anybody."""
        return np.asarray(self.mine[..., 0] >= 0)

    @property
    def they_address(self) -> Flags:
        """Whether they address anybody."""
        return np.asarray(self.theirs[..., 0] >= 0)


def _pairs(block: Block) -> Pairs:
    me = block.person[block.rows][:, None]
    them = np.where(block.valid, block.person[block.other], _NONE)
    mine = block.addressees[block.rows][:, None, :]
    theirs = np.where(block.valid[..., None], block.addressees[block.other], _NONE)
    known = theirs[..., :, None] >= 0
    return Pairs(
        me=me,
        them=them,
        mine=mine,
        theirs=theirs,
        same=them == me,
        to_them=(them[..., None] == mine).any(2),
        to_me=(theirs == me[..., None]).any(2),
        shared=((theirs[..., :, None] == mine[..., None, :]) & known).any((2, 3)),
    )


def people_features(block: Block, table: Table) -> None:
    """Add all features of who speaks to whom."""
    pairs = _pairs(block)
    _addressing(block, pairs, table)
    _recency(block, pairs, table)
    _turns(block, pairs, table)
    _acquaintance(block, pairs, table)


def _addressing(block: Block, pairs: Pairs, table: Table) -> None:
    table.add("same person", pairs.same)
    table.add("starts with their nick", pairs.them == pairs.mine[..., 0])
    table.add("mentions them", pairs.to_them)
    table.add("starts with my nick", pairs.theirs[..., 0] == pairs.me)
    table.add("mentions me", pairs.to_me)
    table.add("same addressee", pairs.shared)
    table.add("I address somebody else", pairs.i_address & ~pairs.to_them)
    table.add("they address somebody else", pairs.they_address & ~pairs.to_me & ~pairs.same)
    table.add("by whom I addressed last", pairs.them == block.last_to[block.rows][:, None])
    table.add("by who addressed me last", pairs.them == block.last_from[block.rows][:, None])
    table.add("they last addressed me", block.last_to[block.other] == pairs.me)
    table.add("I last addressed them", block.last_from[block.other] == pairs.me)


def _recency(block: Block, pairs: Pairs, table: Table) -> None:
    """Number the messages of each kind backwards: 1 is the most recent of its kind, 0 is of another kind."""
    kinds = {
        "own": pairs.same,
        "to me": pairs.to_me,
        "by addressee": pairs.to_them,
        "by last addressee": pairs.them == block.last_to[block.rows][:, None],
        "by last addresser": pairs.them == block.last_from[block.rows][:, None],
        "between us": (pairs.to_me & ~pairs.same) | (pairs.same & pairs.they_address),
        "same addressee": pairs.shared,
        "by or to my addressee": pairs.to_them | pairs.shared,
        "question": block.facts[block.other, FACTS.index("question")] > 0,
        "to nobody": ~pairs.they_address,
        "by others": ~pairs.same,
    }
    for name, kind in kinds.items():
        flags = kind & block.valid
        flags[:, 0] = False
        upto = np.cumsum(flags, axis=1)
        table.add(f"recency: {name}", np.where(flags, upto, 0))
        if name == "own":
            table.add("own messages between", upto - flags)
        if name in ("to me", "by addressee", "between us"):
            table.add_row(f"window has {name}", upto[:, -1])


def _turns(block: Block, pairs: Pairs, table: Table) -> None:
    """Where the earlier message stands among its author's, and what came around it."""
    row, other, last = block.rows[:, None], block.other, block.size - 1
    following = _following(block.person)
    second = np.where(following <= last, following[np.minimum(following, last)], block.size)
    until = np.minimum(following[other], row)
    after = block.person[np.minimum(other + 1, last)]
    table.add("author's newest", following[other] >= row)
    table.add("author's second newest", (following[other] < row) & (second[other] >= row))
    table.add("until author's next", until - other)
    table.add("minutes until author's next", np.minimum(block.minute[until] - block.minute[other], 100))
    table.add("next is by the same", after == pairs.them)
    table.add("next is mine", after == pairs.me)
    table.add("before is by the same", (block.person[np.maximum(other - 1, 0)] == pairs.them) & (other > 0))
    asks = np.where(block.facts[:, FACTS.index("question")] > 0, block.person, NOBODY)
    table.add("author addressed since", _next_about(block, block.addressees.tolist())[other] < row)
    table.add("author asked since", _next_about(block, asks[:, None].tolist())[other] < row)
    table.add("author spoke since", _spoke_since(block))
    table.add_row("own next in", np.minimum(following[block.rows] - block.rows, AHEAD + 1))


def _following(person: Ints) -> Ints:
    """Return the place of each author's next message, or the number of messages."""
    order = np.lexsort((np.arange(len(person)), person))
    same = person[order][1:] == person[order][:-1]
    following = np.full(len(person), len(person), dtype=np.int64)
    following[order[:-1][same]] = order[1:][same]
    return following


def _spoke_since(block: Block) -> Ints:
    """Count the messages of each earlier message's author between it and the row's."""
    counter = _Counter(block)
    cells = counter.cells(block.other)
    newest = np.zeros(counter.shape, dtype=np.int64).ravel()
    places = np.where(block.valid & (np.arange(WINDOW + 1) > 0), block.other, 0)
    np.maximum.at(newest, cells.ravel(), places.ravel())
    order = np.lexsort((np.arange(block.size), block.person))
    ordinal = np.empty(block.size, dtype=np.int64)
    ordinal[order] = np.arange(block.size)
    return np.asarray(ordinal[newest[cells]] - ordinal[block.other])


def _next_about(block: Block, people: list[list[int]]) -> Ints:
    """Return for each message the place of the next one whose people include its author."""
    upcoming: dict[int, int] = {}
    found = np.full(block.size, block.size, dtype=np.int64)
    authors = block.person.tolist()
    for i in range(block.size - 1, -1, -1):
        found[i] = upcoming.get(authors[i], block.size)
        upcoming.update((person, i) for person in people[i])
    return found


class _Counter:
    """Counts messages of a row by person: who spoke, who was addressed."""

    def __init__(self, block: Block) -> None:
        everybody = np.concatenate([block.person, block.addressees.ravel()])
        people, numbers = np.unique(everybody, return_inverse=True)
        self.person = numbers[: block.size]
        self.addressees = numbers[block.size :].reshape(block.addressees.shape)
        self.shape = len(block.rows), len(people)
        self.grid = np.arange(len(block.rows))[:, None] * len(people)

    def cells(self, places: Ints) -> Ints:
        """Return the cell of each message's author."""
        return np.asarray(self.grid + self.person[places])

    def spoke(self, places: Ints, where: Flags) -> Ints:
        """Count each person's messages among those flagged."""
        return np.bincount(self.cells(places)[where], minlength=self.shape[0] * self.shape[1])

    def addressed(self, places: Ints, where: Flags) -> Ints:
        """Count the messages to each person among those flagged."""
        cells = self.grid[..., None] + self.addressees[places]
        return np.bincount(cells[where].ravel(), minlength=self.shape[0] * self.shape[1])


def _acquaintance(block: Block, pairs: Pairs, table: Table) -> None:
    """How often the two authors addressed each other in the window and just after, and how much the other said."""
    counter = _Counter(block)
    cells = counter.cells(block.other)
    mine = pairs.same & block.valid
    mine[:, 0] = False
    spoke = counter.spoke(block.other, block.valid)
    table.add("they spoke", spoke[cells])
    table.add("they addressed me", counter.spoke(block.other, pairs.to_me)[cells])
    table.add("I addressed them", counter.addressed(block.other, mine)[cells])
    table.add_row("people in window", (spoke.reshape(counter.shape) > 0).sum(1))
    mine = (block.person[block.later] == pairs.me) & block.comes
    to_me = (block.addressees[block.later] == pairs.me[..., None]).any(2) & block.comes
    table.add("they will speak", counter.spoke(block.later, block.comes)[cells])
    table.add("they will address me", counter.spoke(block.later, to_me)[cells])
    table.add("I will address them", counter.addressed(block.later, mine)[cells])
    table.add_row("I will be addressed", to_me.sum(1))
