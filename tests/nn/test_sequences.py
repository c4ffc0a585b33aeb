import numpy as np
import pytest

torch = pytest.importorskip("torch")

from rejoinder.nn.dialogues import bucketed, last_turns  # noqa: E402
from rejoinder.nn.sequences import Sequences, Special, framed, joined, lay_contexts  # noqa: E402

SPECIAL = Special()
TEXTS = [[10, 11, 12], [20], [], [30, 31]]


@pytest.fixture
def sequences():
    offsets = np.cumsum([0, *map(len, TEXTS)])
    return Sequences(np.array([token for text in TEXTS for token in text]), offsets, torch.device("cpu"))


def test_sequences_are_padded_and_cut(sequences):
    tokens, mask = sequences.padded(torch.tensor([0, 2, 3]), 2, SPECIAL)
    assert tokens.tolist() == [[10, 11], [0, 0], [30, 31]]
    assert mask.tolist() == [[True, True], [False, False], [True, True]]
    tokens, _ = sequences.padded(torch.tensor([0, 1]), 2, SPECIAL, from_end=True)
    assert tokens.tolist() == [[11, 12], [20, 0]]


def test_start_and_end_frame_each_sequence(sequences):
    tokens, mask = framed(*sequences.padded(torch.tensor([0, 1, 2]), 9, SPECIAL), SPECIAL)
    assert tokens.tolist() == [[2, 10, 11, 12, 3], [2, 20, 3, 0, 0], [2, 3, 0, 0, 0]]
    assert mask.sum(1).tolist() == [5, 3, 2]


def test_two_sequences_are_joined_without_a_gap(sequences):
    first, second = (sequences.padded(torch.tensor(rows), 9, SPECIAL) for rows in ([0, 1, 2], [3, 2, 1]))
    tokens, mask, parts = joined(first, second, SPECIAL)
    assert tokens.tolist() == [[2, 10, 11, 12, 3, 30, 31, 3], [2, 20, 3, 3, 0, 0, 0, 0], [2, 3, 20, 3, 0, 0, 0, 0]]
    assert parts.tolist() == [[0, 0, 0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0, 0, 0]]
    assert mask.sum(1).tolist() == [8, 4, 4]


@pytest.mark.parametrize("at_once", [1, 3, 100])
def test_contexts_are_their_turns_led_by_speakers(monkeypatch, at_once):
    monkeypatch.setattr("rejoinder.nn.sequences._LAID", at_once)
    tokens, offsets = np.array([10, 11, 12, 20, 30, 31]), np.array([0, 3, 4, 4, 6])
    turns, speakers, bounds = np.array([3, 1, 0, 2]), np.array([0, 1, 0, 1]), np.array([0, 2, 2, 4])
    flat, ends = lay_contexts(tokens, offsets, turns, speakers, bounds, SPECIAL)
    found = [flat[ends[row] : ends[row + 1]].tolist() for row in range(3)]
    assert found == [[5, 30, 31, 6, 20], [], [5, 10, 11, 12, 6]]


def test_only_the_last_turns_are_kept():
    contexts = np.arange(7), np.arange(7) % 2, np.array([0, 4, 4, 5, 7])
    turns, speakers, bounds = last_turns(*contexts, np.full(7, 3), most=2, tokens=8)
    assert turns.tolist() == [2, 3, 4, 5, 6]
    assert speakers.tolist() == [0, 1, 0, 1, 0]
    assert bounds.tolist() == [0, 2, 2, 3, 5]
    turns, _, bounds = last_turns(*contexts, np.array([3, 3, 1, 3, 9, 3, 4]), most=9, tokens=5)
    assert turns.tolist() == [2, 3, 4, 6]  # four tokens of 3 with its speaker, five of 6: one is left for turn 2
    assert bounds.tolist() == [0, 2, 2, 3, 4]


def test_turns_that_no_token_is_read_of_make_no_difference():
    rng = np.random.default_rng(0)
    lengths = rng.integers(0, 9, 40)
    tokens, offsets = np.arange(10, 10 + lengths.sum()), np.concatenate([[0], np.cumsum(lengths)])
    sizes = rng.integers(0, 7, 30)
    turns, bounds = rng.integers(0, 40, sizes.sum()), np.concatenate([[0], np.cumsum(sizes)])
    speakers = rng.integers(0, 2, len(turns))
    rows = torch.arange(30)
    for limit in (1, 2, 5, 12):
        whole, some = (
            Sequences(*lay_contexts(tokens, offsets, *contexts, SPECIAL), torch.device("cpu"))
            for contexts in (
                (turns, speakers, bounds),
                last_turns(turns, speakers, bounds, lengths, most=99, tokens=limit),
            )
        )
        assert len(some.tokens) < len(whole.tokens)
        tokens_and_masks = (each.padded(rows, limit, SPECIAL, from_end=True) for each in (whole, some))
        for first, second in zip(*tokens_and_masks, strict=True):
            assert torch.equal(first, second)


def test_sequences_that_begin_alike_are_found():
    rng = np.random.default_rng(0)
    texts = [tuple(rng.integers(0, 3, rng.integers(0, 6)).tolist()) for _ in range(500)]
    ends = np.cumsum([0, *map(len, texts)])
    sequences = Sequences(np.array([token for text in texts for token in text]), ends, torch.device("cpu"))
    rows = rng.permutation(500)[:300]
    for limit in (1, 3, 9):
        first: dict[tuple[int, ...], int] = {}
        expected = [first.setdefault(texts[row][:limit], place) for place, row in enumerate(rows)]
        assert sequences.first_alike(rows, limit).tolist() == expected
    assert not len(sequences.first_alike(rows[:0], 3))


def test_batches_hold_every_row_once_and_similar_lengths():
    lengths = np.random.default_rng(0).integers(1, 200, 1000)
    batches = bucketed(np.arange(1000), lengths, 16, np.random.default_rng(1))
    assert sorted(np.concatenate(batches).tolist()) == list(range(1000))
    spread = np.mean([np.ptp(lengths[batch]) for batch in batches])
    assert spread < 10 < np.ptp(lengths)
