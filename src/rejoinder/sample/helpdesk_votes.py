"""How annotators see a helpdesk dialogue: a latent quality from its events, blurred by each annotator's own habits."""

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from rejoinder.sample.helpdesk_script import Script
from rejoinder.tasks.dialeval import CUSTOMER_LABELS, HELPDESK_LABELS, Score

Floats = NDArray[np.float64]

ANNOTATORS = 19

# Effect of an act on (accomplishment, satisfaction, effectiveness), once however often it occurs.
EFFECTS: dict[str, tuple[float, float, float]] = {
    "vent": (-0.2, -0.3, -0.4),
    "chat": (0.3, 0.35, 0.05),
    "details": (0.1, 0.05, 0.3),
    "question": (0.0, -0.05, 0.1),
    "later": (0.2, 0.2, 0.2),
    "thanks": (0.15, 0.4, 0.2),
    "push": (-0.25, -0.3, -0.25),
    "anger": (-0.45, -0.7, -0.4),
    "ask": (0.05, 0.05, 0.25),
    "escalate": (0.15, 0.15, 0.15),
    "redirect": (-0.15, -0.1, -0.15),
    "apology": (-0.3, -0.2, -0.4),
    "explain": (-0.05, -0.1, 0.1),
    "blame": (-0.4, -0.6, -0.4),
}
# How the problem stands at the end counts most; only the last of these acts says so.
STANDING: dict[str, tuple[float, float, float]] = {
    "solved": (1.8, 1.6, 1.3),
    "done": (0.7, 0.5, 0.6),
    "solution": (0.45, 0.35, 0.5),
    "failed": (-0.35, -0.35, -0.1),
}
BASE = np.array([-0.12, -0.1, 0.02])
ITEM_NOISE, OWN_ITEM_NOISE = 0.2, 0.08
SHARED_DOUBT, OWN_DOUBT = 0.74, np.array([0.55, 0.52, 0.78])
CUTS = np.array([[-1.35, -0.65, 0.57, 1.45], [-1.42, -0.71, 0.63, 1.52], [-1.31, -0.65, 0.3, 1.61]])

NUGGETS: dict[str, tuple[float, ...]] = {
    "trigger": (0.94, 0.01, 0.0, 0.05),
    "vent": (0.42, 0.02, 0.0, 0.56),
    "chat": (0.10, 0.03, 0.0, 0.87),
    "details": (0.02, 0.92, 0.0, 0.06),
    "question": (0.03, 0.87, 0.0, 0.10),
    "failed": (0.02, 0.91, 0.0, 0.07),
    "push": (0.02, 0.66, 0.0, 0.32),
    "anger": (0.01, 0.42, 0.0, 0.57),
    "later": (0.0, 0.55, 0.08, 0.37),
    "thanks": (0.0, 0.27, 0.15, 0.58),
    "solved": (0.0, 0.18, 0.74, 0.08),
    "ask": (0.88, 0.02, 0.10),
    "solution": (0.44, 0.53, 0.03),
    "done": (0.40, 0.56, 0.04),
    "escalate": (0.80, 0.08, 0.12),
    "redirect": (0.64, 0.09, 0.27),
    "explain": (0.72, 0.13, 0.15),
    "apology": (0.30, 0.02, 0.68),
    "closing": (0.18, 0.03, 0.79),
    "chatter": (0.16, 0.02, 0.82),
    "blame": (0.28, 0.02, 0.70),
}
LABEL_NOISE, SHARPNESS = 0.45, 0.85


class Annotators(msgspec.Struct, frozen=True):
    """A fixed pool of people: how severe and how decided each is, and how ready to call a turn a nugget."""

    bias: Floats
    spread: Floats
    noise: Floats
    refusal: Floats
    generosity: Floats


class Votes(msgspec.Struct, frozen=True):
    """All annotators' votes on one dialogue: scores by annotator and criterion, labels by annotator and turn."""

    quality: list[list[Score]]
    nuggets: list[list[str]]


