import json
import shutil
import warnings

import numpy as np
import polars as pl
import pytest
from scipy import sparse

from rejoinder.folders import alone_in
from rejoinder.model import load_model, predict
from rejoinder.systems.index import Index
from rejoinder.systems.retrieval import Bm25
from rejoinder.tasks import dialeval, dstc7
from rejoinder.tasks.build import Cut, build_task
from rejoinder.tasks.judgement import JudgementTask
from rejoinder.tasks.judgement_folder import save_judgement_task
from rejoinder.tasks.selection import load_selection_task


def a_task(folder):
    replies = [f"try command number {number} with option {number * 7}" for number in range(40)]
    cuts = [Cut((("a", f"what about number {number}"),), (replies[number],)) for number in range(20)]
    task = build_task(cuts, [(reply,) for reply in replies], 10, seed=1)
    task.save(folder)
    return task


def test_train_predict_score(cli, tmp_path):
    a_task(tmp_path / "task" / "train")
    task, model, run = tmp_path / "task", tmp_path / "bm25.model", tmp_path / "run.json"
    assert cli("train", "bm25", "--task", task, "--out", model)[0] == 0
    card, system = load_model(model)
    assert isinstance(system, Bm25)
    assert (card.recipe.name, card.train.examples, card.dev) == ("bm25", 20, None)
    assert {"rejoinder", "python", "numpy"} <= card.versions.keys()
    assert cli("predict", model, "--task", task / "train", "--out", run)[0] == 0
    assert not (model / "work").exists()
    code, out, _ = cli("score", task / "train", run, "--json")
    assert code == 0
    assert 0.1 < json.loads(out)["runs"][0]["measures"]["MRR"]["mean"] <= 1


def test_a_task_without_answers_can_be_predicted(cli, tmp_path):
    task = a_task(tmp_path / "train")
    blank = task.examples.with_columns(correct=pl.lit(None, dtype=pl.List(pl.UInt32)))
    folder = tmp_path / "blank"
    type(task)(blank, task.options).save(folder)
    assert cli("train", "bm25", "--task", tmp_path / "train", "--out", tmp_path / "m")[0] == 0
    assert cli("predict", tmp_path / "m", "--task", folder, "--out", tmp_path / "r.json")[0] == 0
    assert cli("score", tmp_path / "train", tmp_path / "r.json")[0] == 0


def test_ties_that_a_file_decides_are_told(cli, tmp_path):
    task = a_task(tmp_path / "task" / "train")
    cli("train", "unsaid", "--task", tmp_path / "task", "--out", tmp_path / "unsaid.model")
    command = (
        "predict",
        tmp_path / "unsaid.model",
        "--task",
        tmp_path / "task" / "train",
        "--out",
        tmp_path / "r.json",
    )
    assert "several options share the best score in 20 of 20 examples" in cli(*command)[2]
    pooled = task.examples.with_columns(
        options=pl.lit(None, dtype=pl.List(pl.UInt32)), turns=[{"speaker": "a", "text": "?"}]
    )
    type(task)(pooled, task.options).save(tmp_path / "pool")
    cli("train", "bm25", "--task", tmp_path / "task", "--out", tmp_path / "bm25.model")
    code, _, err = cli("predict", tmp_path / "bm25.model", "--task", tmp_path / "pool", "--out", tmp_path / "p.json")
    assert (code, "several options share the best score in 20 of 20 examples" in err) == (0, True)
    cli("train", "bm25", "--task", tmp_path / "task", "--out", tmp_path / "bm25.model")
    card, system = load_model(tmp_path / "bm25.model")
    assert predict(card, system, tmp_path, task).notes == ()


def test_mistakes_are_named(cli, tmp_path, save):
    a_task(tmp_path / "train")
    chats = save("chats.json", [{"id": "1", "turns": [{"sender": "customer", "utterances": ["hello"]}]}])
    for arguments, message in (
        (("train", "bm25", "--task", tmp_path / "none", "--out", tmp_path / "m"), "none: no such file or folder"),
        (("train", "bm52", "--task", tmp_path / "train", "--out", tmp_path / "m"), "did you mean 'bm25'?"),
        (("train", "bm25", "--task", chats, "--out", tmp_path / "m"), "bm25 answers tasks with options to rank"),
        (("train", "words", "--task", tmp_path, "--dev", tmp_path / "none", "--out", tmp_path / "m"), "none: no such"),
        (("fuse", chats, "--task", tmp_path / "train", "--out", tmp_path / "m"), "one run alone"),
        (("predict", tmp_path, "--task", tmp_path / "train", "--out", tmp_path / "r"), "not a model"),
    ):
        code, _, err = cli(*arguments)
        assert (code, message in err) == (2, True), err
    assert not (tmp_path / "m").exists()


