"""How replies are written: traits, how true writers are to them, and what that says of options."""

from pathlib import Path

import msgspec
import numpy as np
import polars as pl
import pytest
from scipy.stats import betabinom

from rejoinder.arrays import write_arrays
from rejoinder.errors import UserError
from rejoinder.measures.selection import score
from rejoinder.systems.system import Lesson
from rejoinder.systems.turns import turns_of
from rejoinder.systems.voice import _TRAITS, Voice, _likeliest_strength, _tosses, marks_of
from rejoinder.tasks.build import Cut, build_pool_task, build_task

NAMES = list(_TRAITS)


def trait(text: str, name: str) -> bool | None:
    """Say whether a text shows a trait or lacks it; None: it leaves that open."""
    shown, lacking = np.hsplit(marks_of(pl.Series([text])), 2)
    assert not (shown & lacking).any()
    place = NAMES.index(name)
    return True if shown[0, place] else False if lacking[0, place] else None


@pytest.mark.parametrize(
    ("name", "has", "lacks", "open_"),
    [
        ("starts with a capital", "Try it", "try it", "4 times"),
        ("starts with a capital", " Ärger", "ärger", "好的"),
        ("starts sentences with capitals", "no. Try it", "no. try it", "try it"),
        ("has capitals within", "on Debian too", "on debian too", None),
        ("writes I", "so I think", "so i think", "I mean i think"),
        ("ends with a stop", "it works.", "it works", "does it?"),
        ("ends with a stop", "好的。", "好的", "好吗？"),
        ("ends with a stop", "it works. ", "well...", None),
        ("writes apostrophes", "I don't", "i dont", "it is as it was"),
        ("writes apostrophes", "you're right", "youre right", "I don't, but they cant"),
        ("cuts words short", "r u there", "are you there", "hello"),
        ("puts blanks before marks", "why ?", "why?", "why"),
        ("writes commas", "yes, no", "yes no", None),
        ("shouts", "no!", "no", None),
        ("trails off", "well...", "well..", None),
        ("trails off by two dots", "well.. no", "well... no", None),
        ("trails off by two dots", "well .. no", "ls ../etc/..", None),
        ("dashes", "well - no", "well-known", None),
        ("dashes", "well--no", "apt-get --help -y", None),
        ("quotes by two strokes", 'type "ls"', "type 'ls'", "don't"),
        ("smiles", "thanks :)", "thanks", None),
        ("smiles with a nose", "thanks ;-)", "thanks ;)", "thanks"),
        ("laughs", "haha no", "shell", None),
    ],
)
def test_traits(name, has, lacks, open_):
    assert (trait(has, name), trait(lacks, name)) == (True, False)
    assert open_ is None or trait(open_, name) is None


def test_only_what_the_replier_said_before_counts():
    cuts = [
        Cut((("a", "Hello."), ("b", "hi"), ("a", "Why?"), ("b", "no")), ("Ok.",)),  # a will reply, after two turns
        Cut((("a", "Hello."),), ("hi",)),  # who will reply has said nothing
        Cut((("a", "Hello."), ("b", "hi")), ("Ok.",)),
    ]
    task = build_task(cuts, [("yes",)], 2, seed=0)
    silent = pl.Series([*task.examples["turns"].to_list()[:2], []], dtype=task.examples["turns"].dtype)
    task = msgspec.structs.replace(task, examples=task.examples.with_columns(turns=silent))
    shown, lacking = np.hsplit(_tosses(turns_of(task)), 2)
    capital = NAMES.index("starts with a capital")
    assert (shown[:, capital].tolist(), lacking[:, capital].tolist()) == ([2, 0, 0], [0, 0, 0])
    assert not shown[1:].any() and not lacking[1:].any()
    voice = Voice(None)
    voice.share, voice.strength = np.linspace(0.018, 0.73, len(NAMES)), np.geomspace(0.21, 1e4, len(NAMES))
    assert not voice.weigh_contexts(turns_of(task))[1:].any()  # to the last digit, or weights are learned of rounding


def test_a_context_weighs_marks_by_the_ratio_of_two_chances():
    """Worked by hand: strength 2, a share of 0.25, one of one turn shows it: (2 * 0.25 + 1) / (2 + 1) = 0.5."""
    task = build_task([Cut((("a", "Hello"), ("b", "hi")), ("Yes",))], [("yes",)], 2, seed=0)
    voice = Voice(None)
    voice.share, voice.strength = np.full(len(NAMES), 0.25), np.full(len(NAMES), 2.0)
    shown, lacking = np.hsplit(voice.weigh_contexts(turns_of(task)), 2)
    capital, commas = NAMES.index("starts with a capital"), NAMES.index("writes commas")
    assert shown[0, capital] == pytest.approx(np.log(0.5 / 0.25))
    assert lacking[0, capital] == pytest.approx(np.log(0.5 / 0.75))
    assert lacking[0, commas] == pytest.approx(np.log((1 - 0.5 / 3) / 0.75))  # none of one: (2 * 0.25 + 0) / 3


