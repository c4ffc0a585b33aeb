import csv
import json
import re
from datetime import datetime, timedelta

import msgspec
import numpy as np
import pytest

from rejoinder.dialogue import Dialogue, Turn
from rejoinder.judging import Judgements, follow, judge, trend, values_of
from rejoinder.report.judgements import _interval, records
from rejoinder.runs.judgement import JudgementRun, uniform
from rejoinder.sample import helpdesk
from rejoinder.systems.system import JudgementSystem
from rejoinder.tasks.dialeval import NUGGET, QUALITY
from rejoinder.tasks.judgement import JudgementTask, Question


class Mood(JudgementSystem):
    """Satisfaction hangs on how many turns are rude, quality otherwise on nothing."""

    questions = (QUALITY[1], NUGGET)

    def predict(self, task, watch=None):
        answers = task.unanswered().answers
        rude = np.array([sum("rude" in turn.text for turn in dialogue.turns) for dialogue in task.dialogues])
        satisfied = np.eye(5)[np.minimum(rude, 4)]
        return JudgementRun("mood", {"S": satisfied, "nugget": uniform(answers["nugget"])})


def dialogue(id_, *texts, time=None):
    return Dialogue(id_, tuple(Turn(("customer", "helpdesk")[n % 2], (text,)) for n, text in enumerate(texts)), time)


def test_scores_are_expected_labels():
    found = judge(Mood(None), [dialogue("a", "hi", "rude"), dialogue("b", "hi")])
    assert found.scores(QUALITY[1]).tolist() == [1, 2]
    assert found.overall().tolist() == [0.5, 1]
    assert found.spread(QUALITY[1]).tolist() == [0, 0]
    assert found.of_dialogue("nugget", 1) == slice(2, 3)


def test_labels_that_are_no_numbers_run_from_good_to_bad():
    assert values_of(Question("x", ("O", "T", "X"), ordered=True)).tolist() == [1, 0, -1]
    breakdown = Question("x", ("O", "T", "X"), ordered=True, roles={"system": ("O", "T", "X")})
    talk = (
        Dialogue("a", (Turn("user", ()), Turn("system", ()), Turn("system", ()))),
        Dialogue("b", (Turn("user", ()),)),
    )
    answers = JudgementTask(talk, (breakdown,)).unanswered().answers
    found = Judgements(talk, answers, {"x": np.array([[1.0, 0, 0], [0, 1, 0]])})
    assert found.scores(breakdown).tolist() == pytest.approx([0.5, np.nan], nan_ok=True)
    assert found.overall().tolist() == pytest.approx([0.5, np.nan], nan_ok=True)


def test_models_judge_what_they_were_taught(cli, save, tmp_path):
    votes = {"U": [], "S": [{"annotator-id": "w", "breakdown": "X", "comment": ""}]}
    said = {"utterance": "hi", "time": "2017-09-01 02:04:48"}
    turns = [{"speaker": speaker, **said, "annotations": own} for speaker, own in votes.items()]
    (tmp_path / "logs").mkdir()
    log = save("1.log.json", {"dialogue-id": "A1", "speaker-id": "x", "turns": turns})
    log.rename(tmp_path / "logs" / log.name)
    task, model, out = tmp_path / "breakdowns", tmp_path / "mean.model", tmp_path / "judged.csv"
    assert cli("import", "dbdc3", tmp_path / "logs", "--out", task)[0] == 0
    assert cli("train", "mean", "--task", task, "--out", model)[0] == 0
    assert cli("judge", task, "--model", model, "--out", out, "--report", tmp_path / "judged.html")[0] == 0
    assert [row["breakdown"] for row in csv.DictReader(out.read_text().splitlines())] == ["-1.0000"]
    chats = tmp_path / "chats.csv"
    chats.write_text("conversation,speaker,text\n1,customer,hi\n")
    code, _, err = cli("judge", chats, "--model", model, "--out", tmp_path / "other.csv")
    assert (code, "the model judges turns of system, and there are none" in err) == (2, True), err
    assert not (tmp_path / "other.csv").exists()


def test_without_a_scale_there_is_no_better_or_worse():
    polite = Question("polite", ("yes", "no"), ordered=False)
    talk = (dialogue("a", "hi"), dialogue("b", "hi"))
    answers = JudgementTask(talk, (polite,)).unanswered().answers
    assert np.isnan(Judgements(talk, answers, {"polite": np.ones((2, 2)) / 2}).overall()).all()


