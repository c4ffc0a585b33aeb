import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.records import read_json, read_json_records, read_yaml, write_json_list


class Thing(msgspec.Struct, rename="kebab"):
    thing_id: int
    weights: list[float]


GOOD = '{"thing-id": 1, "weights": [0.5]}'


def things(path: Path) -> list[tuple[int, Thing]]:
    return list(read_json_records(path, Thing))


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
        patch.setattr("rejoinder.records._CHUNK", chunk)
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


def test_one_json_value_or_yaml_document(save, complaint):
    assert read_json(save("a.json", b"\xef\xbb\xbf[1, 2]"), list[int]) == [1, 2]
    assert read_yaml(save("a.yaml", "x: {y: 1}\n"), dict[str, dict[str, int]]) == {"x": {"y": 1}}
    wrong = save("a.json", '{"thing-id": 1, "weights": ["b"]}')
    assert complaint(read_json, wrong, Thing) == "a.json: weights[0]: expected `float`, got `str`"
    assert complaint(read_json, save("a.json", ""), dict) == "a.json: is empty"
    assert complaint(read_json, save("a.json", '{"a"'), dict).startswith("a.json: malformed JSON (")
    assert complaint(read_yaml, save("a.yaml", "a: ["), dict).startswith("a.yaml: malformed YAML (")
    assert complaint(read_yaml, save("a.yaml", "").with_name("b.yaml"), dict) == "b.yaml: no such file"
    twice = save("a.yaml", "a: 1\nb:\n  - {c: 1, d: 2, c: 3}\n")
    assert complaint(read_yaml, twice, dict) == "a.yaml: malformed YAML ('c' stands twice in one place, line 3)"
    assert read_yaml(save("a.yaml", "a: &x {c: 1}\nb: [*x, *x]\n"), dict) == {"a": {"c": 1}, "b": [{"c": 1}, {"c": 1}]}
