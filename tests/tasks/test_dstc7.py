import json

import polars as pl
import pytest

from rejoinder.tasks import dstc7
from rejoinder.tasks.selection import SelectionTruth, to_pairs

A, B, C = ({"candidate-id": id_, "utterance": f"say {id_}"} for id_ in "ABC")


def record(id_: object = 1, **changes: object) -> dict[str, object]:
    """An example with every official key, and the Advising `profile`."""
    keys = {
        "data-split": "train",
        "example-id": id_,
        "messages-so-far": [
            {"speaker": "participant_1", "utterance": "hey guys, does your livecd have chroot?"},
            {"speaker": "participant_2", "utterance": "sure – ça va"},
        ],
        "options-for-correct-answers": [A],
        "options-for-next": [B, A, C],
        "profile": {"Courses": {"Taken": ["EECS 280"], "Suggested": []}, "Term": 7},
        "scenario": 1,
    }
    changes = {name.replace("_", "-"): value for name, value in changes.items()}
    return {name: value for name, value in (keys | changes).items() if value is not None}


def read(path):
    return list(dstc7.read_examples(path))


def test_every_official_key_is_read_and_written_byte_for_byte(save, tmp_path):
    text = json.dumps([record(), record(2)], indent=4, ensure_ascii=False) + "\n"
    path = save("examples.json", text)
    for name in ("again.json", "again.json.gz"):
        dstc7.write_examples(tmp_path / name, dstc7.read_examples(path))
        assert read(tmp_path / name) == read(path)
    assert (tmp_path / "again.json").read_text("utf-8") == text
    first = read(path)[0]
    assert (first.data_split, first.example_id, first.scenario) == ("train", 1, 1)
    assert first.profile == {"Courses": {"Taken": ["EECS 280"], "Suggested": []}, "Term": 7}
    assert [message.speaker for message in first.messages_so_far] == ["participant_1", "participant_2"]
    assert [option.id for option in first.options] == ["B", "A", "C"]
    assert [option.utterance for option in first.correct] == ["say A"]


def test_keys_that_may_be_left_out_stay_left_out(save, tmp_path):
    bare = record(data_split=None, options_for_correct_answers=None, options_for_next=None, profile=None, scenario=None)
    path = save("f", [bare])
    dstc7.write_examples(tmp_path / "again", dstc7.read_examples(path))
    assert json.loads((tmp_path / "again").read_text()) == [bare]
    assert read(path)[0].options == read(path)[0].correct == []


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"example_id": True}, "record 2: example-id: expected `int | str`, got `bool`"),
        ({"example_id": 1.0}, "record 2: example-id: expected `int | str`, got `float`"),
        ({"example_id": ""}, "record 2: example-id: expected `str` of length >= 1"),
        ({"example_id": None}, "record 2: object missing required field `example-id`"),
        ({"messages_so_far": None}, "record 2: object missing required field `messages-so-far`"),
        ({"messages_so_far": [{"speaker": "a"}]}, "record 2: messages-so-far[0]: object missing required field"),
        ({"options_for_next": [A, {"candidate-id": "B"}]}, "record 2: options-for-next[1]: object missing required"),
        ({"options_for_next": [{"candidate-id": "", "utterance": "x"}]}, "record 2: options-for-next[0].candidate-id"),
        ({"options_for_next": [{"candidate-id": 7, "utterance": "x"}]}, "record 2: options-for-next[0].candidate-id"),
        ({"options_for_next": {}}, "record 2: options-for-next: expected `array`, got `object`"),
        ({"scenario": "1"}, "record 2: scenario: expected `int`, got `str`"),
        ({"scenario": 99}, "record 2: scenario: expected `int` <= 5"),
        ({"scenario": 0}, "record 2: scenario: expected `int` >= 1"),
        ({"profile": "p"}, "record 2: profile: expected `object | array`, got `str`"),
        ({"example_id": "1"}, "record 2 (example-id 1): example-id: duplicate id, first used by record 1"),
        ({"options_for_next": [A, B, A]}, "record 2 (example-id 2): options-for-next: duplicate candidate 'A'"),
        (
            {"options_for_correct_answers": [A, A]},
            "record 2 (example-id 2): options-for-correct-answers: duplicate candidate 'A'",
        ),
        (
            {"options_for_next": [A, {"candidate-id": "NONE", "utterance": "x"}]},
            "record 2 (example-id 2): options-for-next: an option is called NONE, which says that no option is right",
        ),
        (
            {"options_for_next": [B, C]},
            "record 2 (example-id 2): options-for-correct-answers: 'A' is not among options-for-next",
        ),
    ],
)
def test_malformed_examples(save, complaint, changes, problem):
    assert complaint(read, save("f.json", [record(), record(2, **changes)])).startswith(f"f.json: {problem}")


