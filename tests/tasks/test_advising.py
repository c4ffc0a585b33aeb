import json

import numpy as np
import pytest

from rejoinder.corpora.advising import read_advising, read_courses
from rejoinder.files import BadInputError
from rejoinder.sample import advising as sample
from rejoinder.tasks.advising import divide, versions
from rejoinder.tasks.collection import AdvisingPlan, write_advising
from rejoinder.tasks.selection import load_selection_task


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    folder = tmp_path_factory.mktemp("raw")
    sample.write(folder, 163, seed=2)
    return list(read_advising(folder / "dialogues.json")), read_courses(folder / "courses.json")


@pytest.fixture(scope="module")
def built(raw, tmp_path_factory):
    out = tmp_path_factory.mktemp("built")
    write_advising(out, *raw, AdvisingPlan(seed=1, train_size=400), lambda _: None)
    return out


def sets_by_text(records):
    """Return, for every wording, the sets of wordings that it belongs to."""
    found: dict[str, list[set[str]]] = {}
    for record in records:
        for utterance in record.utterances:
            for text in utterance.ways:
                found.setdefault(text, []).append(set(utterance.ways))
    return found


def test_conversations_are_divided_as_in_the_paper(raw):
    sides = divide(raw[0], np.random.default_rng(0))
    assert [len(side) for side in (sides.train, sides.dev, sides.test, sides.wrong)] == [100, 20, 20, 23]
    ids = [record.id for side in (sides.train, sides.dev, sides.test, sides.wrong) for record in side]
    assert len(set(ids)) == len(ids) == 163


def test_too_few_conversations_are_refused(raw):
    with pytest.raises(BadInputError, match="2 usable conversations"):
        divide(raw[0][:2], np.random.default_rng(0))


def test_a_test_conversation_has_five_versions_at_different_cuts(raw):
    record = next(record for record in raw[0] if len(record.answers) >= 5)
    made = list(versions([record], np.random.default_rng(0)))
    assert len(made) == 5
    assert len({len(partial.cut.turns) for partial in made}) == 5
    assert all("Aggregated" not in partial.profile for partial in made)


@pytest.mark.parametrize("subtask", [1, 3, 4, 5])
@pytest.mark.parametrize("split", ["train", "dev", "test_1", "test_2"])
def test_every_subtask_keeps_its_promise(built, raw, subtask, split):
    task = load_selection_task(built / f"subtask_{subtask}" / split)
    assert task.examples.height == (400 if split == "train" else 100)
    assert set(task.examples["options"].list.n_unique()) == {100}
    counts = task.examples["correct"].list.len()
    expected = {1: {1}, 3: {1, 2, 3, 4, 5}, 4: {0, 1}, 5: {1}}[subtask]
    assert set(counts) == expected
    if subtask == 4:
        assert (counts == 0).mean() == pytest.approx(0.2)
    said, texts = sets_by_text(raw[0]), task.options["text"].to_list()
    for _, turns, options, correct in task.examples.iter_rows():
        assert turns[-1]["speaker"] == "student"
        right = {texts[row] for row in correct}
        wrong = {texts[row] for row in options} - right
        # what is correct is one utterance's wordings, and no other wording of it is offered as wrong
        assert not right or any(right <= ways and not wrong & ways for ways in said[min(right)])


def test_wrong_options_are_in_any_wording_as_the_right_one_is(built, raw):
    originals = {utterance.text for record in raw[0] for utterance in record.utterances}
    task = load_selection_task(built / "subtask_1/train")
    texts = task.options["text"]
    right = texts.gather(task.examples["correct"].explode()).is_in(originals).mean()
    offered = texts.gather(task.examples["options"].explode()).is_in(originals).mean()
    assert right < 0.6
    assert offered == pytest.approx(right, abs=0.15)


def test_paraphrases_of_the_correct_reply_are_all_correct(built, raw):
    task = load_selection_task(built / "subtask_3/test_2")
    said = {frozenset(utterance.ways) for record in raw[0] for utterance in record.utterances}
    for rows in task.examples["correct"]:
        texts = set(task.options["text"].gather(rows))
        assert any(texts <= ways for ways in said)


def test_profiles_hide_the_preferences_at_test_time_only(built):
    for split, known in (("train", True), ("dev", False), ("test_2", False)):
        profiles = load_selection_task(built / f"subtask_1/{split}").profiles
        assert all(("Aggregated" in json.loads(text)) == known for text in profiles["profile"])


def test_the_disjoint_test_set_shares_no_conversation_with_train(built, raw):
    """First utterances with all their paraphrases are told apart by the session's profile."""

    def sessions(split):
        profiles = load_selection_task(built / f"subtask_1/{split}").profiles["profile"]
        return {json.dumps({k: v for k, v in json.loads(text).items() if k != "Aggregated"}) for text in profiles}

    assert not sessions("test_2") & sessions("train")
    assert not sessions("dev") & sessions("train")
    assert sessions("test_1") & sessions("train")


def test_building_twice_gives_the_same_bytes(built, raw, tmp_path):
    write_advising(tmp_path, *raw, AdvisingPlan(seed=1, train_size=400), lambda _: None)
    for path in tmp_path.rglob("*.*"):
        assert path.read_bytes() == (built / path.relative_to(tmp_path)).read_bytes(), path.name
