"""Generated logs of a support channel, with the true reply links, and the dialogues inside them.

A day is one file `YYYY-MM-DD.ubuntu.raw.txt` of lines `[HH:MM] <nick> text`, `[HH:MM]  * nick acts` and
`=== nick [~user@host]  has joined #ubuntu`; `YYYY-MM-DD.ubuntu.annotation.txt` says with lines `a b -` that message b
answers message a (line numbers from 0; a = b starts a conversation), as in the corpus of Kummerfeld et al. (2019).
Each day is drawn from the seed and its own number, so a longer run starts with the days of a shorter one.
"""

from collections.abc import Callable, Iterator
from datetime import date, timedelta
from functools import cache
from math import log
from pathlib import Path
from random import Random

from rejoinder.dialogue import Dialogue, merge_posts
from rejoinder.files import write_atomically
from rejoinder.sample.irc_talk import ASKER, BOT, HELPER, Conversation, Post, chatter, support

__all__ = ["Conversation", "dialogues", "write"]

FIRST_DAY = date(2012, 1, 1)
DAY = 86_400.0
REGULARS = 90
BOT_NICK = "ubottu"
_NAMES = {ASKER: "participant_1", HELPER: "participant_2"}
_ONSETS = ["b", "br", "ch", "d", "dr", "f", "g", "gr", "h", "j", "k", "kl", "kr", "l", "m", "n", "p", "qu", "r", "s"]
_ONSETS += ["sh", "sk", "sl", "st", "t", "tr", "v", "w", "x", "y", "z"]
_VOWELS = ["a", "e", "i", "o", "u", "ai", "ee", "oo", "y", "ou"]
_CODAS = ["", "", "", "n", "r", "x", "k", "s", "l", "sh", "m", "z", "nd", "ck"]
_SYLLABLES = [onset + vowel + coda for onset in _ONSETS for vowel in _VOWELS for coda in _CODAS]
_TAILS = ["", "", "", "", "", "", "", "_", "__", "|", "-", "{n}", "{n}", "{n}", "_{n}", "|work", "`", "-laptop"]
_HOSTS = [
    "adsl-{n}.example.net",
    "dsl-{n}-pool.example.org",
    "cable-{n}.example.com",
    "{n}.dyn.example.net",
    "unaffiliated/{n}",
]
_PARTINGS = [
    "has left #ubuntu []",
    'has left #ubuntu ["Leaving"]',
    "has quit [Ping timeout: {n} seconds]",
    "has quit [Remote host closed the connection]",
    "has quit [Read error: {n} (Connection reset by peer)]",
]
_CLOCK = [f"[{minute // 60:02}:{minute % 60:02}]" for minute in range(1440)]


def dialogues(size: int, seed: int) -> Iterator[Dialogue]:
    """Yield dialogues between an asker, who speaks first, and one helper, without nicks."""
    rng = Random(f"irc dialogues {seed}")
    for number in range(1, size + 1):
        posts = support(rng, crowd=False).posts
        yield Dialogue(f"irc-{number:06}", merge_posts((_NAMES[post.speaker], post.text) for post in posts))


def write(out: Path, size: int, seed: int) -> None:
    """Write about `size` messages as day files, each log beside its reply links."""
    number = 0
    while size > 0:
        day = _Day(seed, number)
        day.run(size)
        lines, links = day.lines()
        stem = f"{FIRST_DAY + timedelta(days=number)}.ubuntu"
        with write_atomically(out / f"{stem}.raw.txt") as file:
            file.write("".join(lines).encode())
        with write_atomically(out / f"{stem}.annotation.txt") as file:
            file.write("".join(links).encode())
        size -= day.messages
        number += 1


# when it happens, its number in the day, what the log shows, and the numbers of the events that it answers
_Event = tuple[float, int, str, tuple[int, ...]]


