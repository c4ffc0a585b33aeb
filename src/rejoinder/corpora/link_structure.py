"""What a first guess at all links says about each link: features of the conversations that the guess makes.

A message's conversation is that of the message which it most likely answers. Candidates are columns of the window, as
in link_block; the guess is a chance for each of the window's columns.
"""

import msgspec
import numpy as np
from numpy.typing import NDArray

from rejoinder.corpora.link_block import AHEAD, Block, Flags, Floats, Ints

Columns = dict[str, NDArray[np.generic]]

# the features of pairs that conversations are described by
NEEDED = (
    "minutes apart",
    "same person",
    "mentions me",
    "mentions them",
    "they address somebody else",
    "same addressee",
    "similar words",
    "shared words",
    "similar meaning",
    "theirs: question",
)
_FLOOR = 1e-6


class Guess(msgspec.Struct, frozen=True):
    """For each place of a block up to `end` the chance of each column, and the conversation that it is in."""

    chances: Floats
    conversations: Ints
    end: int


def follow(chances: Floats, start: int, conversations: Ints, offset: int) -> None:
    """Fill in conversations from place `start`: that of the likeliest message, or a new one, numbered by place."""
    for i, back in enumerate(chances.argmax(1).tolist(), start):
        conversations[i] = conversations[i - back] if back else offset + i


def structure_features(
    block: Block, top: Ints, pairs: dict[str, Floats], guess: Guess
) -> tuple[tuple[str, ...], Floats]:
    """Return names and values, rows x candidates x features, for candidates in columns `top` of the first rows."""
    rows = block.rows[: len(top)]
    places = np.maximum(rows[:, None] - top, 0)
    theirs = guess.conversations[places]
    columns = {
        **_own_guess(guess.chances[rows], top),
        **_conversation(block, top, pairs, guess, theirs),
        **_answers_so_far(block, rows, places, guess),
        **_answers_to_come(block, rows, top, places, guess),
        **_own_last(block, rows, theirs, guess),
        **_own_next(block, rows, places, theirs, guess),
        **_its_own_answer(block, rows, places, guess),
    }
    values = [np.broadcast_to(column, top.shape).astype(np.float32) for column in columns.values()]
    return tuple(columns), np.stack(values, axis=-1)


def _own_guess(here: Floats, top: Ints) -> Columns:
    chance = np.take_along_axis(here, top, axis=1)
    best = here.max(1, keepdims=True)
    return {
        "chance": np.log(chance + _FLOOR),
        "chance below the best": np.log(chance + _FLOOR) - np.log(best + _FLOOR),
        "rank of chance": (chance[:, :, None] < chance[:, None, :]).sum(2),
        "chance to start": np.log(here[:, :1] + _FLOOR),
        "best chance": best,
        "doubt": -(here * np.log(here + _FLOOR)).sum(1, keepdims=True),
    }


def _members(block: Block, top: Ints, guess: Guess, theirs: Ints) -> Flags:
    """Whether each message of the window is in the candidate's conversation; one that starts now has none."""
    count = len(top)
    window = guess.conversations[block.other[:count]]
    members = (window[:, None, :] == theirs[:, :, None]) & block.valid[:count, None, :] & (top > 0)[..., None]
    members[..., 0] = False
    return np.asarray(members)


def _conversation(block: Block, top: Ints, pairs: dict[str, Floats], guess: Guess, theirs: Ints) -> Columns:
    members = _members(block, top, guess, theirs)
    near = {name: pairs[name][: len(top), None, :] for name in NEEDED}
    size = members.sum(2)
    newest = np.where(size > 0, members.argmax(2), members.shape[2] - 1)
    minutes = np.take_along_axis(near["minutes apart"][:, 0], newest, axis=1)
    here = guess.chances[block.rows[: len(top)]][:, None, :]
    counted = {
        "own": "same person",
        "to me": "mentions me",
        "by addressee": "mentions them",
        "to others": "they address somebody else",
        "same addressee": "same addressee",
        "questions": "theirs: question",
    }
    return {
        "conversation: size": size,
        "conversation: newest": newest,
        "conversation: minutes": np.where(size > 0, minutes, 500),
        "conversation: chance": np.log(np.where(members, here, 0).sum(2) + _FLOOR),
        "conversation: newer": (members & (np.arange(members.shape[2]) < top[..., None])).sum(2),
        "conversation: similar": np.where(members, near["similar words"], 0).max(2),
        "conversation: shared": np.where(members, near["shared words"], 0).sum(2),
        "conversation: meaning": np.where(members, near["similar meaning"], 0).sum(2) / np.maximum(size, 1),
        **{f"conversation: {name}": (members & (near[pair] > 0)).sum(2) for name, pair in counted.items()},
    }


