import json
import shutil

import polars as pl
import pytest

from rejoinder.files import BadInputError
from rejoinder.tasks.card import read_card
from rejoinder.tasks.selection import load_selection_task
from rejoinder.tasks.transfer import export_dialeval, export_dstc7, import_dialeval, import_dstc7, task_folders
from rejoinder.tasks.writer import TaskWriter


def candidate(number):
    return {"candidate-id": f"C{number}", "utterance": f"reply {number} — «ü»"}


def example(number, correct=(1,), options=range(5), **more):
    return {
        "data-split": "train",
        "example-id": 1100000 + number,
        "messages-so-far": [{"speaker": "participant_1", "utterance": f"question {number}"}],
        "options-for-correct-answers": [candidate(n) for n in correct],
        "options-for-next": [candidate(n) for n in options],
        **more,
        "scenario": 4,
    }


def ignore(_):
    pass


@pytest.mark.parametrize("name", ["ubuntu_train_subtask_4.json", "ubuntu_train_subtask_4.json.gz"])
def test_official_files_come_back_byte_for_byte(save, tmp_path, name):
    records = [example(1), example(2, correct=()), example(3, correct=(0, 4))]
    text = json.dumps(records, indent=4, ensure_ascii=False) + "\n"
    folder = import_dstc7(save(name, text), tmp_path / "tasks", None, ignore)
    assert folder == tmp_path / "tasks/subtask_4/train"
    written = list(export_dstc7(folder, tmp_path / "official", ignore, {}))
    assert [path.name for path in written] == ["ubuntu_train_subtask_4.json", "ubuntu_train_subtask_4_answers.tsv"]
    assert written[0].read_text() == text
    assert written[1].read_text() == "1100001\tC1\n1100002\tNONE\n1100003\tC0,C4\n"


@pytest.mark.parametrize("split", ["../../elsewhere", "a/b", "."])
def test_a_split_that_is_no_name_writes_nothing_elsewhere(save, tmp_path, complaint, split):
    path = save("data.json", [example(1, **{"data-split": split})])
    problem = complaint(import_dstc7, path, tmp_path / "tasks", None, ignore)
    assert problem == f"data.json: record 1: data-split: {split!r}; expected a name such as train"
    assert [path.name for path in tmp_path.iterdir()] == ["data.json"]


@pytest.mark.parametrize("field", ["split: train", "dataset: ubuntu"])
def test_a_card_that_leads_elsewhere_is_not_exported(save, tmp_path, complaint, field):
    folder = import_dstc7(save("data.json", [example(1)]), tmp_path / "tasks", None, ignore)
    card, name = folder / "task.yaml", field.partition(":")[0]
    card.write_text(card.read_text().replace(field, f"{name}: ../x"))
    told = f"tasks/subtask_4/train/task.yaml: {name}: is '../x'; expected a name that files can have, too"
    assert complaint(list, export_lazily(folder, tmp_path / "official")) == told
    assert not (tmp_path / "official").exists()


def test_an_answer_is_the_option_of_its_id(save, tmp_path):
    """Even where the file spells the two differently."""
    record = example(1, **{"options-for-correct-answers": [{"candidate-id": "C1", "utterance": "Reply 1"}]})
    task = load_selection_task(import_dstc7(save("train.json", [record]), tmp_path / "tasks", None, ignore))
    (row,) = task.examples["correct"][0]
    assert row in task.examples["options"][0].to_list()
    assert task.options["text"][row] == candidate(1)["utterance"]


def test_profiles_survive(save, tmp_path):
    records = [example(1, profile={"Courses": {"Prior": [{"offering": "EECS 280-FA14"}]}, "Term": "fall"})]
    text = json.dumps(records, indent=4) + "\n"
    path = save(
        "advising.json",
        text.replace("—", "-")
        .replace("\\u2014", "—")
        .replace("\\u00ab", "«")
        .replace("\\u00fc", "ü")
        .replace("\\u00bb", "»"),
    )
    folder = import_dstc7(path, tmp_path / "tasks", None, ignore)
    assert read_card(folder).dataset == "advising"
    (written, _) = export_dstc7(folder, tmp_path / "official", ignore, {})
    assert written.read_text() == path.read_text()


def test_damaged_profiles_are_named(save, tmp_path, complaint):
    folder = import_dstc7(save("advising.json", [example(1, profile={"a": 1})]), tmp_path / "tasks", None, ignore)
    path = folder / "profiles.parquet"
    table = pl.read_parquet(path)
    told = {
        "tasks/subtask_4/train/profiles.parquet: row 1: profile: is missing": pl.lit(None, pl.String),
        "profiles.parquet: example 1100001: profile: malformed JSON (": pl.lit("{"),
        "tasks/subtask_4/train/profiles.parquet: expected the columns {'id': String, 'profile': String}": pl.lit(1),
    }
    for problem, damage in told.items():
        table.with_columns(damage.alias("profile")).write_parquet(path)
        assert complaint(list, export_lazily(folder, tmp_path / "official")).startswith(problem)
    assert not list(tmp_path.glob("official/*"))