class _Day:
    """One day of the channel: conversations start at random and overlap."""

    def __init__(self, seed: int, number: int) -> None:
        self.rng = Random(f"irc day {seed} {number}")
        self.random = self.rng.random
        self.regulars = _regulars(seed)
        self.taken = {*self.regulars, BOT_NICK}
        self.events: list[_Event] = []
        self.messages = 0

    def run(self, limit: int) -> None:
        """Let people come and talk until the day is over or `limit` messages are said."""
        gap = 26.0 + 24.0 * self.random()
        now = self.wait(gap)
        while now < DAY - 1800 and self.messages < limit:
            kind = self.random()
            if kind < 0.3:
                self.converse(support(self.rng), now)
            elif kind < 0.6:
                self.converse(chatter(self.rng), now)
            else:
                self.lurk(now)
            now += self.wait(gap)

    def lines(self) -> tuple[list[str], list[str]]:
        """Return the log and its links, both in order of time."""
        self.events.sort()
        place = [0] * len(self.events)
        for position, event in enumerate(self.events):
            place[event[1]] = position
        links = [f"{place[a]} {b} -\n" for b, event in enumerate(self.events) for a in event[3]]
        return [event[2] for event in self.events], links

    def wait(self, mean: float) -> float:
        """Draw an exponential waiting time in seconds."""
        return -mean * log(1.0 - self.random())

    def nick(self) -> str:
        """Make up a nick that nobody has had today."""
        while (nick := _nick(self.random)) in self.taken:
            pass
        self.taken.add(nick)
        return nick

    def regular(self) -> str:
        """Choose one of those who are always there, the busiest most often."""
        return self.regulars[int(REGULARS * self.random() ** 2)]

    def lurk(self, now: float) -> None:
        """Let somebody come, perhaps change the nick, and go without a word."""
        nick = self.nick()
        self.join(nick, now)
        if self.random() < 0.3:
            now += self.wait(300)
            nick = self.rename(nick, now)
        if self.random() < 0.6:
            self.leave(nick, now + self.wait(1800))

    def system(self, time: float, text: str) -> None:
        """Add a line of the server's."""
        self.events.append((min(time, DAY - 1), len(self.events), f"=== {text}\n", ()))

    def join(self, nick: str, time: float) -> None:
        """Announce an arrival."""
        user = nick.strip("_|-`").lower()[:8]
        host = _HOSTS[int(self.random() * len(_HOSTS))].format(n=int(self.random() * 9999))
        self.system(time, f"{nick} [~{user}@{host}]  has joined #ubuntu")

    def leave(self, nick: str, time: float) -> None:
        """Announce a departure."""
        parting = _PARTINGS[int(self.random() * len(_PARTINGS))].format(n=180 + int(self.random() * 90))
        self.system(time, f"{nick} [~{nick.strip('_|-`').lower()[:8]}@example.net]  {parting}")

    def rename(self, nick: str, time: float) -> str:
        """Announce a change of nick and return the new one."""
        options = (nick.rstrip("_`|-") or nick, f"{nick}_", f"{nick}1", _nick(self.random))
        new = options[int(self.random() * len(options))]
        if new in self.taken:
            new = self.nick()
        self.taken.add(new)
        self.system(time, f"{nick} is now known as {new}")
        return new

    def converse(self, conversation: Conversation, now: float) -> None:
        """Put a conversation into the day, with the coming and going of its asker."""
        posts = conversation.posts
        passing = len(posts) > 1 or self.random() < 0.5
        cast = self.cast(self.nick() if passing else self.regular())
        if passing and self.random() < 0.6:
            self.join(cast[ASKER], max(0.0, now - self.wait(60)))
        change = int(self.random() * 16 * len(posts)) if passing else 0
        numbers: list[int] = []
        for i, post in enumerate(posts):
            if i:
                now += 2 + self.wait(9) if post.speaker in (posts[i - 1].speaker, BOT) else 6 + self.wait(70)
            if i == change and i:
                cast[ASKER] = self.rename(cast[ASKER], now)
            self.message(post, now, cast, numbers)
        if passing and self.random() < 0.5:
            self.leave(cast[ASKER], now + self.wait(600))

    def cast(self, asker: str) -> list[str]:
        """Choose who plays the roles, in the order of their numbers."""
        helper = self.regular()
        second = self.regular()
        while second == helper:
            second = self.regular()
        return [asker, helper, second, self.nick(), BOT_NICK]

    def message(self, post: Post, time: float, cast: list[str], numbers: list[int]) -> None:
        """Add a post to the day and its number to those of its conversation."""
        numbers.append(len(self.events))
        time = min(time, DAY - 1)
        line = f"{_CLOCK[int(time) // 60]} {self.render(post, cast)}\n"
        self.events.append((time, len(self.events), line, tuple([numbers[a] for a in post.answers])))
        self.messages += 1

    def render(self, post: Post, cast: list[str]) -> str:
        """Return the line after its time."""
        speaker = cast[post.speaker]
        if post.kind == "action":
            return f" * {speaker} {post.text}"
        if post.to is None:
            return f"<{speaker}> {post.text}"
        return f"<{speaker}> {_address(post, cast[post.to], self.random())}"


def _address(post: Post, nick: str, draw: float) -> str:
    if post.kind == "factoid":
        return f"{post.text} {nick}"
    if post.kind == "private" or (draw > 0.65 and post.speaker != BOT):
        return f"{post.text} {nick}" if draw > 0.95 and post.kind == "say" else f"{nick}, {post.text}"
    return f"{nick}: {post.text}"


def _nick(random: Callable[[], float]) -> str:
    syllables = 2 + (random() < 0.25)
    word = "".join([_SYLLABLES[int(random() * len(_SYLLABLES))] for _ in range(syllables)])
    tail = _TAILS[int(random() * len(_TAILS))].format(n=int(random() * 100))
    return (word.capitalize() if random() < 0.3 else word) + tail


@cache
def _regulars(seed: int) -> list[str]:
    random = Random(f"irc regulars {seed}").random
    nicks: dict[str, None] = {}
    while len(nicks) < REGULARS:
        nicks[_nick(random)] = None
    return list(nicks)
