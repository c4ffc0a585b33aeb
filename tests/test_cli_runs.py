import json
import re

import msgspec
import polars as pl
import pytest

from rejoinder.tasks.build import Cut, build_task
from rejoinder.tasks.load import load_task


@pytest.fixture
def folders(tmp_path):
    replies = [f"try command number {number} with option {number * 7}" for number in range(60)]
    for split, numbers in (("train", range(20)), ("dev", range(20, 40)), ("test", range(40, 60))):
        cuts = [Cut((("a", f"what about number {number}"),), (replies[number],)) for number in numbers]
        build_task(cuts, [(reply,) for reply in replies], 10, 0.2, seed=1, first_id=numbers[0]).save(
            tmp_path / "task" / split
        )
    return tmp_path


def recipe(folder, text):
    path = folder / "mine.yaml"
    path.write_text("about: mine\n" + text)
    return path


def measured(cli, truth, run):
    return json.loads(cli("score", truth, run, "--json")[1])["runs"][0]["measures"]["MRR"]["mean"]


def test_models_are_made_of_recipes_and_of_models(cli, folders):
    task, model, whole = folders / "task", folders / "bm25.model", folders / "whole.model"
    assert cli("train", "bm25", "--task", task, "--out", model)[0] == 0
    stacked = recipe(folders, f"system: ensemble\nsettings: {{members: [tfidf, {model}]}}")
    assert cli("train", stacked, "--task", task, "--out", whole)[0] == 0
    for part in model.iterdir():  # a model is whole without those it was made of
        part.unlink()
    inside = recipe(folders, f"system: abstain\nsettings: {{ranker: {whole}}}")
    assert cli("train", inside, "--task", task, "--out", folders / "none.model")[0] == 0
    assert cli("predict", folders / "none.model", "--task", task / "test", "--out", folders / "run.json")[0] == 0
    assert measured(cli, task / "test", folders / "run.json") > 0.5
    code, out, err = cli("reliability", task / "test", folders / "run.json", "--out", folders / "chart.svg")
    assert code == 0
    assert re.search(r"calibration error, none of these ↓ +0\.", out)
    assert "answered (the best option ahead of NONE)" in out
    assert "note:" not in err
    assert (folders / "chart.svg").read_text().startswith("<svg")


def test_mistakes_in_parts_are_named(cli, folders):
    task = folders / "task"
    for text, message in (
        ("system: ensemble\nsettings: {members: [tfidf, bm52]}", "did you mean 'bm25'?"),
        ("system: ensemble\nsettings: {members: []}", "settings: members are none; expected one or more"),
        ("system: abstain", "settings"),
    ):
        code, _, err = cli("train", recipe(folders, text), "--task", task, "--out", folders / "m")
        assert (code, message in err) == (2, True), err
    code, _, err = cli("train", "words", "--task", task / "train", "--out", folders / "m")
    assert (code, "stacking learns its weights on dev" in err) == (2, True)
    assert not (folders / "m").exists()


def test_runs_are_fused(cli, folders):
    task, files = folders / "task", {}
    for name in ("bm25", "tfidf"):
        cli("train", name, "--task", task, "--out", folders / f"{name}.model")
        for split in ("dev", "test"):
            files[name, split] = folders / f"{name}.{split}.json"
            cli("predict", folders / f"{name}.model", "--task", task / split, "--out", files[name, split])
    pair, out = (files["bm25", "test"], files["tfidf", "test"]), folders / "fused.json"
    learned = ("--dev", task / "dev", "--dev-run", files["bm25", "dev"], "--dev-run", files["tfidf", "dev"])
    for more in ((), ("--method", "scores"), ("--method", "stack", *learned)):
        assert cli("fuse", *pair, "--task", task / "test", "--out", out, *more)[0] == 0
        assert measured(cli, task / "test", out) > 0.5
        note = "note: confidences sum to 0.31 a list, where probabilities would sum to 1: "
        assert (note in cli("reliability", task / "test", out)[2]) == (not more)  # ranks alone are no probabilities
    code, _, err = cli("fuse", *pair, "--task", task / "test", "--out", out, "--method", "stack")
    assert (code, "needs --dev and a --dev-run for each of the 2 runs (give --dev-run once for each)" in err) == (
        2,
        True,
    )
    code, _, err = cli("fuse", *pair, "--task", task / "dev", "--out", out)
    assert (code, "is not in the truth" in err or "missing" in err) == (2, True)
    for method in ("ranks", "scores"):
        code, _, err = cli("fuse", *pair, "--task", task / "test", "--out", out, "--method", method, *learned)
        assert (code, f"nothing is learned from it by --method {method}" in err) == (2, True)
    answers = json.loads(files["tfidf", "test"].read_text())
    answers[1]["candidate-ranking"][2]["candidate-id"] = "elsewhere"
    strange = folders / "strange.json"
    strange.write_text(json.dumps(answers))
    before = out.read_bytes()
    code, _, err = cli("fuse", pair[0], strange, "--task", task / "test", "--out", out)
    named = f"strange.json: example {answers[1]['example-id']}: candidate-id: 'elsewhere' is not one of the example's"
    assert (code, named in err, out.read_bytes()) == (2, True, before)