def _answers_so_far(block: Block, rows: Ints, places: Ints, guess: Guess) -> Columns:
    """How many messages just before this one answer the candidate."""
    exists = block.valid[: len(rows), 1 : AHEAD + 1]
    earlier = block.other[: len(rows), 1 : AHEAD + 1]
    back = guess.chances.argmax(1)[earlier]
    target = np.where(exists & (back > 0), earlier - back, -1)
    answers = target[:, None, :] == places[:, :, None]
    mine = block.person[earlier] == block.person[rows][:, None]
    return {"answered by": answers.sum(2), "answered by me": (answers & mine[:, None, :]).sum(2)}


def _answers_to_come(block: Block, rows: Ints, top: Ints, places: Ints, guess: Guess) -> Columns:
    """How likely messages just after this one answer it, the candidate, or either."""
    back = np.arange(1, AHEAD + 1)
    later = rows[:, None] + back
    exists = later < guess.end
    later = np.where(exists, later, 0)
    to_me = np.where(exists, guess.chances[later, back], 0)[:, None, :]
    reach = back + top[:, :, None]
    within = (reach < guess.chances.shape[1]) & exists[:, None, :]
    to_it = np.where(within, guess.chances[later[:, None, :], np.where(within, reach, 0)], 0)
    by_them = block.person[later][:, None, :] == block.person[places][:, :, None]
    return {
        "will answer me": to_me.sum(2),
        "they will answer me": np.where(by_them, to_me, 0).sum(2),
        "will answer it": to_it.sum(2),
        "will answer me or it": np.minimum(to_it, to_me).sum(2),
    }


def _its_own_answer(block: Block, rows: Ints, places: Ints, guess: Guess) -> Columns:
    """What the candidate itself answers."""
    back = guess.chances.argmax(1)[places]
    author = np.where(back > 0, block.person[places - back], -1)
    return {
        "chance that it starts": guess.chances[places, 0],
        "it answers me": author == block.person[rows][:, None],
        "it goes on": author == block.person[places],
        "it answers after": back,
    }


def _own_last(block: Block, rows: Ints, theirs: Ints, guess: Guess) -> Columns:
    before = block.other[: len(rows), 1:]
    same = (block.person[before] == block.person[rows][:, None]) & block.valid[: len(rows), 1:]
    last = np.take_along_axis(before, same.argmax(1)[:, None], axis=1)
    return {"where I was": same.any(1)[:, None] & (guess.conversations[last] == theirs)}


def _own_next(block: Block, rows: Ints, places: Ints, theirs: Ints, guess: Guess) -> Columns:
    later = rows[:, None] + np.arange(1, AHEAD + 1)
    exists = later < guess.end
    later = np.where(exists, later, 0)
    same = (block.person[later] == block.person[rows][:, None]) & exists
    follows = same.any(1)[:, None]
    mine = np.take_along_axis(later, same.argmax(1)[:, None], axis=1)
    answers = mine - guess.chances[mine[:, 0]].argmax(1)[:, None]
    earlier = np.where(answers < rows[:, None], guess.conversations[np.minimum(answers, rows[:, None])], -1)
    return {
        "where I go next": follows & (earlier == theirs),
        "what I answer next": follows & (answers == places),
        "I go on": follows & (answers == rows[:, None]),
    }
