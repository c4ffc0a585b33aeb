import csv

import pytest

from rejoinder.tasks.build import Cut, build_task
from rejoinder.tasks.selection import load_selection_task
from rejoinder.tasks.ubuntu_corpus import import_corpus, write_test, write_training_pairs
from rejoinder.watch import unheard

CUTS = [
    Cut((("participant_1", f"question {n}"), ("participant_2", "hm"), ("participant_1", "so?")), (f"reply {n}",))
    for n in range(30)
]


def test_training_pairs_are_half_right(tmp_path):
    write_training_pairs(tmp_path / "train.csv", CUTS, seed=1)
    with (tmp_path / "train.csv").open(newline="") as file:
        pairs = [(row["Context"], row["Utterance"], int(row["Label"])) for row in csv.DictReader(file)]
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
    folder = import_corpus(tmp_path / "test.csv", tmp_path / "corpus", unheard)
    assert folder == tmp_path / "corpus" / "subtask_1" / "test"
    found, texts = load_selection_task(folder), task.options["text"]
    assert found.examples["turns"].equals(task.examples["turns"])
    places = []
    for own, original in zip(found.examples.iter_rows(), task.examples.iter_rows(), strict=True):
        again = [found.options["text"].gather(rows).to_list() for rows in own[2:]]
        given = [texts.gather(rows).to_list() for rows in original[2:]]
        assert [*map(sorted, again)] == [*map(sorted, given)]
        places.append(own[2].index(own[3][0]))
    assert len(set(places)) > 5  # the right one has no place of its own


def test_training_pairs_come_in_as_replies_among_all_utterances(tmp_path, cli):
    write_training_pairs(tmp_path / "train.csv", CUTS, seed=1)
    code, out, _ = cli("import", "ubuntu-corpus", tmp_path / "train.csv", "--out", tmp_path / "corpus")
    assert (code, out) == (0, f"{tmp_path / 'corpus' / 'subtask_1' / 'train'}\n")
    task = load_selection_task(tmp_path / "corpus" / "subtask_1" / "train")
    assert task.examples["options"].null_count() == task.examples.height == 30
    assert set(task.options["text"]) == {cut.replies[0] for cut in CUTS}
    turns = [tuple((turn["speaker"], turn["text"]) for turn in said) for said in task.examples["turns"]]
    replies = task.options["text"].gather(task.examples["correct"].list.first())
    assert sorted(zip(turns, replies, strict=True)) == sorted((cut.turns, cut.replies[0]) for cut in CUTS)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("Context,Utterance,Label\na,b,1\na,b,2\n", "record 2: Label: '2'; expected 0 or 1"),
        ("Context,Utterance,Label\na,b,0\n", "holds no example"),
        ("Context,Utterance,Label\n__eou__ __eot__,b,1\n", "record 1: Context: is empty"),
        ("Context,Utterance,Label\na,b\n", "record 1: 2 columns; expected 3"),
        ("A,Label\n", "line 1: columns A, Label; expected Context, Utterance, Label"),
    ],
)
def test_mistakes_are_named(save, complaint, tmp_path, content, problem):
    path = save("t.csv", content)
    assert complaint(import_corpus, path, tmp_path / "out", unheard) == f"t.csv: {problem}"
    assert not (tmp_path / "out").exists()


def test_one_reply_is_too_few_to_draw_wrong_ones(tmp_path, complaint):
    assert "fewer than two different replies" in complaint(write_training_pairs, tmp_path / "x.csv", CUTS[:1], 0)
    assert not (tmp_path / "x.csv").exists()


def test_other_than_ten_options_are_refused(tmp_path):
    task = build_task(CUTS, [(f"wrong {n}",) for n in range(50)], candidates=5)
    with pytest.raises(ValueError, match="nine wrong ones"):
        write_test(tmp_path / "test.csv", task)