def test_what_parts_need_is_said_before_any_is_trained(cli, tmp_path, save):
    task = a_task(tmp_path / "train")
    for name, correct in (("blank", None), ("none", [])):
        answers = pl.lit(correct, dtype=pl.List(pl.UInt32))
        type(task)(task.examples.with_columns(correct=answers), task.options).save(tmp_path / name)
    some = pl.when(pl.int_range(pl.len()) != 1).then("correct")
    type(task)(task.examples.with_columns(correct=some), task.options).save(tmp_path / "some")
    recipe = save("both.yaml", "about: ''\nsystem: ensemble\nsettings: {members: [tfidf, bm25]}\n")
    arguments = ("train", recipe, "--task", tmp_path / "train", "--out", tmp_path / "m", "--work", tmp_path / "work")
    for more, message in (
        ((), "stacking learns its weights on dev"),
        (("--dev", tmp_path / "blank"), "blank: has no answers to choose by"),
        (("--dev", tmp_path / "none"), "none: has no answers to choose by"),
        (
            ("--dev", tmp_path / "some"),
            f"some: example {task.examples['id'][1]}: correct: has no answer, unlike others",
        ),
    ):
        code, _, err = cli(*arguments, *more)
        assert (code, message in err) == (2, True), err
        assert not (tmp_path / "work").exists()


@pytest.mark.parametrize("encoder", ["bm25", "late-encoder", "cross-encoder", "poly-encoder", "esim"])
def test_what_cannot_search_is_refused_before_it_is_trained(cli, tmp_path, save, encoder):
    a_task(tmp_path / "train")
    recipe = save("search.yaml", f"about: ''\nsystem: cascade\nsettings: {{encoder: {encoder}}}\n")
    task, work = tmp_path / "train", tmp_path / "work"
    code, _, err = cli("train", recipe, "--task", task, "--dev", task, "--out", tmp_path / "m", "--work", work)
    assert (code, err) == (2, f"error: {encoder} has no vectors to search by; a bi-encoder or minilm has\n")
    assert not work.exists()


def test_a_card_knows_the_pool(cli, tmp_path, save):
    task = a_task(tmp_path / "train")
    pooled = task.examples.with_columns(options=pl.lit(None, dtype=pl.List(pl.UInt32)))
    dstc7.write_examples(tmp_path / "examples.json", dstc7.to_examples(type(task)(pooled, task.options), "train", 2))
    cards = []
    for name, options in (("all", task.options), ("again", task.options), ("fewer", task.options.head(39))):
        dstc7.write_pool(tmp_path / name, options)
        examples, model = tmp_path / "examples.json", tmp_path / f"{name}.model"
        assert cli("train", "bm25", "--task", examples, "--pool", tmp_path / name, "--out", model)[0] == 0
        cards.append(load_model(model)[0].train)
    assert cards[0] == cards[1] != cards[2]


def test_runs_on_a_pool_file_are_fused(cli, tmp_path):
    task = a_task(tmp_path / "train")
    pooled = task.examples.with_columns(options=pl.lit(None, dtype=pl.List(pl.UInt32)))
    examples, pool = tmp_path / "examples.json", tmp_path / "pool.txt"
    dstc7.write_examples(examples, dstc7.to_examples(type(task)(pooled, task.options), "train", 2))
    dstc7.write_pool(pool, task.options)
    given = ("--task", examples, "--pool", pool)
    for name in ("bm25", "tfidf"):
        assert cli("train", name, *given, "--out", tmp_path / f"{name}.model")[0] == 0
        assert cli("predict", tmp_path / f"{name}.model", *given, "--out", tmp_path / f"{name}.json")[0] == 0
    runs = (tmp_path / "bm25.json", tmp_path / "tfidf.json")
    assert cli("fuse", *runs, *given, "--out", tmp_path / "fused.json")[0] == 0
    code, out, _ = cli("score", examples, tmp_path / "fused.json", "--options", pool, "--json")
    assert (code, "fused" in out) == (0, True)
    assert "name the pool" in cli("fuse", *runs, "--task", examples, "--out", tmp_path / "f.json")[2]


