import pytest

from rejoinder.measures.judgement import default_names, parse, score
from rejoinder.runs.judgement import JudgementRun, uniform
from rejoinder.tasks.dbdc3 import find_files, read_task


def turn(speaker, *votes):
    annotations = [{"annotator-id": f"w{n}", "breakdown": vote, "comment": ""} for n, vote in enumerate(votes)]
    return {"speaker": speaker, "utterance": "hi", "time": "2017-09-01 02:04:48", "annotations": annotations}


def dialogue(id_="A1", *turns):
    return {"dialogue-id": id_, "speaker-id": "x", "turns": turns or [turn("S"), turn("U"), turn("S", "O", "X")]}


def test_votes_are_read_and_scored(save):
    task = read_task([save("1.json", dialogue()), save("2.json", dialogue("A2", turn("U"), turn("S", "T", "T")))])
    truth = task.truth()
    answers = truth.answers["breakdown"]
    assert answers.votes.tolist() == [[0, 0, 0], [1, 0, 1], [0, 2, 0]]
    assert answers.turn.tolist() == [0, 2, 1]
    assert default_names(truth) == ["NMD(breakdown)", "RSNOD(breakdown)"]
    assert parse("JSD(breakdown)", truth).name == "JSD(breakdown)"
    run = JudgementRun("uniform", {"breakdown": uniform(answers)})
    found = score(run, truth, ["NMD(breakdown)", "RNSS(breakdown)"])
    # cumulated: uniform 1/3, 2/3; votes 1/2, 1/2 and 0, 1; the opening turn has no votes and no score
    assert found["NMD(breakdown)"].tolist() == pytest.approx([(1 / 6 + 1 / 6) / 2, (1 / 3 + 1 / 3) / 2])
    assert found["RNSS(breakdown)"].tolist() == pytest.approx([(1 / 12) ** 0.5, (1 / 3) ** 0.5])


def test_mistakes(save, complaint, tmp_path):
    assert complaint(read_task, [save("1.json", dialogue("A1", turn("S", "Y")))]) == (
        "1.json: turns[0].annotations[0].breakdown: invalid enum value 'Y'"
    )
    twice = [save("1.json", dialogue()), save("2.json", dialogue())]
    assert complaint(read_task, twice) == "2.json: dialogue-id: 'A1' is in 1.json too"
    some = [save("1.json", dialogue()), save("2.json", dialogue("A2", turn("S")))]
    assert "dialogue A2: breakdown: nobody voted on it" in complaint(read_task, some)
    (tmp_path / "empty").mkdir()
    assert complaint(find_files, [tmp_path / "empty"]) == "empty: holds no dialogue; expected files *.json"
