"""Build DSTC7's Ubuntu subtasks from channel logs: untangle, filter, split by time, cut, add wrong options.

rejoinder build ubuntu --logs logs/ --model links.model --out ubuntu
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from rejoinder.corpora.ubuntu import HELPER, Support, cuts
from rejoinder.errors import UserError
from rejoinder.files import BadInputError
from rejoinder.tasks.build import Cut, build_pool_task, build_task, similar_by_words
from rejoinder.tasks.card import SPLITS
from rejoinder.tasks.description import is_known
from rejoinder.tasks.selection import SelectionTask
from rejoinder.tasks.ubuntu_logs import Gathered
from rejoinder.text import counted


def check_days(days: Collection[str]) -> None:
    """Refuse too few days; before hours are spent on their logs, if need be."""
    if len(days) < len(SPLITS):
        raise BadInputError("logs", f"{counted(len(days), 'day')}; a split by time needs at least {len(SPLITS)}")


def split_by_day(dialogues: Sequence[Support], shares: tuple[float, float, float]) -> dict[str, list[Support]]:
    """Give the earliest days to train, the next to dev and the last to test; no day is on two sides."""
    counts = Counter(dialogue.day for dialogue in dialogues)
    check_days(counts)
    days = sorted(counts)
    reached = np.cumsum([counts[day] for day in days]) / len(dialogues)
    first, second = _borders(reached, np.array(shares))
    side = {day: SPLITS[(place >= first) + (place >= second)] for place, day in enumerate(days)}
    split: dict[str, list[Support]] = {name: [] for name in SPLITS}
    for dialogue in dialogues:
        split[side[dialogue.day]].append(dialogue)
    return split


def _borders(reached: NDArray[np.float64], shares: NDArray[np.float64]) -> tuple[int, int]:
    """Return how many days end train, and dev, so that the ratios to the wanted shares are all as near to 1 as can be.

    Ratios, not differences: a last day of few hours must not be a side alone.
    """
    found = []
    for first in range(1, len(reached) - 1):
        middle = reached[first - 1] + (1 - reached[first - 1]) * shares[1] / shares[1:].sum()
        near = int(np.searchsorted(reached, middle))
        for second in {int(np.clip(place, first + 1, len(reached) - 1)) for place in (near, near + 1)}:
            sides = np.diff([0.0, reached[first - 1], reached[second - 1], 1.0])
            found.append((float((np.log(sides / shares) ** 2).sum()), first, second))
    return min(found)[1:]


def cut_dialogues(dialogues: Iterable[Support], every: bool, rng: np.random.Generator) -> Iterator[Cut]:
    """Cut each dialogue before one of the helper's answers, at random, or before every one of them."""
    for support in dialogues:
        turns = support.dialogue.turns
        places = cuts(support.dialogue)
        for place in places if every else places and [int(rng.choice(places))]:
            yield Cut(tuple((turn.speaker, turn.text) for turn in turns[:place]), (turns[place].text,))


def training_replies(gathered: Gathered, shares: tuple[float, float, float]) -> SelectionTask:
    """Return every turn of the training days as a task: the context, and the reply among all others."""
    last = max(dialogue.day for dialogue in split_by_day(gathered.dialogues, shares)["train"])
    found = [cut for day, cuts in sorted(gathered.replies.items()) if day <= last for cut in cuts]
    return build_pool_task(found, list(dict.fromkeys(cut.replies[0] for cut in found)), 1)


class UbuntuPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The choices to be made when building."""

    seed: int = 0
    candidates: int = 100
    pool_size: int = 120_000
    without_answer: float = 0.2
    hard: bool = False
    every_cut: bool = False
    drop_known: bool = False
    """Whether dev and test lose the examples whose reply train has too."""
    shares: tuple[float, float, float] = (0.8, 0.1, 0.1)


def build_subtasks(gathered: Gathered, plan: UbuntuPlan) -> Iterator[tuple[int, str, SelectionTask]]:
    """Yield (subtask, split, task) for subtasks 1, 2 and 4; subtask 5 is subtask 1 with knowledge."""
    split = split_by_day(gathered.dialogues, plan.shares)
    similar = similar_by_words() if plan.hard else None
    for subtask in (1, 2, 4):
        seeds = side_seeds(plan.seed, subtask)
        cut = cut_sides(split, plan, seeds)
        pool = _pool(gathered, cut, plan) if subtask == 2 else []
        for number, side in enumerate(SPLITS, 1):
            first_id = (subtask * 10 + number) * room(len(cut[side])) + 1
            if subtask == 2:
                yield subtask, side, build_pool_task(cut[side], pool, first_id)
                continue
            without = plan.without_answer if subtask == 4 else 0.0
            seed = int(seeds[side].generate_state(1)[0])
            wrong = replies(split[side])
            yield subtask, side, build_task(cut[side], wrong, plan.candidates, without, seed, similar, first_id)


def side_seeds(*seed: int) -> dict[str, np.random.SeedSequence]:
    """Return a seed for each side."""
    return {side: np.random.SeedSequence([*seed, number]) for number, side in enumerate(SPLITS)}


def cut_sides(
    split: dict[str, list[Support]], plan: UbuntuPlan, seeds: dict[str, np.random.SeedSequence]
) -> dict[str, list[Cut]]:
    """Cut the dialogues of each side; if so wished, leave out what of dev and test train answers too."""
    cut = {}
    for side in SPLITS:
        every = plan.every_cut and side == "train"
        cut[side] = list(cut_dialogues(split[side], every, np.random.default_rng(seeds[side])))
    if plan.drop_known:
        answers = {side: [one.replies[0] for one in cut[side]] for side in SPLITS}
        for side in ("dev", "test"):
            known = is_known(answers["train"], answers[side])
            cut[side] = [one for one, drop in zip(cut[side], known, strict=True) if not drop]
            if not cut[side]:
                raise UserError(f"train answers all of {side} too: nothing is left of it")
    return cut


def room(examples: int) -> int:
    """Return how far apart splits' ids are: 1100001 is the first training example of subtask 1, as in the track."""
    return int(10 ** max(5, len(str(examples - 1))))


def replies(dialogues: Sequence[Support]) -> list[tuple[str, ...]]:
    """Return what helpers said on one side of the split; wrong options come from the same days as the right one."""
    said = (turn.text for support in dialogues for turn in support.dialogue.turns if turn.speaker == HELPER)
    return [(text,) for text in dict.fromkeys(said)]


def _pool(gathered: Gathered, cut: dict[str, list[Cut]], plan: UbuntuPlan) -> list[str]:
    """Put every answer into one pool, fill it with other utterances, and shuffle."""
    answers = dict.fromkeys(text for cuts in cut.values() for one in cuts for text in one.replies)
    texts = list(answers | dict.fromkeys(gathered.utterances))[: max(plan.pool_size, len(answers))]
    order = np.random.default_rng(plan.seed).permutation(len(texts))
    return [texts[place] for place in order]