def test_without_a_network_there_is_nothing_to_prepare(cli, tmp_path, save):
    a_task(tmp_path / "train")
    network = {"encoder": {"kind": "bag", "embedding": 4, "hidden": 4}, "match": "dot"}
    settings = {"stages": [{"network": network}]}
    made = save("network.yaml", {"about": "", "system": "neural-ranker", "settings": settings})
    work = ("--task", tmp_path / "train", "--out", tmp_path / "m", "--work", tmp_path / "work", "--prepare-only")
    for member, expected, message in (("tfidf", 2, "both has no network to prepare"), (made, 0, "prepared:")):
        settings = {"members": ["bm25", str(member)], "method": "ranks"}
        both = save("both.yaml", {"about": "", "system": "ensemble", "settings": settings})
        code, out, err = cli("train", both, *work)
        assert (code, message in out + err) == (expected, True), err
        assert not (tmp_path / "m").exists()


def test_a_folder_to_work_in_that_cannot_be_made_is_named(cli, tmp_path, save):
    a_task(tmp_path / "train")
    arguments = ("train", "bm25", "--task", tmp_path / "train", "--out", tmp_path / "m", "--work")
    code, _, err = cli(*arguments, save("file", "") / "work")
    assert (code, "file/work: cannot be written" in err) == (2, True), err


@pytest.mark.parametrize(("work", "out"), [("w", "w/m"), ("m/w", "m"), ("m", "m"), ("w/../m/w", "m")])
def test_work_and_model_do_not_lie_in_each_other(cli, tmp_path, work, out):
    a_task(tmp_path / "train")
    kept = tmp_path / "w" / "other.model"
    assert cli("train", "bm25", "--task", tmp_path / "train", "--out", kept)[0] == 0
    arguments = ("train", "tfidf", "--task", tmp_path / "train", "--work", tmp_path / work, "--out", tmp_path / out)
    code, _, err = cli(*arguments)
    assert (code, "name another --work" in err) == (2, True), err
    assert load_model(kept)[0].recipe.name == "bm25"
    assert {path.name for path in tmp_path.iterdir()} == {"train", "w"}


def test_a_folder_of_something_else_is_no_place_to_work_in(cli, tmp_path, save):
    a_task(tmp_path / "train")
    (tmp_path / "mine").mkdir()
    diary = save("mine/diary.txt", "dear diary")
    arguments = ("train", "bm25", "--task", tmp_path / "train", "--out", tmp_path / "m", "--work")
    code, _, err = cli(*arguments, diary.parent)
    assert (code, "mine: is not empty" in err) == (2, True), err
    assert diary.read_text() == "dear diary"
    assert cli(*arguments, tmp_path / "work")[0] == 0
    assert cli(*arguments, tmp_path / "work")[0] == 0


def test_a_model_is_replaced_and_what_lies_beside_it_is_not(cli, tmp_path, save):
    a_task(tmp_path / "train")
    command = ("--task", tmp_path / "train", "--out", tmp_path / "m")
    assert cli("train", "bm25", *command)[0] == 0
    assert cli("train", "tfidf", *command)[0] == 0
    assert load_model(tmp_path / "m")[0].recipe.name == "tfidf"
    diary = save("m/diary.txt", "dear diary")
    code, _, err = cli("train", "bm25", *command)
    assert (code, "m: holds diary.txt, which was not written with it and would be lost" in err) == (2, True), err
    assert (diary.read_text(), load_model(tmp_path / "m")[0].recipe.name) == ("dear diary", "tfidf")


def test_a_model_whose_index_was_changed_is_replaced(cli, tmp_path, save):
    a_task(tmp_path / "train")
    command = ("train", "bm25", "--task", tmp_path / "train", "--out", tmp_path / "m")
    assert cli(*command)[0] == 0
    options = pl.DataFrame({"id": ["a", "b"], "text": ["hello", "you"]})
    Index(tmp_path / "m/parts/0/index").add(options, np.ones((2, 64), dtype=np.float32), sparse.csr_matrix((2, 9)))
    save("m/parts/0/index/.index.json.x7k", "cut sho")
    assert cli(*command)[0] == 0
    assert not (tmp_path / "m/parts").exists()
    (tmp_path / "m/index").mkdir()
    save("m/index/notes.txt", "precious")
    assert "m: holds index/notes.txt, which was not written with it" in cli(*command)[2]


