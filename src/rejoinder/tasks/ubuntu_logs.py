"""Channel logs read and untangled: the dialogues in them, and other utterances to choose from."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

import msgspec
import numpy as np

from rejoinder.corpora.copies import Copies
from rejoinder.corpora.irc import SPOKEN, Post, date_of, read_log
from rejoinder.corpora.link_files import conversations, name_of
from rejoinder.corpora.ubuntu import (
    FILTERS,
    Funnel,
    People,
    Support,
    all_turns,
    every_reply,
    people_of,
    support_dialogues,
)
from rejoinder.files import BadInputError, fingerprint, read_start
from rejoinder.tasks.build import Cut
from rejoinder.text import counted
from rejoinder.watch import Step

Links = Callable[[Path, Sequence[Post]], Iterable[tuple[int, int]]]
"""Say which message answers which, for the posts of a log."""


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
    advance: Step,
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


def days_of(logs: Sequence[Path]) -> set[str]:
    """Return the days that logs are of."""
    return {_day(path) for path in logs}


def _day(path: Path) -> str:
    return str(date_of(path) or path.name)


def _reasons(funnel: Funnel) -> str:
    return "; ".join(f"{FILTERS[name]} ({count})" for name, count in funnel.removed.most_common()) or "nobody speaks"
