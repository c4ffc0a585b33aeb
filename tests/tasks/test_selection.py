import polars as pl
import pytest

from rejoinder.tasks.selection import EXAMPLE_SCHEMA, OPTION_SCHEMA, SelectionTask, load_selection_task

TURNS = [{"speaker": "a", "text": "hi"}, {"speaker": "b", "text": "there"}]


def make_task(**changes: list[object]) -> SelectionTask:
    columns = {
        "id": ["1", "2"],
        "turns": [TURNS, TURNS[:1]],
        "options": [[0, 1], [1, 2]],
        "correct": [[1], []],
    }
    options = pl.DataFrame({"id": ["A", "B", "C"], "text": ["a", "b", "c"]}, schema=OPTION_SCHEMA)
    return SelectionTask(pl.DataFrame(columns | changes, schema=EXAMPLE_SCHEMA), options)


def test_contexts():
    assert make_task().contexts() == ["hi there", "hi"]


def test_truth_of_own_options():
    truth = make_task().truth()
    assert truth.ids.to_list() == ["1", "2"]
    assert truth.correct.rows() == [(0, "B"), (1, "NONE")]
    assert truth.options.rows() == [(0, "A"), (0, "B"), (1, "B"), (1, "C")]
    assert truth.pool is None
    assert truth.groups.rows() == [(2, 1), (1, 0)]
    assert not truth.several_correct


def test_truth_of_a_pool():
    truth = make_task(options=[None, None], correct=[[0, 1], [2]]).truth()
    assert truth.correct.rows() == [(0, "A"), (0, "B"), (1, "C")]
    assert truth.options is None
    assert truth.pool.to_list() == ["A", "B", "C"]
    assert truth.several_correct


def test_a_task_without_answers_has_no_truth():
    with pytest.raises(ValueError, match="no answers to score against"):
        make_task(correct=[[0], None]).truth()


def test_a_task_is_saved_and_loaded(tmp_path):
    task = make_task(options=[[0, 1], None], correct=[[1], None])
    task.save(tmp_path / "a")
    task.save(tmp_path / "b")
    again = load_selection_task(tmp_path / "a")
    assert again.examples.equals(task.examples)
    assert again.options.equals(task.options)
    for name in ("examples.parquet", "options.parquet"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"id": ["1", None]}, "row 2: id: is empty"),
        ({"id": ["", "2"]}, "row 1: id: is empty"),
        ({"id": ["1", "1"]}, "row 2: id: stands in an earlier row too"),
        ({"turns": [TURNS, None]}, "row 2: turns: is empty"),
        ({"turns": [TURNS, [{"speaker": "a", "text": None}]]}, "row 2: turns: holds a turn without text"),
        ({"turns": [TURNS, [None]]}, "row 2: turns: holds a turn without text"),
        ({"options": [[0, 1], []]}, "row 2: options: holds no option"),
        ({"options": [[0, 1], [2, 3]]}, "row 2: options: refers to a row that options.parquet has not"),
        ({"options": [[0, 1], [2, None]]}, "row 2: options: refers to a row that options.parquet has not"),
        ({"options": [[0, 1, 0], [2]]}, "row 1: options: holds an option twice"),
        ({"correct": [[9], []]}, "row 1: correct: refers to a row that options.parquet has not"),
        ({"correct": [[1], [None]]}, "row 2: correct: refers to a row that options.parquet has not"),
        ({"correct": [[1, 1], []]}, "row 1: correct: holds an option twice"),
        ({"correct": [[2], []]}, "row 1: correct: is not among the options"),
        ({"id": [], "turns": [], "options": [], "correct": []}, "holds no example"),
    ],
)
def test_malformed_tasks(tmp_path, complaint, changes, problem):
    make_task(**changes).save(tmp_path)
    assert complaint(load_selection_task, tmp_path) == f"examples.parquet: {problem}"


