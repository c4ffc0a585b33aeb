import json
import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from rejoinder import training  # noqa: E402
from rejoinder.errors import UserError  # noqa: E402
from rejoinder.lock import held  # noqa: E402
from rejoinder.nn import encoders  # noqa: E402
from rejoinder.prepared import (  # noqa: E402
    CHECKPOINT,
    HISTORY,
    LEARNER,
    WEIGHTS,
    Training,
    load_arrays,
    load_weights,
    prepare,
)
from rejoinder.training import epoch_sizes, rate_factor, step_places, train  # noqa: E402


class Line:
    """Learns y = 3x - 1, with dropout so that the random state matters."""

    checked = 0
    stop_after = None

    def __init__(self, settings, folder, seed, device):
        self.seed, self.batch = seed, settings["batch"]
        self.network = nn.Sequential(nn.Linear(1, 16), nn.Dropout(0.1), nn.ReLU(), nn.Linear(16, 1))
        self.x, self.y = (torch.tensor(load_arrays(folder)[name]).unsqueeze(1) for name in "xy")

    def batches(self, epoch):
        order = np.random.default_rng([self.seed, epoch]).permutation(len(self.x))
        return np.array_split(order, len(order) // self.batch)

    def loss(self, batch):
        return nn.functional.mse_loss(self.network(self.x[batch]), self.y[batch])

    def evaluate(self):
        if Line.stop_after is not None and Line.checked == Line.stop_after:
            raise KeyboardInterrupt
        Line.checked += 1
        return -nn.functional.mse_loss(self.network(self.x), self.y).item()


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.setattr(Line, "checked", 0)
    monkeypatch.setattr(Line, "stop_after", None)
    return lambda name, settings: _prepared(tmp_path / name, settings)


def _prepared(folder, settings):
    x = np.linspace(-1, 1, 64, dtype=np.float32)
    prepare(folder, f"{__name__}:Line", {"batch": 8}, settings, 5, {"x": x, "y": 3 * x - 1})
    return folder


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    monkeypatch.setitem(sys.modules, __name__, sys.modules.get(__name__) or type(sys)(__name__))
    monkeypatch.setattr(sys.modules[__name__], "Line", Line, raising=False)


def weights(folder):
    return (folder / WEIGHTS).read_bytes()


SETTINGS = Training(epochs=6, batch=8, rate=1e-2, checks=2, patience=0)


def test_it_learns_and_records_the_curve(work):
    folder = work("a", SETTINGS)
    train(folder)
    history = json.loads((folder / HISTORY).read_text())
    assert [entry["epoch"] for entry in history] == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6]
    assert history[-1]["loss"] < history[0]["loss"] / 10
    network = nn.Sequential(nn.Linear(1, 16), nn.Dropout(0.1), nn.ReLU(), nn.Linear(16, 1)).eval()
    load_weights(network, folder / WEIGHTS)
    assert network(torch.tensor([[0.5]])).item() == pytest.approx(0.5, abs=0.5)


def test_the_same_seed_gives_the_same_weights(work):
    first, second = work("a", SETTINGS), work("b", SETTINGS)
    train(first)
    train(second)
    assert weights(first) == weights(second)


@pytest.mark.parametrize("stop_after", [1, 4, 7])
def test_an_interrupted_training_goes_on_as_if_nothing_had_been(work, stop_after):
    whole, broken = work("whole", SETTINGS), work("broken", SETTINGS)
    train(whole)
    Line.checked, Line.stop_after = 0, stop_after
    with pytest.raises(KeyboardInterrupt):
        train(broken)
    assert not (broken / WEIGHTS).exists()
    Line.stop_after = None
    train(broken)
    assert weights(broken) == weights(whole)
    assert [entry["loss"] for entry in json.loads((broken / HISTORY).read_text())] == [
        entry["loss"] for entry in json.loads((whole / HISTORY).read_text())
    ]


