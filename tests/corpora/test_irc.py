import gzip
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rejoinder.corpora.irc import DAY, date_of, parse, read_log
from rejoinder.files import BadInputError
from rejoinder.sample import irc as sample


def posts(*lines):
    return list(parse(lines))


def minutes(*times):
    return [post.minute for post in parse(f"[{time}] <a> x" for time in times)]


def test_a_message_has_author_text_and_place():
    first, second = posts("=== bob [~b@example.net]  has joined #ubuntu", "[09:14] <ann> bob: try <this> one")
    assert (first.kind, first.nick, first.line) == ("event", "bob", 0)
    assert (second.kind, second.nick, second.text) == ("message", "ann", "bob: try <this> one")
    assert (second.line, second.minute) == (1, 9 * 60 + 14)


def test_codes_for_colours_and_type_leave_the_text():
    said, done = posts("[10:00] <ann> \x02bob\x02, \x0304,01red\x03\t\x08text\x7f é", "[10:00]  * ann \x1dwaves\x0f")
    assert (said.text, done.text) == ("bob, red\ttext é", "waves")


@pytest.mark.parametrize(
    "line", ["[10:00]  * genii sips a coffee", "[10:00] * genii sips a coffee", "=== genii sips a coffee"]
)
def test_actions_of_new_and_of_old_logs(line):
    (post,) = posts(line)
    assert (post.kind, post.nick, post.text) == ("action", "genii", "sips a coffee")


@pytest.mark.parametrize(
    "line",
    [
        "=== will [n=w@host]  has joined #ubuntu",
        '=== will [n=w@host]  has left #ubuntu ["Leaving"]',
        "=== will [n=w@host]  has quit [Read error: 104 (Connection reset by peer)]",
        "=== will is now known as bill",
        "=== mode/#ubuntu [+o will]  by ChanServ",
        "=== netjoined: irc.freenode.net -> kornbluth.freenode.net",
    ],
)
def test_events(line):
    assert posts(line)[0].kind == "event"


def test_what_is_no_message_is_kept_as_other():
    notice, blank, stray = posts("[05:12] -spam:#ubuntu- buy", "", "lines of a paste")
    assert [post.kind for post in (notice, blank, stray)] == ["other"] * 3
    assert stray.text == "lines of a paste"
    assert notice.minute == stray.minute == 5 * 60 + 12


def test_the_old_loggers_space_after_a_bracket_is_no_part_of_the_nick():
    joined, said, renamed, again = posts(
        "=== bur[n] er [n=b@host]  has joined #ubuntu",
        "[01:00] <bur[n] er> hi",
        "=== bur[n] er is now known as bob",
        "[01:01] <bob> hi",
    )
    assert joined.nick == said.nick == said.person == again.person == "bur[n]er"
    assert renamed.kind == "event"


def test_a_person_keeps_an_identity_through_changes_of_nick():
    said = posts(
        "[01:00] <ann> hi",
        "=== ann is now known as ann_away",
        "[01:01] <ann_away> back soon",
        "=== ann_away is now known as ann",
        "[01:02] <ann> back",
        "[01:02] <bob> hi ann",
    )
    assert [post.person for post in said if post.kind == "message"] == ["ann", "ann", "ann", "bob"]
    assert said[2].nick == "ann_away"


def test_a_nick_taken_away_by_the_server_belongs_to_somebody_else_afterwards():
    said = posts(
        "[01:00] <will> one",
        "=== will is now known as Guest42",
        "[01:01] <Guest42> still me",
        "[01:02] <will> the owner",
        "=== will is now known as Guest43",
        "[01:03] <Guest43> the owner",
        "[01:04] <will> a third",
    )
    people = [post.person for post in said if post.kind == "message"]
    assert people[0] == people[1]
    assert people[2] == people[3]
    assert len(set(people)) == 3


def test_midnight_on_a_24_hour_clock():
    assert minutes("23:58", "23:59", "00:00", "00:03") == [1438, 1439, 1440, 1443]


def test_noon_and_midnight_on_a_12_hour_clock():
    assert minutes("11:59", "12:59", "01:00", "11:30", "12:10", "01:10") == [719, 779, 780, 1410, 1450, 1510]


def test_clocks_that_disagree_do_not_make_a_day():
    assert minutes("13:00", "13:05", "13:04", "13:06") == [780, 785, 785, 786]
    assert minutes("23:59", "00:00", "23:59", "00:01") == [1439, 1440, 1440, 1441]


def test_a_time_that_does_not_exist_leaves_the_clock_alone():
    assert minutes("13:00", "99:99", "13:01") == [780, 780, 781]
    assert minutes("99:99", "13:01") == [0, 781]


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 1439), max_size=30))
def test_minutes_never_go_back(times):
    found = minutes(*(f"{time // 60:02}:{time % 60:02}" for time in times))
    assert found == sorted(found)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(st.text(max_size=60), max_size=10))
def test_any_lines_give_one_post_each(lines):
    assert [post.line for post in parse(lines)] == list(range(len(lines)))


def test_the_date_comes_from_the_file_name(tmp_path):
    path = tmp_path / "2013-01-02.ubuntu.txt"
    path.write_text("[00:30] <ann> hi\n")
    (post,) = read_log(path)
    assert post.minute == (date(2013, 1, 2) - date(1970, 1, 1)).days * DAY + 30


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("2004-11-15_03.raw.txt", date(2004, 11, 15)),
        ("#ubuntu-20130102.log", date(2013, 1, 2)),
        ("2013-19-39.txt", None),
        ("channel.txt", None),
    ],
)
def test_dates_of_file_names(name, expected):
    assert date_of(Path(name)) == expected


def test_bad_bytes_and_gzip(tmp_path):
    path = tmp_path / "log.txt.gz"
    path.write_bytes(gzip.compress(b"[10:00] <ann> caf\xe9\r\n[10:01] <bob> ok\n"))
    assert [post.text for post in read_log(path)] == ["caf�", "ok"]


def test_only_line_feeds_end_lines(tmp_path):
    path = tmp_path / "log.txt"
    path.write_bytes("[10:00] <ann> a\x0bb\u2028c\rd\n[10:01] <bob> ok\n".encode())
    assert [post.line for post in read_log(path)] == [0, 1]


def test_an_empty_log_and_another_format_are_refused(tmp_path):
    empty, csv = tmp_path / "empty.txt", tmp_path / "table.csv"
    empty.write_text("")
    csv.write_text("id,text\n1,hello\n")
    with pytest.raises(BadInputError, match=r"empty\.txt: empty log"):
        list(read_log(empty))
    with pytest.raises(BadInputError, match=r"table\.csv: line 1: not an IRC log.*'id,text'"):
        list(read_log(csv))
    with pytest.raises(BadInputError, match="no such file"):
        list(read_log(tmp_path / "missing.txt"))


def test_generated_logs_are_understood_whole(tmp_path):
    sample.write(tmp_path, 3000, seed=1)
    found = [post for path in sorted(tmp_path.glob("*.raw.txt")) for post in read_log(path)]
    assert {post.kind for post in found} == {"message", "action", "event"}
    assert sum(post.kind != "event" for post in found) >= 3000
