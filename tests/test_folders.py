import errno
import fcntl
from pathlib import Path

import polars as pl
import pytest

from rejoinder.folders import staged_folder
from rejoinder.records import write_json_list


def test_a_staged_folder_takes_the_place_of_the_old_one(tmp_path):
    out = tmp_path / "out"
    for content in ("first", "second"):
        with staged_folder(out, mark="mark", kept="kept") as stage:
            (stage / "mark").write_text(content)
            (stage / content).touch()
    assert {path.name for path in out.iterdir()} == {"mark", "second", ".written"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("name", ["thesis.tex", "letters/home.txt"])
def test_a_folder_with_a_persons_files_is_not_replaced(tmp_path, complaint, name):
    out, written = tmp_path / "out", []

    def write(later=()):
        with staged_folder(out, mark="mark", kept="", later=later) as stage:
            (stage / "mark").touch()
            written.append(stage)

    write()
    (out / name).parent.mkdir(exist_ok=True)
    (out / name).write_text("precious")
    lost = "which was not written with it and would be lost; give another folder"
    assert complaint(write) == f"out: holds {name}, {lost}"
    assert ((out / name).read_text(), len(written)) == ("precious", 1)
    (out / ".written").unlink()
    assert complaint(write, later=(name,)) == f"out: holds mark, {lost}"
    (out / "mark").unlink()
    assert complaint(write, later=(name,)) == "out: is not empty; give another folder, so that nothing is mixed up"


def write_deep(out, later=()):
    with staged_folder(out, mark="mark", kept="", later=later) as stage:
        (stage / "mark").touch()
        for name in ("a/b/table", "a/\udcff\u2028\r"):
            (stage / name).parent.mkdir(parents=True, exist_ok=True)
            (stage / name).touch()


def test_a_persons_file_deep_within_a_folder_is_not_lost(tmp_path, complaint):
    out = tmp_path / "out"
    for _ in range(2):
        write_deep(out)
    (out / "a/b/notes.txt").write_text("precious")
    (out / "a/folder").symlink_to(tmp_path)
    assert "holds a/b/notes.txt, which was not written with it" in complaint(write_deep, out)
    assert (out / "a/b/notes.txt").read_text() == "precious"
    (out / "a/b/notes.txt").unlink()
    assert "holds a/folder, which was not written with it" in complaint(write_deep, out)


def test_folders_whose_list_names_folders_are_replaced(tmp_path, complaint):
    """As older versions wrote it."""
    out = tmp_path / "out"
    for _ in range(2):
        write_deep(out)
        (out / ".written").write_text("a\nmark\n")
    (out / "notes.txt").touch()
    assert "holds notes.txt, which was not written with it" in complaint(write_deep, out)


def test_what_commands_write_later_is_known_by_patterns(tmp_path, complaint):
    out, later = tmp_path / "out", ("curve.svg", "index/[0-9]*/*.npy")
    write_deep(out, later)
    for name in ("a/curve.svg", "a/.curve.svg.x7k", "a/index/12/rows.npy"):
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).touch()
    write_deep(out, later)
    (out / "a/rows.npy").touch()
    assert "holds a/rows.npy, which was not written with it" in complaint(write_deep, out, later)


@pytest.mark.parametrize("size", [10_000, 10])
def test_a_full_disk_names_the_folder_and_not_the_hidden_one(tmp_path, complaint, full_disk, size):
    """Whether there is no room for a table, or only for the list of what was written."""

    def fill():
        with staged_folder(tmp_path / "out", mark="mark", kept="") as stage:
            (stage / "mark").touch()
            if size > 10:
                pl.DataFrame({"a": range(10_000)}).write_parquet(stage / "table.parquet")
            (stage / "another").touch()

    with full_disk(size):
        assert complaint(fill) == "out: cannot be written (File too large)"
    assert not list(tmp_path.iterdir())


def test_a_file_that_has_no_room_is_named_where_it_was_to_be(tmp_path, complaint, full_disk):
    def fill():
        with staged_folder(tmp_path / "out", mark="mark", kept="") as stage:
            write_json_list(stage / "a/list.json", iter(["x" * 20_000]))

    with full_disk(10_000):
        assert complaint(fill) == "out/a/list.json: cannot be written (File too large)"
    assert not list(tmp_path.iterdir())


