"""Build DSTC7's Ubuntu subtasks from channel logs: untangle, filter, split by time, cut, add wrong options.

rejoinder build ubuntu --logs logs/ --model links.model --out ubuntu
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from rejoinder.corpora.copies import Copies
from rejoinder.corpora.irc import SPOKEN, Post, date_of, read_log
from rejoinder.corpora.link_files import conversations, name_of
from rejoinder.corpora.ubuntu import (
    FILTERS,
    HELPER,
    Funnel,
    People,
    Support,
    all_turns,
    cuts,
    every_reply,
    people_of,
    support_dialogues,
)
from rejoinder.errors import UserError
from rejoinder.files import BadInputError, fingerprint, read_start
from rejoinder.tasks.build import Cut, build_pool_task, build_task, similar_by_words
from rejoinder.tasks.description import is_known
from rejoinder.tasks.selection import SelectionTask
from rejoinder.text import counted

Links = Callable[[Path, Sequence[Post]], Iterable[tuple[int, int]]]
"""Say which message answers which, for the posts of a log."""

SPLITS = ("train", "dev", "test")


def find_logs(paths: Sequence[Path]) -> list[Path]:
    """Return the logs among files and in folders: `.txt` and `.txt.gz`, no annotations, licences or empty files."""
    found = []
    for path in paths:
        if not path.exists():
            raise BadInputError(path, "no such file or folder")
        inside = sorted(path.rglob("*.txt*")) if path.is_dir() else [path]
        found += [log for log in inside if not _NOT_A_LOG.search(log.name) and not log.is_dir()]
    if not found:
        raise BadInputError(paths[0], "no logs; expected files such as 2013-01-01.ubuntu.txt.gz")
    # a day on which nobody spoke has an empty log
    logs = [log for log in _distinct(found) if read_start(log, 1)] or found
    for log in logs:
        next(read_log(log))  # a file that is no log is told before the work begins
    return logs


def _distinct(logs: list[Path]) -> list[Path]:
    """Take a log that is given twice once; two others of one name would share one file of links."""
    named: dict[str, Path] = {}
    for log in logs:
        other = named.setdefault(name_of(log), log)
        if not log.samefile(other) and fingerprint(log) != fingerprint(other):
            raise BadInputError(log, f"{other} is named {name_of(log)} too; give one of them another name")
    return list(named.values())


_NOT_A_LOG = re.compile(r"\.annotation\.txt|licen[cs]e|readme", re.IGNORECASE)


class Gathered(msgspec.Struct):
    """What the logs gave: dialogues in order of time, and other utterances to choose from."""

    dialogues: list[Support]
    utterances: list[str]
    funnel: Funnel
    replies: dict[str, list[Cut]] = {}
    """By day: every turn of every conversation, whether or not it passed the filters."""
    notes: list[str] = []
    """What was left out because another log has it too."""


class Reservoir:
    """A uniform sample of what passes by, of bounded size and without repetitions."""

    def __init__(self, size: int, seed: int) -> None:
        self.size, self.seen, self.rng = size, 0, np.random.default_rng(seed)
        self.kept: list[str] = []
        self.known: set[str] = set()

    def add(self, text: str) -> None:
        """Take the text with the right probability."""
        if text in self.known:
            return
        self.seen += 1
        if len(self.kept) < self.size:
            self.kept.append(text)
            self.known.add(text)
            return
        place = int(self.rng.integers(self.seen))
        if place < self.size:
            self.known.remove(self.kept[place])
            self.known.add(text)
            self.kept[place] = text


def gather(
    logs: Sequence[Path],
    links: Links,
    pool_size: int,
    seed: int,
    advance: Callable[[int], object],
    turns: bool = False,
) -> Gathered:
    """Read the logs one at a time and keep the dialogues that pass the filters."""
    gathered = Gathered([], [], Funnel())
    pool = Reservoir(pool_size, seed)
    for path, posts, copied in _read_logs(logs):
        spoken = [post for post in posts if post.kind in SPOKEN]
        talks = _untangle(path, spoken, links) if len(copied) < len(spoken) else []
        fresh = [talk for talk in talks if copied.isdisjoint(post.line for post in talk)]
        if copied:
            gathered.notes.append(_copied(path, len(copied), len(spoken), len(talks) - len(fresh)))
        talks, people = fresh, people_of(posts)
        gathered.dialogues += support_dialogues(talks, people, name_of(path), _day(path), gathered.funnel)
        if turns:
            gathered.replies.setdefault(_day(path), []).extend(_every_reply(talks, people))
        for talk in talks:
            for turn in all_turns(talk, people):
                pool.add(turn.text)
        advance(1)
    gathered.utterances = pool.kept
    if not gathered.dialogues:
        found = counted(gathered.funnel.conversations, "conversation")
        raise BadInputError(logs[0], f"none of {found} passes the filters: {_reasons(gathered.funnel)}")
    return gathered


def _read_logs(logs: Sequence[Path]) -> Iterator[tuple[Path, list[Post], set[int]]]:
    """Yield each log, by day and name, with the lines that an earlier day, or a longer log of its day, holds too."""
    copies = Copies()
    for _, paths in groupby(sorted(logs, key=lambda path: (_day(path), path.name)), _day):
        posts = {path: list(read_log(path)) for path in paths}
        spoken = {path: [post for post in said if post.kind in SPOKEN] for path, said in posts.items()}
        copied = {path: copies.find(spoken[path]) for path in sorted(posts, key=lambda path: -len(spoken[path]))}
        yield from ((path, said, copied[path]) for path, said in posts.items())


def _copied(path: Path, copied: int, spoken: int, conversations: int) -> str:
    if copied == spoken:
        return f"{path.name}: other logs hold all of it too; it was left out"
    found = f"{path.name}: another log holds {copied:,} of its {spoken:,} messages too"
    return f"{found}; left out here: {counted(conversations, 'conversation')} with any of them"


def _untangle(path: Path, posts: list[Post], links: Links) -> list[list[Post]]:
    by_line = {post.line: post for post in posts}
    return [[by_line[line] for line in lines if line in by_line] for lines in conversations(links(path, posts))]


def _every_reply(talks: list[list[Post]], people: People) -> Iterator[Cut]:
    for talk in talks:
        for before, reply in every_reply(talk, people):
            yield Cut(tuple((turn.speaker, turn.text) for turn in before[-MOST_TURNS:]), (reply,))


MOST_TURNS = 20
"""How many turns before a reply are kept to train on."""


def check_days(logs: Sequence[Path]) -> None:
    """Refuse logs of too few days before hours are spent on them."""
    _enough({_day(path) for path in logs})


def _enough(days: Collection[str]) -> None:
    if len(days) < len(SPLITS):
        raise BadInputError("logs", f"{counted(len(days), 'day')}; a split by time needs at least {len(SPLITS)}")


def _day(path: Path) -> str:
    return str(date_of(path) or path.name)


def _reasons(funnel: Funnel) -> str:
    return "; ".join(f"{FILTERS[name]} ({count})" for name, count in funnel.removed.most_common()) or "nobody speaks"


def split_by_day(dialogues: Sequence[Support], shares: tuple[float, float, float]) -> dict[str, list[Support]]:
    """Give the earliest days to train, the next to dev and the last to test; no day is on two sides."""
    counts = Counter(dialogue.day for dialogue in dialogues)
    _enough(counts)
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


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
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


def build_subtasks(gathered: Gathered, recipe: Recipe) -> Iterator[tuple[int, str, SelectionTask]]:
    """Yield (subtask, split, task) for subtasks 1, 2 and 4; subtask 5 is subtask 1 with knowledge."""
    split = split_by_day(gathered.dialogues, recipe.shares)
    similar = similar_by_words() if recipe.hard else None
    for subtask in (1, 2, 4):
        seeds = side_seeds(recipe.seed, subtask)
        cut = cut_sides(split, recipe, seeds)
        pool = _pool(gathered, cut, recipe) if subtask == 2 else []
        for number, side in enumerate(SPLITS, 1):
            first_id = (subtask * 10 + number) * room(len(cut[side])) + 1
            if subtask == 2:
                yield subtask, side, build_pool_task(cut[side], pool, first_id)
                continue
            without = recipe.without_answer if subtask == 4 else 0.0
            seed = int(seeds[side].generate_state(1)[0])
            wrong = replies(split[side])
            yield subtask, side, build_task(cut[side], wrong, recipe.candidates, without, seed, similar, first_id)


def side_seeds(*seed: int) -> dict[str, np.random.SeedSequence]:
    """Return a seed for each side."""
    return {side: np.random.SeedSequence([*seed, number]) for number, side in enumerate(SPLITS)}


def cut_sides(
    split: dict[str, list[Support]], recipe: Recipe, seeds: dict[str, np.random.SeedSequence]
) -> dict[str, list[Cut]]:
    """Cut the dialogues of each side; if so wished, leave out what of dev and test train answers too."""
    cut = {}
    for side in SPLITS:
        every = recipe.every_cut and side == "train"
        cut[side] = list(cut_dialogues(split[side], every, np.random.default_rng(seeds[side])))
    if recipe.drop_known:
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


def _pool(gathered: Gathered, cut: dict[str, list[Cut]], recipe: Recipe) -> list[str]:
    """Put every answer into one pool, fill it with other utterances, and shuffle."""
    answers = dict.fromkeys(text for cuts in cut.values() for one in cuts for text in one.replies)
    texts = list(answers | dict.fromkeys(gathered.utterances))[: max(recipe.pool_size, len(answers))]
    order = np.random.default_rng(recipe.seed).permutation(len(texts))
    return [texts[place] for place in order]