def test_an_option_that_is_shared_is_nobodys_own(tmp_path, complaint):
    task = make_task(options=[[1], [0, 2]], correct=[[1], []])
    shared = task.options.with_columns(shared=pl.Series([True, False, False]))
    SelectionTask(task.examples, shared).save(tmp_path)
    problem = "examples.parquet: row 2: options: holds an option that is shared"
    assert complaint(load_selection_task, tmp_path) == problem
    task = make_task(options=[[1], [2]], correct=[[1], []])
    SelectionTask(task.examples, shared.with_columns(id=pl.Series(["A", "B", "A"]))).save(tmp_path)
    assert complaint(load_selection_task, tmp_path) == "examples.parquet: row 2: options: holds two options of one id"


def test_no_option_is_called_none(tmp_path, complaint):
    task = make_task()
    SelectionTask(task.examples, task.options.with_columns(id=pl.Series(["A", "NONE", "C"]))).save(tmp_path)
    problem = "options.parquet: row 2: id: is NONE, which means no option"
    assert complaint(load_selection_task, tmp_path) == problem


def test_what_may_be_chosen_without_the_answers():
    offer = make_task(correct=[None, None]).offer()
    assert offer.options.rows() == [(0, "A"), (0, "B"), (1, "B"), (1, "C")]
    assert offer.correct.is_empty()
    mixed = make_task(options=[[0, 1], None]).offer()
    assert (mixed.options, mixed.pool.to_list()) == (None, ["A", "B", "C"])


def test_an_option_without_id_or_text(tmp_path, complaint):
    task = make_task()
    SelectionTask(task.examples, task.options.with_columns(id=pl.Series(["A", "B", None]))).save(tmp_path)
    assert complaint(load_selection_task, tmp_path) == "options.parquet: row 3: id: is empty"
    SelectionTask(task.examples, task.options.with_columns(text=pl.Series(["A", None, ""]))).save(tmp_path)
    assert complaint(load_selection_task, tmp_path) == "options.parquet: row 2: text: is missing"


def test_an_id_is_one_option_of_a_pool_or_an_example(tmp_path, complaint):
    pooled = make_task(options=[None, None], correct=[[0], [1]])
    twice = pl.Series(["A", "B", "A"])
    SelectionTask(pooled.examples, pooled.options.with_columns(id=twice)).save(tmp_path)
    told = "options.parquet: row 3: id: stands in an earlier row of the pool too"
    assert complaint(load_selection_task, tmp_path) == told
    for lists, fine in (([[0, 1], [1, 2]], True), ([[0, 1], [0, 2]], False)):
        task = make_task(options=lists, correct=[[1], []])
        SelectionTask(task.examples, task.options.with_columns(id=twice)).save(tmp_path)
        if fine:
            assert load_selection_task(tmp_path).examples.height == 2
        else:
            told = "examples.parquet: row 2: options: holds two options of one id"
            assert complaint(load_selection_task, tmp_path) == told


def test_a_folder_that_is_no_task(tmp_path, save, complaint):
    problem = "is no task; expected options.parquet and examples.parquet, or dialogues.parquet"
    assert complaint(load_selection_task, tmp_path) == f"{tmp_path}: {problem}"
    assert complaint(load_selection_task, save("file", "text")) == f"file: {problem}"
    make_task().save(tmp_path)
    (tmp_path / "examples.parquet").unlink()
    problem = "no such file; a task has options.parquet and examples.parquet"
    assert complaint(load_selection_task, tmp_path) == f"examples.parquet: {problem}"


def test_tables_that_are_none(tmp_path, complaint):
    make_task().save(tmp_path)
    (tmp_path / "examples.parquet").write_bytes((tmp_path / "options.parquet").read_bytes())
    assert complaint(load_selection_task, tmp_path).startswith("examples.parquet: expected the columns {'id': String, ")
    (tmp_path / "options.parquet").write_bytes(b"text")
    assert complaint(load_selection_task, tmp_path).startswith("options.parquet: not a Parquet table, or a damaged one")