def test_a_model_without_a_scale_gives_no_overall_score(cli, save, tmp_path):
    chats = save("chats.csv", "conversation,speaker,text\n1,user,hi\n1,agent,hello\n2,user,oh\n")
    votes = save("votes.csv", "conversation,annotator,question,turn,label\n1,a,polite,,yes\n2,a,polite,,no\n")
    asked = save("asked.yaml", '- {name: polite, labels: ["yes", "no"], ordered: false}\n')
    task, model, page = tmp_path / "task", tmp_path / "mean.model", tmp_path / "page.html"
    assert cli("import", "helpdesk", chats, "--votes", votes, "--questions", asked, "--out", task)[0] == 0
    assert cli("train", "mean", "--task", task, "--out", model)[0] == 0
    code, _, err = cli("judge", chats, "--model", model, "--out", tmp_path / "out.csv", "--report", page)
    assert (code, err.splitlines()[0]) == (
        0,
        "note: none of the model's questions is a scale: no dialogue has an overall score",
    )
    assert (tmp_path / "out.csv").read_text() == "id,time,turns\n1,,2\n2,,1\n"
    text = page.read_text("utf-8")
    assert "Worst dialogues" not in text
    assert "+0.00" not in text
    assert text.count("polite yes (50%)") == 2
    assert cli("judge", chats, "--model", model, "--out", tmp_path / "out.jsonl")[0] == 0
    first = json.loads((tmp_path / "out.jsonl").read_text().splitlines()[0])
    assert (set(first), first["polite"]["probabilities"]) == ({"id", "polite"}, {"yes": 0.5, "no": 0.5})


def test_a_dialogue_that_no_scale_asks_about_comes_last_and_without_a_score():
    breakdown = Question("x", ("O", "X"), ordered=True, roles={"helpdesk": ("O", "X")})

    class Certain(JudgementSystem):
        questions = (breakdown,)

        def predict(self, task, watch=None):
            return JudgementRun("certain", {"x": np.tile([1.0, 0], (len(task.unanswered().answers["x"].example), 1))})

    talk = [dialogue("a", "hi"), dialogue("b", "hi", "hello")]
    found = judge(Certain(None), talk)
    assert found.overall().argsort(kind="stable").tolist() == [1, 0]
    assert ["overall" in record for record in records(found)] == [False, True]
    courses = follow(Certain(None), talk)
    assert [course.wrong for course in courses] == [None, None]
    assert courses[1].scores == pytest.approx((np.nan, 1), nan_ok=True)


def test_the_turn_that_went_wrong():
    fine, bad = dialogue("a", "hi", "hello", "bye"), dialogue("b", "hi", "hello", "what", "rude", "oh", "well")
    courses = follow(Mood(None), [fine, bad])
    assert (courses[0].wrong, courses[1].wrong) == (None, 3)
    assert courses[1].scores == (1, 1, 1, 0.5, 0.5, 0.5)


def test_where_the_score_hardly_falls_nothing_went_wrong():
    class Wavering(Mood):
        def predict(self, task, watch=None):
            found = super().predict(task).distributions
            share = np.array([[0.001 * len(dialogue.turns)] for dialogue in task.dialogues])
            return JudgementRun("wavering", found | {"S": (1 - share) * found["S"] + share / 5})

    (course,) = follow(Wavering(None), [dialogue("a", "hi", "hello", "bye")])
    assert course.scores[0] > course.scores[1] > course.scores[2]
    assert course.wrong is None


def test_many_dialogues_are_judged_in_parts_and_in_order():
    many = [dialogue(str(n), *["rude"] * (n % 4), "hi") for n in range(2_345)]
    found = judge(Mood(None), many)
    assert found.scores(QUALITY[1]).tolist() == [2 - n % 4 for n in range(2_345)]
    assert len(found.distributions["nugget"]) == sum(len(each.turns) for each in many)


def test_trends_tell_weeks_apart():
    start = datetime(2024, 1, 1)
    talks = [
        dialogue(str(n), *["rude"] * (n > 200 or n % 2), "hi", time=start + timedelta(hours=12 * n)) for n in range(400)
    ]
    points = trend(judge(Mood(None), talks))
    assert len(points) == 29
    assert (points[0].time, points[0].stretch) == (start, "week")
    assert points[0].low < points[0].mean < points[0].high
    assert points[0].low > points[-1].mean
    assert np.isnan(points[-1].high)  # all its dialogues score alike
    assert trend(judge(Mood(None), [dialogue("a", "hi")])) == []


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("judge")
    helpdesk.write(folder, 60, seed=5)
    return folder