def hire(seed: int) -> Annotators:
    """Draw the pool of annotators of a corpus."""
    rng = np.random.default_rng([seed, ANNOTATORS])
    severity = rng.normal(0, 0.25, (ANNOTATORS, 1))
    severity[rng.integers(ANNOTATORS)] = -1.2  # most panels have one who is hardly ever pleased
    return Annotators(
        bias=severity + rng.normal(0, 0.18, (ANNOTATORS, 3)),
        spread=rng.lognormal(-0.25, 0.2, (ANNOTATORS, 1)),
        noise=rng.lognormal(-0.02, 0.25, (ANNOTATORS, 1)),
        refusal=rng.normal(-0.3, 1.2, ANNOTATORS),
        generosity=rng.normal(0, 0.6, ANNOTATORS),
    )


def latent_quality(script: Script) -> Floats:
    """Return how well the dialogue went by each criterion, as its text shows."""
    score: Floats = BASE.copy()
    for act in sorted(set(script.acts)):
        score += EFFECTS.get(act, (0.0, 0.0, 0.0))
    standing = [act for act in script.acts if act in STANDING]
    score += STANDING[standing[-1]] if standing else (-0.1, -0.05, -0.1)
    manners = 0.06 * (script.courtesies / max(1, len(script.acts) // 2) - 1.0)
    rounds = len(script.acts) / 2 - 2
    score -= np.array([0.08, 0.12, 0.08]) * script.grievances
    score += np.array([0.0, manners, manners / 2 - 0.06 * rounds])
    return score


def stakes(script: Script) -> float:
    """Return how far opinions can differ: little, where there is no problem to solve."""
    return 0.45 if script.acts[0] == "chat" else 1.0


def quality_votes(scripts: Sequence[Script], pool: Annotators, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return scores -2..2 by dialogue, annotator and criterion."""
    shape = (len(scripts), ANNOTATORS, 3)
    latent = np.array([latent_quality(script) for script in scripts])
    latent += rng.normal(0, ITEM_NOISE, (len(scripts), 1)) + rng.normal(0, OWN_ITEM_NOISE, (len(scripts), 3))
    # one impression of the whole dialogue, and one of each criterion: an annotator's three scores go together
    doubt = SHARED_DOUBT * rng.normal(size=(*shape[:2], 1)) + OWN_DOUBT * rng.normal(size=shape)
    room = np.array([stakes(script) for script in scripts])[:, None, None]
    seen = pool.spread * latent[:, None, :] + room * (pool.bias + pool.noise * doubt)
    return np.asarray((seen[..., None] > CUTS).sum(-1) - 2)


def logits(labels: int) -> dict[str, Floats]:
    """Return each act's log probabilities over its side's labels."""
    return {act: SHARPNESS * np.log(np.maximum(p, 2e-3)) for act, p in NUGGETS.items() if len(p) == labels}


def label_votes(acts: Sequence[str], labels: int, pool: Annotators, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the index of the label that each annotator gives to each turn, by turn and annotator."""
    table = logits(labels)
    score = np.array([table[act] for act in acts])[:, None, :] + np.zeros((1, ANNOTATORS, 1))
    score += LABEL_NOISE * rng.normal(size=(len(acts), 1, labels))
    score[..., -1] += pool.refusal
    score[..., -2] += pool.generosity
    return np.asarray((score + rng.gumbel(size=score.shape)).argmax(-1))


def nugget_votes(scripts: Sequence[Script], pool: Annotators, rng: np.random.Generator) -> list[list[list[str]]]:
    """Return labels by dialogue, annotator and turn."""
    customer = label_votes([act for s in scripts for act in s.acts[::2]], len(CUSTOMER_LABELS), pool, rng)
    helpdesk = label_votes([act for s in scripts for act in s.acts[1::2]], len(HELPDESK_LABELS), pool, rng)
    sides = iter(np.array(CUSTOMER_LABELS)[customer].tolist()), iter(np.array(HELPDESK_LABELS)[helpdesk].tolist())
    by_turn = ([next(sides[position % 2]) for position in range(len(s.acts))] for s in scripts)
    return [[list(votes) for votes in zip(*turns, strict=True)] for turns in by_turn]


def vote(scripts: Sequence[Script], pool: Annotators, rng: np.random.Generator) -> list[Votes]:
    """Return every annotator's votes on every dialogue."""
    quality: list[list[list[Score]]] = quality_votes(scripts, pool, rng).tolist()
    return [Votes(q, n) for q, n in zip(quality, nugget_votes(scripts, pool, rng), strict=True)]