def test_a_mark_weighs_what_scipy_says_of_the_next_toss():
    turns = [("a", "Hello"), ("b", "no"), ("a", "hm"), ("b", "yes"), ("a", "Why"), ("b", "so")]
    task = build_task([Cut(tuple(turns), ("Yes",))], [("yes",)], 2, seed=0)
    voice = Voice(None)
    voice.share, voice.strength = np.full(len(NAMES), 0.219), np.full(len(NAMES), 1.28)
    weights = np.exp(np.hsplit(voice.weigh_contexts(turns_of(task)), 2))
    shown, lacking = weights[:, 0, NAMES.index("starts with a capital")]
    after = betabinom(1, 1.28 * 0.219 + 2, 1.28 * 0.781 + 1)  # two of three showed it
    assert (shown * 0.219, lacking * 0.781) == pytest.approx((after.pmf(1), after.pmf(0)), rel=1e-5)


def test_the_likeliest_strength_is_that_of_the_beta_distribution_the_writers_come_from():
    rng = np.random.default_rng(0)
    coins = rng.beta(3 * 0.4, 3 * 0.6, 20_000)  # strength 3, share 0.4
    tosses = rng.integers(1, 6, len(coins))
    had, has = rng.binomial(tosses, coins), rng.random(len(coins)) < coins
    silent = rng.random(len(coins)) < 0.1  # of their replies nothing can be told
    found = _likeliest_strength(had, tosses - had, has & ~silent, ~has & ~silent, 0.4)
    assert found == pytest.approx(3, rel=0.1)


def test_a_trait_that_nobody_shows_again_counts_for_nothing():
    nobody = np.zeros(3)
    strength = _likeliest_strength(nobody, nobody, nobody > 0, nobody > 0, 0.5)
    assert (strength * 0.5 + 1) / (strength + 1) == pytest.approx(0.5, abs=1e-3)


@pytest.fixture(scope="module")
def cuts():
    """Half of the writers start with a capital and end with a stop, the others never do."""
    rng = np.random.default_rng(1)
    words = ["kernel", "driver", "sound", "disk", "panel", "mouse", "update", "boot"]

    def said(neat: bool) -> str:
        text = " ".join(rng.choice(words, 4))
        return f"{text.capitalize()}." if neat else text

    found = []
    for _ in range(200):
        first, second = rng.random(2) < 0.5
        turns = [("ab"[place % 2], said((first, second)[place % 2])) for place in range(5)]
        found.append(Cut(tuple(turns[:4]), (turns[4][1],)))
    return found


def test_options_in_the_repliers_voice_come_first(cuts, tmp_path):
    task = build_task(cuts, [cut.replies for cut in cuts], 10, seed=2)
    voice = Voice(None)
    voice.fit(Lesson(train=task, work=Path("unused")))
    voice.save(tmp_path)
    again = Voice(None)
    again.load(tmp_path)
    run = again.predict(task)
    assert run.choices.equals(voice.predict(task).choices)
    write_arrays(tmp_path / "voice.npz", {"share": voice.share[1:], "strength": voice.strength[1:]})
    with pytest.raises(UserError, match=r"voice.npz: share has the shape \(16,\), expected \(17,\); .*train it anew"):
        again.load(tmp_path)
    for broken in (voice.share * np.nan, voice.share.astype(str)):
        write_arrays(tmp_path / "voice.npz", {"share": broken, "strength": voice.strength})
        with pytest.raises(UserError, match=r"voice.npz: share holds what is no number; .*train it anew"):
            again.load(tmp_path)
    assert score(run, task.truth(), ["R@5"])["R@5"].mean() > 0.75  # half of ten are in the other voice
    shares = run.choices.group_by("example").agg(pl.col("score").sum())["score"].to_numpy()
    assert shares == pytest.approx(np.ones(len(cuts)))  # confidences as DSTC7 wants them


def test_it_ranks_a_pool_too(cuts):
    pool = build_pool_task(cuts[:20], [cut.replies[0] for cut in cuts])
    voice = Voice(None)
    voice.fit(Lesson(train=build_task(cuts, [cut.replies for cut in cuts], 10, seed=2), work=Path("unused")))
    run = voice.predict(pool)
    best = run.choices.group_by("example", maintain_order=True).first()
    texts = best.join(pool.options.unique("id"), left_on="option", right_on="id", how="left", maintain_order="left")
    neat = [cut.replies[0].endswith(".") for cut in cuts[:20]]
    assert [text.endswith(".") for text in texts["text"]] == neat
