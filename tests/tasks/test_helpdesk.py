import pytest

from rejoinder.dialogue import Dialogue, Turn
from rejoinder.tasks.helpdesk import QUESTIONS, make_task, read_questions

DIALOGUES = [
    Dialogue("a", (Turn("customer", ("hi",)), Turn("helpdesk", ("ho",)))),
    Dialogue("b", (Turn("customer", ("hi",)),)),
    Dialogue("c", (Turn("helpdesk", ("",)),)),
]
HEADER = "conversation,annotator,question,turn,label\n"


def test_without_votes_all_is_asked():
    task = make_task(DIALOGUES)
    assert (task.questions, task.votes, len(task.dialogues)) == (QUESTIONS, None, 3)


def test_dialogues_without_votes_are_left_out(save):
    votes = HEADER + "c,ann,S,,-2\na,ann,S,,1\na,bob,S,,1\na,ann,nugget,2,HNUG\nc,bob,nugget,1,HNaN\n"
    task = make_task(DIALOGUES, save("votes.csv", votes))
    assert [dialogue.id for dialogue in task.dialogues] == ["a", "c"]
    answers = task.truth().answers
    assert list(answers) == ["S", "nugget"]
    assert answers["S"].votes.tolist() == [[0, 2, 0, 0, 0], [0, 0, 0, 0, 1]]
    assert answers["nugget"].voted.tolist() == [False, True, True]


def test_questions_of_ones_own(save):
    questions = read_questions(
        save("q.yaml", "- {name: polite, labels: ['yes', 'no'], ordered: false, roles: {helpdesk: ['yes', 'no']}}")
    )
    task = make_task(DIALOGUES, save("votes.csv", HEADER + "a,ann,polite,2,yes\nc,ann,polite,1,no"), questions)
    assert task.truth().answers["polite"].votes.tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("votes", "problem"),
    [
        ("x,ann,S,,1", "row 1: conversation: no such conversation: 'x'"),
        ("a,ann,S,0,1", "row 1: turn: '0'; expected a number from 1, or nothing for a question about the dialogue"),
        ("a,ann,S,two,1", "row 1: turn: 'two'; expected a number from 1, or nothing for a question about the dialogue"),
        ("a,ann,S,1,1", "row 1: turn: '1'; S expects nothing"),
        ("a,ann,nugget,,CNUG", "row 1: turn: ''; nugget expects the turn's number"),
        ("a,ann,mood,,1", "row 1: question: expected one of A, S, E, nugget"),
        ("a,ann,S,,3", "row 1: label: is not among the question's labels for this turn"),
        ("a,ann,S,,1\na,ann,S,,1", "row 2: annotator: has voted on this already"),
        ("a,ann,nugget,3,HNUG", "row 1: turn: the question is not asked of this turn, or there is none"),
        ("a,ann,S,,1\nb,ann,A,,1", "dialogue a: A: nobody voted on it"),
        ("", "holds no vote"),
    ],
)
def test_votes_that_do_not_fit(save, complaint, votes, problem):
    assert complaint(make_task, DIALOGUES, save("votes", HEADER + votes)) == f"votes: {problem}"


def test_questions_that_make_no_sense(save, complaint):
    path = save("q.yaml", "- {name: x, labels: [a], ordered: true, roles: {user: [b]}}")
    assert complaint(read_questions, path) == "q.yaml: question 1: roles: 'b' is not among the labels"
