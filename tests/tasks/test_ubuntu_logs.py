import numpy as np
import pytest

from rejoinder.corpora.link_files import conversations
from rejoinder.files import BadInputError
from rejoinder.tasks.ubuntu_logs import Reservoir, find_logs, gather


def test_annotations_are_no_logs(logs):
    assert logs
    assert all(path.name.endswith(".raw.txt") for path in logs)


def test_the_funnel_adds_up(gathered):
    funnel = gathered.funnel
    assert funnel.kept == len(gathered.dialogues)
    assert funnel.conversations == funnel.kept + sum(funnel.removed.values())
    assert {"directed", "participants", "short"} <= set(funnel.removed)


def test_a_channel_where_nobody_answers_says_so(tmp_path, logs):
    log = tmp_path / "2013-01-01.quiet.txt"
    log.write_text("[10:00] <ann> hello?\n[10:05] <ann> anybody here?\n")
    with pytest.raises(BadInputError, match=r"none of 1 conversation passes the filters: not exactly two participants"):
        gather([log], lambda path, posts: [(0, 0), (0, 1)], 10, 0, lambda _: None)


def test_a_reservoir_is_a_uniform_sample_without_repetitions():
    kept = np.zeros(60)
    for seed in range(400):
        reservoir = Reservoir(15, seed)
        for number in [*range(60), *range(60)]:
            reservoir.add(str(number))
        assert len(set(reservoir.kept)) == len(reservoir.kept) == 15
        kept[[int(text) for text in reservoir.kept]] += 1
    assert kept.min() > 50


def test_two_logs_of_one_name_are_refused_and_one_given_twice_is_taken_once(save, tmp_path, complaint):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        save(f"{name}/2013-01-01.txt", f"[00:00] <x> hi, {name}")
    problem = "is named 2013-01-01 too; give one of them another name"
    assert problem in complaint(find_logs, [tmp_path])
    assert find_logs([tmp_path / "a", tmp_path / "a" / "2013-01-01.txt"]) == [tmp_path / "a" / "2013-01-01.txt"]
    save("b/2013-01-01.txt", "[00:00] <x> hi, a")
    assert find_logs([tmp_path]) == [tmp_path / "a" / "2013-01-01.txt"]


def test_messages_that_stand_in_two_logs_are_used_once(logs, tmp_path, true_links):
    """An excerpt under another name, a whole day under another date, and a day that only sends one message twice."""
    first, second, *_ = (log.read_text("utf-8").splitlines(keepends=True) for log in logs)
    names = {f"{logs[0].name[:10]}.a-part.raw.txt": first[200:500], "2031-01-01.again.raw.txt": second}
    for name, lines in names.items():
        (tmp_path / name).write_text("".join(lines))
        everything = "".join(f"{line} {line} -\n" for line in range(len(lines)))
        (tmp_path / name.replace("raw", "annotation")).write_text(everything)
    plain = gather(logs, true_links, pool_size=6_000, seed=1, advance=lambda _: None, turns=True)
    given = [*logs, *(tmp_path / name for name in names)]
    found = gather(given, true_links, pool_size=6_000, seed=1, advance=lambda _: None, turns=True)
    assert [support.dialogue for support in found.dialogues] == [support.dialogue for support in plain.dialogues]
    assert found.utterances == plain.utterances
    assert {day: cuts for day, cuts in found.replies.items() if cuts} == plain.replies
    assert found.notes == [f"{name}: other logs hold all of it too; it was left out" for name in names]
    assert plain.notes == []


def test_of_a_log_that_shares_some_messages_the_other_conversations_are_used(logs, tmp_path, true_links):
    """The day before holds this one's first 1,500 lines."""
    lines, links = logs[0].read_text("utf-8").splitlines(keepends=True), true_links(logs[0], ())
    (tmp_path / "2011-12-31.raw.txt").write_text("".join(lines[:1_500]))
    early = "".join(f"{a} {b} -\n" for a, b in links if b < 1_500)
    (tmp_path / "2011-12-31.annotation.txt").write_text(early)
    alone = gather([logs[0]], true_links, pool_size=6_000, seed=1, advance=lambda _: None)
    both = gather([logs[0], tmp_path / "2011-12-31.raw.txt"], true_links, 6_000, 1, lambda _: None)
    late = {number for number, talk in enumerate(conversations(links), 1) if min(talk) >= 1_500}
    expected = [found.messages for found in alone.dialogues if int(found.dialogue.id.rpartition("-")[2]) in late]
    assert [found.messages for found in both.dialogues if found.day == "2012-01-01"] == expected
    assert 0 < len(expected) < len(alone.dialogues)
    (note,) = both.notes
    assert note.startswith(f"{logs[0].name}: another log holds ")