CHATS = "conversation,speaker,text,time\n" + "".join(
    f"c{n},{who},{text},2024-01-{n % 28 + 1:02} 10:0{place}\n"
    for n in range(40)
    for place, (who, text) in enumerate(
        (("user", "<b>my phone is broken</b>"), ("agent", "write to x@y.example"), ("user", "bad"))
    )
)


def test_the_command_judges_chats_and_reports(cli, model, save, tmp_path):
    code, _, err = cli("train", "kernel-judge", "--task", model / "train_en.json", "--out", tmp_path / "model")
    assert code == 0, err
    chats, page = save("chats.csv", CHATS), tmp_path / "page.html"
    given = ("judge", chats, "--model", tmp_path / "model")
    code, _, err = cli(*given, "--out", tmp_path / "out.csv", "--report", page, "--mask", "--worst", 3)
    assert code == 0, err
    rows = list(csv.DictReader((tmp_path / "out.csv").read_text().splitlines()))
    assert [row["id"] for row in rows] == [f"c{n}" for n in range(40)]
    assert all(-2 <= float(row[name]) <= 2 for row in rows for name in "ASE")
    text = page.read_text("utf-8")
    assert text.count("<details") == 3
    assert "&lt;b&gt;my phone" in text
    assert "x@y.example" not in text
    assert "Over time" in text
    assert "60 dialogues (train_en.json" in text
    assert "40 dialogues, 120 turns, 2024-01-01 to 2024-01-28." in text
    assert "Mean expected score of each week with enough dialogues" in text
    assert "3 of 40 dialogues, ordered by" in text
    assert "states the problem (" in text
    code, _, err = cli(*given, "--out", tmp_path / "out.jsonl")
    assert code == 0, err
    first = json.loads((tmp_path / "out.jsonl").read_text().splitlines()[0])
    assert sum(first["A"]["probabilities"].values()) == pytest.approx(1, abs=1e-3)
    assert [turn["turn"] for turn in first["nugget"]] == [1, 2, 3]
    assert set(first["nugget"][1]["probabilities"]) == {"HNUG", "HNUG*", "HNaN"}
    code, _, err = cli("judge", model / "test_cn.json", "--model", tmp_path / "model", "--out", tmp_path / "cn.csv",
                       "--report", tmp_path / "cn.html")  # fmt: skip
    assert code == 0, err
    assert "judges Chinese here: do not use these scores" in (tmp_path / "cn.html").read_text("utf-8")


def test_only_negative_overall_scores_have_the_colour_of_bad_ones(cli, model, tmp_path):
    assert cli("train", "kernel-judge", "--task", model / "train_en.json", "--out", tmp_path / "model")[0] == 0
    given = ("--model", tmp_path / "model", "--out", tmp_path / "out.csv", "--report", tmp_path / "page.html")
    assert cli("judge", model / "test_en.json", *given, "--worst", 1000)[0] == 0
    shown = re.findall(r'class="(overall[^"]*)">([+-])', (tmp_path / "page.html").read_text("utf-8"))
    assert set(shown) == {("overall bad", "-"), ("overall", "+")}


def test_one_dialogue_alone_has_no_interval(cli, model, save, tmp_path):
    chats = save("chats.csv", "conversation,speaker,text\n1,customer,hi\n1,helpdesk,hello\n")
    assert cli("train", "mean", "--task", model / "train_en.json", "--out", tmp_path / "model")[0] == 0
    given = ("--model", tmp_path / "model", "--out", tmp_path / "out.csv", "--report", tmp_path / "page.html")
    assert cli("judge", chats, *given)[0] == 0
    text = (tmp_path / "page.html").read_text("utf-8")
    assert ("no interval, as no two scores differ" in text, "95% interval" in text, "-0.00" in text) == (
        *(True, False, False),
    )


