import json

import numpy as np
import pytest

from rejoinder.tasks import dialeval
from rejoinder.tasks.dialeval import CUSTOMER_LABELS, HELPDESK_LABELS, NUGGET, QUALITY, SCALE


def turn(sender: str, *utterances: str) -> dict[str, object]:
    return {"sender": sender, "utterances": list(utterances)}


def vote(a: int, s: int, e: int, *nuggets: str) -> dict[str, object]:
    return {"quality": {"A": a, "S": s, "E": e}, "nugget": list(nuggets)}


def dialogue(id_: object = "7", **changes: object) -> dict[str, object]:
    keys = {
        "id": id_,
        "turns": [turn("customer", "手机坏了", "help"), turn("helpdesk", "hello"), turn("customer")],
        "annotations": [vote(2, 1, 0, "CNUG0", "HNUG", "CNUG*"), vote(2, -1, -2, "CNaN", "HNUG*", "CNUG")],
    }
    return {name: value for name, value in (keys | changes).items() if value is not None}


def read(path):
    return list(dialeval.read_dialogues(path))


def test_labels_are_those_of_the_paper():
    assert SCALE == ("2", "1", "0", "-1", "-2")
    assert CUSTOMER_LABELS == ("CNUG0", "CNUG", "CNUG*", "CNaN")
    assert HELPDESK_LABELS == ("HNUG", "HNUG*", "HNaN")
    assert [question.name for question in QUALITY] == ["A", "S", "E"]


@pytest.mark.parametrize("name", ["f.json", "f.json.gz"])
def test_data_are_read_and_written(save, tmp_path, name):
    records = [dialogue(), dialogue("8"), dialogue("test", annotations=None)]
    path = save(f"original-{name}", records)
    for again in (tmp_path / name, tmp_path / f"again-{name}"):
        dialeval.write_dialogues(again, dialeval.read_dialogues(path))
    assert read(again) == read(path)
    assert (tmp_path / name).read_bytes() == again.read_bytes()
    if name == "f.json":
        assert again.read_text("utf-8") == json.dumps(records, indent=4, ensure_ascii=False) + "\n"


def test_votes_are_counted(save):
    task = dialeval.read_task(
        save("f", [dialogue(), dialogue(8, turns=[turn("helpdesk")], annotations=[vote(-2, 0, 1, "HNaN")])])
    )
    assert [dialogue_.id for dialogue_ in task.dialogues] == ["7", "8"]
    assert task.dialogues[0].turns[0].posts == ("手机坏了", "help")
    truth = task.truth()
    assert truth.ids.to_list() == ["7", "8"]
    assert truth.groups["turns"].to_list() == [3, 1]
    assert truth.answers["A"].votes.tolist() == [[2, 0, 0, 0, 0], [0, 0, 0, 0, 1]]
    assert truth.answers["S"].votes.tolist() == [[0, 1, 0, 1, 0], [0, 0, 1, 0, 0]]
    assert truth.answers["E"].votes.tolist() == [[0, 0, 1, 0, 1], [0, 1, 0, 0, 0]]
    nugget = truth.answers["nugget"]
    assert nugget.question == NUGGET
    assert nugget.example.tolist() == [0, 0, 0, 1]
    assert nugget.role.tolist() == [0, 1, 0, 1]
    assert nugget.votes.tolist() == [
        [1, 0, 0, 1, 0, 0, 0],
        [0, 0, 0, 0, 1, 1, 0],
        [0, 1, 1, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 0, 1],
    ]
    assert np.allclose(nugget.distribution.sum(axis=1), 1)


def test_test_files_have_no_annotations(save):
    task = dialeval.read_task(save("f", [dialogue(annotations=None)]))
    assert task.votes is None
    with pytest.raises(ValueError, match="no annotations to score against"):
        task.truth()


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"id": None}, "record 2: object missing required field `id`"),
        ({"id": 1.5}, "record 2: id: expected `int | str`, got `float`"),
        ({"id": "7"}, "record 2 (id 7): id: duplicate id, first used by record 1"),
        ({"id": 7}, "record 2 (id 7): id: duplicate id, first used by record 1"),
        ({"turns": None}, "record 2: object missing required field `turns`"),
        ({"turns": []}, "record 2 (id 8): turns: a dialogue needs at least one turn"),
        ({"turns": [turn("visitor")]}, "record 2: turns[0].sender: invalid enum value 'visitor'"),
        ({"turns": [{"sender": "customer"}]}, "record 2: turns[0]: object missing required field `utterances`"),
        ({"annotations": []}, "record 2 (id 8): annotations: an annotated dialogue needs at least one annotation"),
        (
            {"annotations": [vote(3, 0, 0, "CNUG", "HNUG", "CNUG")]},
            "record 2: annotations[0].quality.A: invalid enum value 3",
        ),
        (
            {"annotations": [vote("1", 0, 0, "CNUG", "HNUG", "CNUG")]},
            "record 2: annotations[0].quality.A: expected `int`, got `str`",
        ),
        (
            {"annotations": [{"quality": {"A": 0, "S": 0}, "nugget": []}]},
            "record 2: annotations[0].quality: object missing required field `E`",
        ),
        (
            {"annotations": [vote(0, 0, 0, "CNUG", "HNUG", "CNUG"), vote(0, 0, 0, "CNUG", "HNUG")]},
            "record 2 (id 8): annotations[1].nugget: 2 labels for 3 turns; expected one a turn",
        ),
        (
            {"annotations": [vote(0, 0, 0, "CNUG", "HNUG", "CNUG", "HNUG")]},
            "record 2 (id 8): annotations[0].nugget: 4 labels for 3 turns; expected one a turn",
        ),
        (
            {"annotations": [vote(0, 0, 0, "CNUG", "CNUG", "CNUG")]},
            "record 2 (id 8): annotations[0].nugget[1]: 'CNUG' for a helpdesk turn; expected one of HNUG, HNUG*, HNaN",
        ),
        (
            {"annotations": [vote(0, 0, 0, "CNUG", "HNUG", "cnug")]},
            "record 2 (id 8): annotations[0].nugget[2]: 'cnug' for a customer turn; "
            "expected one of CNUG0, CNUG, CNUG*, CNaN",
        ),
    ],
)
def test_malformed_dialogues(save, complaint, changes, problem):
    assert complaint(read, save("f", [dialogue(), dialogue(**({"id_": "8"} | changes))])) == f"f: {problem}"


def test_annotations_for_some_only(save, complaint):
    path = save("f", [dialogue(), dialogue("8", annotations=None)])
    assert complaint(dialeval.read_task, path) == (
        "f: record 2 (id 8): annotations: left out here, but not in other records"
    )


def test_a_file_without_dialogues(save, complaint):
    assert complaint(dialeval.read_task, save("f", "[]")) == "f: holds no dialogue"
