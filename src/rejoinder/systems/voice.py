"""A ranker by how replies are written: who will reply has written before, and goes on in the same voice."""

from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import minimize_scalar

from rejoinder.arrays import read_shaped, write_arrays
from rejoinder.runs.selection import SelectionRun
from rejoinder.systems.ranking import answers_of, rank_by_products
from rejoinder.systems.stacking import with_shares
from rejoinder.systems.system import Lesson, SelectionSystem
from rejoinder.systems.turns import Turns, number_texts, turns_of
from rejoinder.tasks.selection import SelectionTask
from rejoinder.watch import Watch, unwatched

Floats = NDArray[np.float32]
Marks = NDArray[np.bool_]
"""Texts x traits, twice: which show a trait, then which show that they lack it. Most texts leave some open."""

_VOICE = "voice.npz"
_SHORTENED = (
    r"(?i)\b((do|does|did|ca|wo|is|are|was|were|would|could|should|have|has|had)n{0}t|"
    r"i{0}(m|ve)|(that|what|there){0}s|(you|they){0}re)\b"
)
_TRAITS = {
    "starts with a capital": (r"^\s*\p{Lu}", r"^\s*\p{Ll}"),
    "starts sentences with capitals": (r"[.!?]\s+\p{Lu}", r"[.!?]\s+\p{Ll}"),
    "has capitals within": (r"\s\p{Lu}\p{Ll}", ""),
    "writes I": (r"\bI\b", r"\bi\b"),
    "ends with a stop": (r"[^.。][.。]\s*$", r"([^\s.。?？]|\.\.)\s*$"),
    "writes apostrophes": (_SHORTENED.format("'"), _SHORTENED.format("")),
    "cuts words short": (
        r"(?i)\b(u|ur|r|pls|plz|thx|ppl|cuz)\b",
        r"(?i)\b(you|your|are|please|thanks|people|because)\b",
    ),
    "puts blanks before marks": (r"\w\s[?!,.](\s|$)", r"\w[?!,.](\s|$)"),
    "writes commas": ("[,，]", ""),
    "shouts": ("[!！]", ""),
    "trails off": (r"\.\.\.|…", ""),
    "trails off by two dots": (r"[^\s./]\.\.([^./\d]|$)|\s\.\.\s", ""),
    "dashes": (r"\s-+(\s|$)|\w--", ""),
    "quotes by two strokes": ('"', r"(^|\s)['`]"),
    "smiles": (r"[:;=]-?[()DPp]", ""),
    "smiles with a nose": (r"[:;=]-[()DPp]", r"[:;=][()DPp]"),
    "laughs": (r"(?i)\b(lol|(ha){2,}|(he){2,}|heh)\b", ""),
}
"""What a text shows that has a trait, and what shows that it has not; nothing: all others have not."""
_SEARCHES = [
    (pl.col("text").str.contains(trait[place]) if trait[place] else pl.lit(False)).alias(f"{name} {place}")
    for place in (0, 1)
    for name, trait in _TRAITS.items()
]
_OPEN = np.array([bool(other) for _, other in _TRAITS.values()])
"""Whether a text may leave a trait open."""
_LEAST, _MOST = 0.1, 1e4
"""Between which strengths the likeliest is looked for."""


class Voice(SelectionSystem):
    """Ranks by how much likelier an option's traits are for the one who will reply than for anybody.

    Whether a text shows a trait is a toss of its writer's coin, and writers' coins follow a beta distribution: after n
    tosses of which y showed it, the next one does with the probability (strength * share + y) / (strength + n) (Gelman
    et al. 2013, section 2.4). The logarithms of how much that is more than `share` are summed over the traits. Who will
    reply is taken to be somebody else than the last speaker, all others being one; if nobody else has spoken yet, all
    options are alike.
    """

    share: NDArray[np.float64]
    """By trait, how often texts show it."""
    strength: NDArray[np.float64]
    """By trait, as how many tosses of one's own the habits of all weigh."""

    def fit(self, lesson: Lesson[SelectionTask]) -> None:
        """Learn how common each trait is, and how true writers are to it."""
        marks, answers = marks_of(lesson.train.options["text"]), answers_of(lesson.train)
        shown, lacking = np.hsplit(marks, 2)
        self.share = (shown.sum(axis=0) + 0.5) / ((shown | lacking).sum(axis=0) + 1)
        before = np.hsplit(_tosses(turns_of(lesson.train))[answers.owners()], 2)
        after = shown[answers.values], lacking[answers.values]
        each = zip(*(tosses.T for tosses in (*before, *after)), self.share, strict=True)
        self.strength = np.array([_likeliest_strength(*trait) for trait in each])

    def predict(self, task: SelectionTask, watch: Watch = unwatched) -> SelectionRun:
        """Answer every example."""
        options = marks_of(task.options["text"]).astype(np.float32)
        run = rank_by_products(task, "voice", self.weigh_contexts(turns_of(task)), options, watch)
        return SelectionRun(run.name, with_shares(run.choices, run.choices["score"].to_numpy()))

    def weigh_contexts(self, turns: Turns) -> Floats:
        """Return what each mark of an option counts for, by context."""
        shown, lacking = np.hsplit(_tosses(turns), 2)
        weight, share = self.strength + shown + lacking, self.share
        # chance / share - 1, and the same of its opposite: nothing, to the last digit, where there were no tosses
        more = (shown * (1 - share) - lacking * share) / (share * weight)
        less = (lacking * share - shown * (1 - share)) / ((1 - share) * weight)
        return np.hstack([np.log1p(more), np.log1p(less)]).astype(np.float32)

    def save(self, folder: Path) -> None:
        """Write what was learned."""
        write_arrays(folder / _VOICE, {"share": self.share, "strength": self.strength})

    def load(self, folder: Path) -> None:
        """Read what was learned."""
        learned = read_shaped(folder / _VOICE, {"share": (len(_TRAITS),), "strength": (len(_TRAITS),)})
        self.share, self.strength = learned["share"], learned["strength"]


def marks_of(texts: pl.Series) -> Marks:
    """Return which traits each text shows, and which it shows to lack."""
    found = texts.to_frame("text").select_seq(_SEARCHES).to_numpy()
    has, lacks = np.hsplit(found, 2)
    lacks = np.where(_OPEN, lacks, ~has)
    return np.hstack([has & ~lacks, lacks & ~has])


def _tosses(turns: Turns) -> Floats:
    """Count the marks of what who will reply has said in each context."""
    own = np.flatnonzero(turns.repliers)
    texts, rows = number_texts([turns.texts[turn] for turn in own])
    counts = sparse.csr_matrix(
        (np.ones(len(own), np.float32), (turns.example[own], rows)), (turns.examples, len(texts))
    )
    found: Floats = counts @ marks_of(pl.Series(texts, dtype=pl.String)).astype(np.float32)
    return found


def _likeliest_strength(had: Floats, lacked: Floats, has: Marks, lacks: Marks, share: float) -> float:
    """Return the strength that makes writers' replies likeliest, after what they wrote before."""
    telling = (had + lacked > 0) & (has | lacks)
    had, tosses, has = had[telling], (had + lacked)[telling], has[telling]

    def surprise(logarithm: float) -> float:
        strength = np.exp(logarithm)
        chance = (strength * share + had) / (strength + tosses)
        return -float(np.log(np.where(has, chance, 1 - chance)).sum())

    if not telling.any():
        return _MOST
    return float(np.exp(minimize_scalar(surprise, bounds=(np.log(_LEAST), np.log(_MOST)), method="bounded").x))
