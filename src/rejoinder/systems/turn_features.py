"""What a turn looks like from outside: length, cues (thanks, questions, links, ...), place and neighbours."""

import re
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from rejoinder.dialogue import Dialogue
from rejoinder.text import tokens

Floats = NDArray[np.float32]
Integers = NDArray[np.intp]

CUES = {
    "question": r"[?？吗呢]",
    "exclamation": r"[!！]",
    "link": r"http|www\.|t\.cn",
    "digit": r"\d",
    "thanks": r"thank|thx|谢",
    "regret": r"sorry|apolog|regret|抱歉|对不起|不好意思|歉",
    "please": r"please|pls|请",
    "private message": r"private message|direct message|\bdm\b|inbox|私信|私聊",
    "hotline": r"hotline|call|phone|dial|电话|客服|热线|100\d\d|400",
    "waiting": r"wait|later|soon|patien|等|稍后|尽快",
    "solved": r"solved|fixed|works now|working now|ok now|resolved|done|already|解决|好了|可以了|搞定|已经|行了",
    "negation": r"\bnot\b|n't|\bno\b|never|不|没|无",
    "anger": r"complain|bad|terrible|rubbish|garbage|cheat|angry|disappoint|投诉|垃圾|坑|骗|差|烂|失望|无语|气",
    "praise": r"good|great|nice|happy|support|love|好的|好评|满意|支持|赞|不错|开心|爱",
    "greeting": r"hello|\bhi\b|dear|您好|你好|亲",
    "instruction": r"\btry\b|restart|reset|check|setting|click|open|install|upgrade|update"
    r"|试|重启|设置|点击|打开|安装|升级|更新|检查|尝试",
    "mention": r"@",
    "feedback": r"feedback|report|record|reflect|反馈|记录|转达|建议|跟进",
    "question word": r"what|which|when|where|how|why|什么|哪|怎么|为什么|如何|多少",
    "assent": r"\bok|okay|alright|\byes\b|嗯|哦|恩|好",
    "model or number": r"number|model|version|系统|型号|版本|号码",
    "emoticon": r"\[[^\]]{1,6}\]",
}
"""Patterns whose number in a turn says something about how a dialogue goes, in English and Chinese."""

_PATTERNS = [re.compile(pattern, re.IGNORECASE) for pattern in CUES.values()]
_MISSING = -1.0
"""Stands for the cues of a turn that there is not."""


class TurnTable(msgspec.Struct, frozen=True):
    """The turns of some dialogues, one row each."""

    dialogue: Integers
    place: Integers
    turns: Integers
    """How many turns the row's dialogue has."""
    speaker: Integers
    """A place in the list of speakers; the last place is for all others."""
    speakers: int
    cues: Floats
    texts: list[str]

    @classmethod
    def of(cls, dialogues: Sequence[Dialogue], speakers: Sequence[str]) -> "TurnTable":
        """List the turns."""
        rows = [
            (
                number,
                place,
                len(dialogue.turns),
                speakers.index(turn.speaker) if turn.speaker in speakers else len(speakers),
            )
            for number, dialogue in enumerate(dialogues)
            for place, turn in enumerate(dialogue.turns)
        ]
        said = [turn for dialogue in dialogues for turn in dialogue.turns]
        texts = [turn.text for turn in said]
        counts = [
            [len(tokens(text)), len(turn.posts), *(len(pattern.findall(text)) for pattern in _PATTERNS)]
            for turn, text in zip(said, texts, strict=True)
        ]
        number, place, turns, speaker = np.array(rows, dtype=np.intp).reshape(-1, 4).T
        cues = np.log1p(np.array(counts, dtype=np.float32).reshape(-1, 2 + len(CUES)))
        return cls(number, place, turns, speaker, len(speakers) + 1, cues, texts)

    def rows(self, dialogue: Integers, place: Integers) -> Integers:
        """Return the rows of turns, by the number of their dialogue and their place in it."""
        return np.asarray(np.searchsorted(self.dialogue, dialogue) + place)

    def neighbours(self, by: int) -> Integers:
        """Return the row of the turn `by` places later in the same dialogue, or -1."""
        there = self.place + by
        rows = np.arange(len(self.place)) + by
        return np.where((there >= 0) & (there < self.turns), rows, -1)

    def last_rows(self, dialogues: int, speaker: int | None = None) -> Integers:
        """Return the row of each dialogue's last turn, or of the speaker's last turn, or -1."""
        rows = np.arange(len(self.place)) if speaker is None else np.flatnonzero(self.speaker == speaker)
        found = np.full(dialogues, -1)
        found[self.dialogue[rows]] = rows  # the last assignment stays
        return found

    def place_rows(self, dialogues: int, place: int) -> Integers:
        """Return the row of each dialogue's turn at a place, or -1."""
        rows = np.flatnonzero(self.place == place)
        found = np.full(dialogues, -1)
        found[self.dialogue[rows]] = rows
        return found

    def sums(self, values: Floats, dialogues: int, speaker: int | None = None) -> Floats:
        """Add up the rows of each dialogue, of all or of one speaker."""
        rows = np.arange(len(self.place)) if speaker is None else np.flatnonzero(self.speaker == speaker)
        total = np.zeros((dialogues, values.shape[1]), dtype=np.float32)
        np.add.at(total, self.dialogue[rows], values[rows])
        return total


