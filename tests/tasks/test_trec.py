import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.tasks.selection import SelectionTruth, to_pairs
from rejoinder.tasks.trec import escape, read_qrels, split_fields, unescape, write_qrels


@given(st.text())
def test_names_become_one_field_and_come_back(name):
    assert unescape(escape(name)) == name
    assert split_fields(f"a {escape(name)} b") == (["a", escape(name), "b"] if name else ["a", "b"])


def test_escapes_are_percent_codes():
    assert escape("100% Good\tMorning\n") == "100%25%20Good%09Morning%0A"
    assert unescape("%2520") == "%20"


def test_fields_end_at_ascii_space_only():
    assert split_fields("a\u00a0b \t c\u2003d\x1ce\r\n") == ["a\u00a0b", "c\u2003d\x1ce"]


def test_judgements(save):
    truth = read_qrels(save("f", "\ufeffq2 0 A 1\r\nq1\t0\tB\t0\n\nq2 Q0 C%20D 2\nq1 0 E -1\nq2 0 F 0\n"))
    assert truth.ids.to_list() == ["q2", "q1"]
    assert truth.correct.rows() == [(0, "A"), (0, "C D"), (1, "NONE")]


@pytest.mark.parametrize("name", ["f.qrels", "f.qrels.gz"])
def test_judgements_are_written_and_read(tmp_path, name):
    ids = pl.Series("id", ["1", "film 2"])
    truth = SelectionTruth(ids, to_pairs([0, 0, 1], ["Good Morning, Miss Dove", "50%", "NONE"]))
    for path in (tmp_path / name, tmp_path / f"again-{name}"):
        write_qrels(path, truth)
    assert path.read_bytes() == (tmp_path / name).read_bytes()
    assert read_qrels(path).ids.equals(ids)
    assert read_qrels(path).correct.equals(truth.correct)
    if name == "f.qrels":
        assert path.read_text() == "1 0 Good%20Morning,%20Miss%20Dove 1\n1 0 50%25 1\nfilm%202 0 NONE 1\n"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("1 0 B", "line 2: 3 fields; expected topic 0 option relevance"),
        ("1 0 B 1 x", "line 2: 5 fields; expected topic 0 option relevance"),
        ("1 0 B x", "line 2: relevance: 'x' is not a whole number"),
        ("1 0 B 1.0", "line 2: relevance: '1.0' is not a whole number"),
        ("1 0 B --3", "line 2: relevance: '--3' is not a whole number"),
        ("1 0 B ³", "line 2: relevance: '³' is not a whole number"),
        ("1 0 B -", "line 2: relevance: '-' is not a whole number"),
        ("1 0 A 0", "line 2: option: 'A' is judged twice for topic '1'"),
    ],
)
def test_malformed_judgements(save, complaint, line, problem):
    assert complaint(read_qrels, save("f", f"1 0 A 1\n{line}\n")) == f"f: {problem}"


def test_a_relevance_of_thousands_of_digits(save, complaint):
    assert complaint(read_qrels, save("f", f"1 0 A {'9' * 5000}\n")).endswith("is not a whole number")


def test_a_file_without_judgements(save, complaint):
    assert complaint(read_qrels, save("f", "\n")) == "f: holds no judgement"