@pytest.mark.parametrize("stop_after", [1, 2, 3, 9, 22])
@pytest.mark.parametrize("accumulate", [1, 3])
def test_a_training_that_was_killed_between_checks_goes_on_from_there(work, monkeypatch, stop_after, accumulate):
    monkeypatch.setattr(training, "_UNSAVED", 0)
    monkeypatch.setattr(training, "_WORTH", 0)
    settings = replace(SETTINGS, checks=1, epochs=3, accumulate=accumulate)
    whole, broken = work("whole", settings), work("broken", settings)
    train(whole)
    seen = []

    def stopping(self, batch, learn=Line.loss):
        seen.append(batch.tolist())
        if len(seen) == stop_after + 1:
            raise KeyboardInterrupt
        return learn(self, batch)

    monkeypatch.setattr(Line, "loss", stopping)
    with pytest.raises(KeyboardInterrupt):
        train(broken)
    train(broken)
    repeated = len(seen) - 1 - 3 * 8  # what was lost: since the last step, and the batch that was stopped
    assert repeated == stop_after % 8 % accumulate
    assert weights(broken) == weights(whole)
    curves = [json.loads((folder / HISTORY).read_text()) for folder in (broken, whole)]
    assert [entry["loss"] for entry in curves[0]] == [entry["loss"] for entry in curves[1]]


def test_the_time_before_a_training_was_killed_counts(work, monkeypatch):
    monkeypatch.setattr(training, "_UNSAVED", 0)
    monkeypatch.setattr(training, "_WORTH", 0)
    folder = work("a", replace(SETTINGS, checks=1))
    Line.stop_after = 0
    with pytest.raises(KeyboardInterrupt):
        train(folder)
    state = torch.load(folder / CHECKPOINT)
    assert 0 < state["seconds"] < 60
    torch.save(state | {"seconds": 1_000.0}, folder / CHECKPOINT)
    Line.stop_after = None
    train(folder)
    first, second, *_ = json.loads((folder / HISTORY).read_text())
    assert first["seconds"] > 1_000 > second["seconds"]


def test_a_short_training_is_saved_at_its_checks_alone(work, monkeypatch):
    saved, save = [], training._Loop._save
    monkeypatch.setattr(training._Loop, "_save", lambda loop, random: saved.append(loop.step) or save(loop, random))
    train(work("a", replace(SETTINGS, checks=1, epochs=3)))
    assert saved == [8, 16, 24]


def test_what_cannot_be_gone_on_from_is_not_saved(work, monkeypatch):
    monkeypatch.setattr(training, "_UNSAVED", 0)
    monkeypatch.setattr(training, "_WORTH", 0)
    whole, broken = (work(name, replace(SETTINGS, checks=1)) for name in ("whole", "broken"))
    train(whole)
    losses, learn = [], Line.loss

    def once_without_a_number(self, batch):
        losses.append(learn(self, batch))
        return losses[-1] * (float("nan") if len(losses) == 12 else 1)

    monkeypatch.setattr(Line, "loss", once_without_a_number)
    with pytest.raises(UserError, match="the loss became nan at step 12; a lower rate may help"):
        train(broken)
    train(broken)
    assert weights(broken) == weights(whole)


def test_two_processes_do_not_train_one_folder(work):
    folder = work("a", SETTINGS)
    with held(folder), pytest.raises(UserError, match="a: another process trains it"):
        train(folder)
    train(folder)
    assert (folder / WEIGHTS).is_file()


def test_the_loss_is_told_before_the_first_check(work, monkeypatch):
    monkeypatch.setattr(training, "_UNTOLD", 0)
    told = []

    @contextmanager
    def watch(title, total):
        yield lambda amount, note="": told.append(note)

    train(work("a", replace(SETTINGS, checks=1, epochs=2)), watch)
    start, *first = told[:8]
    assert start == ""
    assert all(re.fullmatch(r"loss \d\.\d{4}", note) for note in first)
    assert len({*first}) == 7
    assert all(re.fullmatch(r"loss \d\.\d{4}, dev -\d\.\d{4}", note) for note in told[8:])


@pytest.mark.parametrize(
    ("epochs", "most", "sizes"),
    [(2, 0, [8, 8]), (2, 11, [8, 3]), (3, 16, [8, 8]), (2, 99, [8, 8]), (2, 3, [3]), (0, 3, [])],
)
def test_training_ends_after_the_most_batches(epochs, most, sizes):
    assert epoch_sizes(Training(epochs=epochs, most=most), 8) == sizes


def test_several_processes_share_the_most_batches():
    assert epoch_sizes(Training(epochs=2, most=11), 8, processes=4) == [3]


def test_what_was_trained_before_a_setting_was_known_is_kept(work):
    folder = work("a", SETTINGS)
    train(folder)
    before, described = weights(folder), json.loads((folder / LEARNER).read_text())
    del described["training"]["most"]
    (folder / LEARNER).write_text(json.dumps(described))
    work("a", SETTINGS)
    assert weights(folder) == before
    described["training"]["gone"] = 1
    (folder / LEARNER).write_text(json.dumps(described))
    work("a", SETTINGS)
    assert not (folder / WEIGHTS).exists()


