import json
import re
import sys

import pytest

from rejoinder.cli.build import drop_others
from rejoinder.runs import dialeval
from rejoinder.runs.judgement import JudgementRun
from rejoinder.sample import advising, helpdesk, irc
from rejoinder.tasks.card import read_card
from rejoinder.tasks.judgement_folder import load_judgement_task
from rejoinder.tasks.selection import load_selection_task
from rejoinder.tasks.truth import read_truth


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("logs")
    irc.write(folder, 22_000, seed=6)
    return folder


def test_from_logs_to_official_files_and_back(cli, logs, tmp_path):
    built = ("build", "ubuntu", "--logs", logs, "--links", logs, "--pool-size", 4_000, "--out")
    code, out, err = cli(*built, tmp_path / "tasks")
    assert code == 0, err
    assert "| kept |" in out
    assert read_card(tmp_path / "tasks/subtask_4/test").split == "test"
    code, out, _ = cli("export", tmp_path / "tasks", "--out", tmp_path / "official")
    assert code == 0
    assert "ubuntu_train_subtask_1.json" in out
    official = tmp_path / "official/ubuntu_test_subtask_2.json"
    pool = tmp_path / "official/ubuntu_subtask_2_candidates.txt"
    code, out, _ = cli("import", "dstc7", official, "--pool", pool, "--out", tmp_path / "back")
    assert (code, out.strip()) == (0, str(tmp_path / "back/subtask_2/test"))
    first, again = (load_selection_task(tmp_path / side / "subtask_2/test") for side in ("tasks", "back"))
    assert first.examples.equals(again.examples)
    assert first.options.equals(again.options)
    listed = tmp_path / "official/ubuntu_test_subtask_1.json"
    code, _, err = cli("import", "dstc7", listed, "--pool", pool, "--out", tmp_path / "lists")
    assert (code, err) == (2, f"error: {pool}: nothing chooses from it; all examples have options of their own\n")
    code, out, _ = cli("import", "dstc7", listed, official, "--pool", pool, "--out", tmp_path / "lists")
    assert (code, len(out.splitlines())) == (0, 2)


def test_a_split_far_from_the_wanted_one_is_told(cli, logs, tmp_path):
    days = [part for log in sorted(logs.glob("*.raw.txt"))[:3] for part in ("--logs", log)]
    built = ("build", "ubuntu", *days, "--links", logs, "--candidates", 10, "--pool-size", 100, "--out", tmp_path / "o")
    code, out, err = cli(*built)
    assert code == 0, err
    told = re.search(r"train has (\d+)% of the dialogues, not 80%: whole days are split, and there are 3 with", err)
    assert told, err
    assert told[0] in out
    sizes = json.loads((tmp_path / "o/description.json").read_text())["tasks"]
    train, dev, test = (sizes[f"subtask_1/{split}"] for split in ("train", "dev", "test"))
    assert train / (train + dev + test) == pytest.approx(int(told[1]) / 100, abs=0.05)


def test_a_task_folder_is_a_truth(cli, logs, tmp_path):
    cli("build", "ubuntu", "--logs", logs, "--links", logs, "--pool-size", 4_000, "--out", tmp_path)
    task = load_selection_task(tmp_path / "subtask_4/dev")
    chosen = {id_: options[0] for id_, _, options, _ in task.examples.iter_rows()}
    lines = [f"{id_} Q0 {task.options['id'][row]} 1 1.0 x\n" for id_, row in chosen.items()]
    (tmp_path / "run.trec").write_text("".join(lines))
    code, out, err = cli(
        "score", tmp_path / "subtask_4/dev", tmp_path / "run.trec", "--json", "--trials", 100, "--by", "answers"
    )
    assert code == 0, err
    assert set(json.loads(out)["by"]["groups"]) == {"0", "1"}


