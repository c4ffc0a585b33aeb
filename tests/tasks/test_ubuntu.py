import msgspec
import numpy as np
import pytest

from rejoinder.corpora.irc import read_log
from rejoinder.corpora.link_files import conversations, read_annotations
from rejoinder.corpora.ubuntu import addressee
from rejoinder.files import BadInputError
from rejoinder.measures.selection import score
from rejoinder.sample import irc
from rejoinder.systems.retrieval import Tfidf
from rejoinder.systems.system import Lesson
from rejoinder.tasks.collection import write_ubuntu
from rejoinder.tasks.description import Overlap, overlap
from rejoinder.tasks.selection import NONE, load_selection_task
from rejoinder.tasks.ubuntu import (
    Gathered,
    Recipe,
    Reservoir,
    build_subtasks,
    find_logs,
    gather,
    split_by_day,
    training_replies,
)


def true_links(path, posts):
    return read_annotations(path.with_name(path.name.replace(".raw.txt", ".annotation.txt")))


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("logs")
    irc.write(folder, 30_000, seed=4)
    return find_logs([folder])


@pytest.fixture(scope="module")
def gathered(logs) -> Gathered:
    return gather(logs, true_links, pool_size=6_000, seed=1, advance=lambda _: None, turns=True)


@pytest.fixture(scope="module")
def tasks(gathered):
    return {
        (subtask, split): task for subtask, split, task in build_subtasks(gathered, Recipe(seed=1, pool_size=6_000))
    }


def correct_texts(task):
    texts = task.options["text"]
    return [texts.gather(rows).to_list() for rows in task.examples["correct"]]


def test_annotations_are_no_logs(logs):
    assert logs
    assert all(path.name.endswith(".raw.txt") for path in logs)


def test_the_funnel_adds_up(gathered):
    funnel = gathered.funnel
    assert funnel.kept == len(gathered.dialogues)
    assert funnel.conversations == funnel.kept + sum(funnel.removed.values())
    assert {"directed", "participants", "short"} <= set(funnel.removed)


def test_turns_to_train_on_are_of_training_days_alone(gathered):
    shares = (0.8, 0.1, 0.1)
    task = training_replies(gathered, shares)
    last = max(support.day for support in split_by_day(gathered.dialogues, shares)["train"])
    later = [cut.replies[0] for day, cuts in gathered.replies.items() if day > last for cut in cuts]
    kept = [cut.replies[0] for day, cuts in gathered.replies.items() if day <= last for cut in cuts]
    assert later
    assert sorted(reply for (reply,) in correct_texts(task)) == sorted(kept)
    assert task.examples.height > 2 * len(split_by_day(gathered.dialogues, shares)["train"])


def test_splits_follow_time_and_share_no_day(gathered):
    split = split_by_day(gathered.dialogues, (0.8, 0.1, 0.1))
    days = {side: {support.day for support in dialogues} for side, dialogues in split.items()}
    assert max(days["train"]) < min(days["dev"])
    assert max(days["dev"]) < min(days["test"])
    assert sum(map(len, split.values())) == len(gathered.dialogues)


@pytest.mark.parametrize(
    ("days", "sides"),
    [
        ([1, 1, 1], [1, 1, 1]),
        ([10] * 10, [80, 10, 10]),
        ([20, 20, 20, 20, 17, 3], [60, 20, 20]),
        ([3, 90, 3, 3, 3, 3], [93, 6, 6]),
    ],
)
def test_no_side_is_a_day_of_a_few_hours(gathered, days, sides):
    dialogues = [
        msgspec.structs.replace(gathered.dialogues[0], day=f"day {day}")
        for day, count in enumerate(days)
        for _ in range(count)
    ]
    assert [len(side) for side in split_by_day(dialogues, (0.8, 0.1, 0.1)).values()] == sides