def test_seeds_are_those_that_every_library_takes(cli, folders):
    pytest.importorskip("torch")
    stage = "{network: {encoder: {kind: bag, embedding: 4, hidden: 4, rarest: 1}}, training: {epochs: 1}}"
    network = recipe(folders, f"system: neural-ranker\nsettings: {{stages: [{stage}]}}")
    for number, made in enumerate(("random", network)):
        asked = ("train", made, "--task", folders / "task", "--out", folders / f"{number}.model", "--seed")
        for seed in (2**64, 2**63, -1):
            code, _, err = cli(*asked, seed)
            assert (code, "Invalid value for '--seed'" in err) == (2, True)
        assert cli(*asked, 2**63 - 1)[0] == 0
        run = folders / f"{number}.json"
        assert cli("predict", folders / f"{number}.model", "--task", folders / "task" / "test", "--out", run)[0] == 0


def test_weights_are_not_learned_from_what_is_to_be_answered(cli, folders):
    task, files = folders / "task", []
    for name in ("bm25", "tfidf"):
        cli("train", name, "--task", task, "--out", folders / f"{name}.model")
        files.append(folders / f"{name}.json")
        cli("predict", folders / f"{name}.model", "--task", task / "test", "--out", files[-1])
    again = ("--method", "stack", "--dev", task / "test", "--dev-run", files[0], "--dev-run", files[1])
    code, _, err = cli("fuse", *files, "--task", task / "test", "--out", folders / "o.json", *again)
    assert (code, "test: --dev: is the task that is answered; its own answers would be learned" in err) == (2, True)
    code, out, _ = cli("train", "words", "--task", task / "dev", "--dev", task / "dev", "--out", folders / "w.model")
    assert (code, "note: dev is what it learned from: what was chosen there may be wrong elsewhere" in out) == (0, True)


def test_examples_that_teach_nothing_are_told_of(cli, folders):
    source = folders / "task" / "train"
    told = load_task(source).examples
    silent = pl.when(pl.int_range(pl.len()) != 3).then("correct")
    msgspec.structs.replace(load_task(source), examples=told.with_columns(correct=silent)).save(folders / "silent")
    code, out, _ = cli("train", "bm25", "--task", folders / "silent", "--out", folders / "m.model")
    assert (code, "note: 1 of 20 examples to learn from say nothing of what is right" in out) == (0, True)


def test_a_confidence_that_is_none_is_named(cli, folders):
    task, run = folders / "task", folders / "run.json"
    cli("train", "words-or-none", "--task", task, "--out", folders / "none.model")
    cli("predict", folders / "none.model", "--task", task / "test", "--out", run)
    answers = json.loads(run.read_text())
    answers[2]["candidate-ranking"][0]["confidence"] = 1.5
    run.write_text(json.dumps(answers))
    code, _, err = cli("reliability", task / "test", run)
    named = f"run.json: example {answers[2]['example-id']}: confidence: 1.5 is no confidence; expected 0 to 1"
    assert (code, named in err) == (2, True), err
