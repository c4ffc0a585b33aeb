"""A support team's own dialogues: CSV (or TSV) with a header, or JSON lines, a post a line, with whatever column names.

    conversation,speaker,text,time
    4711,visitor,My parcel has not come.,2024-05-01 09:12
    4711,agent,Let me look.,2024-05-01 09:13

Votes, if there are any, are another such table: conversation, annotator, question, turn (counted from 1; empty for a
question about the dialogue), label.
"""

import csv
import io
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from rejoinder.dialogue import Dialogue, merge_posts
from rejoinder.files import BadInputError, open_binary, read_start
from rejoinder.records import read_json_records
from rejoinder.text import counted

CUSTOMER, HELPDESK = "customer", "helpdesk"
CUSTOMERS = frozenset({"customer", "user", "client", "visitor", "requester", "guest", "buyer", "caller", "c"})
HELPDESKS = frozenset(
    {"helpdesk", "agent", "support", "operator", "assistant", "staff", "advisor", "bot", "seller", "h"}
)


class Columns(msgspec.Struct, frozen=True):
    """What the columns are called; a time may be missing."""

    conversation: str = "conversation"
    speaker: str = "speaker"
    text: str = "text"
    time: str = "time"


class Roles(msgspec.Struct, frozen=True):
    """Which speakers are customers and which the helpdesk; where only one side is named, all others are the other."""

    customers: frozenset[str] = frozenset()
    helpdesks: frozenset[str] = frozenset()

    def of(self, speaker: str) -> str | None:
        """Return the role of a speaker, whatever the letter case; None: not known."""
        name = speaker.strip().lower()
        if not self.customers and not self.helpdesks:
            return CUSTOMER if name in CUSTOMERS else HELPDESK if name in HELPDESKS else None
        if name in {known.lower() for known in self.customers}:
            return CUSTOMER
        if name in {known.lower() for known in self.helpdesks}:
            return HELPDESK
        if self.customers and self.helpdesks:
            return None
        return HELPDESK if self.customers else CUSTOMER

    def missing(self, speakers: Collection[str]) -> list[str]:
        """Return the names of a side of which none is among the speakers."""
        spoken = {speaker.strip().lower() for speaker in speakers}
        sides = [names for names in (self.customers, self.helpdesks) if not spoken & {name.lower() for name in names}]
        return sorted(name for names in sides for name in names)


class Post(msgspec.Struct, frozen=True):
    """What somebody wrote."""

    speaker: str
    text: str
    time: datetime | None


def read_dialogues(
    path: Path, columns: Columns = Columns(), roles: Roles = Roles(), change: Callable[[str], str] = str
) -> list[Dialogue]:
    """Read dialogues in the order in which they begin in the file; `change` is done to every text.

    A dialogue's posts are put in order of their times, if all of them have one; posts of one side that follow each
    other are one turn (DialEval-1, section 2.1).
    """
    posts: dict[str, list[Post]] = {}
    speakers: dict[str, None] = {}
    needed = (columns.conversation, columns.speaker, columns.text)
    for place, row in read_rows(path, needed, (columns.time,), "; name yours by --conversation, --speaker and --text"):
        id_, speaker = row[columns.conversation].strip(), row[columns.speaker]
        if not id_:
            raise BadInputError(path, "is empty; expected the conversation's id", place, columns.conversation)
        role = roles.of(speaker)
        if role is None:
            known = "neither known as a customer nor as the helpdesk"
            problem = f"{speaker!r} is {known}; say which by --customer or --helpdesk"
            raise BadInputError(path, problem, place, columns.speaker)
        speakers[speaker] = None
        time = _time(path, place, columns.time, row[columns.time])
        posts.setdefault(id_, []).append(Post(role, change(row[columns.text].strip()), time))
    if not posts:
        raise BadInputError(path, "holds no post")
    missing = roles.missing(speakers)
    if missing:
        known = ", ".join(list(speakers)[:10]) + (", ..." if len(speakers) > 10 else "")
        raise BadInputError(path, f"no post by {' or '.join(missing)}; there are {known}", field=columns.speaker)
    return [_dialogue(id_, said) for id_, said in posts.items()]