def export_lazily(folder, out):
    yield from export_dstc7(folder, out, ignore, {})


def test_a_pool_is_read_first_and_shared(save, tmp_path):
    pool = save("pool.txt", "".join(f"C{n}\treply {n} — «ü»\n" for n in range(9)))
    path = save("test.json", [{**example(1), "options-for-next": []}])
    folder = import_dstc7(path, tmp_path / "tasks", pool, ignore)
    task = load_selection_task(folder)
    assert task.options["id"].to_list() == [f"C{n}" for n in range(9)]
    assert task.truth().pool is not None
    names = [p.name for p in export_dstc7(folder, tmp_path / "out", ignore, {})]
    assert "ubuntu_subtask_4_candidates.txt" in names
    assert (tmp_path / "out/ubuntu_subtask_4_candidates.txt").read_bytes() == pool.read_bytes()


def bare(number, **more):
    return {**example(number, **more), "options-for-next": []}


def test_splits_share_a_pool_that_is_written_once(cli, save, tmp_path):
    pool = save("pool.txt", "".join(f"C{n}\treply {n} — «ü»\n" for n in range(9)))
    for split in ("dev", "test"):
        path = save(f"{split}.json", [bare(1, **{"data-split": split})])
        assert cli("import", "dstc7", path, "--pool", pool, "--out", tmp_path / "tasks")[0] == 0
    code, out, _ = cli("export", tmp_path / "tasks", "--out", tmp_path / "out")
    assert (code, out.count("ubuntu_subtask_4_candidates.txt")) == (0, 1)
    assert len(out.split("\n")) - 1 == len(list((tmp_path / "out").iterdir())) == 5
    other = save("other.txt", "".join(f"C{n}\treply {n} — «ü»\n" for n in range(7)))
    assert cli("import", "dstc7", path, "--pool", other, "--out", tmp_path / "tasks")[0] == 0
    code, _, err = cli("export", tmp_path / "tasks", "--out", tmp_path / "again")
    assert code == 2
    assert "tasks/subtask_4/test: has another pool than the one in" in err


def test_what_chooses_from_a_pool_is_not_read_without_it(save, tmp_path, complaint):
    path = save("ubuntu_test_subtask_4.json", [bare(1, **{"data-split": "test"})])
    assert complaint(import_dstc7, path, tmp_path / "tasks", None, ignore) == (
        "ubuntu_test_subtask_4.json: record 1: options-for-next: has no options of its own; name the pool to choose "
        "from (--pool), or lay it beside this file as ubuntu_subtask_4_candidates.txt"
    )
    assert not (tmp_path / "tasks").exists()
    beside = save("ubuntu_subtask_4_candidates.txt", "")
    assert "holds no option to choose from" in complaint(import_dstc7, path, tmp_path / "tasks", None, ignore)
    beside.write_text("".join(f"C{n}\treply {n} — «ü»\n" for n in range(7)))
    assert load_selection_task(import_dstc7(path, tmp_path / "tasks", None, ignore)).options.height == 7


def test_a_pool_is_for_those_without_options_alone(save, tmp_path, complaint):
    pool = save("pool.txt", "".join(f"C{n}\treply {n} — «ü»\n" for n in range(9)))
    folder = import_dstc7(save("train.json", [example(1)]), tmp_path / "tasks", pool, ignore)
    assert load_selection_task(folder).options.height == 5
    for records, problem in (
        ([example(1), bare(2)], "left out or empty here, but not in other records"),
        ([bare(1), example(2)], "only some records have any"),
    ):
        told = complaint(import_dstc7, save("mixed.json", records), tmp_path / "tasks", pool, ignore)
        assert told == f"mixed.json: example-id 1100002: options-for-next: {problem}"


def test_a_whole_collection_comes_back(cli, save, tmp_path):
    pool = "".join(f"C{n}\treply {n} — «ü»\n" for n in range(9))
    made = tmp_path / "made"
    import_dstc7(save("train.json", [example(1)]), made, None, ignore)
    for name in ("ubuntu_dev_subtask_2.json", "ubuntu_train_turns.json"):
        split = name.split("_")[1]
        path = save(name, [bare(1, **{"data-split": split}) | {"scenario": 2}])
        import_dstc7(path, made, save("pool.txt", pool), ignore)
    assert cli("export", made, "--out", tmp_path / "official")[0] == 0
    assert cli("import", "dstc7", *sorted((tmp_path / "official").glob("*.json")), "--out", tmp_path / "again")[0] == 0
    folders = [str(path.relative_to(made)) for path in task_folders(made)]
    assert folders == ["subtask_2/dev", "subtask_4/train", "turns/train"]
    assert [str(path.relative_to(tmp_path / "again")) for path in task_folders(tmp_path / "again")] == folders
    assert cli("export", tmp_path / "again", "--out", tmp_path / "twice")[0] == 0
    first, second = ({p.name: p.read_bytes() for p in (tmp_path / n).iterdir()} for n in ("official", "twice"))
    assert first == second


