import gzip
import json
import os
import stat
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import msgspec
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.files import (
    BadInputError,
    is_gzip,
    open_binary,
    read_json,
    read_json_records,
    read_lines,
    read_parquet,
    read_start,
    read_yaml,
    spare_inputs,
    staged_folder,
    write_atomically,
    write_json_list,
)


class Thing(msgspec.Struct, rename="kebab"):
    thing_id: int
    weights: list[float]


GOOD = '{"thing-id": 1, "weights": [0.5]}'


def things(path: Path) -> list[tuple[int, Thing]]:
    return list(read_json_records(path, Thing))


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


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("name", ["f.json", "f.json.gz"])
@pytest.mark.parametrize("layout", ["[{0}, {0}]", "{0}\n{0}\n", "{0}\r\n\r\n{0}", " \n[\n{0},\n{0}\n]\n"])
def test_records_of_a_list_or_of_lines(save, layout, name, mark):
    path = save(name, mark + layout.replace("{0}", GOOD))
    assert things(path) == [(1, Thing(1, [0.5])), (2, Thing(1, [0.5]))]


def test_no_records(save, complaint):
    assert things(save("f", "[]")) == []
    for text in ("", "  \n", "thing", "7", '"text"'):
        problem = complaint(things, save("f", text))
        assert problem == "f: not JSON: expected a list of records, or one record a line"


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ('{"thing-id": "1", "weights": []}', "thing-id: expected `int`, got `str`"),
        ('{"thing-id": 1, "weights": [1, "x"]}', "weights[1]: expected `float`, got `str`"),
        ('{"thing-id": 1, "weights": [[]]}', "weights[0]: expected `float`, got `array`"),
        ('{"thing-id": 1, "weights": [1e999]}', "weights[0]: number out of range"),
        ('{"thing-id": 1}', "object missing required field `weights`"),
        ("[]", "expected `object`, got `array`"),
        ("null", "expected `object`, got `null`"),
    ],
)
def test_a_wrong_field_is_named(save, complaint, record, problem):
    assert complaint(things, save("f", f"[{GOOD}, {record}]")) == f"f: record 2: {problem}"
    assert complaint(things, save("f", f"{GOOD}\n{record}\n")) == f"f: record 2: {problem}"


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("layout", ["[{0},\n {1}]", "{0}\n{1}\n"])
def test_numbers_that_json_has_not(save, complaint, layout, number, mark):
    text = layout.replace("{0}", GOOD).replace("{1}", f'{{"weights": [], "thing-id": {number}}}')
    assert complaint(things, save("f", mark + text)) == (
        f"f: record 2: thing-id: {number} is not a number; expected a finite one"
    )


@pytest.mark.parametrize(
    "text",
    [
        f'[{GOOD}, {{"thing-id" 1}}]',
        f"[{GOOD}, {GOOD[:-4]}",
        f"[{GOOD} {GOOD}]",
        f"[{GOOD},]",
        f"[{GOOD}] {GOOD}",
        f"{GOOD}\n{GOOD[:-1]}",
        f"{GOOD}\n{GOOD} {GOOD}",
        f'[{GOOD}, {{"thing-id": "\\ud800", "weights": []}}]',
    ],
)
def test_malformed_json_names_the_record(save, complaint, text):
    assert complaint(things, save("f", text)).startswith("f: record 2: malformed JSON (")


def test_a_brace_in_a_string_is_no_record(save, complaint):
    text = '[{"note": "a } \\" {", "thing-id": 1, "weights": []}, {"thing-id": 2,, "weights": []}]'
    assert complaint(things, save("f", text)).startswith("f: record 2: malformed JSON (")


def test_text_that_is_not_utf8(save, complaint):
    text = b'[{"thing-id": 1, "weights": []}, {"thing-id": "\xff", "weights": []}]'
    assert "f: record 2: " in complaint(list, read_json_records(save("f", text), dict))


@pytest.mark.parametrize(
    ("start", "end", "problem"),
    [("[", "]", "record 2: thing-id: expected `int`, got `array`"), ('{"a":', "}", "JSON nested too deeply")],
)
def test_deep_nesting(save, complaint, start, end, problem):
    text = f'[{GOOD}, {{"thing-id": {start * 100_000}1{end * 100_000}}}]'
    assert complaint(things, save("f", text)) == f"f: {problem}"


