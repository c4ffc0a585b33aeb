import numpy as np
import pytest

torch = pytest.importorskip("torch")

from rejoinder.measures import judgement  # noqa: E402
from rejoinder.nn import distances  # noqa: E402

NAMES = ["nmd", "rsnod", "jsd", "rnss"]


@pytest.fixture
def pair():
    """Predictions without empty bins, and votes of 19 annotators, many of whose bins are empty."""
    rng = np.random.default_rng(0)
    votes = rng.multinomial(19, rng.dirichlet(np.full(5, 0.4), size=50)) / 19
    return rng.dirichlet(np.ones(5), size=50), votes


@pytest.mark.parametrize("name", NAMES)
def test_losses_are_the_measures(pair, name):
    p, truth = pair
    found = getattr(distances, name)(torch.tensor(p), torch.tensor(truth)).numpy()
    assert found == pytest.approx(getattr(judgement, name)(p, truth), abs=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_empty_bins_of_both_are_measured_too(name):
    p = np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0], [0.2, 0.3, 0.5]])
    truth = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.6, 0.4]])
    found = getattr(distances, name)(torch.tensor(p), torch.tensor(truth)).numpy()
    assert found == pytest.approx(getattr(judgement, name)(p, truth), abs=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_descending_a_loss_finds_the_votes(pair, name):
    truth = torch.tensor(pair[1][:8])
    logits = torch.zeros_like(truth, requires_grad=True)
    optimizer = torch.optim.Adam([logits], lr=0.1)
    for _ in range(300):
        optimizer.zero_grad()
        getattr(distances, name)(logits.softmax(-1), truth).sum().backward()
        assert logits.grad.isfinite().all()
        optimizer.step()
    assert (logits.softmax(-1) - truth).abs().max().item() < 0.05