def test_predictions_spare_the_task_that_they_answer(cli, tmp_path):
    a_task(tmp_path / "train")
    assert cli("train", "bm25", "--task", tmp_path / "train", "--out", tmp_path / "m")[0] == 0
    command = ("predict", tmp_path / "m", "--task", tmp_path / "train", "--out")
    code, _, err = cli(*command, tmp_path / "train/groups.parquet")
    assert (code, "groups.parquet: lies in the task" in err) == (2, True), err
    assert cli(*command, tmp_path / "run.parquet")[0] == 0


def test_a_full_disk_is_one_line(cli, tmp_path, full_disk):
    a_task(tmp_path / "train")
    train = ("train", "bm25", "--task", tmp_path / "train", "--out", tmp_path / "m")
    assert cli(*train)[0] == 0
    before = sorted(tmp_path.rglob("*"))
    run = tmp_path / "run.parquet"
    with full_disk(1_000):
        told = cli("predict", tmp_path / "m", "--task", tmp_path / "train", "--out", run)
        assert told == (2, "", f"error: {run}: cannot be written (File too large)\n")
        told = cli(*train)
        assert told == (2, "", f"error: {tmp_path / 'm/words.npz'}: cannot be written (File too large)\n")
    assert sorted(tmp_path.rglob("*")) == before


def test_a_model_of_an_unknown_system_is_named(cli, tmp_path):
    a_task(tmp_path / "train")
    assert cli("train", "bm25", "--task", tmp_path / "train", "--out", tmp_path / "m")[0] == 0
    card = tmp_path / "m" / "model.yaml"
    card.write_text(card.read_text().replace("system: bm25", "system: bm52"))
    code, _, err = cli("predict", tmp_path / "m", "--task", tmp_path / "train", "--out", tmp_path / "r")
    assert (code, "model.yaml: system: no system 'bm52'; did you mean 'bm25'?" in err) == (2, True), err


def test_judges_learn_from_votes_on_the_same_questions(cli, tmp_path, save):
    turns = [{"sender": "customer", "utterances": ["hello"]}]
    bare = save("bare.json", [{"id": "1", "turns": turns}])
    annotations = [{"quality": {"A": 1, "S": 0, "E": -1}, "nugget": ["CNUG0"]}]
    voted = save("voted.json", [{"id": "1", "turns": turns, "annotations": annotations}])
    task = dialeval.read_task(voted)
    save_judgement_task(
        tmp_path / "a", JudgementTask(task.dialogues, task.questions[:1], task.votes.filter(question="A")), "", {}
    )
    for arguments, message in (
        (("--task", bare), "bare.json: has no votes to learn from"),
        (("--task", voted, "--dev", bare), "bare.json: has no votes to learn from"),
        (("--task", voted, "--also", tmp_path / "a"), f"a: asks other questions than {voted}, or with other labels"),
    ):
        code, _, err = cli("train", "mean", *arguments, "--out", tmp_path / "m")
        assert (code, err.removeprefix(f"error: {tmp_path}/")) == (2, f"{message}\n")
    assert cli("train", "mean", "--task", voted, "--out", tmp_path / "m")[0] == 0


def test_a_recipes_name_is_that_whatever_lies_here(cli, tmp_path, monkeypatch):
    a_task(tmp_path / "train")
    monkeypatch.chdir(tmp_path)
    for out in ("bm25", "words"):
        assert cli("train", out, "--task", "train", "--dev", "train", "--out", out)[0] == 0
    few = load_selection_task(tmp_path / "train")
    type(few)(few.examples.head(10), few.options).save(tmp_path / "few")
    assert cli("train", "words", "--task", "few", "--dev", "few", "--out", "fewer")[0] == 0
    assert load_model(tmp_path / "fewer" / "parts" / "1")[0].train.examples == 10


def test_a_model_does_not_take_the_place_of_its_own_part(cli, tmp_path, save):
    a_task(tmp_path / "train")
    task, model = tmp_path / "train", tmp_path / "mine.model"
    assert cli("train", "bm25", "--task", task, "--out", model)[0] == 0
    recipe = save("both.yaml", f"about: ''\nsystem: ensemble\nsettings: {{members: [tfidf, {model}]}}\n")
    code, _, err = cli("train", recipe, "--task", task, "--dev", task, "--out", model)
    told = f"error: {model}: is, holds or lies in a part or the teacher of what is to be trained; name another folder\n"
    assert (code, err) == (2, told)
    assert load_model(model)[0].recipe.name == "bm25"
    within = save("within.yaml", f"about: ''\nsystem: ensemble\nsettings: {{members: [tfidf, {model}/parts/0]}}\n")
    shutil.copytree(model, tmp_path / "inner")
    shutil.copytree(tmp_path / "inner", model / "parts" / "0")
    code, _, err = cli("train", within, "--task", task, "--dev", task, "--out", model)
    assert (code, err) == (2, told)
    assert (model / "parts" / "0").is_dir()


