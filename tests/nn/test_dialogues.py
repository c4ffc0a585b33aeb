"""Options of contexts, scored list by list."""

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from rejoinder.nn.dialogues import Options, RankingSettings, _portions, encode_replies  # noqa: E402
from rejoinder.nn.encoders import EncoderSettings  # noqa: E402
from rejoinder.nn.matching import MatchSettings, make_matcher  # noqa: E402


@pytest.mark.parametrize("match", ["dot", "late", "esim", "cross"])
def test_options_are_scored_as_each_would_be_alone(match: str) -> None:
    torch.manual_seed(0)
    encoder = EncoderSettings(kind="bag" if match == "esim" else "lstm", embedding=8, hidden=8)
    settings = RankingSettings(network=MatchSettings(encoder=encoder, match=match))
    network = make_matcher(settings.network, settings.special, 20, Path("nowhere")).eval()
    lists = [[0, 1], [], [place % 4 for place in range(300)]]
    dialogues = Options(_arrays([[10, 11], [12], [13, 14, 15], [16]], lists), "dev", settings, torch.device("cpu"))
    scores = dialogues.scores(network)
    assert len(scores) == 302
    with torch.no_grad():
        for place, (row, option) in enumerate((row, option) for row, own in enumerate(lists) for option in own):
            alone = network(dialogues.contexts(torch.tensor([row])), dialogues.replies(torch.tensor([option])))
            torch.testing.assert_close(scores[place], alone.flatten()[0], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("match", ["dot", "late", "memory", "esim", "cross"])
def test_examples_without_any_option_have_no_scores(match: str) -> None:
    encoder = EncoderSettings(kind="lstm", embedding=8, hidden=8)
    settings = RankingSettings(network=MatchSettings(encoder=encoder, match=match))
    network = make_matcher(settings.network, settings.special, 20, Path("nowhere")).eval()
    dialogues = Options(_arrays([[10], [12], [13], [16]], [[], [], []]), "dev", settings, torch.device("cpu"))
    assert dialogues.scores(network).shape == (0,)


def test_stretches_hold_as_many_options_as_there_is_room_for_and_never_none() -> None:
    settings = RankingSettings()
    arrays = _arrays([[10], [12], [13], [16]], [[], [0, 1, 2], [2, 3]])
    dialogues = Options(arrays, "dev", settings, torch.device("cpu"))
    lists, _ = dialogues._distinct
    assert list(lists.stretches(2)) == [(0, 2), (2, 3)]
    assert list(lists.stretches(4)) == [(0, 3)]


@pytest.mark.parametrize("match", ["dot", "bilinear", "poly", "late", "memory", "esim", "cross"])
def test_what_reads_alike_scores_alike_wherever_it_stands(match: str) -> None:
    torch.manual_seed(0)
    encoder = EncoderSettings(kind="lstm", embedding=32, hidden=32)
    settings = RankingSettings(network=MatchSettings(encoder=encoder, match=match, reply=2))
    network = make_matcher(settings.network, settings.special, 20, Path("nowhere")).eval()
    texts = [[10, 11, place % 20] for place in range(60)] + [[], [12, 13]]  # of three tokens two are read
    lists = [[*range(21)], [61, *range(21, 50), 60], [61, 0, 61]]
    dialogues = Options(_arrays(texts, lists), "dev", settings, torch.device("cpu"))
    told: list[int] = []
    first, second, third = dialogues.scores(network, told.append).split([21, 31, 3])
    assert sum(told) == 55
    assert len(first.unique()) == 1
    assert len(second[1:30].unique()) == 1
    assert len(second.unique()) == 3
    assert third[0] == third[2] != third[1]


def test_of_a_long_context_the_last_tokens_are_read_and_of_a_long_reply_the_first() -> None:
    settings = RankingSettings(network=MatchSettings(context=3, reply=2))
    arrays = _arrays([[10, 11], [12], [13, 14, 15], [16]], [[0], [1], [2]])
    dialogues = Options(arrays, "dev", settings, torch.device("cpu"))
    assert dialogues.contexts(torch.tensor([0]))[0].tolist() == [[11, 6, 12]]  # of 5, 10, 11, 6, 12
    assert dialogues.replies(torch.tensor([2]))[0].tolist() == [[13, 14]]


def _arrays(utterances: list[list[int]], options: list[list[int]]) -> dict[str, np.ndarray]:
    """Three contexts: of utterances 0 and 1, of 2, and of 1, 2 and 3."""
    return {
        "tokens": np.concatenate(utterances),
        "offsets": np.cumsum([0, *map(len, utterances)]),
        "dev_turns": np.array([0, 1, 2, 1, 2, 3]),
        "dev_speakers": np.array([0, 1, 0, 0, 1, 0]),
        "dev_bounds": np.array([0, 2, 3, 6]),
        "dev_correct": np.array([0, 1, 2]),
        "dev_correct_bounds": np.array([0, 1, 2, 3]),
        "dev_options": np.concatenate([np.array(own, dtype=np.int64) for own in options]),
        "dev_option_bounds": np.cumsum([0, *map(len, options)]),
    }


def test_wrong_options_are_drawn_each_once() -> None:
    settings = RankingSettings()
    lists = [[0, 1, 2, 3], [1, 1], [3, 2, 2]]
    dialogues = Options(_arrays([[10], [12], [13], [16]], lists), "dev", settings, torch.device("cpu"))
    assert dialogues.has_wrong().tolist() == [True, False, True]  # 0, 1 and 2 are right, one for each
    rows, drawn = torch.arange(3), set()
    for _ in range(40):
        wrong = dialogues.draw(rows, 2).tolist()
        assert sorted(wrong[0]) in ([1, 2], [1, 3], [2, 3])
        assert wrong[1:] == [[1, 1], [3, 2]]  # there is none, or one: the right one stands in, and does not count
        drawn.add(tuple(sorted(wrong[0])))
    assert len(drawn) == 3
    assert dialogues.draw(rows, 6).shape == (3, 6)


def test_texts_are_read_in_portions_that_fit_when_padded_to_their_longest() -> None:
    lengths = np.sort(np.random.default_rng(0).integers(0, 60, 1_000))
    sizes = _portions(lengths, 512)
    assert sum(sizes) == 1_000
    ends = np.cumsum(sizes)
    padded = np.array(sizes) * (lengths[ends - 1] + 2)
    assert ((padded <= 512) | (np.array(sizes) == 8)).all()
    one_more = (np.array(sizes[:-1]) + 1) * (lengths[ends[:-1]] + 2)
    assert (one_more > 512).all()
    assert _portions(np.zeros(0, dtype=np.int64), 512) == []
    assert _portions(np.full(10, 9_999), 512) == [8, 2]
    assert _portions(np.array([0] * 20 + [60] * 20), 512) == [20, 8, 8, 4]


@pytest.mark.parametrize("match", ["dot", "late"])
def test_of_replies_only_what_the_network_reads_counts_and_like_lengths_are_read_together(
    match: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    settings = RankingSettings(
        network=MatchSettings(encoder=EncoderSettings(kind="lstm", embedding=8, hidden=8), match=match, reply=14)
    )
    network = make_matcher(settings.network, settings.special, 20, Path("nowhere")).eval()
    texts = [[10 + place % 9] * (1 if place % 2 else 500) for place in range(64)]
    dialogues = Options(_arrays(texts, [[0], [1], [2]]), "dev", settings, torch.device("cpu"))
    read: list[tuple[int, ...]] = []
    replies = network.replies
    monkeypatch.setattr(network, "replies", lambda padded: read.append((*padded[0].shape,)) or replies(padded))
    monkeypatch.setattr("rejoinder.nn.dialogues._READ_BY_CPU", 32 * 16)
    with torch.no_grad():
        together = encode_replies(network, dialogues, torch.arange(64))
        assert read == [(32, 14), (32, 1)]
        assert not len(encode_replies(network, dialogues, torch.arange(0)))
        for place in (0, 1, 63):
            alone = replies(dialogues.replies(torch.tensor([place])))
            torch.testing.assert_close(together[place : place + 1, : alone.shape[1]], alone)
