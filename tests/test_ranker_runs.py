"""The runs that the benchmark of rankers compares, made of small networks."""

import json
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from benchmarks import ranker_runs

pytest.importorskip("torch")

from tests.systems.small_networks import ENCODER, TRAINING, cuts

from rejoinder.files import BadInputError
from rejoinder.folders import alone_in
from rejoinder.model import load_model
from rejoinder.recipe import names
from rejoinder.tasks.build import build_task


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for split, seed in (("turns/train", 1), ("subtask_1/train", 2), ("subtask_1/dev", 3), ("subtask_1/test", 4)):
        own = list(cuts(60, seed))
        build_task(own, [cut.replies for cut in own], 5, seed=seed).save(tmp_path / "ubuntu" / split)
    monkeypatch.setattr(ranker_runs, "FOLDER", tmp_path)
    return tmp_path


def test_a_network_learns_once_from_turns_for_all_that_is_made_of_it(folder):
    stages = [{"network": {"encoder": ENCODER}, "training": TRAINING}]
    network, stack = folder / "small.yaml", folder / "stack.yaml"
    network.write_text(json.dumps({"about": "-", "system": "neural-ranker", "settings": {"stages": stages}}))
    members = ["bm25", str(network)]
    stack.write_text(json.dumps({"about": "-", "system": "ensemble", "settings": {"members": members}}))
    ranker_runs.answer("ubuntu", 1, str(stack))
    models = folder / "models"
    assert sorted(path.name for path in models.iterdir()) == ["small", "ubuntu-1-stack"]
    assert load_model(models / "small")[0].train.name.endswith("turns/train")
    card, _ = load_model(models / "ubuntu-1-stack")
    assert card.train.name.endswith("subtask_1/train")
    assert card.recipe.settings["members"] == ["bm25", str(models / "small")]
    before = (models / "ubuntu-1-stack" / "model.yaml").stat().st_mtime_ns
    ranker_runs._model("ubuntu", 1, str(stack))
    assert (models / "ubuntu-1-stack" / "model.yaml").stat().st_mtime_ns == before
    small = models / "small" / "model.yaml"
    small.write_text(small.read_text() + "\n\n")  # as if it had been trained anew
    ranker_runs._model("ubuntu", 1, str(stack))
    assert (models / "ubuntu-1-stack" / "parts" / "1" / "model.yaml").read_text().endswith("\n\n")
    shutil.rmtree(folder / "ubuntu" / "turns")
    ranker_runs.answer("ubuntu", 1, str(network))  # it is there
    runs = folder / "runs" / "ubuntu" / "subtask_1"
    assert sorted(path.name for path in runs.iterdir()) == ["small.json", "stack.json"]
    assert len(json.loads((runs / "stack.json").read_text())) == 60
    changed = {"about": "-", "system": "neural-ranker", "settings": {"stages": stages, "dev_examples": 9}}
    network.write_text(json.dumps(changed))
    with pytest.raises(BadInputError, match="turns/train"):  # the recipe is another: it would be trained anew
        ranker_runs._model("ubuntu", 1, str(network))
    shutil.rmtree(models)
    ranker_runs.answer("ubuntu", 1, str(stack))  # so is its run


def test_what_is_taught_by_another_or_learned_from_other_data_is_trained_anew(folder):
    stages = [{"network": {"encoder": ENCODER}, "training": TRAINING, "taught": 0.5}]
    teacher, student = folder / "teacher.yaml", folder / "student.yaml"
    plain = {"about": "-", "system": "neural-ranker", "settings": {"stages": [stages[0] | {"taught": 0}]}}
    teacher.write_text(json.dumps(plain))
    settings = {"stages": stages, "teacher": str(teacher)}
    student.write_text(json.dumps({"about": "-", "system": "neural-ranker", "settings": settings}))

    def made() -> int:
        model = ranker_runs._model("ubuntu", 1, str(student))
        return (model / "model.yaml").stat().st_mtime_ns

    first = made()
    assert made() == first
    plain["settings"]["dev_examples"] = 9
    teacher.write_text(json.dumps(plain))
    second = made()
    assert second > first
    own = list(cuts(50, 9))
    build_task(own, [cut.replies for cut in own], 5, seed=9).save(folder / "ubuntu" / "turns" / "train")
    assert made() > second


def test_what_another_process_makes_is_waited_for(folder, monkeypatch, capsys):
    monkeypatch.setattr(ranker_runs, "WORDS", {("ubuntu", 1): ("bm25", "tfidf", "words")})
    monkeypatch.setattr(ranker_runs, "NETWORKS", {})
    runs, models = folder / "runs" / "ubuntu" / "subtask_1", folder / "models"
    with alone_in(folder / "held" / "ubuntu-1-bm25", runs), alone_in(models / ".ubuntu-1-words.part", runs):
        held = [ranker_runs._tried("ubuntu", 1, name) for name in ("bm25", "tfidf", "words")]
    assert held == ["held", "made", "held"]
    assert [path.name for path in runs.iterdir()] == ["tfidf.json"]
    paused = []
    with ExitStack() as another:
        another.enter_context(alone_in(folder / "held" / "ubuntu-1-bm25", runs))
        monkeypatch.setattr(ranker_runs.time, "sleep", lambda seconds: [paused.append(seconds), another.close()])
        with pytest.raises(SystemExit) as ended:
            ranker_runs.main(["ubuntu/1/bm25"])
    assert (ended.value.code, paused) == (0, [2])
    assert sorted(path.name for path in runs.iterdir()) == ["bm25.json", "tfidf.json"]
    capsys.readouterr()
    with pytest.raises(SystemExit):
        ranker_runs.main(["ubuntu/1/tfidf", "ubuntu/1/bm25"])
    assert capsys.readouterr().out.split() == ["ubuntu/1/tfidf", "ubuntu/1/bm25"]  # as they were asked for


def test_every_run_is_of_a_recipe():
    asked = (*ranker_runs.WORDS.values(), *ranker_runs.NETWORKS.values())
    assert {name for names_ in asked for name in names_} <= set(names())


def test_a_run_that_nobody_knows_is_named():
    command = [sys.executable, "-m", "benchmarks.ranker_runs", "ubuntu/1/bm26"]
    done = subprocess.run(command, cwd=Path(__file__).parent.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "no run called ubuntu/1/bm26; expected such as ubuntu/1/esim\n"