def _dialogue(id_: str, posts: list[Post]) -> Dialogue:
    times = [post.time for post in posts if post.time is not None]
    if len(times) == len(posts):
        posts = [post for _, post in sorted(zip(times, posts, strict=True), key=lambda timed: timed[0])]
    turns = merge_posts((post.speaker, post.text) for post in posts)
    return Dialogue(id_, turns, min(times, default=None))


def _time(path: Path, place: str, field: str, text: str) -> datetime | None:
    """Read ISO 8601, or seconds (milliseconds) since 1970; in UTC and without a zone."""
    text = text.strip()
    if not text:
        return None
    with suppress(ValueError, OverflowError):
        found = datetime.fromisoformat(text)
        return found.astimezone(UTC).replace(tzinfo=None) if found.tzinfo else found
    with suppress(ValueError, OverflowError, OSError):
        seconds = float(text)
        return datetime.fromtimestamp(seconds / 1000 if seconds > 1e11 else seconds, UTC).replace(tzinfo=None)
    raise BadInputError(path, f"{text!r}; expected a time such as 2024-05-01 09:12 (ISO 8601)", place, field)


def read_rows(
    path: Path, needed: Sequence[str], optional: Sequence[str] = (), hint: str = ""
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield (place, column -> text) of a table; a column that is optional and missing is empty.

    The hint says what to do where a needed one is missing.
    """
    is_json = read_start(path, 4096).lstrip()[:1] in (b"{", b"[")
    rows = _read_json(path) if is_json else _read_csv(path, needed, hint)
    for place, row in rows:
        if is_json:
            _check_columns(path, place, list(row), needed, hint)
        yield place, {name: row.get(name, "") for name in (*needed, *optional)}


def _check_columns(path: Path, place: str, names: list[str], needed: Sequence[str], hint: str) -> None:
    for name in needed:
        if name not in names:
            raise BadInputError(path, f"no such column; there are {', '.join(names) or 'none'}{hint}", place, name)
        if names.count(name) > 1:
            raise BadInputError(path, "is the name of several columns", place, name)


def _read_json(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    for number, record in read_json_records(path, dict[str, object]):
        texts = {name: "" if value is None else value for name, value in record.items()}
        for name, value in texts.items():
            if isinstance(value, dict | list):
                continue  # columns that nobody asked for may hold anything
            texts[name] = str(value)
        yield f"record {number}", {name: value for name, value in texts.items() if isinstance(value, str)}


def _fitness(header: str, separator: str, needed: Sequence[str]) -> tuple[int, int]:
    names = [name.strip() for name in next(csv.reader([header], delimiter=separator), [])]
    return len({*names} & {*needed}), len(names)


def _read_csv(path: Path, needed: Sequence[str], hint: str) -> Iterator[tuple[str, dict[str, str]]]:
    csv.field_size_limit(2**31 - 1)  # a post may be a whole log
    with open_binary(path) as file, io.TextIOWrapper(file, "utf-8-sig", newline="") as text:
        try:
            first = text.readline()
            separator = max("\t;,", key=lambda mark: _fitness(first, mark, needed))
            header = [name.strip() for name in next(csv.reader([first], delimiter=separator), [])]
            _check_columns(path, "header", header, needed, hint)
            for number, row in enumerate(csv.reader(text, delimiter=separator, strict=True), 1):
                if not row:
                    continue
                if len(row) != len(header):
                    problem = f"{counted(len(row), 'field')}; the header has {len(header)}"
                    raise BadInputError(path, problem, f"row {number}")
                yield f"row {number}", dict(zip(header, row, strict=True))
        except UnicodeDecodeError as error:
            raise BadInputError(path, f"not UTF-8 ({error.reason})") from None
        except csv.Error as error:
            raise BadInputError(path, f"not CSV ({error})") from None
