"""Conversations of a support channel: a problem, questions about it, the fix that goes with the answers.

What to say comes from `irc_topics.json`. The fix follows from the problem, from its case (which chip, which file
system) and from what the asker answered, so the right reply can be learnt but not be found by shared words alone.
"""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from random import Random

import msgspec

from rejoinder.sample.grammar import Slots, Template, compiled, mistype, pick, shorten, tidy

ASKER, HELPER, SECOND, BYSTANDER, BOT = range(5)
# how often a line gets an opening and a closing phrase: with these, word overlap finds about one reply in four
LEAD, TAIL = 0.4, 0.5


class Outcome(msgspec.Struct, frozen=True):
    """What a check may reveal, and what mends it then."""

    answer: tuple[Template, ...]
    fix: tuple[Template, ...]


class Problem(msgspec.Struct, frozen=True):
    """One thing that goes wrong: how it is told, asked about and mended."""

    name: str
    topic: Template
    factoid: str | None
    cases: tuple[dict[str, Template], ...]
    ask: tuple[Template, ...]
    more: tuple[Template, ...]
    check: tuple[Template, ...]
    outcomes: tuple[Outcome, ...]
    fallback: tuple[Template, ...]
    doubt: Template
    reassure: Template


class Topics(msgspec.Struct, frozen=True):
    """Everything that `irc_topics.json` holds."""

    macros: dict[str, Template]
    slots: dict[str, Template]
    factoids: dict[str, str]
    talk: dict[str, tuple[Template, ...]]
    problems: tuple[Problem, ...]


class Style(msgspec.Struct, frozen=True):
    """How a person types."""

    lower: bool
    short: bool
    typos: float


class Post(msgspec.Struct, frozen=True):
    """One message: who says what to whom, and which earlier posts of the conversation it answers."""

    speaker: int
    text: str
    answers: tuple[int, ...]
    to: int | None = None
    kind: str = "say"


class Conversation(msgspec.Struct, frozen=True):
    """Posts about one topic; a post that answers itself starts the conversation."""

    topic: str
    posts: tuple[Post, ...]


@cache
def topics() -> Topics:
    """Read the tables once."""
    source = Path(__file__).with_name("irc_topics.json").read_bytes()
    return msgspec.json.decode(source, type=Topics, dec_hook=compiled)


def asker_style(random: Callable[[], float]) -> Style:
    """Draw how somebody in need of help types: often carelessly."""
    return Style(random() < 0.6, random() < 0.25, random() * 0.35)


def helper_style(random: Callable[[], float]) -> Style:
    """Draw how a regular types: mostly well."""
    return Style(random() < 0.35, random() < 0.08, random() * 0.09)


class Scene:
    """A conversation being written."""

    def __init__(self, rng: Random, case: Mapping[str, Template], crowd: bool) -> None:
        known = topics()
        self.rng, self.random, self.crowd, self.talk = rng, rng.random, crowd, known.talk
        self.slots = Slots(rng, case, known.slots, known.macros)
        self.framed = bool(case)
        self.styles = [asker_style(rng.random), helper_style(rng.random)]
        self.posts: list[Post] = []

    def chance(self, probability: float) -> bool:
        """Toss a coin."""
        return self.random() < probability

    def style(self, speaker: int) -> Style:
        """Return how this speaker types; bystanders type like askers."""
        return self.styles[1 if speaker in (HELPER, SECOND) else 0]

    def word(self, speaker: int, options: tuple[Template, ...], closing: bool = False) -> str:
        """Phrase one of the options the way this speaker types."""
        style = self.style(speaker)
        text = tidy(self.slots.fill(pick(self.random, options)))
        if self.framed:
            text = self.frame(text, "helper" if speaker in (HELPER, SECOND) else "asker", closing)
        if style.lower:
            text = text.lower()
        if style.short:
            text = shorten(text)
        return mistype(text, self.random) if self.random() < style.typos else text

    def frame(self, text: str, role: str, closing: bool) -> str:
        """Put the small words before and after that make people's lines differ."""
        fill, random, talk = self.slots.fill, self.random, self.talk
        if not closing and random() < LEAD:
            text = fill(pick(random, talk[f"{role}_lead"])) + text
        if random() > TAIL:
            return text
        tail = "closing_tail" if closing else f"{role}_question" if text[-1] == "?" else f"{role}_tail"
        return text + fill(pick(random, talk[tail]))

    def say(self, speaker: int, options: tuple[Template, ...], to: int | None = None, closing: bool = False) -> None:
        """Add what a speaker says next, sometimes in two posts."""
        text = self.word(speaker, options, closing)
        if self.random() < 0.2 and 20 < text.find(", ") < len(text) - 12:
            first, text = text.split(", ", 1)
            self.post(speaker, first, to)
            to = None
        self.post(speaker, text, to)

    def post(
        self, speaker: int, text: str, to: int | None = None, answers: tuple[int, ...] = (), kind: str = "say"
    ) -> None:
        """Add one post; unless told otherwise it answers the one before."""
        self.posts.append(Post(speaker, text, answers or (max(0, len(self.posts) - 1),), to, kind))

    def ask(self, options: tuple[Template, ...], closing: bool = False) -> None:
        """Let the asker speak, addressing the helper about half the time."""
        self.say(ASKER, options, HELPER if self.random() < 0.5 else None, closing)

    def help(self, options: tuple[Template, ...], closing: bool = False) -> None:
        """Let the helper speak, addressing the asker most of the time."""
        self.say(HELPER, options, ASKER if self.random() < 0.8 else None, closing)


