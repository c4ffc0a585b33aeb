"""Two-party support dialogues out of a channel's conversations, by DSTC7's filters ("Ubuntu")."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

import msgspec

from rejoinder.corpora.irc import SPOKEN, Post
from rejoinder.dialogue import Dialogue, Turn, merge_posts

ASKER, HELPER = "participant_1", "participant_2"
MOST_BY_ONE = 0.8
FEWEST_TURNS = 3

_BOT = re.compile(r"(ub[ou]t+u|lubotu|floodbot|meetingology|mootbot|chanserv|ubot\d|kubot)\w*", re.IGNORECASE)
_COMMAND = re.compile(r"\s*(?:\S+[:,]\s+)?!\w")
_ADDRESS = re.compile(r"\s*@?([^\s:,]+)\s*[:,]\s*")
_NICK = r"@?([\w\[\]\\`^{|}-]+)"
_OPENING = re.compile(rf"\s*{_NICK}(?:'s)?(?:\s*(?:[.,:;>]+|-+)(?=\s|$)|(?=\s)|$)\s*")
# a name within a sentence, not in an address or a path, with the space or comma before it
_NAME = re.compile(rf"(?:,? +|,|(?<![\w`|^/.@:-])){_NICK}(?:'s\b)?(?![/@]|\.\w)")


class Support(msgspec.Struct, frozen=True):
    """A dialogue that passed the filters, with what it was made of."""

    day: str
    dialogue: Dialogue
    messages: tuple[str, ...]
    """Before consecutive ones were merged, as the paper's table 1 counts them."""


class Funnel(msgspec.Struct):
    """How many conversations there were, and how many each filter removed."""

    conversations: int = 0
    removed: Counter[str] = msgspec.field(default_factory=Counter)

    @property
    def kept(self) -> int:
        """Return how many passed."""
        return self.conversations - self.removed.total()


FILTERS = {
    "directed": "the first message is directed at somebody",
    "participants": "not exactly two participants, the bot not counted",
    "monologue": f"one participant wrote more than {MOST_BY_ONE:.0%} of the messages",
    "short": f"fewer than {FEWEST_TURNS} turns",
}


def is_bot(nick: str) -> bool:
    """Whether this is one of the channels' bots."""
    return _BOT.fullmatch(nick) is not None


def is_for_bot(text: str) -> bool:
    """Whether a message is a command to the bot (`!info x`, `nick: !patience`, `ubottu, tell nick about x`)."""
    told = _ADDRESS.match(text)
    return _COMMAND.match(text) is not None or (told is not None and is_bot(told[1]))


def is_talk(post: Post) -> bool:
    """Whether people talk to each other here, neither with the bot nor the bot with them."""
    return not is_bot(post.nick) and not is_for_bot(post.text)


def addressee(text: str, nicks: Collection[str]) -> str | None:
    """Return the nick that a message starts with (`nick: ...`, `nick, ...`), in lower case."""
    matched = _ADDRESS.match(text)
    nick = matched[1].lower() if matched else None
    return nick if nick in nicks else None


class People(msgspec.Struct, frozen=True):
    """All nicks of a log, in lower case, and those among them that are words there."""

    nicks: frozenset[str]
    words: frozenset[str] = frozenset()


def people_of(posts: Sequence[Post]) -> People:
    """Find a log's nicks, those of silent people too; one used more within sentences than as an address is a word."""
    nicks = frozenset(post.nick.lower() for post in posts if post.nick)
    users: dict[str, set[str]] = {}
    callers: dict[str, set[str]] = {}
    for post in posts:
        if post.kind not in SPOKEN:
            continue
        called = addressee(post.text, nicks)
        if called:
            callers.setdefault(called, set()).add(post.person)
        for word in nicks.intersection(_NAME.findall(post.text.lower())) - {called}:
            users.setdefault(word, set()).add(post.person)
    words = (nick for nick, some in users.items() if len(some) > len(callers.get(nick, ())) + _FEW)
    return People(nicks, frozenset(words))


