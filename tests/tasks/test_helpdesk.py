import pytest

from rejoinder.dialogue import Dialogue, Turn
from rejoinder.tasks.helpdesk import QUESTIONS, make_task, read_questions
from rejoinder.tasks.judgement_folder import load_judgement_task

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
        (
            "a,ann,nugget,9999999999,CNUG",
            "row 1: turn: '9999999999'; expected a number from 1, or nothing for a question about the dialogue",
        ),
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


@pytest.mark.parametrize(
    ("questions", "problem"),
    [
        ("[]", "questions: asks nothing"),
        ("[{name: x, labels: [a, c], ordered: true, roles: {user: [b]}}]",
         "question 1: roles: 'b' is not among the labels"),
        ("[{name: x, labels: [a, c], ordered: true, roles: {user: []}}]",
         "question 1: roles: expected speakers with their labels"),
        ("[{name: x, labels: [a, c], ordered: true, roles: {}}]",
         "question 1: roles: expected speakers with their labels"),
        ("[{name: x, labels: [a], ordered: true}]", "question 1: labels: expected two or more, each once"),
        ("[{name: x, labels: [a, b, a], ordered: true}]", "question 1: labels: expected two or more, each once"),
        ("[{name: ../x, labels: [a, b], ordered: true}]", "question 1: name: expected letters, digits, spaces, - or _"),
        ("[{name: x, labels: [a, b], ordered: true}, {name: x, labels: [a, b], ordered: false}]",
         "question 2: name: 'x' is given twice"),
    ],
)  # fmt: skip
def test_questions_that_make_no_sense(save, complaint, questions, problem):
    assert complaint(read_questions, save("q.yaml", questions)) == f"q.yaml: {problem}"
    folder = save("task.yaml", f"{{dataset: x, questions: {questions}, dialogues: 1}}").parent
    assert complaint(load_judgement_task, folder) == f"task.yaml: {problem}"


def test_a_criterion_that_nobody_voted_on_is_named_and_runs_need_no_official_format(cli, save, tmp_path):
    chats = save("chats.csv", "conversation,speaker,text\na,user,hi\na,agent,ho\nb,user,hi\n")
    votes = save("votes.csv", HEADER + "".join(f"{id_},ann,{name},,1\n" for id_ in "ab" for name in "AS"))
    task, model, run = tmp_path / "task", tmp_path / "model", tmp_path / "run"
    code, _, err = cli("import", "helpdesk", chats, "--votes", votes, "--out", task)
    assert (code, "note: nobody voted on E, nugget: the task does not ask it" in err) == (0, True)
    assert cli("train", "mean", "--task", task, "--out", model)[0] == 0
    code, _, err = cli("predict", model, "--task", task, "--format", "dialeval", "--out", run)
    assert (code, run.exists()) == (2, False)
    assert err.startswith(f"error: {run}: the run answers A, S; a DialEval submission holds A, S and E, or nugget")
    code, out, _ = cli("predict", model, "--task", task, "--out", run)
    assert (code, out) == (0, f"mean: 2 examples answered, written to {run} (parquet)\n")
    assert cli("score", task, run)[0] == 0
    code, out, _ = cli("crossvalidate", "mean", "--task", task, "--folds", 100, "--out", tmp_path / "folds")
    assert (code, out) == (0, f"{tmp_path / 'folds' / 'mean.parquet'}\n")


def test_a_model_that_knows_none_of_the_questions_says_so(cli, save, tmp_path):
    chats = save("chats.csv", "conversation,speaker,text\na,user,hi\n")
    questions = save("q.yaml", "- {name: A, labels: ['yes', 'no'], ordered: false}")
    votes = save("votes.csv", HEADER + "a,ann,A,,yes\n")
    arguments = ("--votes", votes, "--questions", questions, "--out", tmp_path / "task")
    assert cli("import", "helpdesk", chats, *arguments)[0] == 0
    assert cli("train", "mean", "--task", tmp_path / "task", "--out", tmp_path / "model")[0] == 0
    run = tmp_path / "run.parquet"
    assert cli("predict", tmp_path / "model", "--task", tmp_path / "task", "--out", run)[1].endswith("(parquet)\n")
    assert cli("import", "helpdesk", chats, "--out", tmp_path / "bare")[0] == 0
    code, _, err = cli("predict", tmp_path / "model", "--task", tmp_path / "bare", "--out", run)
    expected = f"{tmp_path / 'bare'}: asks nothing that mean has learned (A, with their labels)"
    assert (code, err) == (2, f"error: {expected}\n")
