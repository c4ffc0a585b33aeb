"""Two-party support dialogues out of a channel's conversations, by DSTC7's filters ("Ubuntu")."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

import msgspec

from rejoinder.corpora.irc import Post
from rejoinder.dialogue import Dialogue, Turn, merge_posts

ASKER, HELPER = "participant_1", "participant_2"
MOST_BY_ONE = 0.8
FEWEST_TURNS = 3

_BOT = re.compile(r"(ub[ou]t+u|lubotu|floodbot|meetingology|mootbot|chanserv|ubot\d|kubot)\w*", re.IGNORECASE)
_COMMAND = re.compile(r"\s*(?:\S+[:,]\s+)?!\w")
_ADDRESS = re.compile(r"\s*@?([^\s:,]+)\s*[:,]\s*")


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


def support_dialogues(
    conversations: Iterable[Sequence[Post]], nicks: Collection[str], name: str, day: str, funnel: Funnel
) -> Iterator[Support]:
    """Yield what passes all filters, counting what does not; `nicks` are all of the log's, in lower case."""
    for number, conversation in enumerate(conversations, 1):
        funnel.conversations += 1
        posts = [post for post in conversation if is_talk(post)]
        reason = _objection(posts, nicks)
        if reason is None:
            yield _support(posts, f"{name}-{number}", day)
        else:
            funnel.removed[reason] += 1


def _objection(posts: list[Post], nicks: Collection[str]) -> str | None:
    """Return the first filter that a conversation does not pass, in the paper's order."""
    speakers = Counter(post.person for post in posts)
    if posts and addressee(posts[0].text, nicks):
        return "directed"
    if len(speakers) != 2:
        return "participants"
    if max(speakers.values()) > MOST_BY_ONE * len(posts):
        return "monologue"
    turns = merge_posts((post.person, post.text) for post in posts)
    return "short" if len(turns) < FEWEST_TURNS else None


def _support(posts: list[Post], id_: str, day: str) -> Support:
    asker = posts[0].person
    names = {post.nick for post in posts} | {post.person for post in posts}
    said = [(ASKER if post.person == asker else HELPER, without_names(post.text, names)) for post in posts]
    said = [(speaker, text) for speaker, text in said if text]
    return Support(day, Dialogue(id_, merge_posts(said)), tuple(text for _, text in said))


def every_reply(conversation: Sequence[Post]) -> Iterator[tuple[tuple[Turn, ...], str]]:
    """Yield each turn of a conversation with what came before it, for training: whoever speaks, however many they are.

    Who replies is the helper, all others are the asker, as if the dialogue had two sides.
    """
    posts = [post for post in conversation if is_talk(post)]
    names = {post.nick for post in posts} | {post.person for post in posts}
    cleaned = ((post.person, without_names(post.text, names)) for post in posts)
    turns = merge_posts((person, text) for person, text in cleaned if text)
    for place in range(1, len(turns)):
        helper = turns[place].speaker
        before = ((HELPER if turn.speaker == helper else ASKER, post) for turn in turns[:place] for post in turn.posts)
        yield merge_posts(before), turns[place].text


def without_names(text: str, names: Collection[str]) -> str:
    """Take the participants' names out of a message: as an address, or spelt exactly so where it cannot be a word."""
    lowered = {name.lower() for name in names}
    while (matched := _ADDRESS.match(text)) and matched[1].lower() in lowered:
        text = text[matched.end() :]
    telling = [name for name in names if len(name) > 3 and not (name.isalpha() and name.islower())]
    if telling:
        pattern = "|".join(re.escape(name) for name in sorted(telling, key=len, reverse=True))
        text = re.sub(rf"(?<![\w-])@?(?:{pattern})(?![\w-])", "", text)
    return " ".join(text.split())


def cuts(dialogue: Dialogue) -> list[int]:
    """Return the places of the turns that can be the answer: the helper's, after one of the asker's."""
    return [
        place
        for place, turn in enumerate(dialogue.turns)
        if turn.speaker == HELPER and place > 0 and dialogue.turns[place - 1].speaker == ASKER
    ]