def test_a_failed_build_leaves_what_was_there_and_keeps_its_links(cli, logs, tmp_path):
    built = ("build", "ubuntu", "--logs", logs, "--links", logs, "--pool-size", 4_000, "--out", tmp_path / "tasks")
    assert cli(*built)[0] == 0
    before = {path: path.read_bytes() for path in (tmp_path / "tasks").rglob("*.*")}
    (tmp_path / ".tasks.part/links").mkdir(parents=True)
    for name in ("sources.txt", "x.annotation.txt"):
        (tmp_path / ".tasks.part/links" / name).write_text("0 0 -\n")
    code, _, err = cli(*built, "--candidates", 100_000)
    assert (code, "take more dialogues or fewer candidates" in err) == (2, True)
    assert {path: path.read_bytes() for path in (tmp_path / "tasks").rglob("*.*")} == before
    assert [path.name for path in (tmp_path / ".tasks.part").iterdir()] == ["links"]
    code, _, err = cli(*built, "--seed", 1)
    assert code == 0, err
    assert not (tmp_path / ".tasks.part").exists()
    assert (tmp_path / "tasks/subtask_1/train/examples.parquet").read_bytes() != before[
        tmp_path / "tasks/subtask_1/train/examples.parquet"
    ]


def test_links_of_another_model_or_of_other_logs_are_not_gone_on_with(tmp_path):
    (tmp_path / "model").write_text("one")
    (tmp_path / "a.txt").write_text("[00:00] <x> hi")
    links = tmp_path / "links"
    sources = links, tmp_path / "model", [tmp_path / "a.txt"]
    for name, kept in (("none", False), ("none", True), ("model", False), ("a.txt", False), ("none", True)):
        (tmp_path / name).write_text(f"[00:00] <x> {name}")
        drop_others(*sources)
        assert (links / "a.annotation.txt").exists() == kept
        (links / "a.annotation.txt").touch()


def test_empty_logs_among_others_are_passed_over(cli, logs, tmp_path):
    (tmp_path / "2013-01-01.ubuntu.txt").touch()
    built = ("build", "ubuntu", "--logs", logs, "--logs", tmp_path, "--links", logs, "--pool-size", 4_000)
    code, _, err = cli(*built, "--out", tmp_path / "tasks")
    assert code == 0, err


def test_a_folder_of_something_else_is_not_built_over(cli, logs, tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")
    code, _, err = cli("build", "ubuntu", "--logs", logs, "--links", logs, "--out", tmp_path)
    assert (code, "is not empty; give another folder" in err) == (2, True)


def test_logs_without_links_need_a_model(cli, logs, tmp_path):
    code, _, err = cli("build", "ubuntu", "--logs", logs, "--out", tmp_path / "tasks")
    assert code == 2
    assert "no links; give --model, or --links with a file for this log" in err
    assert not list(tmp_path.rglob("*.parquet"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "empty log"),
        ("Dear diary,\nnothing happened.\n", "not an IRC log"),
        ("[10:00] <ann> hello?\n", "none of 3 conversations"),
    ],
)
def test_logs_that_give_nothing_say_why(cli, tmp_path, content, message):
    for day in (1, 2, 3):
        (tmp_path / f"2013-01-0{day}.x.txt").write_text(content)
        (tmp_path / f"2013-01-0{day}.x.annotation.txt").write_text("0 0 -\n")
    code, _, err = cli("build", "ubuntu", "--logs", tmp_path, "--links", tmp_path, "--out", tmp_path / "o")
    assert (code, message in err) == (2, True), err


def test_no_logs(cli, tmp_path):
    code, _, err = cli("build", "ubuntu", "--logs", tmp_path, "--out", tmp_path / "o")
    assert (code, "no logs; expected files such as" in err) == (2, True)


def test_advising(cli, tmp_path):
    advising.write(tmp_path / "raw", 40, seed=1)
    raw = ("--dialogues", tmp_path / "raw/dialogues.json", "--courses", tmp_path / "raw/courses.json")
    many = ("--train-size", 50, "--candidates", 1_000)
    code, _, err = cli("build", "advising", *raw, *many, "--out", tmp_path / "none")
    assert code == 2
    assert "different wrong options where 999 are needed; take more dialogues or fewer candidates" in err
    code, out, err = cli("build", "advising", *raw, "--train-size", 50, "--candidates", 20, "--out", tmp_path / "tasks")
    assert code == 0, err
    assert "| subtask_3/test_2 | 25 |" in out
    assert read_card(tmp_path / "tasks/subtask_5/train").knowledge == "../../knowledge.parquet"


