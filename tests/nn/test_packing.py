"""Packed sequences, and those read in groups, give the states of padded ones."""

from itertools import pairwise
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from rejoinder.nn.encoders import EncoderSettings, Pretrained  # noqa: E402
from rejoinder.nn.matching import MatchSettings, Towers  # noqa: E402
from rejoinder.nn.packing import EndToEnd, Halves, InGroups, encode_packed  # noqa: E402
from rejoinder.nn.sequences import Special  # noqa: E402

LENGTHS = (3, 9, 1, 6)


@pytest.fixture(params=["BertConfig", "MPNetConfig"])
def encoder(tmp_path: Any, request: Any) -> Any:
    config = getattr(transformers, request.param)(
        vocab_size=50,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=96,
        max_position_embeddings=16,
        initializer_range=0.2,  # so that all weights count for something
    )
    config.save_pretrained(tmp_path)
    return with_weights(Pretrained(EncoderSettings(kind="pretrained"), tmp_path)).eval()


def with_weights(encoder: Any) -> Any:
    """Draw the weights, which are otherwise read from a file."""
    torch.manual_seed(1)
    encoder.model.init_weights()
    return encoder


def padded_batch(lengths: tuple[int, ...], seed: int) -> Any:
    mask = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)
    return torch.randint(6, 50, mask.shape, generator=torch.Generator().manual_seed(seed)) * mask, mask


@pytest.fixture
def padded() -> Any:
    tokens, mask = padded_batch(LENGTHS, 2)
    return tokens, mask, (torch.arange(max(LENGTHS)) > 2).long() * mask


def attend_one_by_one(query: Any, key: Any, value: Any, bounds: Any, _: Any, longest: int, *more: Any) -> Any:
    """Attend within each sequence, one after the other, as the kernel of GPUs does at once."""
    assert longest >= bounds.diff().max()
    assert more == (longest, 0.0, False, False)  # no dropout, not causal
    parts = []
    for first, end in pairwise(bounds):
        weights = torch.einsum("qhd,khd->hqk", query[first:end], key[first:end]) / query.shape[2] ** 0.5
        parts.append(torch.einsum("hqk,khd->qhd", weights.softmax(-1), value[first:end]))
    return (torch.cat(parts),)


def wished(states: Any) -> Any:
    """Wish for some direction of each state; of their squares, which the last norm keeps, no gradient would be left."""
    return (states.float() * torch.randn(states.shape, generator=torch.Generator().manual_seed(3)).to(states)).sum()


def assert_near(found: Any, expected: Any, least: float) -> None:
    """Compare gradients by name, each as a whole."""
    assert set(found) == set(expected)
    for name, gradient in expected.items():
        assert (found[name] - gradient).norm() <= least * gradient.norm() + 1e-4, name


def gradients_of(encoder: Any) -> Any:
    return {name: own.grad.clone() for name, own in encoder.named_parameters() if own.grad is not None}


