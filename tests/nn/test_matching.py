from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from rejoinder.errors import UserError  # noqa: E402
from rejoinder.nn.dialogues import Options, RankingSettings  # noqa: E402
from rejoinder.nn.encoders import EncoderSettings, make_encoder, pool  # noqa: E402
from rejoinder.nn.matching import MatchSettings, attend, make_matcher  # noqa: E402
from rejoinder.nn.sequences import Special  # noqa: E402

SPECIAL, NOWHERE = Special(), Path()


def padded(*rows):
    width = max(map(len, rows))
    tokens = torch.tensor([row + [0] * (width - len(row)) for row in rows])
    return tokens, tokens != 0


CONTEXTS = padded([5, 10, 11, 6, 12, 5, 13], [5, 10, 11])
REPLIES = padded([14, 15], [16, 17, 18])


@pytest.mark.parametrize("kind", ["bag", "convolution", "gru", "lstm", "transformer"])
def test_padding_changes_no_state(kind):
    torch.manual_seed(0)
    encoder = make_encoder(EncoderSettings(kind=kind, embedding=8, hidden=12, heads=2, layers=2), 20, NOWHERE).eval()
    short, wide = padded([10, 11, 12]), padded([10, 11, 12], [1, 2, 3, 4, 7, 8, 9])
    states = encoder(*short)
    assert states.shape == (1, 3, encoder.size)
    torch.testing.assert_close(encoder(*wide)[:1, :3], states)