def test_a_split_by_time_needs_three_days(gathered):
    one_day = [support for support in gathered.dialogues if support.day == gathered.dialogues[0].day]
    with pytest.raises(BadInputError, match="1 day; a split by time needs at least 3"):
        split_by_day(one_day, (0.8, 0.1, 0.1))


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_subtask_1_has_one_correct_option_of_a_hundred(tasks, split):
    task = tasks[1, split]
    assert task.examples.height > 50
    assert set(task.examples["options"].list.n_unique()) == {100}
    assert set(task.examples["correct"].list.len()) == {1}
    for texts, (right,) in zip(task.examples["options"], correct_texts(task), strict=True):
        assert task.options["text"].gather(texts).to_list().count(right) == 1


def test_nothing_but_what_is_said_tells_the_pools_other_utterances_from_answers(gathered, logs):
    nicks = {post.nick.lower() for path in logs for post in read_log(path) if post.nick}
    answers = [turn.text for support in gathered.dialogues for turn in support.dialogue.turns[1::2]]
    for texts in (answers, gathered.utterances):
        assert sum(addressee(text, nicks) is not None for text in texts) == 0
        assert sum(text != " ".join(text.split()) for text in texts) == 0
    lengths = [np.mean([len(text.split()) for text in texts]) for texts in (answers, gathered.utterances)]
    assert 0.5 < lengths[0] / lengths[1] < 2


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_the_asker_spoke_last_and_the_reply_is_the_helpers(tasks, gathered, split):
    said = {(turn.speaker, turn.text) for support in gathered.dialogues for turn in support.dialogue.turns}
    for turns, (right,) in zip(tasks[1, split].examples["turns"], correct_texts(tasks[1, split]), strict=True):
        assert turns[-1]["speaker"] == "participant_1"
        assert turns[0]["speaker"] == "participant_1"
        assert ("participant_2", right) in said


def test_subtask_2_shares_one_pool_that_holds_every_answer(tasks):
    pools = [tasks[2, split].options for split in ("train", "dev", "test")]
    assert pools[0].equals(pools[1])
    assert pools[0].equals(pools[2])
    assert pools[0].height == 6_000
    assert pools[0]["text"].is_unique().all()
    for split in ("train", "dev", "test"):
        assert tasks[2, split].examples["options"].null_count() == tasks[2, split].examples.height
        assert set(tasks[2, split].examples["correct"].list.len()) == {1}


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_subtask_4_lacks_the_answer_in_a_fifth(tasks, split):
    task = tasks[4, split]
    bare = task.examples["correct"].list.len() == 0
    assert bare.mean() == pytest.approx(0.2, abs=0.01)
    assert (task.truth().correct["option"] == NONE).sum() == bare.sum()
    assert set(task.examples["options"].list.n_unique()) == {100}


def test_no_conversation_is_on_two_sides(gathered):
    split = split_by_day(gathered.dialogues, (0.8, 0.1, 0.1))
    ids = [support.dialogue.id for dialogues in split.values() for support in dialogues]
    assert len(set(ids)) == len(ids)


def test_wrong_options_come_from_their_own_side(tasks, gathered):
    split = split_by_day(gathered.dialogues, (0.8, 0.1, 0.1))
    said = {
        turn.text for support in split["test"] for turn in support.dialogue.turns if turn.speaker == "participant_2"
    }
    assert set(tasks[1, "test"].options["text"]) <= said


def test_ids_are_like_the_tracks(tasks):
    assert tasks[1, "train"].examples["id"][0] == "1100001"
    assert tasks[4, "test"].examples["id"][1] == "4300002"
    ids = [id_ for task in tasks.values() for id_ in task.examples["id"]]
    assert len(set(ids)) == len(ids)


def test_the_same_seed_gives_the_same_tasks(gathered, tasks):
    for subtask, split, task in build_subtasks(gathered, Recipe(seed=1, pool_size=6_000)):
        assert task.examples.equals(tasks[subtask, split].examples)
        assert task.options.equals(tasks[subtask, split].options)