@pytest.fixture(params=[EndToEnd, InGroups])
def cells(request: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Read as on a GPU, or as on a CPU, two sequences at once."""
    monkeypatch.setattr(torch.ops.aten, "_flash_attention_forward", attend_one_by_one)
    monkeypatch.setattr("rejoinder.nn.packing._TOGETHER", 2)
    monkeypatch.setattr("rejoinder.nn.packing.InGroups", request.param)
    return request.param


@pytest.mark.parametrize("with_parts", [True, False])
def test_packed_states_and_gradients_are_those_of_padded_sequences(
    encoder: Any, padded: Any, with_parts: bool, cells: Any
) -> None:
    tokens, mask, parts = padded
    parts = parts if with_parts else None
    states, gradients = [], []
    for read in (encoder._read, lambda *given: encode_packed(encoder.model, *given)):
        encoder.zero_grad()
        found = read(tokens, mask, parts)
        wished(found[mask]).backward()
        states.append(found[mask].detach())
        gradients.append(gradients_of(encoder))
    torch.testing.assert_close(*states, rtol=1e-4, atol=1e-5)
    assert_near(gradients[1], gradients[0], least=1e-4)
    if cells is EndToEnd:
        assert not found[~mask].any()  # it was not read


def test_states_read_on_a_cpu_are_those_that_learn(encoder: Any, padded: Any) -> None:
    learning = encode_packed(encoder.model, *padded).detach()
    with torch.no_grad():
        reading = encode_packed(encoder.model, *padded)
        with torch.autocast("cpu", torch.bfloat16):
            half = encode_packed(encoder.model, *padded)
    torch.testing.assert_close(reading, learning, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(half.float(), learning, rtol=0.05, atol=0.1)


def test_padding_is_read_only_within_a_group(monkeypatch: pytest.MonkeyPatch) -> None:
    _, mask = padded_batch((3, 9, 1, 6, 0), 2)
    assert len(EndToEnd(mask).read) == 3 + 9 + 1 + 6
    monkeypatch.setattr("rejoinder.nn.packing._TOGETHER", 2)
    assert len(InGroups(mask).read) == 2 * 1 + 2 * 6 + 9


def test_sequences_without_a_token_leave_the_others_as_they_are(encoder: Any) -> None:
    tokens, mask = padded_batch((4, 0, 2), 5)
    with torch.no_grad():
        found, alone = encoder(tokens, mask), encoder(tokens[[0, 2]], mask[[0, 2]])
    assert found.isfinite().all()
    torch.testing.assert_close(found[[0, 2]][mask[[0, 2]]], alone[mask[[0, 2]]], rtol=1e-4, atol=1e-5)


def test_short_and_long_are_read_apart_as_together_by_other_encoders(tmp_path: Any) -> None:
    config = transformers.DistilBertConfig(vocab_size=50, dim=16, n_layers=1, n_heads=2, hidden_dim=32)
    config.save_pretrained(tmp_path)
    encoder = with_weights(Pretrained(EncoderSettings(kind="pretrained"), tmp_path)).eval()
    tokens, mask = padded_batch((2, 9, 1, 3, 2, 1, 2, 2, 1), 3)
    assert mask.float().mean() < 0.6
    with torch.no_grad():
        torch.testing.assert_close(encoder(tokens, mask)[mask], encoder._read(tokens, mask, None)[mask])


@pytest.mark.parametrize("match", ["dot", "poly", "late"])
def test_contexts_and_replies_packed_together_score_as_apart(
    encoder: Any, match: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    special = Special(pad=0, start=2, end=3, speakers=(4, 5))  # 1 is what MPNet counts as padding
    settings = MatchSettings(encoder=EncoderSettings(kind="pretrained"), match=match, codes=3)
    network = Towers(settings, special, 50, tmp_path).eval()
    with_weights(network.encoder)
    context, reply = padded_batch((3, 7, 2), 1), padded_batch((4, 1, 4, 2), 2)
    with torch.no_grad():
        together = network(context, reply)
        monkeypatch.setattr(Pretrained, "packs_now", lambda *_: False)
        apart = network(context, reply)
    assert apart.shape == (3, 4)
    torch.testing.assert_close(together, apart, rtol=1e-4, atol=1e-4)


def test_weights_and_gradients_cast_at_once_are_those_cast_one_by_one() -> None:
    weights = [torch.randn(size, requires_grad=True) for size in ((3, 4), (5,), (2,))]
    halves = Halves.apply(torch.bfloat16, *weights)
    for weight, half in zip(weights, halves, strict=True):
        assert torch.equal(half, weight.to(torch.bfloat16))
    (halves[0].sum() * 3 + halves[1].square().sum()).backward()
    assert torch.equal(weights[0].grad, torch.full((3, 4), 3.0))
    assert torch.equal(weights[1].grad, (2 * halves[1]).float())
    assert weights[2].grad is None  # not used: weight decay shall leave it alone


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_packed_states_and_gradients_on_a_gpu(encoder: Any, padded: Any) -> None:
    """Packed in half precision against padded in full."""
    encoder = encoder.cuda()
    tokens, mask, parts = (part.cuda() for part in padded)
    found, gradients = [], []
    for half in (True, False):
        encoder.zero_grad()
        with torch.autocast("cuda", torch.bfloat16, enabled=half):
            states = encoder(tokens, mask, parts)
        wished(states[mask].cpu()).backward()
        found.append(states[mask].detach().float())
        gradients.append(torch.cat([own.flatten() for own in gradients_of(encoder).values()]))
    for first, second in (found, gradients):
        assert (first - second).norm() < 0.05 * second.norm()


def test_dropout_is_the_recipes_whatever_an_encoder_calls_it(tmp_path: Any) -> None:
    config = transformers.DistilBertConfig(vocab_size=50, dim=16, n_layers=1, n_heads=2, hidden_dim=32)
    assert config.dropout > 0
    config.save_pretrained(tmp_path)
    settings = EncoderSettings(kind="pretrained", path=str(tmp_path), dropout=0.0)
    encoder = with_weights(Pretrained(settings, tmp_path)).train()
    tokens = torch.arange(1, 9).view(2, 4)
    mask = torch.ones_like(tokens, dtype=torch.bool)
    assert torch.equal(encoder(tokens, mask), encoder(tokens, mask))