def support(rng: Random, crowd: bool = True) -> Conversation:
    """Write one conversation about a problem; without a crowd only the asker and one helper take part."""
    problems = topics().problems
    problem = problems[int(rng.random() * len(problems))]
    case = problem.cases[int(rng.random() * len(problem.cases))]
    scene = Scene(rng, {**case, "topic": problem.topic}, crowd)
    _open(scene, problem)
    if not (crowd and scene.chance(0.08)):
        _answer(scene, problem)
    return Conversation(problem.name, tuple(scene.posts))


def chatter(rng: Random) -> Conversation:
    """Write a remark, mostly one that nobody answers, an action, or a question to the bot."""
    scene = Scene(rng, {}, crowd=True)
    kind = scene.random()
    if kind < 0.25:
        scene.post(ASKER, scene.word(ASKER, scene.talk["action"]), kind="action")
    elif kind < 0.3:
        name, text = rng.choice(tuple(topics().factoids.items()))
        scene.post(ASKER, f"!{name}")
        scene.post(BOT, text)
    else:
        _remark(scene)
    return Conversation("chatter", tuple(scene.posts))


def _remark(scene: Scene) -> None:
    scene.post(ASKER, scene.word(ASKER, scene.talk["chatter"]))
    kind = scene.random()
    if kind < 0.05:
        _factoid(scene, "offtopic")
    elif kind < 0.2:
        scene.help(scene.talk["banter"])


def _open(scene: Scene, problem: Problem) -> None:
    if scene.chance(0.06):
        scene.say(ASKER, scene.talk["ask_to_ask"])
        if scene.crowd and scene.chance(0.4):
            _factoid(scene, "ask")
        else:
            scene.help(scene.talk["go_ahead"])
    directed = scene.crowd and not scene.posts and scene.chance(0.08)
    scene.say(ASKER, problem.ask, HELPER if directed else None)
    if scene.chance(0.4):
        scene.say(ASKER, problem.more)
    if scene.crowd and scene.chance(0.05):
        scene.post(BYSTANDER, _aside(scene, BYSTANDER, "me_too"), ASKER)


def _answer(scene: Scene, problem: Problem) -> None:
    question = len(scene.posts) - 1
    if scene.chance(0.25):
        scene.help(scene.talk["generic_ask"])
        scene.ask(scene.talk["generic_answer"])
    outcome = problem.outcomes[int(scene.random() * len(problem.outcomes))]
    scene.help(problem.check)
    if scene.crowd and scene.chance(0.2):
        _factoid(scene, problem.factoid or "paste")
    if scene.crowd and scene.chance(0.05):
        return
    scene.ask(outcome.answer)
    scene.help(outcome.fix)
    if scene.crowd and scene.chance(0.2):
        _interject(scene, question)
    _react(scene, problem, outcome)


def _factoid(scene: Scene, name: str) -> None:
    # the posts name the asker only when the log is written: a nick may have changed by then
    private = scene.chance(0.2)
    scene.post(HELPER, f"!{name} {'>' if private else '|'}", ASKER, kind="factoid")
    text = "please see my private message" if private else topics().factoids[name]
    scene.post(BOT, text, ASKER, kind="private" if private else "say")


def _aside(scene: Scene, speaker: int, subject: str) -> str:
    # a third person has another machine, so the slots of the conversation do not hold
    return Scene(scene.rng, {}, crowd=True).word(speaker, scene.talk[subject])


def _interject(scene: Scene, question: int) -> None:
    last = len(scene.posts) - 1
    scene.post(SECOND, _aside(scene, SECOND, "second_helper"), ASKER, (question,))
    if scene.chance(0.6):
        text = scene.word(ASKER, scene.talk["ack"])
        scene.post(ASKER, text, None, (last, last + 1))


def _react(scene: Scene, problem: Problem, outcome: Outcome) -> None:
    talk = scene.talk
    if scene.chance(0.35):
        scene.ask((problem.doubt,))
        scene.help((problem.reassure,))
    if scene.chance(0.3):
        scene.ask(talk["ack"])
    if scene.crowd and scene.chance(0.08):
        scene.help(talk["ping"])
    solved = scene.chance(0.5)
    if not solved:
        scene.ask(talk["fails"])
        scene.help(problem.fallback if scene.chance(0.6) else outcome.fix)
        solved = scene.chance(0.6)
    _close(scene, solved)


def _close(scene: Scene, solved: bool) -> None:
    if scene.chance(0.15):
        return
    scene.ask(scene.talk["works" if solved else "fails"], closing=solved)
    if scene.chance(0.5):
        scene.help(scene.talk["welcome" if solved else "give_up"], closing=True)
        if not solved and scene.chance(0.5):
            scene.ask(scene.talk["bye"], closing=True)
