"""Ubuntu-style IRC logs, read as a stream of posts.

    [09:14] <nick> text                  a message
    [09:14]  * nick waves                an action; in logs before 2007 `=== nick waves`
    === nick [~user@host]  has joined    an event: joins, parts, quits, modes, and `=== a is now known as b`

Old logs show a 12-hour clock without saying which half of the day it is; newer ones a 24-hour clock.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import date
from itertools import islice
from pathlib import Path
from typing import Literal

import msgspec

from rejoinder.files import BadInputError, read_lines

Kind = Literal["message", "action", "event", "other"]
SPOKEN = ("message", "action")
"""The kinds of posts in which somebody says something."""

EXPECTED = "expected lines such as `[12:34] <nick> text`"
DAY = 1440
_HALF_DAY = 720
# servers' clocks differ: a step back by less than this is disorder, not another day
_DISORDER = 10
_LOOK_AT = 100
# the oldest changes of nick are forgotten: memory stays the same however long the log
_MOST_NICKS = 50_000

_MESSAGE = re.compile(r"\[(\d\d:\d\d)(?::\d\d)?\] <([^<>]{1,64})> ?(.*)", re.DOTALL)
_ACTION = re.compile(r"\[(\d\d:\d\d)(?::\d\d)?\] +\* (\S+) ?(.*)", re.DOTALL)
_STAMPED = re.compile(r"\[(\d\d:\d\d)(?::\d\d)?\] ?(.*)", re.DOTALL)
_RENAMED = re.compile(r"=== (.+?) is now known as (.+?)\s*$")
_EVENT = re.compile(
    r"=== (?:(\S.{0,63}?) (?:\[.*\] +)?(?:has joined #|has left #|has quit \[|is now known as |was kicked off )"
    r"|mode/|netsplit|netjoined:|Topic|topic|$)"
)
_OLD_ACTION = re.compile(r"=== (\S+) (.*)", re.DOTALL)
# colours, bold type and other codes of chat programs
_CODE = re.compile(r"\x03(?:\d{1,2}(?:,\d{1,2})?)?|[\x00-\x08\x0a-\x1f\x7f]")
_FORCED = re.compile(r"Guest\d+$")
_DATE = re.compile(r"(?<!\d)(\d{4})-?([01]\d)-?([0-3]\d)(?!\d)")
_MINUTES = {f"{hour:02}:{minute:02}": hour * 60 + minute for hour in range(24) for minute in range(60)}


class Post(msgspec.Struct, frozen=True, gc=False):
    """One line of a log: its number from 0, minute, author, who that is after changes of nick, and what was said."""

    line: int
    minute: int
    nick: str
    person: str
    text: str
    kind: Kind


def read_log(path: Path) -> Iterator[Post]:
    """Yield the posts of a log (also gzip), with minutes since 1970 where the file's name holds a date."""
    lines = (line for _, line in read_lines(path, errors="replace"))
    posts = parse(lines, _first_minute(date_of(path)))
    head = list(islice(posts, _LOOK_AT))
    if not head:
        raise BadInputError(path, f"empty log; {EXPECTED}")
    if all(post.kind == "other" for post in head):
        raise BadInputError(path, f"not an IRC log; {EXPECTED}, got {head[0].text[:60]!r}", "line 1")
    yield from head
    yield from posts


def date_of(path: Path) -> date | None:
    """Return the date in a file's name (`2013-01-01.ubuntu.txt.gz`), if there is one."""
    for year, month, day in _DATE.findall(path.name):
        try:
            return date(int(year), int(month), int(day))
        except ValueError:
            continue
    return None


def parse(lines: Iterable[str], start: int = 0) -> Iterator[Post]:
    """Yield one post for each line, with minutes that never go back, from `start` at the first day's midnight."""
    clock, people = _Clock(start), _People()
    read, who = clock.read, people.names
    for number, line in enumerate(lines):
        said = _MESSAGE.match(line)
        if said:
            time, nick, text = said.groups()
            if " " in nick:
                nick = _whole(nick)
            if not text.isprintable():
                text = _CODE.sub("", text)
            yield Post(number, read(time), nick, who.get(nick, nick), text, "message")
        else:
            yield _odd(number, line, clock, people)


def _odd(number: int, line: str, clock: "_Clock", people: "_People") -> Post:
    if action := _ACTION.match(line):
        time, nick, text = action.groups()
        return Post(number, clock.read(time), nick, people.who(nick), _CODE.sub("", text), "action")
    if event := _EVENT.match(line):
        if renamed := _RENAMED.match(line):
            people.rename(_whole(renamed[1]), _whole(renamed[2]))
        nick = _whole(event[1] or "")
        return Post(number, clock.minute, nick, people.who(nick), line[4:], "event")
    if action := _OLD_ACTION.match(line):
        nick, text = action.groups()
        return Post(number, clock.minute, nick, people.who(nick), text, "action")
    if stamped := _STAMPED.match(line):
        return Post(number, clock.read(stamped[1]), "", "", stamped[2], "other")
    return Post(number, clock.minute, "", "", line, "other")


def _whole(nick: str) -> str:
    # the loggers of 2004 to 2007 put a space after each `]`
    return nick.replace("] ", "]").strip()


class _Clock:
    """Minutes that never go back, from the time of day that a log shows."""

    def __init__(self, start: int) -> None:
        self.midnight = start
        self.minute = start
        self.shown = ""
        self.time = -1
        self.period = _HALF_DAY

    def read(self, shown: str) -> int:
        """Return the minute of a line that shows this time."""
        if shown != self.shown:
            self.shown = shown
            self._advance(_MINUTES.get(shown, self.time))
        return self.minute

    def _advance(self, time: int) -> None:
        if time < 0:
            return
        # only a 24-hour clock has an hour 0 or an hour after 12
        if time < 60 or time >= _HALF_DAY + 60:
            self.period = DAY
        if self.time < 0:
            self.minute = self.midnight + time
            self.time = time
            return
        step = (time - self.time) % self.period
        if step < self.period - _DISORDER:
            self.minute += step
            self.time = time


class _People:
    """Who is behind a nick: the first nick that somebody had."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.lost = 0

    def who(self, nick: str) -> str:
        return self.names.get(nick, nick)

    def rename(self, old: str, new: str) -> None:
        if len(self.names) > _MOST_NICKS:
            for nick in list(islice(self.names, _MOST_NICKS // 2)):
                del self.names[nick]
        self.names[new] = self.who(old)
        # the server takes a registered nick from a stranger: who comes next by that nick is somebody else
        if _FORCED.match(new):
            self.lost += 1
            self.names[old] = f"{old}#{self.lost}"


def _first_minute(day: date | None) -> int:
    return (day - date(1970, 1, 1)).days * DAY if day else 0
