import json
import shutil

import msgspec
import numpy as np
import pytest

pytest.importorskip("torch")
from tests.systems.small_networks import TRAINING, recipe

from rejoinder.errors import UserError
from rejoinder.training import train


@pytest.fixture
def prepared(cli, save, tasks, tmp_path):
    """Prepare a ranker by the command line; return the folder, and a function that goes on with it."""
    made = save("mine.yaml", msgspec.to_builtins(recipe("dot", training=TRAINING | {"epochs": 2})))
    asked = ("train", made, "--task", tasks["train"][0], "--dev", tasks["dev"][0])
    asked += ("--out", tmp_path / "model", "--work", tmp_path / "wk")
    code, out, _ = cli(*asked, "--prepare-only")
    assert (code, f"rejoinder.training {tmp_path / 'wk' / 'stage_1'}" in out) == (0, True)
    return tmp_path / "wk", lambda: cli(*asked)


@pytest.mark.parametrize("name", ["tokens", "offsets", "train_options", "train_option_bounds", "dev_options"])
def test_prepared_arrays_that_are_short_or_missing_are_not_trained_on(prepared, monkeypatch, name):
    work, go_on = prepared
    monkeypatch.chdir(work / "stage_1")
    path = work / "data" / f"{name}.npy"
    np.save(path, np.load(path)[:-2])
    for problem in ("not what was prepared", "is missing"):
        with pytest.raises(UserError, match=rf"{name}\.npy: {problem}; copy {work / 'data'} here again, or remove it"):
            train(work / "stage_1")
        code, _, err = go_on()
        assert (code, err.count("\n"), f"{name}.npy: {problem}" in err) == (2, 1, True)
        path.unlink(missing_ok=True)
    shutil.rmtree(work / "data")  # as it is told
    assert go_on()[0] == 0


def test_a_model_can_do_without_its_history(prepared, tmp_path):
    work, go_on = prepared
    train(work / "stage_1")
    history = work / "stage_1" / "history.json"
    whole = history.read_text()
    assert len(json.loads(whole)) == 2
    for content, drawn in ((whole[:-9], False), (None, False), (whole, True)):
        history.unlink() if content is None else history.write_text(content)
        code, out, err = go_on()
        assert (code, err) == (0, "")
        assert ("the model is whole, but has no curve" in out, "how it learned" in out) == (not drawn, drawn)
        assert (tmp_path / "model" / "weights.safetensors").is_file()
