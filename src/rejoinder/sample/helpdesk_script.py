"""What happens in a helpdesk dialogue: a chain of acts by customer and helpdesk, worded alike in two languages."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from math import exp
from random import Random

import msgspec

Phrase = tuple[str, str]
LANGUAGES = ("english", "chinese")
LENGTHS = {2: 19, 3: 19, 4: 19, 5: 19, 6: 19, 7: 5}

# What each side tends to do next; a skilled helpdesk and an angry customer shift these weights.
OPENINGS = {"trigger": 84, "vent": 9, "chat": 7}
REPLIES: dict[str, dict[str, float]] = {
    "trigger": {"ask": 34, "solution": 16, "escalate": 14, "redirect": 15, "apology": 13, "explain": 8},
    "vent": {"ask": 30, "redirect": 12, "apology": 53, "blame": 5},
    "chat": {"chatter": 100},
    "details": {"escalate": 34, "solution": 20, "done": 8, "redirect": 17, "apology": 12, "ask": 9},
    "question": {"solution": 28, "explain": 40, "redirect": 17, "ask": 8, "apology": 7},
    "failed": {"ask": 28, "escalate": 30, "solution": 20, "redirect": 11, "apology": 11},
    "push": {"escalate": 37, "done": 9, "apology": 34, "redirect": 16, "blame": 4},
    "anger": {"apology": 47, "escalate": 23, "redirect": 19, "blame": 11},
    "later": {"closing": 100},
    "thanks": {"closing": 100},
    "solved": {"closing": 100},
}
REACTIONS: dict[str, dict[str, float]] = {
    "ask": {"details": 76, "push": 7, "anger": 7, "question": 10},
    "solution": {"solved": 28, "failed": 30, "later": 14, "question": 17, "thanks": 11},
    "done": {"solved": 52, "thanks": 22, "question": 10, "failed": 16},
    "escalate": {"push": 32, "thanks": 22, "anger": 13, "details": 16, "question": 11, "solved": 6},
    "redirect": {"anger": 22, "push": 28, "details": 26, "question": 20, "solved": 4},
    "apology": {"anger": 37, "push": 30, "details": 22, "thanks": 11},
    "explain": {"question": 37, "anger": 34, "thanks": 20, "failed": 9},
    "closing": {"question": 45, "push": 15, "thanks": 40},
    "chatter": {"chat": 60, "thanks": 25, "question": 15},
    "blame": {"anger": 90, "question": 10},
}
SKILLED = {"solution": 1.0, "done": 1.0, "escalate": 0.3, "apology": -1.0, "blame": -1.5, "redirect": -0.7}
ANGRY = {"anger": 1.0, "push": 0.4, "failed": 0.3, "thanks": -0.8, "solved": -0.3, "later": -0.4}


class Issue(msgspec.Struct, frozen=True):
    """One kind of problem, with what cures it."""

    topic: Phrase
    problem: tuple[Phrase, ...]
    solution: tuple[Phrase, ...]


class Domain(msgspec.Struct, frozen=True):
    """A line of business and its problems."""

    companies: tuple[Phrase, ...]
    ask: tuple[Phrase, ...]
    details: tuple[Phrase, ...]
    explain: tuple[Phrase, ...]
    issues: tuple[Issue, ...]


class Phrases(msgspec.Struct, frozen=True):
    """All wording, each phrase in English and in Chinese."""

    domains: tuple[Domain, ...]
    customer: dict[str, tuple[Phrase, ...]]
    helpdesk: dict[str, tuple[Phrase, ...]]
    cities: tuple[Phrase, ...]
    models: tuple[Phrase, ...]


class Script(msgspec.Struct, frozen=True):
    """A dialogue before it is put into a language: per turn an act, and its posts of phrases."""

    acts: tuple[str, ...]
    posts: tuple[tuple[tuple[Phrase, ...], ...], ...]
    slots: tuple[dict[str, str], dict[str, str]]
    grievances: int
    courtesies: int

    def turns(self, language: int) -> list[tuple[str, ...]]:
        """Return each turn's utterances in one language (an index into LANGUAGES)."""
        joint = " " if language == 0 else ""
        slots = self.slots[language]
        return [tuple(joint.join(p[language] for p in post).format_map(slots) for post in turn) for turn in self.posts]


@cache
def phrases() -> Phrases:
    """Return the wording that comes with the package."""
    text = files("rejoinder.sample").joinpath("helpdesk.json").read_bytes()
    return msgspec.json.decode(text, type=Phrases)


def draw(rng: Random, weights: Mapping[str, float], tilt: Mapping[str, float], strength: float) -> str:
    """Choose an act by weight, each weight tilted by a latent trait."""
    tilted = [weight * exp(strength * tilt.get(act, 0.0)) for act, weight in weights.items()]
    return rng.choices(list(weights), tilted)[0]


def act_chain(rng: Random) -> tuple[str, ...]:
    """Draw who does what, customer and helpdesk in turn."""
    length = rng.choices(list(LENGTHS), list(LENGTHS.values()))[0]
    skill, temper = rng.gauss(0, 1.1), rng.gauss(0, 0.8)
    acts = [draw(rng, OPENINGS, {"vent": 1.0}, temper)]
    while len(acts) < length:
        if len(acts) % 2:
            acts.append(draw(rng, REPLIES[acts[-1]], SKILLED, skill))
        else:
            acts.append(draw(rng, REACTIONS[acts[-1]], ANGRY, temper))
    return tuple(acts)


def pair(value: object) -> Phrase:
    """Write the same in both languages."""
    return str(value), str(value)


