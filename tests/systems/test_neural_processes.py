"""Networks that several processes train together, launched as a person would."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

pytest.importorskip("torch")

from tests.systems.small_networks import TRAINING, recipe, trained

from rejoinder.errors import UserError
from rejoinder.systems.system import Prepared


def launched(folders, *start):
    """Train folders by two processes that are started so; standalone, for other tests may hold the usual port."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *start, *folders]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | {"CUDA_VISIBLE_DEVICES": ""})


def test_several_processes_train_stage_after_stage(tasks, tmp_path):
    pytest.importorskip("accelerate")
    training = TRAINING | {"epochs": 3}
    stages = [
        recipe("dot").settings["stages"][0] | {"training": training | {"precision": precision}}
        for precision in ("full", "bf16")
    ]
    made = msgspec.structs.replace(recipe("dot"), settings={"stages": stages})
    with pytest.raises(Prepared) as prepared:
        trained(tasks, made, tmp_path / "model", work=tmp_path / "work", prepare_only=True)
    folders = str(prepared.value).split()
    found = launched(folders, "-m", "rejoinder.training")
    assert found.returncode == 0, found.stderr
    batches = math.ceil(tasks["train"][1].examples.height / TRAINING["batch"])
    for folder in folders:
        steps = [check["step"] for check in json.loads((Path(folder) / "history.json").read_text())]
        assert steps == [batches // 2 * (epoch + 1) for epoch in range(3)]
    trained(tasks, made, tmp_path / "model", work=tmp_path / "work")
    assert (tmp_path / "model" / "weights.safetensors").is_file()


INTERRUPTED = """
import sys
from rejoinder import training

check = training._Loop._check

def check_once(loop, *given):
    if loop.history:
        raise KeyboardInterrupt
    check(loop, *given)

training._Loop._check = check_once
training._main(sys.argv[1:])
"""


def test_several_processes_go_on_as_if_nothing_had_been(tasks, tmp_path):
    pytest.importorskip("accelerate")
    from rejoinder.prepared import WEIGHTS
    from rejoinder.training import train

    stage = recipe("dot").settings["stages"][0] | {"negatives": 3, "training": TRAINING | {"epochs": 2}}
    made = msgspec.structs.replace(recipe("dot"), settings={"stages": [stage]})
    folders = []
    for name in ("whole", "interrupted"):
        with pytest.raises(Prepared) as prepared:
            trained(tasks, made, tmp_path / "model", work=tmp_path / name, prepare_only=True)
        folders.append(Path(str(prepared.value)))
    whole, interrupted = folders
    found = launched([whole], "-m", "rejoinder.training")
    assert found.returncode == 0, found.stderr
    (tmp_path / "interrupted.py").write_text(INTERRUPTED)
    assert launched([interrupted], tmp_path / "interrupted.py").returncode != 0
    with pytest.raises(UserError, match="begun by 2 at once, and 1 cannot go on with it"):
        train(interrupted)
    found = launched([interrupted], "-m", "rejoinder.training")
    assert found.returncode == 0, found.stderr
    assert (whole / WEIGHTS).read_bytes() == (interrupted / WEIGHTS).read_bytes()
