"""How two messages stand to each other: the features of every (message, earlier message) pair in a window, at once.

All features of a row are functions of the messages from WINDOW before it to AHEAD after it, so a log may be cut into
blocks anywhere.
"""

import numpy as np

from rejoinder.corpora.link_block import AHEAD, Block, Table
from rejoinder.corpora.link_messages import FACTS, FAR
from rejoinder.corpora.link_people import people_features

# those that tell which messages are worth a second look
PRUNING = (
    "messages apart",
    "minutes apart",
    "other",
    "same person",
    "starts with their nick",
    "mentions them",
    "starts with my nick",
    "mentions me",
    "same addressee",
    "I address somebody else",
    "they address somebody else",
    "by whom I addressed last",
    "by who addressed me last",
    "recency: own",
    "recency: to me",
    "recency: by addressee",
    "recency: between us",
    "recency: by or to my addressee",
    "recency: question",
    "recency: to nobody",
    "recency: by others",
    "own messages between",
    "window has by addressee",
    "author's newest",
    "author spoke since",
    "author addressed since",
    "they addressed me",
    "I addressed them",
    "similar words",
    "shared words",
    "rank of similarity",
    "similar meaning",
    "mine: since own last",
    "mine: addressee silent for",
    "mine: addresses",
    "mine: bot",
    "theirs: bot",
    "theirs: factoid",
    "theirs: question",
    "theirs: words",
)


def pair_features(block: Block) -> Table:
    """Return all features of a block's pairs."""
    table = Table(block)
    _place_and_time(block, table)
    people_features(block, table)
    _word_features(block, table)
    _meaning_features(block, table)
    _fact_features(block, table)
    return table


def _place_and_time(block: Block, table: Table) -> None:
    gap = np.broadcast_to(np.arange(table.shape[1]), table.shape)
    now = block.minute[block.rows]
    table.add("messages apart", gap)
    table.add("minutes apart", np.minimum(now[:, None] - block.minute[block.other], FAR))
    table.add("other", gap > 0)
    table.add_row("minutes of next messages", np.minimum(block.minute[block.later[:, AHEAD - 1]] - now, FAR))


def _word_features(block: Block, table: Table) -> None:
    low, high = int(block.other.min()), int(block.rows[-1]) + 1
    ours, near = block.words[block.rows], block.words[low:high]
    at = np.arange(len(block.rows))[:, None], block.other - low
    cosine = np.where(block.valid, (ours @ near.T).toarray()[at], 0)
    cosine[:, 0] = 0
    best = cosine.max(1)
    table.add("similar words", cosine)
    table.add("shared words", np.where(block.valid, (ours.sign() @ near.sign().T).toarray()[at], 0))
    table.add("weight of shared words", cosine * block.weight[block.rows][:, None] * block.weight[block.other])
    table.add("less similar than the best", cosine - best[:, None])
    table.add("rank of similarity", np.argsort(np.argsort(-cosine, axis=1, kind="stable"), axis=1))
    table.add_row("best similarity", best)


def _meaning_features(block: Block, table: Table) -> None:
    low, high = int(block.other.min()), int(block.rows[-1]) + 1
    at = np.arange(len(block.rows))[:, None], block.other - low
    alike = np.where(block.valid, (block.meaning[block.rows] @ block.meaning[low:high].T)[at], 0)
    alike[:, 0] = 0
    best = alike.max(1)
    table.add("similar meaning", alike)
    table.add("less similar meaning than the best", alike - best[:, None])
    table.add_row("best similarity of meaning", best)


def _fact_features(block: Block, table: Table) -> None:
    mine, theirs = block.facts[block.rows], block.facts[block.other]
    for k, name in enumerate(FACTS):
        table.add_row(f"mine: {name}", mine[:, k])
        table.add(f"theirs: {name}", theirs[..., k])
