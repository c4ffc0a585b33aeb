"""Every kind of task that is scored on the command line is scored on the board, and to the same figures."""

import json

import numpy as np
import polars as pl
import pytest

from rejoinder.board.models import SubmissionScores
from rejoinder.board.vectors import unpack
from rejoinder.evaluation import Request, evaluate
from rejoinder.tasks import dialeval, dstc7
from rejoinder.tasks.judgement_folder import save_judgement_task

EXAMPLES = range(1, 41)
RIGHT = {example: f"c{example % 3}" for example in EXAMPLES}
GUESS = {example: f"c{example * 7 % 3}" for example in EXAMPLES}


def option(name):
    return {"candidate-id": name, "utterance": f"reply {name}"}


def dstc7_examples():
    return json.dumps(
        [
            {
                "data-split": "test",
                "example-id": example,
                "messages-so-far": [{"speaker": "a", "utterance": f"question {example}"}],
                "options-for-correct-answers": [option(RIGHT[example])],
                "options-for-next": [option(f"c{number}") for number in range(3)],
                "scenario": 1,
            }
            for example in EXAMPLES
        ]
    )


def dstc7_run():
    ranked = {example: sorted(("c0", "c1", "c2"), key=lambda name: name != GUESS[example]) for example in EXAMPLES}
    return json.dumps(
        [
            {
                "example-id": example,
                "candidate-ranking": [
                    {"candidate-id": name, "confidence": 0.5 - 0.1 * place} for place, name in enumerate(names)
                ],
            }
            for example, names in ranked.items()
        ]
    )


def trec_run(name="{}"):
    return "".join(f"{example} Q0 {name.format(GUESS[example])} 1 0.5 x\n" for example in EXAMPLES)


def parquet_run(path):
    rows = [(str(example), GUESS[example], 1.0) for example in EXAMPLES]
    pl.DataFrame(rows, schema=["example", "option", "score"], orient="row").write_parquet(path)


@pytest.fixture(scope="module")
def kinds(tmp_path_factory, truth_file, make_run):
    """Return kind -> (truth, options, entities, run)."""
    folder = tmp_path_factory.mktemp("kinds")

    def save(name, text):
        (folder / name).write_text(text)
        return folder / name

    examples = save("test.json", dstc7_examples())
    dstc7.read_task(examples).save(folder / "selection")
    save_judgement_task(folder / "judgement", dialeval.read_task(truth_file), "DialEval", {})
    quality, table, trec = folder / "run.json", folder / "run.parquet", save("run.trec", trec_run())
    quality.write_bytes(make_run(0.5))
    parquet_run(table)
    key = save("key.tsv", "".join(f"{example}\t{right}\n" for example, right in RIGHT.items()))
    qrels = save("qrels", "".join(f"{example} 0 {right} 1\n" for example, right in RIGHT.items()))
    films = save("films.txt", "".join(f"1 what is {number}?\tA Film, {right}\n" for number, right in RIGHT.items()))
    entities = save("entities.txt", "".join(f"A Film, c{number}\n" for number in range(3)))
    return {
        "DialEval": (truth_file, None, None, quality),
        "DSTC7": (examples, None, None, save("dstc7-run.json", dstc7_run())),
        "answer key": (key, examples, None, trec),
        "qrels": (qrels, None, None, trec),
        "Movie Dialog": (films, None, entities, save("films.trec", trec_run("A%20Film,%20{}"))),
        "selection folder": (folder / "selection", None, None, table),
        "judgement folder": (folder / "judgement", None, None, quality),
    }


KINDS = ("DialEval", "DSTC7", "answer key", "qrels", "Movie Dialog", "selection folder", "judgement folder")


@pytest.mark.parametrize("kind", KINDS)
def test_a_track_of_every_kind(world, browse, kinds, kind):
    truth, options, entities, run = kinds[kind]
    olga = browse().sign_in(world.user("Olga", "Team O", admin=True).name)
    slug = world.competition(name="First").competition.slug
    several = sorted(truth.iterdir()) if truth.is_dir() else [truth]
    sent = [("truth", path) for path in several] + [("options", options), ("entities", entities)]
    files = [(field, (path.name, path.read_bytes())) for field, path in sent if path]
    data = {"csrf": olga.token(f"/admin/c/{slug}"), "language": "Any"}
    added = olga.client.post(f"/admin/c/{slug}/tracks", data=data, files=files)
    assert added.status_code == 303, added.text
    path = f"/c/{slug}/any/runs"
    done = olga.client.post(path, data={"csrf": olga.token(path)}, files={"run": (run.name, run.read_bytes())})
    page = olga.get(done.headers["location"]).text
    assert "your best so far" in page, page
    expected = evaluate(Request(truth=truth, runs=[run], options=options, entities=entities)).comparison
    with world.site.database.reading() as session:
        stored = unpack(session.get_one(SubmissionScores, done.headers["location"].split("/")[-1]).whole)
    assert {by.measure.name for by in expected.measures} == set(stored)
    for by in expected.measures:
        np.testing.assert_allclose(stored[by.measure.name].mean(), by.scores.means[0])
        assert by.measure.name in page