def test_what_a_killed_process_left_is_not_mixed_in(tmp_path):
    for name in ("kept", "stale"):
        (tmp_path / ".out.part" / name).mkdir(parents=True)
    with staged_folder(tmp_path / "out", mark="mark", kept="kept") as stage:
        assert [path.name for path in stage.iterdir()] == ["kept"]


def test_what_was_half_written_later_is_in_nobodys_way(tmp_path):
    for _ in range(2):
        with staged_folder(tmp_path / "out", mark="mark", kept="", later=("curve.svg",)) as stage:
            (stage / "mark").touch()
        assert {path.name for path in (tmp_path / "out").iterdir()} == {"mark", ".written"}
        (tmp_path / "out" / ".curve.svg.x7k").touch()


def test_what_was_moved_aside_when_a_process_was_killed_comes_back(tmp_path):
    with staged_folder(tmp_path / "out", mark="mark", kept="") as stage:
        (stage / "mark").write_text("the last good one")
    (tmp_path / "out").rename(tmp_path / ".out.old")
    with pytest.raises(KeyError), staged_folder(tmp_path / "out", mark="mark", kept=""):
        raise KeyError
    assert (tmp_path / "out" / "mark").read_text() == "the last good one"
    with staged_folder(tmp_path / "out", mark="mark", kept="") as stage:
        (stage / "mark").write_text("new")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert (tmp_path / "out" / "mark").read_text() == "new"
    (tmp_path / "out").rename(tmp_path / ".out.old")
    (tmp_path / "out").mkdir()  # by somebody who did not know
    with pytest.raises(KeyError), staged_folder(tmp_path / "out", mark="mark", kept=""):
        raise KeyError
    assert (tmp_path / "out" / "mark").read_text() == "new"


def test_what_a_person_put_where_things_are_moved_aside_is_spared(tmp_path, complaint):
    (tmp_path / ".out.old").mkdir()
    (tmp_path / ".out.old" / "notes").touch()
    assert complaint(staged_folder(tmp_path / "out", mark="mark", kept="").__enter__) == (
        ".out.old: is in the way of what is to be written, and not of ours; move it elsewhere"
    )
    assert (tmp_path / ".out.old" / "notes").exists()


def test_where_folders_cannot_be_locked_they_are_written_all_the_same(tmp_path, monkeypatch):
    def flock(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)
    with staged_folder(tmp_path / "out", mark="mark", kept="") as stage:
        (stage / "mark").touch()
    assert (tmp_path / "out" / "mark").exists()


def test_links_that_lead_in_a_circle_are_named(tmp_path, complaint):
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    told = complaint(staged_folder(tmp_path / "one", mark="mark", kept="").__enter__)
    assert told == "one: cannot be written (Too many levels of symbolic links)"


@pytest.mark.parametrize(("files", "left"), [(0, []), (1, []), (2, [".out.part"])])
def test_what_is_kept_after_a_failure_is_more_than_a_note(tmp_path, files, left):
    def fail():
        with staged_folder(tmp_path / "new/out", mark="mark", kept="kept") as stage:
            (stage / "kept").mkdir()
            (stage / "other").touch()
            for number in range(files):
                (stage / "kept" / str(number)).touch()
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert [path.name for path in tmp_path.rglob(".*")] == left
    assert (tmp_path / "new").exists() == bool(left)


def test_two_at_once_are_refused(tmp_path, complaint):
    def second():
        with staged_folder(tmp_path / "out", mark="mark", kept=""):
            pass

    with staged_folder(tmp_path / "out", mark="mark", kept="") as stage:
        (stage / "mark").touch()
        assert complaint(second) == "out: another process is writing this folder"
    assert (tmp_path / "out/mark").exists()
    second()


def test_the_folder_one_is_in_is_not_replaced(tmp_path, monkeypatch, complaint):
    monkeypatch.chdir(tmp_path)
    assert "is the folder you are in" in complaint(staged_folder(Path(), mark="mark", kept="").__enter__)


def test_a_staged_folder_follows_links(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with staged_folder(tmp_path / "link", mark="mark", kept="") as stage:
        (stage / "mark").touch()
    assert (tmp_path / "real/mark").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "real"]
