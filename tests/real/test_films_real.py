"""The official film files: knowledge base, parser, question classes."""

import gzip
import json
import re
import time

import pytest
from tests.real.data import DATA, needs

from rejoinder.corpora.entities import Parser
from rejoinder.corpora.films import read_kb
from rejoinder.tasks.film_groups import question_classes
from rejoinder.tasks.selection import load_selection_task

FILMS = DATA / "movies"

pytestmark = needs("movies")


def lines(name):
    with gzip.open(FILMS / name, "rt", encoding="utf-8") as file:
        return [line.rstrip("\n") for line in file if line != "\n"]


@pytest.fixture(scope="module")
def kb():
    return read_kb(FILMS / "mdd" / "movie_kb.txt.gz")


@pytest.fixture(scope="module")
def parser(kb):
    return Parser(kb.entities, kb.rank)


def test_the_official_knowledge_base(kb):
    assert len(kb.titles) == 17_341
    assert kb.entities[:75_542] == lines("mdd/entities.txt.gz")
    assert kb.entities[75_542:] == ["99 and 44/100 Dead"]  # the knowledge base writes it so, the list with a %
    assert "Good Morning, Miss Dove" in kb.subjects("Robert Stack", "starred_actors")


def test_bracketed_entities_are_found(kb, parser):
    """Every annotated entity is read as itself wherever no longer or earlier name claims its words."""
    questions = [line.split("\t")[0] for line in lines("metaqa/1-hop_dev.txt.gz")]
    names = [re.search(r"\[(.*)\]", question)[1] for question in questions]
    parsed = parser.parse([re.sub(r"[\[\]]", "", question) for question in questions])
    hits = [
        name in [kb.entities[e] for e in parsed.entities[parsed.starts[n] : parsed.starts[n + 1]] if e >= 0]
        for n, name in enumerate(names)
    ]
    assert sum(hits) / len(hits) > 0.99


def test_parsing_is_fast(parser):
    texts = [line.split("\t")[0] for line in lines("mdd/task1_qa_dev.txt.gz")] * 5
    start = time.process_time()
    parser.parse(texts)
    assert len(texts) / (time.process_time() - start) > 50_000


def test_question_classes_are_those_of_the_annotators(kb, parser):
    asked = [line.split("\t") for line in lines("metaqa/1-hop_dev.txt.gz")]
    questions = [re.sub(r"[\[\]]", "", question) for question, _ in asked]
    found = question_classes(kb, parser, questions, [answers.split("|") for _, answers in asked])
    annotated = [name.replace("_", " ").replace("imdb", "") for name in lines("metaqa/1-hop_qa_dev_qtype.txt.gz")]
    assert found == ["movie to actors" if name == "movie to actor" else name for name in annotated]


def test_generated_training_data_is_like_the_official_development_sets(cli, tmp_path):
    official = [FILMS / "mdd" / f"{name}_dev.txt.gz" for name in ("task1_qa", "task2_recs", "task3_qarecs")]
    code, _, err = cli(
        "build", "movies", "--kb", FILMS / "mdd" / "movie_kb.txt.gz",
        "--ratings", FILMS / "ml-latest-small" / "ratings.csv.gz", "--questions", FILMS / "metaqa" / "1-hop_dev.txt.gz",
        "--threads", FILMS / "redial" / "test_data.jsonl.gz", "--out", tmp_path / "movies",
        "--qa-size", 20_000, "--recs-size", 10_000, "--dialogue-size", 5_000, "--joint-size", 1_000, "--eval-size", 500,
        *(part for path in official for part in ("--official", path)),
    )  # fmt: skip
    assert code == 0, err
    found = json.loads((tmp_path / "movies" / "description.json").read_text())
    assert found["users"] == 538
    for path in official:
        figures = found["comparisons"][path.name]
        words, official_words = (float(value) for value in figures["words per message"])
        assert abs(words - official_words) < 0.15 * official_words
        assert float(figures["messages in a form that the other has"][1].rstrip("%")) > 99
    classes = found["comparisons"][official[0].name]
    for name in ("actor to movie", "movie to year", "tag to movie", "movie to language"):
        made, given = (float(value.rstrip("%")) for value in classes[name])
        assert abs(made - given) < 2


def test_the_official_candidates_are_the_pool_of_a_discussion(cli, tmp_path):
    talk = tmp_path / "task4_reddit_dev.txt"
    talk.write_text("1 Seen Alien ?\tYes , and Blade Runner too .\n2 Which is better ?\tFair enough .\n", "utf-8")
    files = (talk, FILMS / "mdd" / "task4_reddit_cand-valid.txt.gz")
    code, _, err = cli("import", "mdd", *files, "--kb", FILMS / "mdd" / "movie_kb.txt.gz", "--out", tmp_path / "mdd")
    assert code == 0, err
    task = load_selection_task(tmp_path / "mdd" / "task_4" / "dev")
    distinct = len({line.partition(" ")[2] for line in lines("mdd/task4_reddit_cand-valid.txt.gz")})
    assert task.shared == distinct
    assert len(task.candidates(0)) == distinct + 1
    assert len(task.candidates(1)) == distinct  # "Fair enough ." is among the candidates too
    assert task.groups["entities"].to_list() == ["matched", "other"]
