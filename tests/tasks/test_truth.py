import pytest

from rejoinder.tasks import dstc7
from rejoinder.tasks.truth import read_truth


def candidates(ids: str) -> list[dict[str, str]]:
    return [{"candidate-id": id_, "utterance": f"say {id_}"} for id_ in ids]


def example(id_: object, correct: str | None, options: str) -> dict[str, object]:
    record = {"example-id": id_, "messages-so-far": [{"speaker": "a", "utterance": "hi"}]}
    if correct is not None:
        record["options-for-correct-answers"] = candidates(correct)
    return record | {"options-for-next": candidates(options)}


DIALOGUE = {"id": "d", "turns": [{"sender": "customer", "utterances": []}]}
VOTED = DIALOGUE | {"annotations": [{"quality": {"A": 0, "S": 0, "E": 0}, "nugget": ["CNUG"]}]}


@pytest.mark.parametrize(
    ("content", "format_", "correct"),
    [
        ([example(1, "A", "AB"), example(2, "", "AB")], "dstc7", [(0, "A"), (1, "NONE")]),
        ("1\tA,B\n2\tNONE\n", "key", [(0, "A"), (0, "B"), (1, "NONE")]),
        ("1 0 A 1\n2 0 B 0\n", "qrels", [(0, "A"), (1, "NONE")]),
        ("1 q?\tA, B\n1 q?\tC\n", "moviedialog", [(0, "A"), (0, "B"), (1, "C")]),
    ],
)
@pytest.mark.parametrize("forced", [False, True])
@pytest.mark.parametrize("name", ["f", "f.gz"])
def test_selection_truths_by_content_and_by_name(save, content, format_, correct, forced, name):
    truth = read_truth(save(name, content), format_ if forced else None)
    assert truth.ids.to_list() == ["1", "2"]
    assert truth.correct.rows() == correct


def test_a_forced_format_is_taken_at_its_word(save, complaint):
    path = save("f", "1 0 A 1\n")
    assert complaint(read_truth, path, "key") == (
        "f: line 1: expected an example id, a TAB and answers with commas between"
    )
    assert complaint(read_truth, path, "dstc7") == "f: not JSON: expected a list of records, or one record a line"
    assert complaint(read_truth, path, "task").startswith("f: is no task; expected ")


def test_judgement_truth(save):
    assert read_truth(save("f", [VOTED])).answers["A"].votes.tolist() == [[0, 0, 1, 0, 0]]


def test_truths_without_answers(save, complaint):
    assert complaint(read_truth, save("f", [DIALOGUE])) == "f: annotations: has no annotations to score against"
    path = save("f", [example(1, "A", "AB"), example(2, None, "AB")])
    assert complaint(read_truth, path) == (
        "f: example-id 2: options-for-correct-answers: has no answers to score against"
    )


def test_options_for_some_only(save, complaint):
    path = save("f", [example(1, "A", "AB"), example(2, "A", "")])
    told = "f: example-id 2: options-for-next: left out or empty here, but not in other records"
    assert complaint(read_truth, path) == told


def test_the_options_of_examples_are_known_and_those_of_a_pool_are_not(save):
    truth = read_truth(save("f", [example(1, "A", "AB")]))
    assert (truth.options.rows(), truth.pool) == ([(0, "A"), (0, "B")], None)
    truth = read_truth(save("f", [example(1, "A", "")]))
    assert (truth.options, truth.pool) == (None, None)


def test_a_task_folder(save, tmp_path):
    dstc7.read_task(save("f", [example(1, "A", "AB")])).save(tmp_path / "task")
    truth = read_truth(tmp_path / "task")
    assert truth.correct.rows() == [(0, "A")]
    assert truth.options.rows() == [(0, "A"), (0, "B")]


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("name", ["options", "options.gz"])
def test_options_from_examples(save, name, mark):
    import json

    options = save(name, mark + json.dumps([example(9, None, "X"), example(2, None, "BC"), example(1, None, "AB")]))
    truth = read_truth(save("key", "1\tA\n2\tNONE\n"), options=options)
    assert sorted(truth.options.rows()) == [(0, "A"), (0, "B"), (1, "B"), (1, "C")]


def test_options_from_a_pool(save):
    truth = read_truth(save("key", "1\tA\n2\tNONE\n"), options=save("pool", "\ufeffA\ta\nB\tb\n"))
    assert truth.pool.to_list() == ["A", "B"]


def test_options_that_do_not_fit_the_truth(save, complaint):
    key = save("key", "1\tA\n2\tB\n")
    options = save("f", [example(1, None, "AB")])
    assert complaint(read_truth, key, options=options) == "f: example-id 2: options-for-next: has no options for it"
    options = save("f", [example(1, None, "AB"), example(2, None, "AC")])
    problem = "f: example-id 2: candidate-id: the correct option 'B' is not among the options"
    assert complaint(read_truth, key, options=options) == problem
    assert complaint(read_truth, key, options=save("f", "A\ta\n")) == problem
    assert complaint(read_truth, key, options=save("f", "")) == problem.replace("2", "1").replace("'B'", "'A'")


def test_entities(save):
    path = save("f", "1 q?\tGood Morning, Miss Dove\n")
    assert read_truth(path).correct["option"].to_list() == ["Good Morning", "Miss Dove"]
    truth = read_truth(path, entities=save("entities", "Good Morning, Miss Dove\n"))
    assert truth.correct["option"].to_list() == ["Good Morning, Miss Dove"]