def test_the_schedule_and_the_last_check_are_those_of_the_batches_that_are_taken(work, monkeypatch):
    rates = []
    monkeypatch.setattr(training, "rate_factor", lambda _, step, steps: rates.append((step, steps)) or 1.0)
    settings = replace(SETTINGS, most=11, accumulate=2)
    folder = work("a", settings)
    train(folder)
    steps = len(step_places(settings, 8)) + len(step_places(settings, 3))
    assert list(dict.fromkeys(rates)) == [(step, steps) for step in range(steps)]
    history = json.loads((folder / HISTORY).read_text())
    assert [(entry["epoch"], entry["step"]) for entry in history][-1] == (2, steps)


def test_accumulated_batches_make_fewer_steps(work):
    folder = work("steps", replace(SETTINGS, accumulate=4))
    train(folder)
    assert json.loads((folder / HISTORY).read_text())[-1]["step"] == 6 * 2


def test_the_rate_falls_until_the_last_step_where_checks_cut_sums_short(work, monkeypatch):
    settings = replace(SETTINGS, accumulate=3, schedule="linear")
    assert step_places(settings, 8) == [3, 4, 6, 8]
    asked = []
    monkeypatch.setattr(training, "rate_factor", lambda settings, step, steps: asked.append((step, steps)) or 1.0)
    train(work("steps", settings))
    assert asked[::2] == [(step, 24) for step in range(24)]  # two groups of parameters each


def test_a_step_takes_the_mean_of_its_batches_however_few(work, monkeypatch):
    seen = []
    monkeypatch.setattr(Line, "loss", lambda self, batch: self.network[0].weight.sum())  # a gradient of one each
    monkeypatch.setattr(nn.utils, "clip_grad_norm_", lambda parameters, norm: seen.append(next(parameters).grad.mean()))
    train(work("means", replace(SETTINGS, accumulate=3)))
    assert seen == pytest.approx([1.0] * 24)


def test_training_stops_when_dev_no_longer_improves(work, monkeypatch):
    scores = iter([0.1, 0.3, 0.2, 0.25, 0.9])
    monkeypatch.setattr(Line, "evaluate", lambda self: next(scores))
    folder = work("a", replace(SETTINGS, patience=2))
    train(folder)
    assert [entry["dev"] for entry in json.loads((folder / HISTORY).read_text())] == [0.1, 0.3, 0.2, 0.25]


def test_the_weights_of_the_best_check_are_kept(work, monkeypatch):
    seen = []

    def evaluate(self):
        seen.append({name: value.clone() for name, value in self.network.state_dict().items()})
        return [0.1, 0.3, 0.2][len(seen) - 1]

    monkeypatch.setattr(Line, "evaluate", evaluate)
    folder = work("a", replace(SETTINGS, epochs=3, checks=1))
    train(folder)
    network = nn.Sequential(nn.Linear(1, 16), nn.Dropout(0.1), nn.ReLU(), nn.Linear(16, 1))
    load_weights(network, folder / WEIGHTS)
    found = network.state_dict()
    assert all(found[name].equal(value) for name, value in seen[1].items())
    assert not all(found[name].equal(value) for name, value in seen[2].items())


def test_matrices_decay_and_vectors_do_not(work):
    found = []
    for decay in (0.0, 5.0):
        folder = work(str(decay), Training(epochs=20, batch=8, rate=1e-2, weight_decay=decay, patience=0))
        train(folder)
        network = nn.Sequential(nn.Linear(1, 16), nn.Dropout(0.1), nn.ReLU(), nn.Linear(16, 1))
        load_weights(network, folder / WEIGHTS)
        found.append([part.abs().mean().item() for part in (network[3].weight, network[3].bias)])
    assert found[1][0] < 0.8 * found[0][0]
    assert found[1][1] > 0.9 * found[0][1]


def test_a_broken_checkpoint_is_named(work):
    folder = work("a", SETTINGS)
    torch.save({"network": {}}, folder / "other.pt")
    for content in (b"half a file", b"", (folder / "other.pt").read_bytes()):
        (folder / "checkpoint.pt").write_bytes(content)
        with pytest.raises(UserError, match=r"checkpoint\.pt: not a checkpoint of this training; remove it[^\n]*$"):
            train(folder)