def test_disentangle_train_apply_and_score(cli, tmp_path, logs):
    small = tmp_path / "small"
    irc.write(small, 1_500, seed=8)
    code, _, err = cli("disentangle", "train", "--annotations", small, "--out", tmp_path / "model")
    assert code == 0, err
    irc.write(tmp_path / "new", 1_500, seed=9)
    code, out, err = cli(
        "disentangle", "apply", tmp_path / "new", "--model", tmp_path / "model", "--out", tmp_path / "links"
    )
    assert code == 0, err
    assert out.count(".annotation.txt") == len(list((tmp_path / "new").glob("*.raw.txt")))
    code, out, err = cli("disentangle", "score", tmp_path / "new", tmp_path / "links", "--json")
    assert code == 0, err
    assert json.loads(out)["link F"] > 60
    code, out, _ = cli("disentangle", "score", tmp_path / "new", tmp_path / "new")
    assert "100.0" in out
    assert "percent ↑" in out
    assert "100 is perfect by all of them" in out


def test_dialeval_files_into_folders_and_back(cli, tmp_path):
    helpdesk.write(tmp_path / "raw", 30, seed=1)
    files = [tmp_path / "raw" / name for name in ("train_en.json", "train_cn.json")]
    code, out, err = cli("import", "dialeval", *files, "--out", tmp_path / "tasks")
    assert (code, out.split()) == (0, [str(tmp_path / "tasks" / name) for name in ("train_en", "train_cn")]), err
    code, out, _ = cli("export", tmp_path / "tasks", "--out", tmp_path / "official")
    assert code == 0
    assert json.loads((tmp_path / "official/train_cn.json").read_text()) == json.loads(files[1].read_text())
    run = tmp_path / "run.json"
    perfect = JudgementRun("votes", {n: a.distribution for n, a in read_truth(files[0]).answers.items()})
    dialeval.write(run, perfect, read_truth(files[0]))
    code, out, err = cli("score", tmp_path / "tasks/train_en", run, "-m", "NMD(A)", "-m", "JSD(S)", "--json")
    assert code == 0, err
    measures = json.loads(out)["runs"][0]["measures"]
    assert {name: measure["mean"] for name, measure in measures.items()} == pytest.approx({"NMD(A)": 0, "JSD(S)": 0})
    code, _, err = cli("export", tmp_path / "tasks", "--format", "dstc7", "--out", tmp_path / "wrong")
    assert code == 2
    assert "task.yaml" in err


CHATS = """\
id,who,what,when
1,Jo,My card 4111 1111 1111 1111 was charged twice.,2024-05-01 09:00
1,Ann (agent),We have paid it back.,2024-05-01 09:05
2,Jo,Hello?,2024-05-02 09:00
"""
NAMED = ("--conversation", "id", "--speaker", "who", "--text", "what", "--time", "when", "--customer", "jo")


def test_chats_are_imported_and_masked(cli, save, tmp_path):
    votes = save("votes.csv", "conversation,annotator,question,turn,label\n1,ann,S,,2\n")
    code, _, err = cli("import", "helpdesk", save("chats.csv", CHATS), *NAMED, "--mask", "--out", tmp_path / "chats")
    assert (code, err) == (0, f"2 dialogues in {tmp_path / 'chats'}\n")
    task = load_judgement_task(tmp_path / "chats")
    assert task.dialogues[0].turns[0].text == "My card [card] was charged twice."
    code, _, err = cli(
        "import", "helpdesk", tmp_path / "chats.csv", *NAMED, "--votes", votes, "--out", tmp_path / "voted"
    )
    notes = [
        "note: nobody voted on A, E, nugget: the task does not ask it",
        "note: left out 1 dialogue on which nobody voted",
    ]
    assert (code, err.splitlines()[:2]) == (0, notes)
    code, _, err = cli("import", "helpdesk", tmp_path / "chats.csv", "--out", tmp_path / "chats")
    assert (code, err.count("\n")) == (2, 1)
    assert "header: conversation: no such column; there are id, who, what, when" in err
    assert load_judgement_task(tmp_path / "chats").dialogues == task.dialogues


@pytest.fixture
def support_chats(save):
    """Write the sample's dialogues as a team would have them, the newest first."""
    rows = ["id,who,what,when"]
    for number, dialogue in enumerate(helpdesk.dialogues(60, seed=5)):
        for turn in dialogue.turns:
            for post in turn.utterances:
                who = "Jo" if turn.sender == "customer" else "Ann (agent)"
                text = post.replace('"', "'")
                rows.append(f'{number},{who},"{text} Mail jo@example.org.",{1_700_000_000 - 3600 * number}')
    return save("chats.csv", "\n".join(rows) + "\n")


