import msgspec
import numpy as np
import pytest

from rejoinder.corpora.irc import read_log
from rejoinder.corpora.ubuntu import addressee
from rejoinder.files import BadInputError
from rejoinder.measures.selection import score
from rejoinder.systems.retrieval import Tfidf
from rejoinder.systems.system import Lesson
from rejoinder.tasks.collection import write_ubuntu
from rejoinder.tasks.description import Overlap, overlap
from rejoinder.tasks.selection import NONE, load_selection_task
from rejoinder.tasks.ubuntu import UbuntuPlan, build_subtasks, split_by_day, training_replies

PLAN = UbuntuPlan(seed=1, pool_size=6_000)


@pytest.fixture(scope="module")
def tasks(gathered):
    return {(subtask, split): task for subtask, split, task in build_subtasks(gathered, PLAN)}


def correct_texts(task):
    texts = task.options["text"]
    return [texts.gather(rows).to_list() for rows in task.examples["correct"]]


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
    for subtask, split, task in build_subtasks(gathered, PLAN):
        assert task.examples.equals(tasks[subtask, split].examples)
        assert task.options.equals(tasks[subtask, split].options)


def test_hard_options_are_nearer_to_the_context(gathered, tasks, tmp_path):
    ranker = Tfidf(Tfidf.Settings())
    ranker.fit(Lesson(train=tasks[1, "train"], work=tmp_path))
    hard = {(s, side): task for s, side, task in build_subtasks(gathered, msgspec.structs.replace(PLAN, hard=True))}
    figures = [
        np.mean(score(ranker.predict(task[1, "train"]), task[1, "train"].truth(), ["MRR"])["MRR"])
        for task in (tasks, hard)
    ]
    assert figures[1] < 0.6 * figures[0]


def test_every_cut_makes_more_training_examples_only(gathered, tasks):
    more = {
        (s, side): task for s, side, task in build_subtasks(gathered, msgspec.structs.replace(PLAN, every_cut=True))
    }
    assert more[1, "train"].examples.height > 2 * tasks[1, "train"].examples.height
    assert more[1, "test"].examples.height == tasks[1, "test"].examples.height


def test_the_collection_is_complete_and_described(gathered, tmp_path):
    import polars as pl

    knowledge = pl.DataFrame({"title": ["ls.1"], "text": ["list files"]})
    description = write_ubuntu(tmp_path, gathered, PLAN, knowledge, lambda _: None)
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
    write_ubuntu(again, gathered, PLAN, knowledge, lambda _: None)
    for path in again.rglob("*.*"):
        assert path.read_bytes() == (tmp_path / path.relative_to(again)).read_bytes(), path.name


def test_known_replies_can_be_left_out_of_dev_and_test(gathered, tasks):
    plan = msgspec.structs.replace(PLAN, drop_known=True)
    strict = {(subtask, split): task for subtask, split, task in build_subtasks(gathered, plan)}
    for subtask in (1, 2, 4):
        assert strict[subtask, "train"].examples.equals(tasks[subtask, "train"].examples)
    answers = {split: [text for (text,) in correct_texts(strict[1, split])] for split in ("train", "dev", "test")}
    before = {split: [text for (text,) in correct_texts(tasks[1, split])] for split in ("dev", "test")}
    for split in ("dev", "test"):
        found = overlap(answers["train"], before[split])
        assert 0 < found.alike < found.replies
        assert overlap(answers["train"], answers[split]) == Overlap(found.replies - found.alike, 0, 0)
