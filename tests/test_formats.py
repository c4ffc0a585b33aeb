from pathlib import Path

import pytest

from rejoinder.cli.evaluate import RunFormat, TruthFormat
from rejoinder.formats import RUN_FORMATS, TRUTH_FORMATS, first_keys, recognise_run, recognise_truth

EXAMPLES = '[{"example-id": 1, "messages-so-far": [], "options-for-next": []}]'
DIALOGUES = '[{"id": "1", "turns": [{"sender": "customer", "utterances": ["hi"]}]}]'
RANKINGS = '[{"example-id": 1, "candidate-ranking": []}]'


def test_the_command_line_offers_every_format():
    assert {format_.value for format_ in TruthFormat} == TRUTH_FORMATS.keys()
    assert {format_.value for format_ in RunFormat} == RUN_FORMATS.keys()


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("name", ["truth", "truth.gz"])
@pytest.mark.parametrize(
    ("content", "format_"),
    [
        (EXAMPLES, "dstc7"),
        (EXAMPLES[1:-1] + "\n", "dstc7"),
        ("\n  " + DIALOGUES, "dialeval"),
        ("1\tABC\n2\tDEF,GHI\n", "key"),
        ("1\tNONE\r\n", "key"),
        ("advising-1\tABC", "key"),
        ("1 who made Alien?\tRidley Scott\n", "moviedialog"),
        ("1 what is there\n2 to see\tAlien\n", "moviedialog"),
        ("1 0 ABC 1\n", "qrels"),
        ("q1\t0\tABC\t-1\r\n", "qrels"),
        ("q1 Q0 ABC 2 \n", "qrels"),
    ],
)
def test_truths(save, content, format_, name, mark):
    assert recognise_truth(save(name, mark + content)) == format_


def test_a_folder_is_a_task(tmp_path):
    assert recognise_truth(tmp_path) == "task"


@pytest.mark.parametrize("name", ["run", "run.gz"])
@pytest.mark.parametrize(
    ("content", "format_"),
    [
        (RANKINGS, "dstc7"),
        (RANKINGS[1:-1], "dstc7"),
        ('[{"id": "1", "quality": {}}]', "dialeval"),
        ('[{"id": "1", "nugget": []}]', "dialeval"),
        ("1 Q0 ABC 1 0.5 name\n", "trec"),
        ("1\tQ0\tABC\t1\t-3e-4\tname\r\n", "trec"),
        ("1 Q0 A\u00a0B 1 0.5 name\n", "trec"),
        (b"PAR1...", "parquet"),
    ],
)
def test_runs(save, content, format_, name):
    assert recognise_run(save(name, content)) == format_


def test_a_film_question_whose_answer_is_a_number_is_no_judgement(save):
    assert recognise_truth(save("f", "1 what year?\t1979\n")) == "moviedialog"


def test_all_lines_have_a_say(save):
    """The first line alone could be a judgement."""
    assert recognise_truth(save("f", "1 films from 1979\n2 which?\tAlien\n3 more?\tMad Max\n")) == "moviedialog"
    assert recognise_truth(save("f", "1 0 A 1\n1 0 B 0\n")) == "qrels"


def test_a_later_mistake_does_not_change_the_format(save):
    assert recognise_truth(save("f", "1 0 A 1\n1 0 B x\n")) == "qrels"
    assert recognise_truth(save("f", "1\tA\nwithout tab\n")) == "key"


@pytest.mark.parametrize("recognise", [recognise_truth, recognise_run])
def test_nothing_known(save, complaint, recognise):
    assert complaint(recognise, save("f", "")) == "f: is empty"
    assert complaint(recognise, save("f", " \n\n")) == "f: is empty"
    assert complaint(recognise, save("f", "nothing known\n")).startswith(
        "f: line 1: of no known format; expected dialeval ("
    )
    assert complaint(recognise, save("f", '[{"x": 1}]')).startswith("f: JSON, but of no known kind; expected ")
    assert complaint(recognise, save("f", "[]")) == "f: holds no record"
    assert complaint(recognise, save("f", '[{"x": 1}, {"x": ')).startswith("f: record 2: malformed JSON (")
    assert complaint(recognise, save("f", "1 0 A 1".encode("utf-16"))).startswith("f: line 1: of no known format")
    assert complaint(recognise, Path("no-such-file")) == "no-such-file: no such file"
    assert complaint(recognise, Path("n" * 300)).endswith("cannot be read (File name too long)")


def test_a_truth_is_no_run_and_a_run_no_truth(save, complaint):
    assert complaint(recognise_run, save("f", EXAMPLES)).startswith("f: JSON, but of no known kind; expected ")
    assert complaint(recognise_truth, save("f", RANKINGS)).startswith("f: JSON, but of no known kind; expected ")


def test_a_long_file_is_not_judged_by_the_line_that_the_look_at_it_cuts_off(save):
    lines = "".join(f"{number} 0 option-{number} 1\n" for number in range(1, 6_000))
    assert recognise_truth(save("long.qrels", lines)) == "qrels"


def test_a_first_record_that_is_longer_than_the_look_at_it_is_read_whole(save):
    annotations = [{"nugget": ["CNUG0"] * 20_000}]
    record = {"id": "1", "annotations": annotations, "turns": []}
    assert recognise_truth(save("long.json", [record])) == "dialeval"
    assert first_keys(save("long.json", [record])) == ["id", "annotations", "turns"]
    assert first_keys(save("chats.csv", 'conversation,speaker,text\n1,agent,"the ""turns"""\n')) == []
