import numpy as np
import polars as pl
import pytest

from rejoinder.dialogue import Dialogue, Turn
from rejoinder.tasks.judgement import VOTE_SCHEMA, JudgementTask, Question
from rejoinder.tasks.judgement_folder import load_judgement_task, read_judgement_card, save_judgement_task

MOOD = Question("mood", ("good", "bad"), ordered=True)
TURNS = Question("fits", ("O", "T", "X"), ordered=False, roles={"system": ("O", "T", "X")})
DIALOGUES = (
    Dialogue("a", (Turn("system", ("Hello!",)), Turn("user", ("hi", "you")), Turn("system", ("Bye.",)))),
    Dialogue("b", (Turn("user", ()), Turn("system", ("",)))),
)
VOTES = [
    (0, "mood", 0, "ann", "bad"),
    (0, "mood", 0, "bob", "good"),
    (1, "mood", 0, "ann", "bad"),
    (0, "fits", 2, "ann", "X"),
    (0, "fits", 2, "bob", "X"),
    (1, "fits", 1, "cem", "O"),
]


def make(votes=VOTES):
    return JudgementTask(DIALOGUES, (MOOD, TURNS), votes and pl.DataFrame(votes, schema=VOTE_SCHEMA, orient="row"))


def test_a_task_is_written_and_read(tmp_path):
    save_judgement_task(tmp_path / "task", make(), "test", {"x.json": "made up"}, masked=True)
    again = load_judgement_task(tmp_path / "task")
    assert (again.dialogues, again.questions) == (DIALOGUES, (MOOD, TURNS))
    assert again.votes.equals(make().votes)
    card = read_judgement_card(tmp_path / "task")
    assert (card.dataset, card.dialogues, card.sources, card.masked) == ("test", 2, {"x.json": "made up"}, True)


def test_without_votes(tmp_path):
    save_judgement_task(tmp_path, make(None), "test", {})
    again = load_judgement_task(tmp_path)
    assert again.votes is None
    answers = again.unanswered().answers
    assert answers["fits"].example.tolist() == [0, 0, 1]
    assert answers["fits"].turn.tolist() == [0, 2, 1]
    assert not answers["fits"].votes.any()


def test_a_question_is_asked_of_its_roles_and_not_every_row_has_votes():
    fits = make().truth().answers["fits"]
    assert fits.votes.tolist() == [[0, 0, 0], [0, 0, 2], [1, 0, 0]]
    assert fits.voted.tolist() == [False, True, True]
    assert fits.distribution.tolist() == [[0, 0, 0], [0, 0, 1], [1, 0, 0]]


def test_picked_dialogues_keep_their_votes():
    task = make().pick(np.array([1, 0]))
    truth = task.truth()
    assert truth.ids.to_list() == ["b", "a"]
    assert truth.answers["mood"].votes.tolist() == [[0, 1], [1, 1]]
    assert truth.answers["fits"].votes.tolist() == [[1, 0, 0], [0, 0, 0], [0, 0, 2]]
    assert make().pick(np.array([1])).votes["annotator"].to_list() == ["ann", "cem"]


@pytest.mark.parametrize(
    ("row", "vote", "problem"),
    [
        (2, (1, "age", 0, "ann", "bad"), "row 3: question: expected one of mood, fits"),
        (3, (0, "fits", 1, "ann", "X"), "row 4: turn: the question is not asked of this turn, or there is none"),
        (3, (5, "fits", 0, "ann", "X"), "row 4: turn: the question is not asked of this turn, or there is none"),
        (3, (0, "fits", 2, "ann", "Y"), "row 4: label: is not among the question's labels for this turn"),
        (3, (0, "fits", 2, "ann", None), "row 4: label: is not among the question's labels for this turn"),
        (4, (0, "fits", 2, "ann", "O"), "row 5: annotator: has voted on this already"),
        (2, (0, "mood", 0, "cem", "bad"), "dialogue b: mood: nobody voted on it"),
    ],
)
def test_votes_that_do_not_fit(tmp_path, complaint, row, vote, problem):
    save_judgement_task(tmp_path / "t", make([*VOTES[:row], vote, *VOTES[row + 1 :]]), "test", {})
    assert complaint(load_judgement_task, tmp_path / "t") == f"t/votes.parquet: {problem}"


def test_what_stands_in_the_way_is_left_alone(tmp_path, complaint):
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "mine.txt").write_text("precious")
    problem = complaint(save_judgement_task, tmp_path / "t", make(), "test", {})
    assert problem == "t: is not empty; give another folder, so that nothing is mixed up"
    assert (tmp_path / "t" / "mine.txt").read_text() == "precious"