def test_a_damaged_part_is_named_where_it_is(cli, tmp_path, save):
    a_task(tmp_path / "train")
    task, model = tmp_path / "train", tmp_path / "mine.model"
    assert cli("train", "bm25", "--task", task, "--out", model)[0] == 0
    (model / "words.npz").write_bytes(b"x")
    recipe = save("both.yaml", f"about: ''\nsystem: ensemble\nsettings: {{members: [tfidf, {model}]}}\n")
    code, _, err = cli("train", recipe, "--task", task, "--dev", task, "--out", tmp_path / "both")
    assert (code, err.startswith(f"error: {model / 'words.npz'}: damaged; ")) == (2, True), err
    assert not (tmp_path / "both").exists()


@pytest.mark.parametrize("breaks", [False, True])
def test_what_was_not_written_with_a_model_is_refused(cli, tmp_path, monkeypatch, breaks):
    for split in ("train", "dev"):
        a_task(tmp_path / "task" / split)
    model, out = tmp_path / "words.model", tmp_path / "run.json"
    assert cli("train", "words", "--task", tmp_path / "task", "--out", model)[0] == 0
    changed = model / "parts" / "1" / "words.npz"
    whole = changed.read_bytes()
    with np.load(changed) as file:  # it could be read, but would give other figures
        np.savez(changed, **{name: np.ones_like(file[name]) if name == "texts" else file[name] for name in file.files})
    with monkeypatch.context() as patched:
        if breaks:
            patched.setattr(Bm25, "load", lambda *_: {}["a word"])
        code, _, err = cli("predict", model, "--task", tmp_path / "task" / "dev", "--out", out)
    assert (code, out.exists()) == (2, False)
    assert err == f"error: {changed}: is not what was written with model.yaml; train the model anew\n"
    changed.write_bytes(whole)
    assert cli("predict", model, "--task", tmp_path / "task" / "dev", "--out", out)[0] == 0


def test_scores_that_are_no_numbers_are_not_written(cli, tmp_path, save):
    a_task(tmp_path / "train")
    recipe = save("odd.yaml", "about: ''\nsystem: bm25\nsettings: {rarity: 400}\n")
    task, model = tmp_path / "train", tmp_path / "m"
    assert cli("train", recipe, "--task", task, "--out", model)[0] == 0
    with warnings.catch_warnings(action="ignore"):
        code, _, err = cli("predict", model, "--task", task, "--out", tmp_path / "run.json")
    assert (code, err) == (2, "error: odd gives scores that are no numbers; a setting or its rate is too high\n")
    assert not (tmp_path / "run.json").exists()


@pytest.mark.parametrize("system", ["ensemble", "abstain", "informed"])
def test_nothing_is_made_of_scores_that_are_no_numbers(cli, tmp_path, save, system):
    a_task(tmp_path / "train")
    odd = save("odd.yaml", "about: ''\nsystem: bm25\nsettings: {rarity: 400}\n")
    parts = f"members: [{odd}, tfidf], method: ranks" if system == "ensemble" else f"ranker: {odd}"
    parts += ", knowledge: none" if system == "informed" else ""
    recipe = save("made.yaml", f"about: ''\nsystem: {system}\nsettings: {{{parts}}}\n")
    task = ("--task", tmp_path / "train", "--dev", tmp_path / "train")
    with warnings.catch_warnings(action="ignore"):
        code, _, err = cli("train", recipe, *task, "--out", tmp_path / "m")
        if system == "ensemble":  # ranks are fused without a look at any
            code, _, err = cli("predict", tmp_path / "m", "--task", tmp_path / "train", "--out", tmp_path / "run.json")
    assert (code, err) == (2, f"error: {odd} gives scores that are no numbers; a setting or its rate is too high\n")


