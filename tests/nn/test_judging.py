import numpy as np
import pytest

torch = pytest.importorskip("torch")

from rejoinder.measures import judgement as measures  # noqa: E402
from rejoinder.nn.judging import Asked, DialogueVectors, JudgeLearner, JudgeNetwork, Reader, predict, question_loss  # noqa: E402
from rejoinder.prepared import save_arrays  # noqa: E402

ALLOWED = [[True, True, False], [False, True, True]]
QUESTIONS = [Asked(5, ordered=True), Asked(3, ordered=False, allowed=ALLOWED)]
READERS = {
    "baseline": Reader(inputs=4, cell="lstm", layers=3, hidden=6, halves=True, pooling="sum"),
    "marked": Reader(inputs=4, markers=2, width=5, hidden=6),
}


@pytest.fixture(params=READERS.values(), ids=READERS)
def network(request):
    torch.manual_seed(0)
    return JudgeNetwork(request.param, QUESTIONS).eval()


def dialogues(sizes, seed=0):
    rng = np.random.default_rng(seed)
    role = np.concatenate([np.arange(size) % 2 for size in sizes])
    return DialogueVectors(rng.standard_normal((sum(sizes), 4)).astype(np.float32), role, np.array(sizes))


def part(whole, number):
    rows = slice(whole.starts[number], whole.starts[number] + whole.sizes[number])
    return DialogueVectors(whole.vectors[rows], whole.role[rows], whole.sizes[[number]])


def test_a_dialogue_is_judged_alike_alone_and_among_longer_ones(network):
    whole = dialogues([2, 7, 1, 12])
    together = predict(network, whole)
    for number in range(4):
        quality, nuggets = predict(network, part(whole, number))
        assert quality[0] == pytest.approx(together[0][number], abs=1e-6)
        start = whole.starts[number]
        assert nuggets == pytest.approx(together[1][start : start + len(nuggets)], abs=1e-6)


def test_rows_are_distributions_over_the_labels_that_the_role_can_have(network):
    whole = dialogues([3, 5])
    quality, nuggets = predict(network, whole)
    assert quality.shape == (2, 5)
    assert quality.sum(1) == pytest.approx(np.ones(2))
    assert nuggets.sum(1) == pytest.approx(np.ones(8))
    assert not nuggets[~np.array(ALLOWED)[whole.role]].any()


def test_it_matters_who_says_what_and_when(network):
    whole = dialogues([4])
    plain = predict(network, whole)[0]
    swapped = DialogueVectors(whole.vectors, 1 - whole.role, whole.sizes)
    turned = DialogueVectors(whole.vectors[::-1].copy(), whole.role, whole.sizes)
    assert np.abs(predict(network, swapped)[0] - plain).max() > 1e-4
    assert np.abs(predict(network, turned)[0] - plain).max() > 1e-4


def test_the_loss_of_turns_is_their_measure_by_role_and_leaves_out_rows_without_votes():
    rng = np.random.default_rng(0)
    role = np.array([[0, 1, 0, 0]])
    truth = np.array([[[0.5, 0.5, 0], [0, 1, 0], [1, 0, 0], [0, 0, 0]]])
    logits = torch.tensor(rng.standard_normal((1, 4, 3))).masked_fill(~torch.tensor(ALLOWED)[role], -1e4)
    found = question_loss(QUESTIONS[1], logits, torch.tensor(truth), torch.tensor(role), "root").item()
    each = measures.rnss(logits.softmax(-1).numpy()[0, :3], truth[0, :3])
    assert found == pytest.approx(((each[0] + each[2]) / 2 + each[1]) / 2)


def test_the_soft_cross_entropy_is_that_of_torch():
    logits, votes = torch.randn(6, 5), torch.softmax(torch.randn(6, 5), -1)
    found = question_loss(QUESTIONS[0], logits, votes, torch.zeros(6, 1), "votes")
    assert found.item() == pytest.approx(torch.nn.functional.cross_entropy(logits, votes).item())


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
@pytest.mark.parametrize("loss", ["votes", "measures"])
def test_it_learns_who_is_content_from_the_last_turn(tmp_path, reader, loss):
    sizes = np.random.default_rng(1).integers(2, 6, 300)
    whole = dialogues(sizes.tolist(), seed=2)
    content = whole.vectors[whole.starts + sizes - 1, 0] > 0
    truths = [
        np.where(content[:, None], [0.8, 0.2, 0, 0, 0], [0, 0, 0, 0.2, 0.8]),
        np.where(whole.role[:, None] == 0, [1.0, 0, 0], [0, 0.5, 0.5]),
    ]
    arrays = {"vectors": whole.vectors, "role": whole.role, "sizes": sizes, "dev": np.arange(300) >= 250}
    save_arrays(tmp_path, arrays | {f"truth_{place}": truth for place, truth in enumerate(truths)})
    settings = {
        "reader": vars(reader) | {"loss": loss, "dropout": 0.0},
        "questions": [vars(asked) for asked in QUESTIONS],
        "batch": 50,
        "member": 0,
    }
    learner = JudgeLearner(settings, tmp_path, 0, torch.device("cpu"))
    before = learner.evaluate()
    optimizer = torch.optim.Adam(learner.network.parameters(), lr=1e-2)
    for epoch in range(12):
        for batch in learner.batches(epoch):
            optimizer.zero_grad()
            learner.loss(batch).backward()
            optimizer.step()
    learner.network.eval()
    assert before < -0.2
    assert learner.evaluate() > before / 2


def test_a_batch_that_nobody_voted_on_teaches_nothing():
    role = torch.tensor([[0, 1]])
    for asked, shape in zip(QUESTIONS, ((1, 5), (1, 2, 3)), strict=True):
        logits = torch.ones(shape, requires_grad=True)
        loss = question_loss(asked, logits, torch.zeros(shape), role, "measures")
        loss.backward()
        assert (loss.item(), logits.grad.abs().sum().item()) == (0, 0)