def test_files_of_one_folder_are_refused_before_any_is_read(cli, save, tmp_path):
    first, second = save("a.json", [example(1)]), save("b.json", [example(2)])
    code, _, err = cli("import", "dstc7", first, second, "--out", tmp_path / "out")
    assert (code, f"b.json: would be written over {first}, into {tmp_path / 'out/subtask_4/train'}" in err) == (2, True)
    assert not (tmp_path / "out").exists()


def test_turns_to_train_on_are_not_written_over_a_subtask(save, tmp_path):
    folder = import_dstc7(save("train.json", [example(1)]), tmp_path / "tasks", None, ignore)
    shutil.copytree(folder, tmp_path / "tasks" / "turns" / "train")
    tasks = task_folders(tmp_path / "tasks")
    written = [path.name for task in tasks for path in export_dstc7(task, tmp_path, ignore, {})]
    assert len(set(written)) == len(written) == 4
    assert "ubuntu_train_turns.json" in written


def test_one_file_holds_one_split_of_one_subtask(save, tmp_path, complaint):
    path = save("f.json", [example(1), {**example(2), "data-split": "dev"}])
    assert complaint(import_dstc7, path, tmp_path / "out", None, ignore) == (
        "f.json: example-id 1100002: data-split: 'dev' where the first record has 'train'; "
        "a file holds one split of one subtask"
    )


def test_a_broken_file_leaves_an_earlier_import_untouched(save, tmp_path):
    path = save("f.json", [example(1)])
    folder = import_dstc7(path, tmp_path / "out", None, ignore)
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    broken = save("g.json", [example(1), {**example(2), "messages-so-far": 3}])
    with pytest.raises(BadInputError):
        import_dstc7(broken, tmp_path / "out", None, ignore)
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == before


def test_a_broken_file_leaves_no_folder(save, tmp_path):
    path = save("g.json", [example(1), {**example(2), "messages-so-far": 3}])
    (tmp_path / "mine").mkdir()
    with pytest.raises(BadInputError):
        import_dstc7(path, tmp_path / "mine/ubuntu", None, ignore)
    assert not list((tmp_path / "mine").iterdir())


def test_many_examples_pass_in_parts(tmp_path):
    with TaskWriter(tmp_path) as writer:
        for number in range(4_500):
            writer.add(str(number), [("a", "hi")], [(f"o{number}", "x"), ("same", "y")], [("same", "y")])
    task = load_selection_task(tmp_path)
    assert task.examples["id"].to_list() == [str(number) for number in range(4_500)]
    assert task.options.height == 4_501
    assert {task.options["id"][int(rows[0])] for rows in task.examples["correct"]} == {"same"}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["examples.parquet", "options.parquet"]


def test_a_folder_without_tasks_says_so(tmp_path, complaint):
    assert "no task; expected folders with task.yaml" in complaint(task_folders, tmp_path)


def dialogue(id_, annotated=True):
    votes = [
        {"quality": {"A": 2, "S": -1, "E": 0}, "nugget": ["CNUG0", "HNUG*"]},
        {"quality": {"A": -2, "S": 1, "E": 0}, "nugget": ["CNaN", "HNaN"]},
    ]
    turns = [{"sender": "customer", "utterances": ['坏了\t"—"', ""]}, {"sender": "helpdesk", "utterances": []}]
    return ({"annotations": votes} if annotated else {}) | {"id": id_, "turns": turns}


@pytest.mark.parametrize("indent", [None, 2, 4])
@pytest.mark.parametrize("newline", ["", "\n"])
@pytest.mark.parametrize("annotated", [True, False])
@pytest.mark.parametrize("name", ["train_cn.json", "train_cn.json.gz"])
def test_dialeval_files_come_back_byte_for_byte(save, tmp_path, indent, newline, annotated, name):
    text = json.dumps([dialogue("8", annotated), dialogue("7", annotated)], indent=indent, ensure_ascii=False) + newline
    folder = import_dialeval(save(name, text), tmp_path / "tasks")
    assert folder == tmp_path / "tasks/train_cn"
    assert export_dialeval(folder, tmp_path / "official").read_text("utf-8") == text


def test_other_label_sets_are_no_dialeval_files(save, tmp_path, complaint):
    folder = import_dialeval(save("f.json", [dialogue("8")]), tmp_path)
    card = folder / "task.yaml"
    card.write_text(card.read_text().replace("CNUG0", "CNUG1"))
    (folder / "votes.parquet").unlink()
    assert complaint(export_dialeval, folder, tmp_path) == (
        "f: asks A, S, E, nugget; DialEval's files hold A, S, E and nugget, with their labels"
    )


def test_a_pool_that_lacks_an_answer_is_not_filled_up(save, tmp_path, complaint):
    record = {**example(1), "options-for-next": []}
    answer = record["options-for-correct-answers"][0]["candidate-id"]
    path, pool = save("f.json", [record]), save("pool.txt", "other\tsomething else\n")
    told = complaint(import_dstc7, path, tmp_path / "out", pool, ignore)
    assert told == f"f.json: record 1 (example-id {record['example-id']}): options-for-correct-answers: " + (
        f"{answer!r} is not in the pool"
    )
    assert not (tmp_path / "out").exists()