def test_the_page_says_when_the_dialogues_were(cli, model, save, tmp_path):
    assert cli("train", "mean-by-turn", "--task", model / "train_en.json", "--out", tmp_path / "model")[0] == 0

    def page(*dialogues):
        posts = [f"{n},{who},hi,{time}\n" for n, (time, speakers) in enumerate(dialogues) for who in speakers]
        chats = save("chats.csv", "conversation,speaker,text,time\n" + "".join(posts))
        given = ("--model", tmp_path / "model", "--out", tmp_path / "out.csv", "--report", tmp_path / "page.html")
        assert cli("judge", chats, *given)[0] == 0
        return (tmp_path / "page.html").read_text("utf-8")

    both = ("customer", "helpdesk")
    days = [(f"2024-05-0{day} 09:00", both) for day in (1, 1, 2)]
    assert "2 dialogues, 4 turns, 2024-05-01. Each" in page(*days[:2])
    assert "4 dialogues, 8 turns, 2024-05-01 to 2024-05-02 (1 without a time). Each" in page(*days, ("", both))


def test_an_interval_needs_some_scores():
    assert _interval(np.array([0.5, 0.5, 0.5, 0.5, 0.5])) == "no two scores differ"
    assert _interval(np.array([0.1, 0.9])) == "2 dialogues are too few"
    low, high = _interval(np.array([0.1, 0.9, 0.4, 0.5, 0.6]))
    assert 0.1 < low < 0.5 < high < 0.9


def test_a_model_that_learned_both_languages_may_judge_both(cli, model, tmp_path):
    learned = ("--task", model / "train_en.json", "--also", model / "train_cn.json", "--out", tmp_path / "model")
    assert cli("train", "mean", *learned)[0] == 0
    given = ("--model", tmp_path / "model", "--out", tmp_path / "cn.csv", "--report", tmp_path / "cn.html")
    assert cli("judge", model / "test_cn.json", *given)[0] == 0
    text = (tmp_path / "cn.html").read_text("utf-8")
    assert "do not use these scores" not in text
    assert text.index("(train_en.json") < text.index("<dt>and from</dt>") < text.index("(train_cn.json")


def test_describe_shows_the_papers_table_and_the_agreement(cli, model, save):
    code, out, err = cli("describe", model / "train_en.json", model / "train_cn.json", "--annotators", "--csv")
    assert code == 0, err
    lines = out.splitlines()
    assert ",train_en,train_cn" in lines
    assert "#dialogues,60,60" in lines
    assert "#annotators/dialogue,19,19" in lines
    assert "Unit of length,token,char" in lines
    assert sum(line.startswith("A,dialogue,ordinal,") for line in lines) == 2
    assert sum(line.startswith("nugget,18,") for line in lines) == 2
    bare = save("bare.json", [{"id": "1", "turns": [{"sender": "customer", "utterances": ["hi you"]}]}])
    code, out, _ = cli("describe", bare)
    assert code == 0
    assert "Agreement" not in out
    code, _, err = cli("describe", save("f.json", [{"example-id": 1, "messages-so-far": []}]))
    assert (code, err.count("\n")) == (2, 1)


def test_mistakes_leave_what_was_there(cli, model, save, tmp_path):
    cli("train", "mean", "--task", model / "train_en.json", "--out", tmp_path / "model")
    (tmp_path / "out.csv").write_text("precious")
    chats = save("chats.csv", "conversation,speaker,text\n1,manager,hi\n")
    code, _, err = cli("judge", chats, "--model", tmp_path / "model", "--out", tmp_path / "out.csv")
    assert (code, err.count("\n")) == (2, 1)
    assert "row 1: speaker: 'manager' is neither known" in err
    assert (tmp_path / "out.csv").read_text() == "precious"
    code, _, err = cli("judge", chats, "--model", tmp_path, "--out", tmp_path / "out.csv")
    assert code == 2
    assert "not a model" in err


def test_dialogues_that_say_who_is_who_take_no_other_word_for_it(cli, model, tmp_path):
    cli("train", "mean", "--task", model / "train_en.json", "--out", tmp_path / "model")
    given = ("judge", model / "test_en.json", "--model", tmp_path / "model", "--out", tmp_path / "out.csv")
    code, _, err = cli(*given, "--customer", "nobody")
    expected = f"{model / 'test_en.json'}: says itself who is who; --customer and --helpdesk are for posts"
    assert (code, err, (tmp_path / "out.csv").exists()) == (2, f"error: {expected}\n", False)


def test_judgements_can_be_kept():
    found = judge(Mood(None), [dialogue("a", "hi")])
    assert msgspec.structs.replace(found, distributions={}).scales == []


def test_tables_of_a_description_stand_apart(cli, model):
    _, out, _ = cli("describe", model / "train_en.json", "--annotators", "--markdown")
    before = [one for one, title in zip(out.splitlines(), out.splitlines()[1:], strict=False) if "**A" in title]
    assert before == ["", ""]
