"""One sum of squares for each row: with rows of one number this is torch's Adagrad."""

import pytest

torch = pytest.importorskip("torch")

from rejoinder.errors import UserError  # noqa: E402
from rejoinder.nn.row_adagrad import RowAdagrad  # noqa: E402


def _train(optimizer, width, target):
    torch.manual_seed(0)
    table = torch.nn.EmbeddingBag(5, width, mode="sum", sparse=optimizer is RowAdagrad)
    stepper = optimizer(table.parameters(), lr=0.3)
    for rows in ([0, 1, 1], [1, 3], [3, 3, 0]):
        stepper.zero_grad()
        (table(torch.tensor(rows), torch.tensor([0])) - target).square().sum().backward()
        stepper.step()
    return table.weight.detach()


def test_rows_of_one_number_are_plain_adagrad():
    torch.testing.assert_close(_train(RowAdagrad, 1, 2.0), _train(torch.optim.Adagrad, 1, 2.0))


def test_a_row_keeps_the_direction_of_its_gradient():
    table = torch.nn.Parameter(torch.zeros(3, 2))
    table.grad = torch.sparse_coo_tensor([[1, 1]], [[1.0, 4.0], [2.0, 0.0]], (3, 2), check_invariants=True)
    RowAdagrad([table], 0.5).step()
    root = (25 / 2) ** 0.5  # of the mean of 3 squared and 4 squared
    torch.testing.assert_close(table.detach(), torch.tensor([[0, 0], [-0.5 * 3 / root, -0.5 * 4 / root], [0, 0]]))


def test_no_row_becomes_longer_than_it_may():
    table = torch.nn.Parameter(torch.tensor([[3.0, 4.0], [0.0, 0.0], [0.3, 0.4]]))
    table.grad = torch.sparse_coo_tensor([[1, 2]], [[-3.0, -4.0], [1.0, 0.0]], (3, 2), check_invariants=True)
    RowAdagrad([table], 2.0, longest=1.0).step()
    torch.testing.assert_close(table[0].detach(), torch.tensor([3.0, 4.0]))  # nothing has changed it
    torch.testing.assert_close(table[1].detach(), torch.tensor([0.6, 0.8]), rtol=0, atol=1e-6)
    assert table[2].norm().item() == pytest.approx(1)


def test_it_is_for_tables_alone():
    layer = torch.nn.Linear(2, 1)
    layer(torch.ones(1, 2)).sum().backward()
    with pytest.raises(UserError, match="adagrad is for tables of vectors alone"):
        RowAdagrad(layer.parameters(), 0.1).step()