def slot_values(rng: Random, company: Phrase, topic: Phrase) -> tuple[dict[str, str], dict[str, str]]:
    """Draw the particulars of one dialogue: numbers, places, names."""
    month, day = rng.randint(1, 12), rng.randint(1, 28)
    values: dict[str, Phrase] = {
        "company": company,
        "topic": topic,
        "topic_start": (topic[0][0].upper() + topic[0][1:], topic[1]),
        "city": rng.choice(phrases().cities),
        "model": rng.choice(phrases().models),
        "date": (f"{day}/{month}", f"{month}月{day}日"),
        "days": pair(rng.randint(2, 9)),
        "hours": pair(rng.choice((2, 4, 6, 12, 24, 48))),
        "years": pair(rng.randint(2, 15)),
        "amount": pair(rng.randint(5, 400)),
        "account": pair(rng.randint(1000, 9999)),
        "hotline": pair(rng.randint(95000, 95999)),
        "order": pair(rng.randint(10**9, 10**10 - 1)),
        "ticket": pair(f"K{rng.randint(10000, 99999)}"),
    }
    return {k: v[0] for k, v in values.items()}, {k: v[1] for k, v in values.items()}


class Writer:
    """Words the acts of one dialogue, seldom using a phrase twice."""

    def __init__(self, rng: Random, domain: Domain, issue: Issue) -> None:
        self.rng, self.domain, self.issue = rng, domain, issue
        self.customer, self.helpdesk = phrases().customer, phrases().helpdesk
        self.used: set[Phrase] = set()
        self.grievances = self.courtesies = 0

    def one(self, options: Sequence[Phrase]) -> Phrase:
        """Take a phrase, a fresh one if there is any."""
        phrase = self.rng.choice(options)
        if phrase in self.used:
            fresh = [option for option in options if option not in self.used]
            phrase = self.rng.choice(fresh) if fresh else phrase
        self.used.add(phrase)
        return phrase

    def maybe(self, chance: float, options: Sequence[Phrase]) -> list[Phrase]:
        """Take a phrase by chance."""
        return [self.one(options)] if self.rng.random() < chance else []

    def complain(self, chance: float) -> list[Phrase]:
        """Add a grievance by chance, and count it: annotators notice."""
        said = self.maybe(chance, self.customer["grievance"])
        self.grievances += len(said)
        return said

    def opening(self, act: str) -> list[Phrase]:
        """Word the customer's first turn."""
        if act == "trigger":
            said = [*self.maybe(0.8, self.customer["open"]), self.one(self.issue.problem)]
            said += self.maybe(0.85, self.customer["context"]) + self.maybe(0.5, self.customer["context"])
            return said + self.complain(0.35) + self.complain(0.2) + self.maybe(0.6, self.customer["help"])
        if act == "vent":
            return [self.one(self.customer["vent"]), *self.complain(0.7)]
        return [self.one(self.customer["chat"])]

    def reaction(self, act: str) -> list[Phrase]:
        """Word a later turn of the customer."""
        if act == "details":
            said = [self.one(self.domain.details), *self.maybe(0.5, self.domain.details)]
            return said + self.maybe(0.4, self.customer["details"]) + self.maybe(0.3, self.customer["context"])
        said = [self.one(self.customer[act])]
        if act in ("failed", "push", "question"):
            said += self.maybe(0.5, self.customer[act]) + self.maybe(0.6, self.customer["context"])
            return said + self.complain(0.2)
        if act == "anger":
            return said + self.maybe(0.4, self.customer["anger"]) + self.complain(0.4)
        return said

    def reply(self, act: str) -> list[Phrase]:
        """Word a turn of the helpdesk."""
        greeting, tail = self.maybe(0.7, self.helpdesk["greet"]), self.maybe(0.5, self.helpdesk["tail"])
        self.courtesies += len(greeting) + len(tail)
        sorry = self.maybe(0.35, self.helpdesk["apology"]) if act in ("ask", "escalate", "redirect", "explain") else []
        return greeting + sorry + self.matter(act) + tail

    def matter(self, act: str) -> list[Phrase]:
        """Word what the helpdesk has to say beside courtesies."""
        if act == "solution":
            return [*self.maybe(0.6, self.helpdesk["lead"]), self.one(self.issue.solution)]
        if act in ("ask", "explain"):
            own = self.domain.ask if act == "ask" else self.domain.explain
            return [self.one(own), *self.maybe(0.5, self.helpdesk[act])]
        if act == "chatter":
            return [self.one(self.helpdesk["chat"])]
        return [self.one(self.helpdesk[act]), *self.maybe(0.4 if act != "closing" else 0.1, self.helpdesk[act])]

    def turn(self, position: int, act: str) -> tuple[tuple[Phrase, ...], ...]:
        """Word one turn, now and then spread over several posts."""
        customer = position % 2 == 0
        said = self.reply(act) if not customer else self.opening(act) if position == 0 else self.reaction(act)
        if len(said) > 1 and self.rng.random() < (0.14 if customer else 0.05):
            cut = self.rng.randrange(1, len(said))
            return tuple(said[:cut]), tuple(said[cut:])
        return (tuple(said),)


def write_script(rng: Random) -> Script:
    """Draw one dialogue."""
    domain = rng.choice(phrases().domains)
    issue = rng.choice(domain.issues)
    acts = act_chain(rng)
    writer = Writer(rng, domain, issue)
    posts = tuple(writer.turn(position, act) for position, act in enumerate(acts))
    slots = slot_values(rng, rng.choice(domain.companies), issue.topic)
    return Script(acts, posts, slots, writer.grievances, writer.courtesies)


def write_scripts(rng: Random, count: int) -> Iterator[Script]:
    """Draw several dialogues."""
    return (write_script(rng) for _ in range(count))
