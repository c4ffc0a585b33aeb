"""Every real file that has a reader here; the figures are those that the data's own descriptions and a count give."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from tests.real.data import real

from rejoinder.corpora.films import read_entities
from rejoinder.formats import recognise_truth
from rejoinder.measures.scoring import read_run, score_run
from rejoinder.runs.convert import write_run
from rejoinder.runs.judgement import JudgementRun
from rejoinder.tasks import dialeval, dstc7
from rejoinder.tasks.transfer import export_dialeval, import_dialeval
from rejoinder.tasks.truth import read_truth

# --- customer-helpdesk dialogues ---

DIALOGUES = [("en", 1_672), ("cn", 3_700)]


@pytest.fixture(scope="module", params=DIALOGUES, ids=lambda param: param[0])
def helpdesk(request):
    language, size = request.param
    path = real(f"dch1/train_{language}.json.gz")
    return path, size, read_truth(path)


def test_helpdesk_dialogues_are_all_read(helpdesk):
    path, size, truth = helpdesk
    assert recognise_truth(path) == "dialeval"
    assert len(truth.ids) == truth.ids.n_unique() == size
    for question in "ASE":
        assert (truth.answers[question].votes.sum(axis=1) == 19).all()
    assert (truth.answers["nugget"].votes.sum(axis=1) == 19).all()
    raw = json.loads(gzip.decompress(path.read_bytes()))
    assert truth.groups["turns"].to_list() == [len(dialogue["turns"]) for dialogue in raw]
    mean = np.mean([vote["quality"]["S"] for dialogue in raw for vote in dialogue["annotations"]])
    assert (truth.answers["S"].votes @ [2, 1, 0, -1, -2]).sum() / 19 / size == pytest.approx(mean)


def test_helpdesk_dialogues_are_written_as_they_were_read(helpdesk, tmp_path):
    path, _, _ = helpdesk
    dialeval.write_dialogues(tmp_path / "again.json.gz", dialeval.read_dialogues(path))
    again = json.loads(gzip.decompress((tmp_path / "again.json.gz").read_bytes()))
    assert again == json.loads(gzip.decompress(path.read_bytes()))


def test_helpdesk_dialogues_survive_a_task_folder_byte_by_byte(helpdesk, tmp_path):
    path, _, truth = helpdesk
    folder = import_dialeval(path, tmp_path)
    assert read_truth(folder).answers["nugget"].votes.tolist() == truth.answers["nugget"].votes.tolist()
    assert export_dialeval(folder, tmp_path / "again").read_bytes() == gzip.decompress(path.read_bytes())


@pytest.mark.parametrize("format_", ["dialeval", "parquet"])
def test_the_votes_themselves_are_a_perfect_run(helpdesk, tmp_path, format_):
    _, size, truth = helpdesk
    run = JudgementRun("votes", {name: answers.distribution for name, answers in truth.answers.items()})
    write_run(tmp_path / "votes.gz", run, truth, format_)
    again = read_run(tmp_path / "votes.gz", truth)
    assert again.notes == ()
    scores = score_run(again, truth, ["NMD(A)", "RSNOD(S)", "NMD(E)", "JSD", "RNSS"])
    assert all(len(values) == size and values.max() < 1e-6 for values in scores.values())


# --- films ---

FILMS = [("task1_qa", 9_968, 1), ("task2_recs", 10_000, 1), ("task3_qarecs", 14_723, 3)]


@pytest.fixture(scope="module")
def entities() -> Path:
    return real("movies/mdd/entities.txt.gz")


@pytest.mark.parametrize(("task", "size", "responses"), FILMS)
def test_film_dialogues(task, size, responses):
    path = real(f"movies/mdd/{task}_dev.txt.gz")
    assert recognise_truth(path) == "moviedialog"
    truth = read_truth(path)
    lines = [line for line in gzip.decompress(path.read_bytes()).decode().split("\n") if line.strip()]
    assert len(truth.ids) == len(lines) == size
    assert truth.groups["response"].to_list() == [int(line.split(" ")[0]) for line in lines]
    assert truth.groups["response"].max() == responses


@pytest.mark.parametrize(
    ("task", "pieces", "answers", "strange"),
    [("task1_qa", 170, 95, 11), ("task2_recs", 183, 103, 0), ("task3_qarecs", 179, 107, 0)],
)
def test_film_answers_are_entities(task, pieces, answers, strange, entities):
    """Without the entities, names with commas fall to pieces; with them, they are whole.

    What stays strange is so in the file: it has `20, 000 Leagues Under the Sea` and `It's a Mad, Mad, Mad World`.
    """
    path = real(f"movies/mdd/{task}_dev.txt.gz")
    known = list(read_entities(entities))
    split = read_truth(path).correct["option"]
    whole = read_truth(path, entities=entities).correct["option"]
    assert (~split.is_in(known)).sum() == pieces
    assert (~whole.is_in(known)).sum() == strange
    assert whole.str.contains(", ", literal=True).sum() == answers


@pytest.mark.parametrize(("task", "size", "responses"), FILMS)
def test_film_answers_go_through_trec_and_score_full(task, size, responses, entities, tmp_path):
    truth = read_truth(real(f"movies/mdd/{task}_dev.txt.gz"), entities=entities)
    lines = [
        f"{truth.ids[example]} Q0 {option.replace('%', '%25').replace(' ', '%20')} 1 1 run\n"
        for example, option in truth.correct.iter_rows()
    ]
    (tmp_path / "run").write_text("".join(lines), "utf-8")
    run = read_run(tmp_path / "run", truth)
    scores = score_run(run, truth, ["hits@1", "MAP"])
    assert scores["hits@1"].tolist() == scores["MAP"].tolist() == [1.0] * size
    write_run(tmp_path / "again.gz", run, truth, "trec")
    assert read_run(tmp_path / "again.gz", truth).choices.equals(run.choices)


# --- DSTC7 records, which another toolkit keeps as YAML ---

RECORDS = ["dstc7_train", "dstc7_valid", "dstc7_test"]


def convert(acts: list[list[dict[str, object]]]) -> list[dict[str, object]]:
    """Turn fixtures into official records."""
    records = []
    for number, (act,) in enumerate(acts, 1):
        options = {text: f"OPTION{place}" for place, text in enumerate(dict.fromkeys(act["label_candidates"]))}
        correct = act.get("labels") or act["eval_labels"]
        for text in correct:
            options.setdefault(text, f"OPTION{len(options)}")
        records.append(
            {
                "data-split": "test",
                "example-id": number,
                "messages-so-far": [
                    {"speaker": f"participant_{1 + place % 2}", "utterance": text}
                    for place, text in enumerate(act["text"].split("\n"))
                ],
                "options-for-correct-answers": [{"candidate-id": options[text], "utterance": text} for text in correct],
                "options-for-next": [{"candidate-id": id_, "utterance": text} for text, id_ in options.items()],
                "scenario": 1,
            }
        )
    return records


@pytest.mark.parametrize("name", RECORDS)
def test_dstc7_records(name, tmp_path):
    records = convert(yaml.safe_load(real(f"dstc7-records/dstc7-{name}.yml").read_text("utf-8"))["acts"])
    official = json.dumps(records, indent=4, ensure_ascii=False) + "\n"
    (tmp_path / "examples.json").write_text(official, "utf-8")
    assert recognise_truth(tmp_path / "examples.json") == "dstc7"
    dstc7.write_examples(tmp_path / "again.json", dstc7.read_examples(tmp_path / "examples.json"))
    assert (tmp_path / "again.json").read_text("utf-8") == official
    truth = read_truth(tmp_path / "examples.json")
    assert len(truth.ids) == len(records)
    run = [
        {
            "example-id": record["example-id"],
            "candidate-ranking": [
                {"candidate-id": option["candidate-id"], "confidence": 1 / rank}
                for rank, option in enumerate(record["options-for-next"][:100], 1)
            ],
        }
        for record in records
    ]
    (tmp_path / "run.json").write_text(json.dumps(run))
    found = score_run(read_run(tmp_path / "run.json", truth), truth, ["MRR"])["MRR"]
    expected = []
    for record in records:
        listed = [option["candidate-id"] for option in record["options-for-next"][:100]]
        correct = {option["candidate-id"] for option in record["options-for-correct-answers"]}
        expected.append(max([1 / rank for rank, id_ in enumerate(listed, 1) if id_ in correct], default=0.0))
    assert found.tolist() == pytest.approx(expected)
