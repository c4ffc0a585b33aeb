import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.tasks.selection import EXAMPLE_SCHEMA, load_selection_task
from rejoinder.tasks.writer import TaskWriter, _series

TEXT = st.text(max_size=3)


@given(st.lists(st.none() | st.lists(st.integers(0, 9), max_size=3), max_size=6))
def test_lists_are_as_polars_makes_them(rows):
    assert _series(rows, EXAMPLE_SCHEMA["correct"]).equals(
        pl.Series(rows, dtype=EXAMPLE_SCHEMA["correct"]), null_equal=True
    )


@given(st.lists(st.lists(st.tuples(TEXT, TEXT), max_size=3), max_size=6))
def test_turns_are_as_polars_makes_them(rows):
    plain = [[{"speaker": speaker, "text": text} for speaker, text in row] for row in rows]
    assert _series(rows, EXAMPLE_SCHEMA["turns"]).equals(pl.Series(plain, dtype=EXAMPLE_SCHEMA["turns"]))


def test_many_examples_in_tables(tmp_path):
    with TaskWriter(tmp_path) as writer:
        for name in ("a", "b"):
            writer.row((name, name))
        for start in (0, 2):
            turns = [[{"speaker": "x", "text": str(start + n)}] for n in range(2)]
            writer.extend(pl.DataFrame({"turns": turns, "correct": [[0], [1]]}), pl.DataFrame({"part": [start] * 2}))
    task = load_selection_task(tmp_path)
    assert task.examples["id"].to_list() == ["1", "2", "3", "4"]
    assert task.examples["correct"].to_list() == [[0], [1]] * 2
    assert task.truth().groups["part"].to_list() == [0, 0, 2, 2]
    assert not list(tmp_path.glob(".parts*"))


def test_a_full_disk_is_one_line_and_leaves_nothing(tmp_path, complaint, full_disk):
    def fill():
        with TaskWriter(tmp_path / "task") as writer:
            for number in range(5_000):
                writer.add(str(number), [("a", f"{number * number}")], None, [("c", "c")])

    with full_disk(10_000):
        assert complaint(fill) == "task: cannot be written (File too large)"
    assert not list(tmp_path.iterdir())


def test_links_to_tables_are_written_through(tmp_path):
    task, far = tmp_path / "task", tmp_path / "far.parquet"
    task.mkdir()
    (task / "options.parquet").symlink_to(far)
    with TaskWriter(task) as writer:
        writer.add("1", [("a", "b")], None, [("c", "c")])
    assert (task / "options.parquet").is_symlink()
    assert pl.read_parquet(far)["id"].to_list() == ["c"]


def test_nothing_is_left_after_a_failure(tmp_path):
    try:
        with TaskWriter(tmp_path) as writer:
            writer.add("1", [("a", "b")], None, [("c", "c")])
            raise KeyError
    except KeyError:
        assert not list(tmp_path.iterdir())