def taken(values: Floats, rows: Integers, missing: float = _MISSING) -> Floats:
    """Return these rows of the values; where a row is -1, the value for what is missing."""
    if not len(values):
        return np.full((len(rows), values.shape[1]), missing, dtype=np.float32)
    return np.where((rows >= 0)[:, None], values[rows], np.float32(missing))


def describe_turns(table: TurnTable, dialogues: int) -> Floats:
    """Return features of each turn: its own cues, its place, its neighbours' cues and the whole dialogue's."""
    after = table.turns - 1 - table.place
    place = np.stack([table.place, after, table.turns, table.speaker, table.place == 0, after == 0], axis=1)
    around = [taken(table.cues, table.neighbours(by)) for by in (-1, 1, -2, 2)]
    last = taken(table.cues, table.last_rows(dialogues))[table.dialogue]
    sums = [table.sums(table.cues, dialogues, speaker)[table.dialogue] for speaker in range(table.speakers)]
    return np.hstack([table.cues, place.astype(np.float32), *around, last, *sums])


def describe_dialogues(table: TurnTable, dialogues: int) -> Floats:
    """Return a row of features for each dialogue: how long, who begins and ends, cues of some turns and of all."""
    cues = table.cues
    last, first = table.last_rows(dialogues), table.place_rows(dialogues, 0)
    turns = np.bincount(table.dialogue, minlength=dialogues)
    speaker = table.speaker[:, None].astype(np.float32)
    parts = [turns[:, None].astype(np.float32), taken(speaker, last), taken(speaker, first)]
    for number in range(table.speakers):
        own = table.last_rows(dialogues, number)
        ago = turns - 1 - np.where(own >= 0, taken(table.place[:, None].astype(np.float32), own)[:, 0], -1)
        parts += [table.sums(cues, dialogues, number), taken(cues, own), ago[:, None].astype(np.float32)]
    parts += [taken(cues, first), taken(cues, table.place_rows(dialogues, 1)), taken(cues, last)]
    return np.hstack(parts).astype(np.float32)


def describe_answers(table: TurnTable, dialogues: int, answers: Floats) -> Floats:
    """Return features of each dialogue from what is thought of its turns: at the ends, at most, on average, in sum."""
    sums = table.sums(answers, dialogues)
    turns = np.maximum(np.bincount(table.dialogue, minlength=dialogues), 1)[:, None]
    most = np.zeros_like(sums)
    np.maximum.at(most, table.dialogue, answers)
    ends = [taken(answers, table.last_rows(dialogues, speaker), 0) for speaker in (None, *range(table.speakers))]
    return np.hstack([*ends, most, sums / turns, sums, taken(answers, table.place_rows(dialogues, 0), 0)]).astype(
        np.float32
    )
