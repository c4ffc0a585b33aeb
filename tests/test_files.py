import gzip
import os
import stat
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from rejoinder.files import (
    BadInputError,
    fingerprint,
    is_gzip,
    open_binary,
    read_lines,
    read_parquet,
    read_start,
    spare_inputs,
    write_atomically,
)
from rejoinder.records import write_json_list


def lines(path: Path) -> list[tuple[int, str]]:
    return list(read_lines(path))


def test_error_names_file_record_field_and_problem():
    assert str(BadInputError("f.json", "is odd", "record 3", "x.y")) == "f.json: record 3: x.y: is odd"
    assert str(BadInputError("f.json", "is odd")) == "f.json: is odd"
    assert str(BadInputError("f.json", "is odd", field="x")) == "f.json: x: is odd"
    assert str(BadInputError("f.yaml", "odd\n  in line 3")) == "f.yaml: odd in line 3"


def test_gzip_is_recognised_by_content_not_by_name(save, tmp_path):
    assert is_gzip(save("a.gz", "text"))
    assert is_gzip(save("a.gz", "text").rename(tmp_path / "a.json"))
    assert lines(tmp_path / "a.json") == [(1, "text")]
    (tmp_path / "plain.gz").write_bytes(b"text")
    assert lines(tmp_path / "plain.gz") == [(1, "text")]


def read_all(path: Path) -> bytes:
    with open_binary(path) as file:
        return file.read()


def test_what_cannot_be_opened(save, complaint, tmp_path):
    assert complaint(read_all, tmp_path / "absent") == "absent: no such file"
    (tmp_path / "folder").mkdir()
    assert complaint(read_all, tmp_path / "folder") == "folder: is a folder; expected a file"
    assert complaint(read_all, save("f", "") / "g") == "f/g: cannot be read (Not a directory)"
    assert complaint(read_all, tmp_path / ("n" * 300)).endswith("n: cannot be read (File name too long)")


@pytest.mark.skipif(os.geteuid() == 0, reason="the super-user may read everything")
def test_what_may_not_be_read(save, complaint):
    path = save("secret", "text")
    path.chmod(0)
    assert complaint(read_all, path) == "secret: may not be read (permission denied)"


@pytest.mark.parametrize("cut", [3, 12, -9, -1])
def test_truncated_gzip(save, complaint, cut):
    path = save("f.gz", "some text\n" * 100)
    path.write_bytes(path.read_bytes()[:cut])
    assert complaint(read_all, path).startswith("f.gz: damaged gzip file (")


def test_damaged_gzip(save, complaint):
    path = save("f.gz", "some text\n" * 100)
    packed = bytearray(path.read_bytes())
    path.write_bytes(packed[:12] + b"\xff\xff" + packed[14:])
    assert complaint(read_all, path).startswith("f.gz: damaged gzip file (")
    path.write_bytes(packed + b"trailing")
    assert complaint(read_all, path).startswith("f.gz: damaged gzip file (")


def test_read_start_decompresses(save):
    assert read_start(save("f.gz", "abcdef"), 4) == b"abcd"


def test_read_start_leaves_out_the_mark_of_utf8(save):
    path = save("f", b"\xef\xbb\xbfabc")
    assert (read_start(path, 2), read_start(path), read_start(save("g", b"abc"), 2)) == (b"ab", b"abc", b"ab")


def test_lines_have_numbers_and_no_ends(save):
    assert lines(save("f", b"a\r\nb\n\n c \t\nd")) == [(1, "a"), (2, "b"), (3, ""), (4, " c \t"), (5, "d")]
    assert lines(save("empty", "")) == []


def test_only_line_feeds_end_lines(save):
    assert lines(save("f", "a\u2028b\x0bc\x1cd\x85e\n")) == [(1, "a\u2028b\x0bc\x1cd\x85e")]


