"""What a message says by itself: its words, whom it addresses, and how its author stands in the channel."""

import re
from collections import deque
from collections.abc import Iterable, Iterator

import msgspec

from rejoinder.corpora.irc import SPOKEN, Post
from rejoinder.corpora.link_lexicon import Floats, address, bucket, split

ADDRESSEES = 3
FAR = 500.0
_FORGET_AFTER = 20_000
_RECENT = 100
_BOT = re.compile(r"(?:[klxeu]{0,2}bott?u\d*|ubot\d*|floodbot\w*|.*bot\d*)$", re.IGNORECASE)
_PATTERNS = {
    "question": r"\?",
    "asks": r"\?\W*$",
    "asking word": r"^\W*(?:any\w*|how|what|where|why|when|who|which|can|could|is|are|does|do|has|did|should)\b",
    "seeks help": r"\b(?:anyone|anybody|someone|somebody|everyone|guys|all|help|problem|trouble|trying)\b",
    "greets": r"^\W*(?:hi|hello|hey|hiya|greetings|morning|evening|yo|sup)\b",
    "thanks": r"\b(?:thanks?|thx|ty|cheers|thankyou|tnx)\b",
    "agrees": r"^\W*(?:yes|yeah|yep|yup|no|nope|nah|ok|okay|right|true|sure|ah|oh|i see|cool|hmm+|well|same|exactly)\b",
    "goes on": r"^\W*(?:and|but|or|so|also|because|cause|then|which|with|if|for|it|that|this|they)\b",
    "laughs": r"\b(?:lol|haha\w*|heh\w*|rofl|lmao)\b|[:;=]-?[)(DPp]",
    "myself": r"\b(?:i|i'm|im|my|me|mine|i've)\b",
    "you": r"\b(?:you|your|u|ur|you're|yours)\b",
    "link": r"https?://|www\.",
    "factoid": r"^\s*!\w",
    "tells": r"^\s*!\w.*(?:[|>]|\babout\b)",
}
_CHECKS = [re.compile(pattern, re.IGNORECASE).search for pattern in _PATTERNS.values()]
FACTS = [
    *_PATTERNS,
    "bot",
    "action",
    "words",
    "characters",
    "rarest word",
    "addresses",
    "seems to address",
    "mentions",
    "addressee silent for",
    "messages so far",
    "since own last",
    "minutes since own last",
    "own last addressed",
    "own last asked",
    "since addressed",
    "minutes since addressed",
    "minutes since any",
    "per ten minutes",
]


class Message(msgspec.Struct, frozen=True, gc=False):
    """A post as the features see it: people are numbers, words are buckets, and facts are in the order of FACTS."""

    line: int
    minute: int
    person: int
    addressees: tuple[int, ...]
    words: tuple[int, ...]
    last_to: int
    last_from: int
    facts: tuple[float, ...]


class _Person:
    """What is known of somebody at this point of the log."""

    __slots__ = (
        "addressed",
        "asked",
        "last",
        "last_from",
        "last_to",
        "minute",
        "number",
        "said",
        "told",
        "told_minute",
    )

    def __init__(self, number: int) -> None:
        self.number = number
        self.said = 0
        self.last = self.told = -int(FAR)
        self.minute = self.told_minute = -int(FAR)
        self.last_to = self.last_from = -1
        self.addressed = self.asked = False


def seems_bot(nick: str) -> bool:
    """Whether a nick may be a robot's (ubottu, FloodBot1, somebot): wider than `ubuntu.is_bot`, for a clue may err."""
    return _BOT.match(nick) is not None