@pytest.mark.parametrize("match", ["dot", "bilinear", "poly", "late", "memory", "esim", "cross"])
def test_a_score_depends_on_its_own_pair_alone(match):
    torch.manual_seed(0)
    encoder = EncoderSettings(kind="lstm", embedding=8, hidden=8, characters=0)
    network = make_matcher(MatchSettings(encoder=encoder, match=match, codes=3), SPECIAL, 20, NOWHERE).eval()
    together = network(CONTEXTS, REPLIES)
    for row in range(2):
        alone = [tuple(part[row : row + 1] for part in side) for side in (CONTEXTS, REPLIES)]
        score = network(*alone).flatten()
        expected = together[row, row] if together.ndim == 2 else together[row]
        torch.testing.assert_close(score, expected.unsqueeze(0), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("match", ["esim", "cross"])
def test_several_replies_to_a_context_are_scored_as_one_by_one(match):
    torch.manual_seed(0)
    settings = MatchSettings(encoder=EncoderSettings(embedding=8, hidden=8), match=match)
    network = make_matcher(settings, SPECIAL, 20, NOWHERE).eval()
    replies = padded([14, 15], [16, 17, 18], [9], [10, 11, 12, 13])
    repeated = tuple(part.repeat_interleave(2, 0) for part in CONTEXTS)
    torch.testing.assert_close(network(CONTEXTS, replies), network(repeated, replies))


@pytest.mark.parametrize("match", ["esim", "cross"])
def test_scores_are_not_rounded_to_half_precision(match):
    torch.manual_seed(0)
    settings = MatchSettings(encoder=EncoderSettings(embedding=8, hidden=8), match=match)
    network = make_matcher(settings, SPECIAL, 20, NOWHERE).eval()
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        scores = network(CONTEXTS, REPLIES)
    assert scores.dtype == torch.float32
    assert (scores != scores.bfloat16()).all()


def test_esim_is_as_its_paper_has_it():
    """Chen et al. (2017), sections 3.2 and 3.3, step by step, but for scaled products; then the turns are weighed."""
    torch.manual_seed(0)
    settings = MatchSettings(encoder=EncoderSettings(embedding=8, hidden=8), match="esim")
    network = make_matcher(settings, SPECIAL, 20, NOWHERE).eval()
    turns, reply = ([5, 10, 11, 12], [6, 13, 10]), [14, 11, 15]

    def states(tokens):
        words = network.encoder.words(torch.tensor([tokens]))
        return torch.cat([words, network.encoder.states(words, torch.ones(1, len(tokens), dtype=torch.bool))], dim=-1)[
            0
        ]

    def composed(own, other):
        enhanced = network.projection(torch.cat([own, other, own - other, own * other], dim=-1)).relu()
        found = network.composition(enhanced.unsqueeze(0))[0][0]
        return torch.cat([found.mean(0), found.amax(0)])

    b = states(reply)
    compared = []
    for turn in turns:
        a = states(turn)
        e = a @ b.T / a.shape[1] ** 0.5
        compared.append((composed(a, e.softmax(1) @ b), composed(b, e.softmax(0).T @ a)))
    heard, said = (torch.stack(parts) for parts in zip(*compared, strict=True))
    asked = said.mean(0)
    weights = (heard @ network.query(asked) / asked.shape[0] ** 0.5).softmax(0)
    story = network.order(torch.cat([heard, said], dim=-1).unsqueeze(0))[0][0].amax(0)
    expected = network.verdict(torch.cat([weights @ heard, asked, said.amax(0), story]))
    torch.testing.assert_close(network(padded([*turns[0], *turns[1]]), padded(reply)), expected)


def test_nothing_said_is_no_outlier():
    torch.manual_seed(0)
    settings = MatchSettings(encoder=EncoderSettings(embedding=8, hidden=9), match="esim")
    network = make_matcher(settings, SPECIAL, 20, NOWHERE).eval()
    scores = network(padded([5, 10], []), padded([14, 15], [], [16], []))
    assert scores.max() - scores.min() < 1


@pytest.mark.parametrize(("match", "context"), [("dot", 510), ("cross", 469)])
def test_no_more_is_read_than_there_are_places_for(match, context):
    encoder = EncoderSettings(kind="transformer", embedding=8, hidden=8)
    for more in (0, 1):
        settings = MatchSettings(encoder=encoder, match=match, context=context + more)
        with pytest.raises(UserError, match="513 tokens are to be read at once") if more else nullcontext():
            make_matcher(settings, SPECIAL, 20, NOWHERE)


def test_turns_are_cut_like_replies():
    torch.manual_seed(0)
    settings = MatchSettings(encoder=EncoderSettings(embedding=8, hidden=8), match="esim", reply=3)
    network = make_matcher(settings, SPECIAL, 20, NOWHERE).eval()
    long, cut = padded([5, 10, 11, 12, 13, 6, 14]), padded([5, 10, 11, 6, 14])
    reply = padded([14, 15])
    torch.testing.assert_close(network(long, reply), network(cut, reply))
    assert not torch.allclose(network(cut, reply), network(padded([5, 10, 12, 6, 14]), reply))


def test_towers_compare_all_with_all_as_one_by_one():
    torch.manual_seed(0)
    for match in ("dot", "bilinear", "poly", "memory"):
        settings = MatchSettings(encoder=EncoderSettings(embedding=8, hidden=8), match=match, codes=3)
        network = make_matcher(settings, SPECIAL, 20, NOWHERE).eval()
        contexts, replies = network.contexts(CONTEXTS), network.replies(REPLIES)
        own = replies.expand(2, -1, -1)
        torch.testing.assert_close(network.compare(contexts, own), network.compare(contexts, replies))


def test_bilinear_is_cmr():
    torch.manual_seed(0)
    settings = MatchSettings(encoder=EncoderSettings(embedding=8, hidden=8), match="bilinear", pool="last")
    network = make_matcher(settings, SPECIAL, 20, NOWHERE).eval()
    scores = network(CONTEXTS, REPLIES)
    relation = network.relation
    network.relation = torch.nn.Parameter(torch.eye(8))
    context, reply = network.contexts(CONTEXTS), network.replies(REPLIES)
    torch.testing.assert_close(scores, context @ relation @ reply.T)


@pytest.mark.parametrize("scale", [0.0, 3.0])
def test_poly_asks_what_codes_found_as_in_the_paper(scale):
    """Humeau et al. 2020, section 4.4: codes attend to the context's states, the reply to what they found."""
    torch.manual_seed(0)
    settings = MatchSettings(encoder=EncoderSettings(kind="bag", embedding=8), match="poly", codes=3, scale=scale)
    network = make_matcher(settings, SPECIAL, 20, NOWHERE).eval().requires_grad_(False)
    torch.nn.init.normal_(network.codes, std=3)
    vectors = network.encoder.words.vectors.weight
    scores = network(CONTEXTS, REPLIES)
    for row in range(2):
        heard, said = (
            vectors[[SPECIAL.start, *side[0][row][side[1][row]].tolist(), SPECIAL.end]] for side in (CONTEXTS, REPLIES)
        )
        reply = said.mean(0)
        found = torch.stack([(code @ heard.T).softmax(0) @ heard for code in network.codes])
        reply = reply / reply.norm() if scale else reply
        final = (found @ reply * (8**0.5 if scale else 1)).softmax(0) @ found
        expected = scale * (final / final.norm()) @ reply if scale else final @ reply
        torch.testing.assert_close(scores[row, row], expected)


def test_codes_that_cancel_each_other_score_no_more_than_others():
    torch.manual_seed(0)
    settings = MatchSettings(encoder=EncoderSettings(kind="bag", embedding=384), match="poly", codes=2, scale=20.0)
    network = make_matcher(settings, SPECIAL, 20, NOWHERE).eval()
    direction = torch.nn.functional.normalize(torch.randn(384), dim=0)
    replies = torch.randn(50, 384)
    replies = torch.nn.functional.normalize(replies - (replies @ direction).unsqueeze(1) * direction, dim=1)
    for noise in (1e-2, 1e-4, 0.0):
        codes = torch.stack([direction, -direction]) + noise * torch.randn(2, 384)
        assert network.compare(codes.unsqueeze(0), replies).abs().max() < 20


def test_late_sums_the_likest_tokens_by_weight():
    torch.manual_seed(0)
    settings = MatchSettings(encoder=EncoderSettings(kind="bag", embedding=8), match="late", scale=3.0)
    network = make_matcher(settings, SPECIAL, 20, NOWHERE).eval().requires_grad_(False)
    torch.nn.init.normal_(network.importance.weight)
    vectors = torch.nn.functional.normalize(network.encoder.words.vectors.weight, dim=-1)
    for row in range(2):
        heard, said = (
            [SPECIAL.start, *side[0][row][side[1][row]].tolist(), SPECIAL.end] for side in (CONTEXTS, REPLIES)
        )
        weights = network.importance(network.encoder.words.vectors.weight[said]).flatten().softmax(0)
        best = [max(float(vectors[word] @ vectors[other]) for other in heard) for word in said]
        means = [network.encoder.words.vectors.weight[tokens].mean(0) for tokens in (heard, said)]
        whole = torch.cosine_similarity(*means, dim=0)
        expected = 3 * (sum(float(weight) * found for weight, found in zip(weights, best, strict=True)) + float(whole))
        assert float(network(CONTEXTS, REPLIES)[row, row]) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("hops", [1, 3])
def test_memory_hops_as_written_down(hops):
    torch.manual_seed(0)
    encoder = EncoderSettings(kind="bag", embedding=8)
    settings = MatchSettings(encoder=encoder, match="memory", hops=hops, scale=0, turns=4)
    network = make_matcher(settings, SPECIAL, 20, NOWHERE).eval().requires_grad_(False)
    words, times = network.encoder.words.vectors.weight.numpy(), network.times.weight.numpy()
    mean = [words[[SPECIAL.start, *turn, SPECIAL.end]].mean(0) for turn in ([5, 10, 11], [6, 12], [5, 13])]
    question, memories = mean[2], np.stack([mean[0] + times[2], mean[1] + times[1]])
    for _ in range(hops):
        shares = np.exp(memories @ question) / np.exp(memories @ question).sum()
        question = question + network.rotation.weight.numpy() @ (shares @ memories)
    replies = np.stack([words[[SPECIAL.start, *reply, SPECIAL.end]].mean(0) for reply in ([14, 15], [16, 17, 18])])
    scores = network(CONTEXTS, REPLIES).numpy()
    assert scores[0] == pytest.approx(replies @ question, rel=1e-4)
    assert scores[1] == pytest.approx(replies @ mean[0], rel=1e-4)  # nothing was said before it


def test_few_replies_are_held_at_once(monkeypatch):
    torch.manual_seed(0)
    settings = RankingSettings(MatchSettings(encoder=EncoderSettings(embedding=8, hidden=8), match="late"), SPECIAL, 20)
    lengths, options = [1, 4, 2, 6, 3, 5], [0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 5, 1]
    arrays = {
        "tokens": np.random.default_rng(0).integers(7, 20, sum(lengths)),
        "offsets": np.cumsum([0, *lengths]),
        "dev_turns": np.array([1, 2, 3, 4]),
        "dev_speakers": np.zeros(4, int),
        "dev_bounds": np.arange(5),
        "dev_correct": np.array([0, 1, 3, 5]),
        "dev_correct_bounds": np.arange(5),
        "dev_options": np.array(options),
        "dev_option_bounds": np.array([0, 3, 6, 9, 12]),
    }
    dialogues = Options(arrays, "dev", settings, torch.device("cpu"))
    network = make_matcher(settings.network, SPECIAL, 20, NOWHERE)
    at_once = dialogues.scores(network)
    assert len(set(at_once.tolist())) == 12
    monkeypatch.setattr("rejoinder.nn.dialogues._ROOM", 4 * network.reply_size)
    torch.testing.assert_close(dialogues.scores(network), at_once)
    assert list(dialogues._distinct[0].stretches(4)) == [(0, 2), (2, 4)]
    assert list(dialogues._distinct[0].stretches(1)) == [(0, 1), (1, 2), (2, 3), (3, 4)]


def test_unknown_words_differ_by_their_characters():
    torch.manual_seed(0)
    encoder = make_encoder(EncoderSettings(kind="bag", embedding=4, characters=6), 8, NOWHERE).eval()
    encoder.words.letters = torch.zeros(12, 16, dtype=torch.uint8)
    encoder.words.letters[9, :3] = torch.tensor([97, 98, 99])
    encoder.words.letters[10, :3] = torch.tensor([120, 121, 122])
    first, second = encoder(torch.tensor([[9], [10]]), torch.ones(2, 1, dtype=torch.bool))
    assert torch.equal(first[0, :4], second[0, :4])
    assert not torch.equal(first[0, 4:], second[0, 4:])


def test_pooling():
    nothing = torch.zeros(1, 3, dtype=torch.bool)
    assert not any(pool(torch.ones(1, 3, 2), nothing, how).any() for how in ("mean", "max"))
    states = torch.tensor([[[1.0], [3.0], [100.0]]])
    mask = torch.tensor([[True, True, False]])
    assert [pool(states, mask, how).item() for how in ("mean", "max", "first", "last")] == [2, 3, 1, 3]


def test_attention_ignores_padding():
    states = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [9.0, 9.0]]])
    found = attend(torch.tensor([[0.0, 0.0]]), states, torch.tensor([[True, True, False]]))
    assert found.tolist() == [[[0.5, 0.5]]]