def test_lines_may_start_with_a_byte_order_mark(save):
    assert lines(save("f", b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n")) == [(1, "a"), (2, "\ufeffb")]


def test_lines_that_are_not_utf8(save, complaint):
    assert complaint(lines, save("f", b"fine\n\xff\xfe\n")) == "f: line 2: not UTF-8 (invalid start byte)"
    assert list(read_lines(save("f", b"\xff"), errors="replace")) == [(1, "\ufffd")]


def test_a_failed_write_leaves_the_old_file(save, tmp_path):
    path = save("f", "old")
    with pytest.raises(ZeroDivisionError), write_atomically(path) as file:
        file.write(b"new")
        raise ZeroDivisionError
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["f"]


def test_a_write_makes_folders_and_ordinary_files(tmp_path):
    path = tmp_path / "a" / "b" / "f"
    with write_atomically(path) as file:
        file.write(b"new")
    mask = os.umask(0)
    os.umask(mask)
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask


def test_what_cannot_be_written(save, complaint, tmp_path):
    (tmp_path / "folder").mkdir()
    assert complaint(write_json_list, tmp_path / "folder", iter([])) == "folder: cannot be written (Is a directory)"
    assert "cannot be written" in complaint(write_json_list, save("f", "") / "g", iter([]))
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["f", "folder"]


def test_pipes_and_devices_are_not_replaced_by_files(tmp_path, complaint):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    for name in ("pipe", "link"):
        refused = f"{name}: is a pipe or a device; name a file to write"
        assert complaint(spare_inputs, tmp_path / name) == refused
        assert complaint(write_json_list, tmp_path / name, iter([])) == refused
    assert (tmp_path / "pipe").is_fifo()
    assert (tmp_path / "link").is_symlink()
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("there", [True, False])
def test_what_a_link_leads_to_is_written_and_the_link_kept(tmp_path, there):
    (tmp_path / "far").mkdir()
    if there:
        (tmp_path / "far/run.json").write_text("old")
    (tmp_path / "link").symlink_to("far/run.json")
    (tmp_path / "link.gz").symlink_to("link")
    for name in ("link", "link.gz"):
        spare_inputs(tmp_path / name)
        write_json_list(tmp_path / name, iter([]))
        assert (tmp_path / name).is_symlink()
        assert is_gzip(tmp_path / "far/run.json") == (name == "link.gz")
    assert [path.name for path in (tmp_path / "far").iterdir()] == ["run.json"]


def test_links_that_lead_round_in_circles_are_refused(tmp_path, complaint):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    spare_inputs(tmp_path / "c", tmp_path / "a")  # which is told when it is read
    for refuse in (spare_inputs, lambda path: write_json_list(path, iter([]))):
        assert complaint(refuse, tmp_path / "a") == "a: cannot be written (Too many levels of symbolic links)"


NOISE = np.random.default_rng(1).random(10_000)


@pytest.mark.parametrize(
    ("write", "reason"),
    [
        (lambda file: file.write(NOISE.tobytes()), "File too large"),
        (lambda file: pl.DataFrame({"a": NOISE}).write_parquet(file), "File too large"),
        (lambda file: np.savez(file, a=NOISE), "File too large"),
        (lambda file: np.save(file, NOISE), "no room for all of it"),
    ],
)
def test_a_full_disk_names_what_was_to_be_written(save, tmp_path, complaint, full_disk, write, reason):
    def fill():
        with write_atomically(path) as file:
            write(file)

    path = save("f", "old")
    with full_disk(10_000):
        assert complaint(fill) == f"f: cannot be written ({reason})"
    assert [entry.name for entry in tmp_path.iterdir()] == ["f"]
    assert path.read_text() == "old"


def test_gzip_is_written_the_same_every_time(tmp_path):
    for name in ("a.gz", "b.gz"):
        with write_atomically(tmp_path / name) as file:
            file.write(b"content")
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == b"content"


def test_parquet_by_path_not_by_pattern(tmp_path):
    table = pl.DataFrame({"a": [1, 2]})
    folder = tmp_path / "b=3"
    folder.mkdir()
    for name in ("run[1].parquet", "run*.parquet"):
        table.write_parquet(folder / name)
        assert read_parquet(folder / name).equals(table)
    packed = tmp_path / "run.parquet.gz"
    packed.write_bytes(gzip.compress((folder / "run[1].parquet").read_bytes()))
    assert read_parquet(packed).equals(table)


def test_parquet_that_is_none(save, complaint, tmp_path):
    assert complaint(read_parquet, tmp_path / "absent") == "absent: no such file"
    assert complaint(read_parquet, tmp_path) == f"{tmp_path}: is a folder; expected a file"
    for content in (b"", b"text", b"PAR1", b"PAR1PAR1", b"PAR1\xff\xff\xff\x7fPAR1"):
        assert complaint(read_parquet, save("f", content)).startswith("f: not a Parquet table, or a damaged one (")


def test_inputs_are_not_written_over(tmp_path):
    spare_inputs(tmp_path / "run.json", tmp_path, None)
    for out in (tmp_path / "chats.csv", tmp_path / "x" / ".." / "chats.csv"):
        with pytest.raises(BadInputError, match="would be overwritten"):
            spare_inputs(out, None, tmp_path / "chats.csv")
    (tmp_path / "model.yaml").touch()
    with pytest.raises(BadInputError, match="would be overwritten"):
        spare_inputs(tmp_path / "model.yaml", tmp_path)
    with pytest.raises(BadInputError, match="is a folder; name a file to write"):
        spare_inputs(tmp_path)


@pytest.mark.parametrize("mark", ["task.yaml", "examples.parquet", "dialogues.parquet"])
def test_a_tasks_own_folder_is_not_written_to(tmp_path, complaint, mark):
    task = tmp_path / "task"
    task.mkdir()
    (task / mark).touch()
    for name in ("groups.parquet", "runs/bm25.json"):
        refused = f"task/{name}: lies in the task task, which is read; name a file elsewhere"
        assert complaint(spare_inputs, task / name, None, task) == refused
    spare_inputs(tmp_path / "run.json", task, task / mark)
    spare_inputs(task / "run.json", task / mark)


def test_messages_hold_nothing_that_steers_a_terminal():
    assert str(BadInputError("file", "no column \x1b[31mred\x07")) == "file: no column \ufffd[31mred\ufffd"


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin", "tokenizer.json", "vocab.txt", "a.parquet"])
def test_a_folder_is_known_by_its_tables_or_its_encoder(tmp_path, name):
    (tmp_path / "notes.txt").write_text("not told from others")
    found = []
    for content in ("one", "two", "two"):
        (tmp_path / name).write_text(content)
        found.append(fingerprint(tmp_path))
    assert found[0] != found[1] == found[2]