def test_options_are_in_all_records_or_in_none(save, complaint):
    path = save("f", [record(), record(2, options_for_next=[])])
    told = "f: example-id 2: options-for-next: left out or empty here, but not in other records"
    assert complaint(dstc7.read_task, path) == told


def test_a_file_without_examples(save, complaint):
    assert complaint(dstc7.read_task, save("f", "[]")) == "f: holds no example"


def test_task_tables(save):
    task = dstc7.read_task(save("f", [record(), record("x", options_for_correct_answers=[])]))
    assert task.options.rows() == [("B", "say B"), ("A", "say A"), ("C", "say C")]
    assert task.examples["id"].to_list() == ["1", "x"]
    assert task.examples["options"].to_list() == [[0, 1, 2], [0, 1, 2]]
    assert task.examples["correct"].to_list() == [[1], []]
    assert task.examples["turns"].list.len().to_list() == [2, 2]


def test_a_task_of_a_pool(save):
    pool = save("pool", "B\tsay B\nA\tsay A\nD\t\n")
    task = dstc7.read_task(save("f", [record(options_for_next=[])]), pool)
    assert task.options["id"].to_list() == ["B", "A", "D"]
    assert task.examples["options"].to_list() == [None]
    assert task.truth().pool.to_list() == ["B", "A", "D"]
    assert task.truth().correct.rows() == [(0, "A")]


def test_an_option_of_a_pool_has_the_pools_text(save, tmp_path, complaint):
    said = [{"candidate-id": "A", "utterance": "say   A"}]
    examples = save("f", [record(options_for_next=[], options_for_correct_answers=said)])
    task = dstc7.read_task(examples, save("pool", "B\tsay B\nA\tsay A\n"))
    assert task.options.rows() == [("B", "say B"), ("A", "say A")]
    assert task.examples["correct"].to_list() == [[1]]
    told = complaint(dstc7.read_task, examples, save("other", "A\tsay nothing\n"))
    where = "f: record 1 (example-id 1): options-for-correct-answers"
    assert told == f"{where}: 'A' has another utterance in the pool"
    for name, text in (("fewer", "B\tsay B\n"), ("empty", "")):
        assert complaint(dstc7.read_task, examples, save(name, text)) == f"{where}: 'A' is not in the pool"
    spaced = save("own", [record(options_for_correct_answers=said)])  # with options of its own, theirs counts
    assert dstc7.read_task(spaced).examples["correct"].to_list() == [[1]]

    odd = dstc7.read_task(examples)  # what is written is read back, though a pool's lines have single spaces
    dstc7.write_pool(tmp_path / "written", odd.options)
    assert dstc7.read_task(examples, tmp_path / "written").options.height == 1


def test_records_of_a_task(save, tmp_path):
    task = dstc7.read_task(save("f", [record(profile=None), record(2, profile=None, options_for_correct_answers=None)]))
    dstc7.write_examples(tmp_path / "again", dstc7.to_examples(task, "train", 1))
    assert json.loads((tmp_path / "again").read_text()) == [
        record(profile=None),
        record(2, profile=None, options_for_correct_answers=None),
    ]


@pytest.mark.parametrize(
    ("id_", "official"),
    [("0", 0), ("1100001", 1100001), ("007", "007"), ("-1", "-1"), ("a", "a"), ("٣", "٣"), ("9" * 5000, "9" * 5000)],
)
def test_official_ids_are_numbers_where_they_can_be(id_, official):
    assert dstc7.official_id(id_) == official


