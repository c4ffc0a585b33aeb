import csv

import pytest

from rejoinder.tasks.build import Cut, build_task
from rejoinder.tasks.ubuntu_corpus import read_cuts, read_training_pairs, write_test, write_training_pairs

CUTS = [
    Cut((("participant_1", f"question {n}"), ("participant_2", "hm"), ("participant_1", "so?")), (f"reply {n}",))
    for n in range(30)
]


def test_training_pairs_are_half_right(tmp_path):
    write_training_pairs(tmp_path / "train.csv", CUTS, seed=1)
    pairs = list(read_training_pairs(tmp_path / "train.csv"))
    assert len(pairs) == 60
    assert sum(label for _, _, label in pairs) == 30
    for context, utterance, label in pairs:
        number = context.split()[1]
        assert (utterance == f"reply {number} __eou__") == bool(label)
    assert [label for *_, label in pairs] != [1, 0] * 30


def test_tests_have_the_truth_first_and_nine_distractors(tmp_path):
    task = build_task(CUTS, [(f"wrong {n}",) for n in range(50)], candidates=10)
    write_test(tmp_path / "test.csv", task)
    with (tmp_path / "test.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["Context", "Ground Truth Utterance", *(f"Distractor_{n}" for n in range(9))]
    assert rows[3]["Context"] == "question 3 __eou__ __eot__ hm __eou__ __eot__ so? __eou__ __eot__"
    assert rows[3]["Ground Truth Utterance"] == "reply 3 __eou__"
    for (cut, wrong), original in zip(read_cuts(tmp_path / "test.csv"), CUTS, strict=True):
        assert cut == original
        assert len(set(wrong)) == 9
        assert all(text.startswith("wrong") for text in wrong)


def test_mistakes_are_named(save, complaint):
    path = save("t.csv", "Context,Utterance,Label\na,b,1\na,b,2\n")
    assert complaint(lambda: list(read_training_pairs(path))) == "t.csv: record 2: Label: '2'; expected 0 or 1"
    path = save("t.csv", "A,B\n")
    assert (
        complaint(lambda: list(read_training_pairs(path)))
        == "t.csv: line 1: columns A, B; expected Context, Utterance, Label"
    )


def test_one_reply_is_too_few_to_draw_wrong_ones(tmp_path, complaint):
    assert "fewer than two different replies" in complaint(write_training_pairs, tmp_path / "x.csv", CUTS[:1], 0)
    assert not (tmp_path / "x.csv").exists()


def test_other_than_ten_options_are_refused(tmp_path):
    task = build_task(CUTS, [(f"wrong {n}",) for n in range(50)], candidates=5)
    with pytest.raises(ValueError, match="nine wrong ones"):
        write_test(tmp_path / "test.csv", task)