def test_from_chats_to_suggested_replies(cli, save, support_chats, tmp_path):
    out = tmp_path / "tasks"
    code, _, err = cli("build", "chats", support_chats, *NAMED, "--out", out)
    assert (code, err.count("\n"), "take more dialogues, or --candidates" in err) == (2, 1, True)
    assert not out.exists()
    code, told, err = cli("build", "chats", support_chats, *NAMED, "--mask", "--candidates", 5, "--out", out)
    assert code == 0, err
    assert "| dialogues | 60 |" in told
    assert "note: split by time" in err
    pool, test = (load_selection_task(out / part).options["text"] for part in ("subtask_2/test", "subtask_1/test"))
    assert all("[email]" in text and "@" not in text for text in pool)
    newest = [dialogue.turns for dialogue in list(helpdesk.dialogues(60, seed=5))[:6]]
    said = {turn.utterances[0] for turns in newest for turn in turns if turn.sender == "helpdesk"}
    assert all(any(text.startswith(first) for first in said) for text in test)
    assert read_card(out / "subtask_4/dev").sources.keys() == {"chats.csv"}

    model = tmp_path / "bm25.model"
    assert cli("train", "bm25", "--task", out / "subtask_1", "--out", model)[0] == 0
    assert cli("predict", model, "--task", out / "subtask_1/test", "--out", tmp_path / "run.json")[0] == 0
    assert cli("score", out / "subtask_1/test", tmp_path / "run.json", "--trials", 100)[0] == 0
    assert cli("export", out / "subtask_2/test", "--out", tmp_path / "official")[0] == 0
    asked = [{"example-id": "new", "messages-so-far": [{"speaker": "customer", "utterance": "I paid twice"}]}]
    replies = tmp_path / "official/chats_subtask_2_candidates.txt"
    question = ("--task", save("question.json", asked), "--pool", replies, "--out", tmp_path / "answer.json")
    assert cli("predict", model, *question)[0] == 0
    best = json.loads((tmp_path / "answer.json").read_text())[0]["candidate-ranking"][0]["candidate-id"]
    assert dict(line.split("\t") for line in replies.read_text().splitlines())[best] in set(pool)


def test_who_helps_has_to_be_known(cli, support_chats, tmp_path):
    named = NAMED[: NAMED.index("--customer")]
    code, _, err = cli("build", "chats", support_chats, *named, "--out", tmp_path / "tasks")
    assert (code, "'Jo' is neither known as a customer nor as the helpdesk" in err) == (2, True)
    assert cli("build", "chats", support_chats, *NAMED, "--candidates", 5, "--out", tmp_path / "tasks")[0] == 0
    lists = tmp_path / "tasks/subtask_1/test"
    code, _, err = cli("build", "chats", lists, "--out", tmp_path / "more")
    assert (code, err) == (2, f"error: {lists}: holds no dialogues between a customer and a helpdesk\n")


def test_too_few_days_and_links_that_are_not_there_are_told_before_the_work(cli, tmp_path):
    for day in (1, 2, 3):
        (tmp_path / f"2013-01-0{day}.txt").write_text("[10:00] <ann> hello?\n")
    code, _, err = cli("build", "ubuntu", "--logs", tmp_path / "2013-01-01.txt", "--out", tmp_path / "o")
    assert (code, err) == (2, "error: logs: 1 day; a split by time needs at least 3\n")
    code, _, err = cli("build", "ubuntu", "--logs", tmp_path, "--links", tmp_path / "no", "--out", tmp_path / "o")
    assert (code, err) == (2, f"error: {tmp_path / 'no'}: no such folder\n")
    assert not (tmp_path / "o").exists()


def test_a_missing_library_is_one_line_that_says_what_to_install(cli, monkeypatch, tmp_path):
    cli("sample", "irc", "--out", tmp_path / "irc", "--size", "500")
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    code, _, err = cli("disentangle", "train", "--annotations", tmp_path / "irc", "--out", tmp_path / "links.model")
    assert (code, err.splitlines()[-1]) == (2, "error: this needs lightgbm: pip install 'rejoinder[search]'")
    assert not (tmp_path / "links.model").exists()