@pytest.mark.parametrize("name", ["pool.tsv", "pool.tsv.gz"])
def test_pools(save, tmp_path, name):
    path = save(name, "A\tsay, A\r\nB\t\nC\ttab\there\n")
    options = list(dstc7.read_pool(path))
    assert options == [("A", "say, A"), ("B", ""), ("C", "tab\there")]
    for again in (tmp_path / name, tmp_path / f"again-{name}"):
        dstc7.write_pool(again, pl.DataFrame(options, schema=["id", "text"], orient="row"))
    assert list(dstc7.read_pool(again)) == [("A", "say, A"), ("B", ""), ("C", "tab here")]
    assert (tmp_path / name).read_bytes() == again.read_bytes()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("A\tx\nB\n", "line 2: expected a candidate id, a TAB and its utterance"),
        ("A\tx\n\ty\n", "line 2: expected a candidate id, a TAB and its utterance"),
        ("A\tx\n\nB\ty\n", "line 2: expected a candidate id, a TAB and its utterance"),
        ("A\tx\nB\ty\nA\tx\n", "line 3: candidate-id: duplicate candidate 'A'"),
        ("NONE\tx\n", "line 1: candidate-id: an option is called NONE, which says that no option is right"),
    ],
)
def test_malformed_pools(save, complaint, text, problem):
    assert complaint(lambda path: list(dstc7.read_pool(path)), save("f", text)) == f"f: {problem}"


@pytest.mark.parametrize("name", ["key.tsv", "key.tsv.gz"])
def test_answer_keys(save, tmp_path, name):
    truth = dstc7.read_answer_key(save(name, b"\xef\xbb\xbf12\tA\r\n\r\n7\tB, C\nx\tNONE"))
    assert truth.ids.to_list() == ["12", "7", "x"]
    assert truth.correct.rows() == [(0, "A"), (1, "B"), (1, "C"), (2, "NONE")]
    assert truth.groups["answers"].to_list() == [1, 2, 0]
    assert truth.several_correct
    for again in (tmp_path / name, tmp_path / f"again-{name}"):
        dstc7.write_answer_key(again, truth)
    assert (tmp_path / name).read_bytes() == again.read_bytes()
    assert dstc7.read_answer_key(again).correct.equals(truth.correct)
    assert dstc7.read_answer_key(again).ids.equals(truth.ids)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("2 B", "line 2: expected an example id, a TAB and answers with commas between"),
        ("2\t", "line 2: expected an example id, a TAB and answers with commas between"),
        ("2\tB,", "line 2: expected an example id, a TAB and answers with commas between"),
        ("2\tB\tC", "line 2: expected an example id, a TAB and answers with commas between"),
        (" \tB", "line 2: expected an example id, a TAB and answers with commas between"),
        ("1\tB", "line 2: example id: duplicate id '1'"),
        ("2\tB,C,B", "line 2: answer: an answer is given twice"),
        ("2\tB,NONE", "line 2: answer: NONE stands beside another answer"),
    ],
)
def test_malformed_answer_keys(save, complaint, line, problem):
    assert complaint(dstc7.read_answer_key, save("key", f"1\tA\n{line}\n")) == f"key: {problem}"


def test_an_empty_answer_key(save, complaint):
    assert complaint(dstc7.read_answer_key, save("key", "\n \n")) == "key: holds no answer"


@pytest.mark.parametrize("name", ["Good Morning, Miss Dove", "a\tb", "a\nb", " a"])
def test_names_that_an_answer_key_or_pool_cannot_hold(complaint, tmp_path, name):
    truth = SelectionTruth(pl.Series("id", ["1"]), to_pairs([0], [name]))
    problem = complaint(dstc7.write_answer_key, tmp_path / "key", truth)
    assert problem == f"key: the format cannot hold the name {name!r}"
    assert not (tmp_path / "key").exists()


def test_ids_that_a_pool_cannot_hold(complaint, tmp_path):
    options = pl.DataFrame({"id": ["a\tb"], "text": ["x"]})
    assert complaint(dstc7.write_pool, tmp_path / "pool", options) == "pool: the format cannot hold the name 'a\\tb'"