class MessageReader:
    """Turns posts into messages, in one pass, remembering who is there."""

    def __init__(self, rarity: Floats) -> None:
        self.rarity = rarity
        # a word that is said once in 1800 messages, or ten times in a small collection, is not a nick in passing
        self.common = min(7.5, float(rarity.max()) - 2.4)
        self.people: dict[str, _Person] = {}
        self.nicks: dict[str, str] = {}
        self.recent: deque[str] = deque(maxlen=_RECENT)
        self.minutes: list[int] = []
        self.count = 0
        self.numbers = 0

    def read(self, posts: Iterable[Post]) -> Iterator[Message]:
        """Yield a message for each post in which somebody says something."""
        for post in posts:
            if post.kind in SPOKEN:
                yield self._message(post)

    def _message(self, post: Post) -> Message:
        author = self._author(post)
        words = split(post.text)
        start, mentioned = self._addressed(post.text, words, post.person)
        people = [self.people[name] for name in ([start] if start else []) + mentioned][:ADDRESSEES]
        kept = {
            bucket(word) for word in words if self.nicks.get(word) is None or self.rarity[bucket(word)] < self.common
        }
        facts = self._facts(post, author, words, start, mentioned)
        message = Message(
            post.line,
            post.minute,
            author.number,
            tuple(person.number for person in people),
            tuple(kept),
            author.last_to,
            author.last_from,
            facts,
        )
        self._remember(post, author, people)
        return message

    def _author(self, post: Post) -> _Person:
        if post.person not in self.people:
            if len(self.people) > _FORGET_AFTER:
                self._forget()
            self.people[post.person] = _Person(self.numbers)
            self.numbers += 1
        for nick in {post.nick.lower(), post.nick.lower().strip("_|-`^[]{}0123456789")}:
            if len(nick) > 1:
                self.nicks[nick] = post.person
        return self.people[post.person]

    def _forget(self) -> None:
        recent = sorted(self.people, key=lambda name: self.people[name].last)[_FORGET_AFTER // 2 :]
        self.people = {name: self.people[name] for name in recent}
        self.nicks = {nick: name for nick, name in self.nicks.items() if name in self.people}

    def _addressed(self, text: str, words: list[str], author: str) -> tuple[str | None, list[str]]:
        """Return whom the message starts with, and whom else it mentions."""
        start = None
        if beginning := address(text):
            start = self._known(beginning.lower())
        elif words and not self._is_common(words[0]):
            start = self.nicks.get(words[0])
        mentioned = []
        for word in words:
            name = self.nicks.get(word)
            if name and name not in (start, author) and name not in mentioned and not self._is_common(word):
                mentioned.append(name)
        return (None if start == author else start), mentioned

    def _known(self, nick: str) -> str | None:
        """Find a nick, or the person of whose nick this is the beginning and who spoke last."""
        name = self.nicks.get(nick) or self.nicks.get(nick.strip("_|-`^[]{}0123456789"))
        if name or len(nick) < 3 or self._is_common(nick):
            return name
        full = next((other for other in reversed(self.recent) if other.startswith(nick)), None)
        return self.nicks.get(full) if full else None

    def _is_common(self, word: str) -> bool:
        return len(word) < 3 or bool(self.rarity[bucket(word)] < self.common)

    def _facts(
        self, post: Post, author: _Person, words: list[str], start: str | None, mentioned: list[str]
    ) -> tuple[float, ...]:
        silent = self.count - self.people[start].last if start else -1
        rarest = max((float(self.rarity[bucket(word)]) for word in words), default=0.0)
        return (
            *(check(post.text) is not None for check in _CHECKS),
            seems_bot(post.nick),
            post.kind == "action",
            len(words),
            len(post.text),
            rarest,
            start is not None,
            address(post.text) is not None,
            len(mentioned),
            min(silent, FAR),
            min(author.said, 20),
            min(self.count - author.last, FAR),
            min(post.minute - author.minute, FAR),
            author.addressed,
            author.asked,
            min(self.count - author.told, FAR),
            min(post.minute - author.told_minute, FAR),
            min(post.minute - self.minutes[-1] if self.minutes else FAR, FAR),
            self._pace(post.minute),
        )

    def _pace(self, minute: int) -> int:
        """Count the messages of the last ten minutes."""
        self.minutes = [old for old in self.minutes[-200:] if minute - old < 10]
        return len(self.minutes)

    def _remember(self, post: Post, author: _Person, addressed: list[_Person]) -> None:
        author.said += 1
        author.last, author.minute = self.count, post.minute
        author.addressed, author.asked = bool(addressed), "?" in post.text
        for person in addressed:
            person.told, person.told_minute, person.last_from = self.count, post.minute, author.number
        if addressed:
            author.last_to = addressed[0].number
        self.minutes.append(post.minute)
        self.recent.append(post.nick.lower())
        self.count += 1
