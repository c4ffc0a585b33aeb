from datetime import datetime, timedelta

import numpy as np
import pytest

from rejoinder.dialogue import Dialogue, Turn
from rejoinder.errors import UserError
from rejoinder.tasks.card import SPLITS, read_card
from rejoinder.tasks.chats import ChatsPlan, cut_dialogue, split_dialogues, tidy, unified, write_chats
from rejoinder.tasks.selection import NONE, load_selection_task
from rejoinder.watch import unheard

C, H = "customer", "helpdesk"
START = datetime(2024, 5, 1)


def dialogue(id_, *turns, time=None):
    return Dialogue(id_, tuple(Turn(speaker, posts) for speaker, *posts in turns), time)


def chat(number, time=None):
    """Two replies of its own, and one that all have."""
    said = (H, "Hello!"), (C, f"Order {number}?"), (H, f"Sent, {number}."), (C, "Thanks."), (H, "Bye."), (C, "And?")
    return dialogue(str(number), *said, (H, f"Look at {number}."), time=time)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Fifty dialogues, written by time, in a file that is in no order."""
    out = tmp_path_factory.mktemp("chats")
    shuffled = np.random.default_rng(3).permutation(50).tolist()
    chats = [chat(number, START + timedelta(days=number)) for number in shuffled]
    return out, write_chats(out, [dialogue("x", (C, "hi")), *chats], ChatsPlan(seed=1, candidates=8), unheard)


def tasks(out, subtask):
    return {split: load_selection_task(out / f"subtask_{subtask}" / split) for split in SPLITS}


def rights(task):
    return [task.options["text"].gather(rows).to_list() for rows in task.examples["correct"]]


def test_a_dialogue_is_cut_before_each_reply_to_something():
    cuts = cut_dialogue(tidy(dialogue("a", (H, "Hello!"), (C, "hi", "my  card\nis gone"), (H, "one", "two"), (C, "?"))))
    assert [(cut.turns, cut.replies) for cut in cuts] == [(((H, "Hello!"), (C, "hi my card is gone")), ("one two",))]


def test_empty_turns_are_no_replies_and_do_not_part_what_is_around_them():
    empty = dialogue("a", (C, "hi", " "), (H, "", "\n"), (C, "hello?"), (H, "yes"), (C, ""), (H, "", "what is it?"))
    (cut,) = cut_dialogue(tidy(empty))
    assert (cut.turns, cut.replies) == (((C, "hi hello?"),), ("yes what is it?",))
    assert cut_dialogue(tidy(dialogue("b", (H, "hi"), (C, "")))) == []


def test_of_a_long_talk_examples_keep_the_last_turns():
    turns = [(speaker, f"{speaker} {number}") for number in range(100) for speaker in (C, H)]
    cuts = cut_dialogue(dialogue("a", *turns))
    assert len(cuts) == 100
    assert [len(cut.turns) for cut in cuts[:26]] == [*range(1, 51, 2), 50]
    assert (cuts[-1].turns[0], cuts[-1].turns[-1]) == ((H, "helpdesk 74"), (C, "customer 99"))


def test_replies_that_differ_by_capitals_or_stops_alone_are_one_as_most_often_written():
    def given(cut):
        return {side: [one.replies for one in cuts] for side, cuts in unified(cut).items()}

    def cuts(*texts):
        return cut_dialogue(
            dialogue("a", *((speaker, text) for reply in texts for speaker, text in ((C, "?"), (H, reply))))
        )

    said = {
        "train": cuts("sent", "Sent.", "Sent?", "C++", "C", "!"),
        "test": cuts("Sent.", "SENT!", "Done , ok", "done ok."),
    }
    assert given(said) == {
        "train": [("Sent.",), ("Sent.",), ("Sent?",), ("C++",), ("C",), ("!",)],
        "test": [("Sent.",), ("Sent.",), ("Done , ok",), ("Done , ok",)],
    }


def test_the_oldest_train_though_the_file_is_in_no_order(built):
    out, description = built
    orders = {
        split: {int(text.split()[1].rstrip("?.")) for turns in task.examples["turns"] for text in [turns[1]["text"]]}
        for split, task in tasks(out, 1).items()
    }
    assert orders == {"train": set(range(40)), "dev": set(range(40, 45)), "test": set(range(45, 50))}
    assert description.notes[0] == "split by time: train has the oldest dialogues, test the newest"


def test_without_a_time_the_order_of_the_file_counts(tmp_path):
    chats = [chat(number, None if number == 7 else START - timedelta(days=number)) for number in range(20)]
    split = split_dialogues(chats)
    assert [[int(one.id) for one in split[side]] for side in SPLITS] == [[*range(16)], [16, 17], [18, 19]]
    notes = write_chats(tmp_path, chats, ChatsPlan(candidates=3), unheard).notes
    assert notes[0] == "split by the order of the file: 1 of 20 dialogues without a time"


def test_what_was_built_is_described(built):
    out, description = built
    counts = {"train": 120, "dev": 15, "test": 15}
    assert description.tasks == {f"subtask_{n}/{split}": counts[split] for n in (1, 2, 4) for split in SPLITS}
    assert list(description.funnel.items())[:2] == [("dialogues", 51), ("without a reply of the helpdesk", 1)]
    assert description.notes[1] == "the pool of subtask 2 holds 101 different replies"
    assert "| subtask_4/test | 15 |" in (out / "description.md").read_text()
    card = read_card(out / "subtask_1/dev")
    assert (card.dataset, card.subtask, card.split, card.examples, card.seed) == ("chats", 1, "dev", 15, 1)


@pytest.mark.parametrize("subtask", [1, 4])
@pytest.mark.parametrize("split", SPLITS)
def test_wrong_options_are_replies_of_the_same_side_and_never_the_right_one(built, subtask, split):
    task = tasks(built[0], subtask)[split]
    own = {text for texts in rights(tasks(built[0], 1)[split]) for text in texts}
    texts = task.options["text"]
    for options, right in zip(task.examples["options"], rights(task), strict=True):
        offered = texts.gather(options).to_list()
        assert len(set(offered)) == 8
        assert set(offered) <= own  # no "Hello!", which replies to nothing
        assert [text for text in offered if text in right] == right
    assert sum(not right for right in rights(task)) == (0 if subtask == 1 else task.examples.height // 5)


def test_where_no_option_is_right_the_reply_is_not_among_them(built):
    task, answered = tasks(built[0], 4)["train"], rights(tasks(built[0], 1)["train"])
    assert (task.truth().correct["option"] == NONE).sum() == 24
    for options, right, (reply,) in zip(task.examples["options"], rights(task), answered, strict=True):
        assert (reply in task.options["text"].gather(options)) == bool(right)


def test_subtask_2_has_one_pool_of_all_replies(built):
    found = tasks(built[0], 2)
    pool = found["train"].options
    assert all(task.options.equals(pool) for task in found.values())
    assert sorted(pool["text"]) == sorted({text for task in found.values() for (text,) in rights(task)})
    assert pool["id"].is_unique().all()
    assert all(task.examples["options"].null_count() == task.examples.height for task in found.values())


def test_the_same_seed_gives_the_same_bytes(tmp_path):
    def files(name, seed):
        write_chats(
            tmp_path / name, [chat(number) for number in range(20)], ChatsPlan(seed=seed, candidates=4), unheard
        )
        return {path.relative_to(tmp_path / name): path.read_bytes() for path in (tmp_path / name).rglob("*.*")}

    first = files("a", 0)
    assert first == files("b", 0)
    other = files("c", 1)
    assert all(first[path] != other[path] for path in first if path.name == "examples.parquet")


def test_too_few_dialogues_or_replies(tmp_path):
    chats = [chat(number) for number in range(9)]
    with pytest.raises(UserError, match=r"^9 dialogues in which the helpdesk replies; .* need at least 10$"):
        write_chats(tmp_path, [*chats, dialogue("x", (C, "hi"))], ChatsPlan(), unheard)
    chats.append(chat(9))
    advice = r"^dev has too few different replies \(3\) for lists of 100; take more dialogues, or --candidates 2$"
    with pytest.raises(UserError, match=advice):
        write_chats(tmp_path, chats, ChatsPlan(), unheard)
    assert write_chats(tmp_path, chats, ChatsPlan(candidates=2), unheard).tasks["subtask_1/dev"] == 3
    same = [dialogue(str(number), (C, "hi"), (H, "ho")) for number in range(10)]
    with pytest.raises(UserError, match=r"replies \(1\) for lists of 2; take more dialogues$"):
        write_chats(tmp_path, same, ChatsPlan(candidates=2), unheard)