def test_scores_are_fused_alike_in_any_company(cli, tmp_path, save):
    """Whether a member's scores are shares of a whole is learned in training, not guessed of what is asked."""
    a_task(tmp_path / "train")
    recipe = save("both.yaml", "about: ''\nsystem: ensemble\nsettings: {members: [bm25, voice], method: scores}\n")
    assert cli("train", recipe, "--task", tmp_path / "train", "--out", tmp_path / "m")[0] == 0
    card, system = load_model(tmp_path / "m")
    task = load_selection_task(tmp_path / "train")
    whole = predict(card, system, tmp_path, task).choices
    assert system.learned.scales[1] == 0 < system.learned.scales[0]
    for place in range(5):
        alone = type(task)(task.examples.slice(place, 1), task.options)
        found = predict(card, system, tmp_path, alone).choices
        assert found.drop("example").equals(whole.filter(pl.col("example") == place).drop("example"))


def test_two_trainings_do_not_work_in_one_folder(cli, tmp_path):
    a_task(tmp_path / "train")
    with alone_in(tmp_path / "work", tmp_path / "work"):
        arguments = ("--task", tmp_path / "train", "--out", tmp_path / "m", "--work", tmp_path / "work")
        code, _, err = cli("train", "bm25", *arguments)
    assert (code, err) == (2, f"error: {tmp_path / 'work'}: another process is writing this folder\n")
    assert cli("train", "bm25", *arguments)[0] == 0


@pytest.mark.parametrize("system", ["abstain", "informed", "cascade"])
def test_none_is_said_once(cli, tmp_path, save, system):
    a_task(tmp_path / "train")
    parts = "rankers: {words-or-none: 20}" if system == "cascade" else "ranker: words-or-none"
    recipe = save("twice.yaml", f"about: ''\nsystem: {system}\nsettings: {{{parts}}}\n")
    code, _, err = cli(
        "train", recipe, "--task", tmp_path / "train", "--dev", tmp_path / "train", "--out", tmp_path / "m"
    )
    told = "error: words-or-none says NONE already; let that come last, and name what it is made of here\n"
    assert (code, err) == (2, told)


@pytest.mark.parametrize("system", ["abstain", "informed", "cascade", "ensemble"])
def test_a_judge_is_no_part_of_a_ranker(cli, tmp_path, save, system):
    a_task(tmp_path / "train")
    parts = {"cascade": "rankers: {mean: 20}", "ensemble": "members: [mean, bm25]"}.get(system, "ranker: mean")
    recipe = save("judge.yaml", f"about: ''\nsystem: {system}\nsettings: {{{parts}}}\n")
    task = ("--task", tmp_path / "train", "--dev", tmp_path / "train")
    code, _, err = cli("train", recipe, *task, "--out", tmp_path / "m")
    assert (code, err) == (2, "error: mean answers another kind of task\n")


def test_an_ensemble_says_none_if_a_member_does(cli, tmp_path, save):
    a_task(tmp_path / "train")
    members = save(
        "both.yaml", "about: ''\nsystem: ensemble\nsettings: {members: [words-or-none, bm25], method: ranks}\n"
    )
    task = ("--task", tmp_path / "train", "--dev", tmp_path / "train")
    for source in (members, tmp_path / "both"):
        recipe = save("twice.yaml", f"about: ''\nsystem: abstain\nsettings: {{ranker: '{source}'}}\n")
        code, _, err = cli("train", recipe, *task, "--out", tmp_path / "m")
        assert (code, f"{source} says NONE already" in err) == (2, True), err
        if source == members:
            assert cli("train", members, *task, "--out", tmp_path / "both")[0] == 0


def test_runs_are_not_stacked_on_a_dev_without_answers(cli, tmp_path):
    task = a_task(tmp_path / "train")
    model, run = tmp_path / "m", tmp_path / "run.json"
    assert cli("train", "bm25", "--task", tmp_path / "train", "--out", model)[0] == 0
    assert cli("predict", model, "--task", tmp_path / "train", "--out", run)[0] == 0
    for name, answers in (("blank", None), ("none", [])):
        correct = pl.lit(answers, dtype=pl.List(pl.UInt32))
        type(task)(task.examples.with_columns(correct=correct), task.options).save(tmp_path / name)
        stack = ("--method", "stack", "--dev", tmp_path / name, "--dev-run", run, "--dev-run", run)
        code, _, err = cli("fuse", run, run, "--task", tmp_path / "train", "--out", tmp_path / "f.json", *stack)
        assert (code, f"{name}: has no answers to choose by" in err) == (2, True), err
