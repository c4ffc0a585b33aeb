"""The Ladder (Blum and Hardt 2015): the rule itself, and the attack that it is there to stop, played on the board."""

import numpy as np
import pytest

from rejoinder.board.ladder import climbs
from rejoinder.board.models import SubmissionScores, Track
from rejoinder.board.vectors import choose_online, pack_chosen, unpack

EXAMPLES, QUERIES = 300, 80


def test_rule():
    best = np.tile([0.0, 1.0], 50)
    better = best.copy()
    better[:2] = 1
    assert climbs(better, best, 0.5, 4, True)  # one example in a hundred better: mean 0.51, standard error 0.01
    noisy = np.concatenate([np.ones(51), np.zeros(49)])
    assert not climbs(noisy, best, 0.5, 4, True)  # as much better, but by winning 26 examples and losing 25
    assert not climbs(best, best, 0.5, 4, True)
    assert climbs(1 - better, 1 - best, 0.5, 4, False)
    assert not climbs(better, best, 0.5, 4, False)


def test_rule_is_the_standard_error_of_the_difference():
    rng = np.random.default_rng(0)
    best = rng.random(200)
    noise = rng.normal(size=200)
    noise -= noise.mean()
    error = np.std(noise, ddof=1) / np.sqrt(200)
    for times, expected in ((0.99, False), (1.01, True)):
        assert climbs(best + noise + times * error, best, float(best.mean()), 12, True) is expected


def test_what_rounds_to_the_same_is_nothing_new():
    best = np.full(10, 0.12341)
    assert not climbs(np.full(10, 0.12344), best, 0.1234, 4, True)
    assert climbs(np.full(10, 0.12346), best, 0.1234, 4, True)


def _run(choices):
    first = (f"{example} Q0 {'ab'[choice]} 1 1 x\n" for example, choice in enumerate(choices))
    return "".join(first).encode()


ONLINE = np.arange(EXAMPLES) % 2 == 0


def attack(rng, ask):
    """Ask with random runs, and return how those vote that scored better than chance (section 5: boosting)."""
    votes = np.zeros(EXAMPLES)
    for _ in range(QUERIES):
        guess = rng.integers(2, size=EXAMPLES)
        score = ask(guess)
        if score is not None:
            votes += np.sign(score - 0.5) * (2 * guess - 1)  # below one half: turn the guesses round
    return (votes > 0).astype(int)


def attack_the_rule(seed, ladder):
    """Play the attack against the rule alone; return the share of right votes online and on the hidden half."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=EXAMPLES)
    best = []

    def ask(guess):
        scores = (guess == truth)[ONLINE].astype(float)
        if ladder and best and not climbs(scores, *best[-1], 4, True):
            return None
        best.append((scores, float(scores.mean())))
        return best[-1][1]

    right = attack(rng, ask) == truth
    return right[ONLINE].mean(), right[~ONLINE].mean()


def test_attack_on_the_rule():
    worlds = range(60)
    online, hidden = np.mean([attack_the_rule(seed, ladder=False) for seed in worlds], axis=0)
    assert online > 0.7
    assert 0.48 < hidden < 0.52
    online, hidden = np.mean([attack_the_rule(seed, ladder=True) for seed in worlds], axis=0)
    assert online < 0.58  # where the luckiest single run of so many reaches 0.6
    assert 0.48 < hidden < 0.52


def attack_the_board(world, path, ladder):
    """Play the same attack against a board."""
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=EXAMPLES)
    path.write_text("".join(f"{example} 0 {'ab'[right]} 1\n" for example, right in enumerate(truth)))
    track, user = world.track(path, ["R@1"], ladder=ladder, quota=QUERIES + 1), world.user("Mallory", "Attackers")
    with world.site.database.writing() as session:  # otherwise every board chooses others
        session.get_one(Track, track.id).online = pack_chosen(ONLINE)

    def ask(guess):
        released = world.hand_in(user, track, _run(guess)).released
        return released["R@1"]["score"] if released else None

    final = world.hand_in(user, track, _run(attack(rng, ask)))
    with world.site.database.reading() as session:
        right = unpack(session.get_one(SubmissionScores, final.id).whole)["R@1"]
    return right[ONLINE].mean(), right[~ONLINE].mean()


@pytest.mark.parametrize("ladder", [False, True])
def test_attack_on_a_board(world, tmp_path, ladder):
    online, hidden = attack_the_board(world, tmp_path / "qrels", ladder)
    assert online < 0.6 if ladder else online > 0.68  # by nothing but asking
    assert hidden < 0.57
    assert (online, hidden) == pytest.approx(attack_the_rule(0, ladder))


def test_held_back_scores_count_but_are_nowhere(world, make_run):
    track, user = world.competition(quota=3), world.user("Anna", "Team A")
    first, second, third = (world.hand_in(user, track, make_run(near)) for near in (0.5, 0.3, 0.8))
    assert set(first.released) == {"NMD(A)", "RSNOD(A)"}
    assert second.released == {}
    assert second.status == "scored"
    assert third.released["NMD(A)"]["score"] < first.released["NMD(A)"]["score"]


def test_every_score_is_released_without_the_ladder(world, make_run):
    track, user = world.competition(ladder=False, digits=2), world.user("Anna", "Team A")
    runs = [world.hand_in(user, track, make_run(near)) for near in (0.5, 0.3)]
    scores = [run.released["NMD(A)"]["score"] for run in runs]
    assert scores[0] < scores[1]
    assert all(round(score, 2) == score for score in scores)


@pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
def test_online_examples(share):
    ids = [f"id {number}" for number in range(300)]
    chosen = choose_online(ids, share, "secret")
    assert chosen.sum() == round(300 * share)
    assert (choose_online(ids, share, "secret") == chosen).all()
    assert share == 1 or (choose_online(ids, share, "other") != chosen).any()
    backwards = choose_online(ids[::-1], share, "secret")
    assert (backwards[::-1] == chosen).all()  # an example is online in every track or in none
    assert choose_online(ids[:1], share, "secret").all()
