from pathlib import Path

import pytest

from rejoinder.folders import staged_folder


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
    first = name.partition("/")[0]
    lost = "which was not written with it and would be lost; give another folder"
    assert complaint(write) == f"out: holds {first}, {lost}"
    assert ((out / name).read_text(), len(written)) == ("precious", 1)
    (out / ".written").unlink()
    assert complaint(write, later=(first,)) == f"out: holds mark, {lost}"
    (out / "mark").unlink()
    assert complaint(write, later=(first,)) == "out: is not empty; give another folder, so that nothing is mixed up"


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
