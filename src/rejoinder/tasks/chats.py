"""Build selection tasks from a support team's own dialogues: split by time, cut before replies, add wrong options.

rejoinder build chats chats.csv --out chats
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np

from rejoinder.corpora.helpdesk import HELPDESK
from rejoinder.dialogue import Dialogue, merge_posts
from rejoinder.errors import UserError
from rejoinder.tasks.build import Cut, build_pool_task, build_task
from rejoinder.tasks.card import SPLITS, Card
from rejoinder.tasks.collection import Description, markdown, save_task
from rejoinder.tasks.description import describe, overlap, write_description
from rejoinder.tasks.selection import SelectionTask
from rejoinder.tasks.ubuntu import room, side_seeds
from rejoinder.text import counted, lowered
from rejoinder.watch import Step

FEWEST = 10
"""Dialogues of which a tenth is one."""
CONTEXT = 50
"""Turns before a reply that an example keeps: with all of them, a talk of years would take its length squared."""


_STOPS = re.compile(r"[.,;:!…。，；：！]+(?=\s|$)")
"""Marks at the ends of words; not the question mark, which makes another reply of one."""


class ChatsPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The choices to be made when building."""

    seed: int = 0
    candidates: int = 100
    without_answer: float = 0.2
    sources: dict[str, str] = {}


def tidy(dialogue: Dialogue) -> Dialogue:
    """Leave out empty posts, and put each of the others on one line, as pools of replies have them."""
    posts = ((turn.speaker, " ".join(post.split())) for turn in dialogue.turns for post in turn.posts)
    return msgspec.structs.replace(dialogue, turns=merge_posts(said for said in posts if said[1]))


def has_reply(dialogue: Dialogue) -> bool:
    """Whether the helpdesk speaks after somebody."""
    return any(turn.speaker == HELPDESK for turn in dialogue.turns[1:])


def cut_dialogue(dialogue: Dialogue) -> list[Cut]:
    """Cut a dialogue before every turn of the helpdesk that follows another turn."""
    turns = tuple((turn.speaker, turn.text) for turn in dialogue.turns)
    return [
        Cut(turns[max(0, place - CONTEXT) : place], (text,))
        for place, (speaker, text) in enumerate(turns)
        if place and speaker == HELPDESK
    ]


def unified(cut: dict[str, list[Cut]]) -> dict[str, list[Cut]]:
    """Let replies that differ by capitals or stops alone be one, as it was written most often."""
    count = Counter(one.replies[0] for cuts in cut.values() for one in cuts)
    written: dict[str, str] = {}
    for text, _ in count.most_common():
        written.setdefault(_plain(text), text)
    return {
        side: [msgspec.structs.replace(one, replies=(written[_plain(one.replies[0])],)) for one in cuts]
        for side, cuts in cut.items()
    }


def _plain(text: str) -> str:
    return " ".join(_STOPS.sub("", lowered(text)).split()) or text


def split_dialogues(dialogues: Sequence[Dialogue]) -> dict[str, list[Dialogue]]:
    """Give the oldest 80% to train, the next 10% to dev and the last to test; if times are missing, as they stand."""
    if len(dialogues) < FEWEST:
        found = f"{counted(len(dialogues), 'dialogue')} in which the helpdesk replies"
        raise UserError(f"{found}; train, dev and test need at least {FEWEST}")
    times = [dialogue.time for dialogue in dialogues if dialogue.time is not None]
    if len(times) == len(dialogues):
        timed = sorted(zip(times, dialogues, strict=True), key=lambda one: one[0])
        dialogues = [dialogue for _, dialogue in timed]
    first, second = len(dialogues) * 8 // 10, len(dialogues) * 9 // 10
    sides = (dialogues[:first], dialogues[first:second], dialogues[second:])
    return {name: list(side) for name, side in zip(SPLITS, sides, strict=True)}


def replies(cuts: Sequence[Cut]) -> list[str]:
    """Return the different replies to some cuts, each once."""
    return list(dict.fromkeys(cut.replies[0] for cut in cuts))


def check_candidates(cut: dict[str, list[Cut]], candidates: int) -> None:
    """Refuse lists that are longer than a side can fill without the right reply, as subtask 4 has them."""
    side, most = min(((side, len(replies(cuts)) - 1) for side, cuts in cut.items()), key=lambda found: found[1])
    if most < candidates:
        remedy = f", or --candidates {most}" if most > 1 else ""
        problem = f"{side} has too few different replies ({most + 1:,}) for lists of {candidates:,}"
        raise UserError(f"{problem}; take more dialogues{remedy}")


def build_subtasks(cut: dict[str, list[Cut]], plan: ChatsPlan) -> Iterator[tuple[int, str, SelectionTask]]:
    """Yield (subtask, split, task) for subtasks 1, 2 and 4, one at a time."""
    said = replies([one for cuts in cut.values() for one in cuts])
    pool = [said[place] for place in np.random.default_rng(plan.seed).permutation(len(said))]
    for subtask in (1, 2, 4):
        seeds = side_seeds(plan.seed, subtask)
        for number, (side, cuts) in enumerate(cut.items(), 1):
            first_id = (subtask * 10 + number) * room(len(cuts)) + 1
            if subtask == 2:
                yield subtask, side, build_pool_task(cuts, pool, first_id)
                continue
            wrong = [(text,) for text in replies(cuts)]
            without = plan.without_answer if subtask == 4 else 0.0
            seed = int(seeds[side].generate_state(1)[0])
            yield subtask, side, build_task(cuts, wrong, plan.candidates, without, seed, first_id=first_id)


def write_chats(out: Path, dialogues: Sequence[Dialogue], plan: ChatsPlan, advance: Step) -> Description:
    """Write subtasks 1, 2 and 4, and a description of them."""
    usable = [dialogue for dialogue in map(tidy, dialogues) if has_reply(dialogue)]
    split = split_dialogues(usable)
    cut = unified({side: [one for dialogue in split[side] for one in cut_dialogue(dialogue)] for side in SPLITS})
    check_candidates(cut, plan.candidates)
    built: dict[str, int] = {}
    for subtask, side, task in build_subtasks(cut, plan):
        save_task(out, Card("chats", subtask, side, 0, 0, plan.seed, "random", sources=plan.sources), task)
        built[f"subtask_{subtask}/{side}"] = task.examples.height
        advance(1)
    said = {side: [one.replies[0] for one in cuts] for side, cuts in cut.items()}
    pooled = len({text for texts in said.values() for text in texts})
    description = Description(
        "chats",
        describe([post for turn in dialogue.turns for post in turn.posts] for dialogue in usable),
        built,
        {side: overlap(said["train"], said[side]) for side in ("dev", "test")},
        {
            "dialogues": len(dialogues),
            "without a reply of the helpdesk": len(dialogues) - len(usable),
            **{side: len(some) for side, some in split.items()},
        },
        [_order(usable), f"the pool of subtask 2 holds {pooled:,} different replies"],
    )
    write_description(out, description, markdown(description))
    return description


def _order(dialogues: Sequence[Dialogue]) -> str:
    untimed = sum(dialogue.time is None for dialogue in dialogues)
    if not untimed:
        return "split by time: train has the oldest dialogues, test the newest"
    return f"split by the order of the file: {untimed:,} of {counted(len(dialogues), 'dialogue')} without a time"