@pytest.mark.parametrize("name", ["x.npy", "arrays.json", "learner.json"])
@pytest.mark.parametrize("content", [b"half a file", b"", b"[]", b"{\xff", b"1"])
def test_what_was_damaged_on_the_way_is_named(work, monkeypatch, name, content):
    folder = work("a", SETTINGS)
    monkeypatch.chdir(folder)
    advice = f"copy {folder.resolve()} here again, or remove it and prepare it anew"
    (folder / name).write_bytes(content)
    with pytest.raises(UserError) as caught:
        train(Path())
    assert str(caught.value) == f"{name}: not what was prepared; {advice}"
    (folder / name).unlink()
    with pytest.raises(UserError) as caught:
        train(Path())
    told = ".: nothing was prepared here; it has no learner.json"
    assert str(caught.value) == (told if name == "learner.json" else f"{name}: is missing; {advice}")


def test_an_array_of_another_length_is_named(work):
    folder = work("a", SETTINGS)
    whole = np.load(folder / "x.npy")
    for other in (whole[:-1], whole[:0], np.append(whole, whole), whole[:, None]):
        np.save(folder / "x.npy", other)
        with pytest.raises(UserError, match=r"x\.npy: not what was prepared; "):
            train(folder)
    np.save(folder / "x.npy", whole)
    train(folder)


def test_a_damaged_description_costs_no_weights(work):
    folder = work("a", SETTINGS)
    train(folder)
    before = weights(folder)
    (folder / LEARNER).write_text("{")
    with pytest.raises(UserError, match=r"learner\.json: not what was prepared; "):
        _prepared(folder, SETTINGS)
    assert weights(folder) == before


def test_weights_without_their_history_are_taken(work):
    folder = work("a", SETTINGS)
    train(folder)
    before = weights(folder)
    (folder / HISTORY).unlink()
    train(folder)
    assert weights(folder) == before
    assert (folder / HISTORY).read_text() == ""


def test_a_diverging_loss_is_said_so(work):
    with pytest.raises(UserError, match=r"the loss became (nan|inf)"):
        train(work("a", replace(SETTINGS, rate=1e30, clip=0)))


def test_nothing_to_learn_from_is_said_so(work, monkeypatch):
    monkeypatch.setattr(Line, "batches", lambda self, epoch: [])
    with pytest.raises(UserError, match="nothing to learn from"):
        train(work("a", SETTINGS))


def test_fewer_batches_than_processes_are_said_so(work, monkeypatch):
    monkeypatch.setattr("rejoinder.training._Plain.num_processes", 9)
    with pytest.raises(UserError, match="fewer batches than processes, 9"):
        train(work("a", SETTINGS))


def test_changed_settings_start_anew_and_the_same_go_on(work):
    folder = work("a", SETTINGS)
    train(folder)
    before = weights(folder)
    _prepared(folder, SETTINGS)
    assert weights(folder) == before
    _prepared(folder, replace(SETTINGS, epochs=1))
    assert not (folder / WEIGHTS).exists()


def test_the_rate_rises_then_falls():
    linear = Training(schedule="linear", warmup=0.1)
    factors = [rate_factor(linear, step, 100) for step in range(100)]
    assert factors[:10] == pytest.approx(np.arange(1, 11) / 10)
    assert factors[10] == 1
    assert factors[55] == pytest.approx(0.5)
    cosine = Training(schedule="cosine")
    assert [rate_factor(cosine, step, 4) for step in range(4)] == pytest.approx(
        [1, (1 + 2**-0.5) / 2, 0.5, (1 - 2**-0.5) / 2]
    )
    assert rate_factor(Training(), 50, 100) == 1


SLOPE = """
import torch
from rejoinder.prepared import load_arrays

class Slope:
    def __init__(self, settings, folder, seed, device):
        self.network, self.x = torch.nn.Linear(1, 1), torch.tensor(load_arrays(folder)["x"]).unsqueeze(1)

    def batches(self, epoch):
        return [slice(0, 8), slice(8, 16)]

    def loss(self, batch):
        return (self.network(self.x[batch]) - 3 * self.x[batch]).square().mean()

    def evaluate(self):
        return None
"""