JSON = st.recursive(st.text() | st.integers() | st.none(), lambda v: st.lists(v) | st.dictionaries(st.text(), v))


@given(records=st.lists(st.dictionaries(st.text(), JSON)), chunk=st.integers(1, 40), indent=st.sampled_from([None, 2]))
def test_records_pass_by_in_any_pieces(tmp_path_factory, records, chunk, indent):
    path = tmp_path_factory.mktemp("pieces") / "f"
    path.write_text(json.dumps(records, indent=indent))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rejoinder.files._CHUNK", chunk)
        assert list(read_json_records(path, dict)) == list(enumerate(records, 1))


def test_a_long_list_is_not_held_in_memory(tmp_path):
    path = tmp_path / "f"
    path.write_text("[" + ",".join(['{"text": "' + 1000 * "x" + '"}'] * 20_000) + "]")
    tracemalloc.start()
    count = sum(1 for _ in read_json_records(path, dict))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 20_000
    assert peak < path.stat().st_size / 3


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


def test_gzip_is_written_the_same_every_time(tmp_path):
    for name in ("a.json.gz", "b.json.gz"):
        write_json_list(tmp_path / name, iter([Thing(1, [0.5])]))
    assert (tmp_path / "a.json.gz").read_bytes() == (tmp_path / "b.json.gz").read_bytes()
    assert things(tmp_path / "a.json.gz") == [(1, Thing(1, [0.5]))]


def test_json_list_has_the_official_layout(tmp_path):
    def records() -> Iterator[object]:
        yield Thing(1, [0.5])
        yield {"text": "é\n"}

    path = tmp_path / "f"
    write_json_list(path, records())
    assert path.read_text("utf-8") == (
        '[\n    {\n        "thing-id": 1,\n        "weights": [\n            0.5\n        ]\n    },\n'
        '    {\n        "text": "é\\n"\n    }\n]\n'
    )
    write_json_list(path, iter([]))
    assert path.read_text() == "[]\n"


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


def test_a_staged_folder_takes_the_place_of_the_old_one(tmp_path):
    out = tmp_path / "out"
    for content in ("first", "second"):
        with staged_folder(out, mark="mark", kept="kept") as stage:
            (stage / "mark").write_text(content)
            (stage / content).touch()
    assert {path.name for path in out.iterdir()} == {"mark", "second"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_what_a_killed_process_left_is_not_mixed_in(tmp_path):
    for name in ("kept", "stale"):
        (tmp_path / ".out.part" / name).mkdir(parents=True)
    with staged_folder(tmp_path / "out", mark="mark", kept="kept") as stage:
        assert [path.name for path in stage.iterdir()] == ["kept"]


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


def test_inputs_are_not_written_over(tmp_path):
    spare_inputs(tmp_path / "run.json", tmp_path, None)
    for out in (tmp_path / "chats.csv", tmp_path / "x" / ".." / "chats.csv"):
        with pytest.raises(BadInputError, match="would be overwritten"):
            spare_inputs(out, None, tmp_path / "chats.csv")


def test_one_json_value_or_yaml_document(save, complaint):
    assert read_json(save("a.json", b"\xef\xbb\xbf[1, 2]"), list[int]) == [1, 2]
    assert read_yaml(save("a.yaml", "x: {y: 1}\n"), dict[str, dict[str, int]]) == {"x": {"y": 1}}
    wrong = save("a.json", '{"thing-id": 1, "weights": ["b"]}')
    assert complaint(read_json, wrong, Thing) == "a.json: weights[0]: expected `float`, got `str`"
    assert complaint(read_json, save("a.json", ""), dict) == "a.json: is empty"
    assert complaint(read_json, save("a.json", '{"a"'), dict).startswith("a.json: malformed JSON (")
    assert complaint(read_yaml, save("a.yaml", "a: ["), dict).startswith("a.yaml: malformed YAML (")
    assert complaint(read_yaml, save("a.yaml", "").with_name("b.yaml"), dict) == "b.yaml: no such file"


def test_messages_hold_nothing_that_steers_a_terminal():
    assert str(BadInputError("file", "no column \x1b[31mred\x07")) == "file: no column \ufffd[31mred\ufffd"