def test_hard_options_are_nearer_to_the_context(gathered, tasks, tmp_path):
    ranker = Tfidf(Tfidf.Settings())
    ranker.fit(Lesson(train=tasks[1, "train"], work=tmp_path))
    hard = {(s, side): task for s, side, task in build_subtasks(gathered, Recipe(seed=1, pool_size=6_000, hard=True))}
    figures = [
        np.mean(score(ranker.predict(task[1, "train"]), task[1, "train"].truth(), ["MRR"])["MRR"])
        for task in (tasks, hard)
    ]
    assert figures[1] < 0.6 * figures[0]


def test_every_cut_makes_more_training_examples_only(gathered, tasks):
    more = {
        (s, side): task for s, side, task in build_subtasks(gathered, Recipe(seed=1, pool_size=6_000, every_cut=True))
    }
    assert more[1, "train"].examples.height > 2 * tasks[1, "train"].examples.height
    assert more[1, "test"].examples.height == tasks[1, "test"].examples.height


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


def test_the_collection_is_complete_and_described(gathered, tmp_path):
    import polars as pl

    knowledge = pl.DataFrame({"title": ["ls.1"], "text": ["list files"]})
    description = write_ubuntu(tmp_path, gathered, Recipe(seed=1, pool_size=6_000), knowledge, lambda _: None)
    subtasks = {f"subtask_{n}/{s}" for n in (1, 2, 4, 5) for s in ("train", "dev", "test")}
    assert set(description.tasks) == {*subtasks, "turns/train"}
    five, one = (load_selection_task(tmp_path / f"subtask_{n}/dev") for n in (5, 1))
    assert five.examples.equals(one.examples)
    assert (tmp_path / "knowledge.parquet").exists()
    assert (tmp_path / "ubuntu_corpus/test.csv").exists()
    text = (tmp_path / "description.md").read_text()
    assert f"| kept | {len(gathered.dialogues):,} |" in text
    assert (
        0
        <= description.overlaps["test"].same
        <= description.overlaps["test"].alike
        <= description.overlaps["test"].replies
    )
    again = tmp_path / "again"
    write_ubuntu(again, gathered, Recipe(seed=1, pool_size=6_000), knowledge, lambda _: None)
    for path in again.rglob("*.*"):
        assert path.read_bytes() == (tmp_path / path.relative_to(again)).read_bytes(), path.name


def test_known_replies_can_be_left_out_of_dev_and_test(gathered, tasks):
    recipe = Recipe(seed=1, pool_size=6_000, drop_known=True)
    strict = {(subtask, split): task for subtask, split, task in build_subtasks(gathered, recipe)}
    for subtask in (1, 2, 4):
        assert strict[subtask, "train"].examples.equals(tasks[subtask, "train"].examples)
    answers = {split: [text for (text,) in correct_texts(strict[1, split])] for split in ("train", "dev", "test")}
    before = {split: [text for (text,) in correct_texts(tasks[1, split])] for split in ("dev", "test")}
    for split in ("dev", "test"):
        found = overlap(answers["train"], before[split])
        assert 0 < found.alike < found.replies
        assert overlap(answers["train"], answers[split]) == Overlap(found.replies - found.alike, 0, 0)


def test_two_logs_of_one_name_are_refused_and_one_given_twice_is_taken_once(save, tmp_path, complaint):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        save(f"{name}/2013-01-01.txt", f"[00:00] <x> hi, {name}")
    problem = "is named 2013-01-01 too; give one of them another name"
    assert problem in complaint(find_logs, [tmp_path])
    assert find_logs([tmp_path / "a", tmp_path / "a" / "2013-01-01.txt"]) == [tmp_path / "a" / "2013-01-01.txt"]
    save("b/2013-01-01.txt", "[00:00] <x> hi, a")
    assert find_logs([tmp_path]) == [tmp_path / "a" / "2013-01-01.txt"]


def test_messages_that_stand_in_two_logs_are_used_once(logs, tmp_path):
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


def test_of_a_log_that_shares_some_messages_the_other_conversations_are_used(logs, tmp_path):
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