@pytest.mark.parametrize("missing", ["", "safetensors"])
def test_the_loop_needs_torch_numpy_and_safetensors_alone(tmp_path, missing):
    (tmp_path / "slope.py").write_text(SLOPE)
    prepare(tmp_path / "work", "slope:Slope", {}, Training(epochs=2), 1, {"x": np.arange(16, dtype=np.float32)})
    others = ("accelerate", "msgspec", "polars", "scipy", "transformers", missing)
    without = f"import sys; sys.modules.update(dict.fromkeys({others}))"
    code = f"{without}; from rejoinder.training import _main; _main(['work'])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert found.returncode == (2 if missing else 0), found.stderr
    assert (tmp_path / "work" / WEIGHTS).is_file() != bool(missing)
    if missing:  # told before anything is trained
        assert found.stdout == ""
        assert found.stderr.startswith("error: ")
        assert found.stderr.count("\n") == 1


def test_a_folder_where_nothing_was_prepared_is_named(tmp_path):
    for arguments, code, told in (
        ([str(tmp_path)], 2, f"error: {tmp_path}: nothing was prepared here; it has no learner.json\n"),
        ([], 2, "usage: python -m rejoinder.training FOLDER..."),
    ):
        found = subprocess.run([sys.executable, "-m", "rejoinder.training", *arguments], capture_output=True, text=True)
        assert found.returncode == code
        assert found.stderr.startswith(told)


def test_an_interrupted_command_says_how_it_goes_on(tmp_path, monkeypatch, capsys):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "train", interrupted)
    with pytest.raises(SystemExit) as stop:
        training._main([str(tmp_path)])
    assert stop.value.code == 130
    assert capsys.readouterr().err == "interrupted; the same command starts anew: nothing was saved yet\n"
    (tmp_path / CHECKPOINT).touch()
    with pytest.raises(SystemExit):
        training._main([str(tmp_path)])
    assert capsys.readouterr().err == "interrupted; the same command goes on from the last checkpoint\n"


def test_a_batch_system_may_end_a_command(work, monkeypatch, capsys):
    def loss(self, batch):
        os.kill(os.getpid(), signal.SIGTERM)
        return self.network(self.x[batch]).mean()

    monkeypatch.setattr(Line, "loss", loss)
    before = signal.getsignal(signal.SIGTERM)
    try:
        with pytest.raises(SystemExit) as stop:
            training._main([str(work("a", SETTINGS))])
    finally:
        signal.signal(signal.SIGTERM, before)
    assert stop.value.code == 143
    assert "starts anew" in capsys.readouterr().err


def test_the_command_says_what_it_wants_and_what_comes_next(work, capsys):
    with pytest.raises(SystemExit) as stop:
        training._main(["--help"])
    assert stop.value.code == 0
    assert capsys.readouterr().out.startswith("usage: python -m rejoinder.training FOLDER...")
    folder = work("a", SETTINGS)
    training._main([str(folder)])
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("training on the CPU, 8%: loss ")
    assert said[-1] == f"{folder}: trained; `rejoinder train` without --prepare-only makes a model of it"


def test_a_folder_of_another_version_is_named(work):
    folder = work("other", Training())
    described = json.loads((folder / LEARNER).read_text())
    described["training"]["acumulate"] = 2
    (folder / LEARNER).write_text(json.dumps(described))
    with pytest.raises(UserError, match=r"learner.json: prepared by another version \(.*acumulate.*\); prepare"):
        training.train(folder)


@pytest.mark.parametrize(
    ("precision", "able", "pretrained", "half"),
    [
        ("auto", True, True, True),
        ("auto", True, False, False),
        ("auto", False, True, False),
        ("full", True, True, False),
        ("bf16", False, False, True),
    ],
)
def test_a_cpu_computes_in_half_precision_where_that_is_faster_or_wanted(
    monkeypatch, precision, able, pretrained, half
):
    monkeypatch.setattr(encoders, "cpu_has_halves", lambda: able)
    monkeypatch.setattr(encoders, "Pretrained", nn.Linear)
    network = nn.Sequential()
    network.encoder = nn.Linear(4, 4) if pretrained else nn.Identity()
    plain = training._Plain(precision)
    plain.prepare(network, None)
    with plain.autocast():
        assert nn.Linear(4, 4)(torch.zeros(1, 4)).dtype == (torch.bfloat16 if half else torch.float32)


def test_a_stage_that_was_trained_is_said_to_be(work, capsys):
    folder = work("line", Training(epochs=1))
    train(folder)
    training._main([str(folder)])
    assert capsys.readouterr().out.startswith(f"{folder}: trained already; ")