_FEW = 2
"""How many people may name somebody whom nobody addresses."""


def is_directed(text: str, people: People) -> bool:
    """Whether a message starts with somebody's nick."""
    opening = _OPENING.match(text)
    nick = opening[1].lower() if opening else ""
    return (nick in people.nicks and nick not in people.words) or addressee(text, people.nicks) is not None


def support_dialogues(
    conversations: Iterable[Sequence[Post]], people: People, name: str, day: str, funnel: Funnel
) -> Iterator[Support]:
    """Yield what passes all filters, counting what does not."""
    for number, conversation in enumerate(conversations, 1):
        funnel.conversations += 1
        said = list(nameless(conversation, people))
        directed = next((is_directed(post.text, people) for post in conversation if is_talk(post)), False)
        reason = "directed" if directed else _objection(said)
        if reason is None:
            yield _support(said, f"{name}-{number}", day)
        else:
            funnel.removed[reason] += 1


def _objection(said: list[tuple[Post, str]]) -> str | None:
    """Return the first of the other filters that a conversation does not pass, in the paper's order."""
    speakers = Counter(post.person for post, _ in said)
    if len(speakers) != 2:
        return "participants"
    if max(speakers.values()) > MOST_BY_ONE * len(said):
        return "monologue"
    turns = merge_posts((post.person, text) for post, text in said)
    return "short" if len(turns) < FEWEST_TURNS else None


def _support(said: list[tuple[Post, str]], id_: str, day: str) -> Support:
    asker = said[0][0].person
    turns = merge_posts((ASKER if post.person == asker else HELPER, text) for post, text in said)
    return Support(day, Dialogue(id_, turns), tuple(text for _, text in said))


def every_reply(conversation: Sequence[Post], people: People) -> Iterator[tuple[tuple[Turn, ...], str]]:
    """Yield each turn of a conversation with what came before it, for training: whoever speaks, however many they are.

    Who replies is the helper, all others are the asker, as if the dialogue had two sides.
    """
    turns = all_turns(conversation, people)
    for place in range(1, len(turns)):
        helper = turns[place].speaker
        before = ((HELPER if turn.speaker == helper else ASKER, post) for turn in turns[:place] for post in turn.posts)
        yield merge_posts(before), turns[place].text


def all_turns(conversation: Sequence[Post], people: People) -> tuple[Turn, ...]:
    """Return the turns of a conversation, however many take part, without names."""
    return merge_posts((post.person, text) for post, text in nameless(conversation, people))


def nameless(conversation: Sequence[Post], people: People) -> Iterator[tuple[Post, str]]:
    """Yield what people say to each other, without the names of those who take part or are addressed."""
    posts = [post for post in conversation if is_talk(post)]
    names = {name.lower() for post in posts for name in (post.nick, post.person)}
    names.update(filter(None, (addressee(post.text, people.nicks) for post in posts)))
    for post in posts:
        text = without_names(post.text, names, people.words)
        if text:
            yield post, text


def without_names(text: str, names: Collection[str], words: Collection[str] = ()) -> str:
    """Take names, in lower case, out of a message: those that are words too only where they are an address."""

    def telling(name: str) -> bool:
        return name.lower() in names and name.lower() not in words

    lowered = text.lower()
    if not any(name in lowered for name in names):  # most messages name nobody
        return " ".join(text.split())
    while (found := _ADDRESS.match(text)) and found[1].lower() in names:
        text = text[found.end() :]
    while (found := _OPENING.match(text)) and telling(found[1]):
        text = text[found.end() :]
    return " ".join(_NAME.sub(lambda found: "" if telling(found[1]) else found[0], text).split())


def cuts(dialogue: Dialogue) -> list[int]:
    """Return the places of the turns that can be the answer: the helper's, after one of the asker's."""
    return [
        place
        for place, turn in enumerate(dialogue.turns)
        if turn.speaker == HELPER and place > 0 and dialogue.turns[place - 1].speaker == ASKER
    ]
