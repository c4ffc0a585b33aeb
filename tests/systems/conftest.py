import pytest
from tests.systems.small_networks import cuts

from rejoinder.tasks.build import build_task


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tasks")
    made = {}
    for split, (count, seed) in {"train": (200, 1), "dev": (40, 2)}.items():
        own = list(cuts(count, seed))
        made[split] = build_task(own, [cut.replies for cut in own], 5, seed=seed)
        made[split].save(folder / split)
    return {split: (folder / split, task) for split, task in made.items()}
