import pytest

from rejoinder.report import terminal
from rejoinder.report.tables import table_of


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(terminal.time, "monotonic", lambda: now[0])
    return now


def test_a_log_is_told_of_long_work_alone(clock, capsys):
    with terminal.progress("training", 200) as advance:
        for clock[0] in (1, 9):
            advance(10, "loss 3")
        assert capsys.readouterr().err == ""
        for clock[0], note in ((11, "loss 3"), (12, "loss 3"), (13, "loss 2"), (20, ""), (72, ""), (73.5, "")):
            advance(10, note)
    assert capsys.readouterr().err.splitlines() == ["training, 15%, loss 3", "training, 25%, loss 2", "training, 40%"]


def test_work_of_unknown_length_has_no_share(clock, capsys):
    with terminal.progress("searching", None) as advance:
        clock[0] = 10
        advance(1)
    assert capsys.readouterr().err == "searching\n"


def test_a_table_that_goes_on_below_repeats_the_keys_that_leave_room(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "40")
    rows = [("a", "b", "c" * 30, "d" * 9, "e" * 9)]
    terminal.print_table(table_of("title", ("one", "two", "three", "four", "five"), rows, keys=3))
    heads = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("one")]
    assert heads == [["one", "two", "three"], ["one", "two", "four", "five"]]
