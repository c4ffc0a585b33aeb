"""The official film files: knowledge base, parser, question classes."""

import gzip
import os
import re
import time
from pathlib import Path

import pytest

from rejoinder.corpora.entities import Parser
from rejoinder.corpora.films import read_kb
from rejoinder.tasks.film_groups import question_classes

DATA = Path(os.environ.get("REJOINDER_DATA", Path(__file__).parents[3] / "shared" / "data")) / "movies"

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"no film data at {DATA}; set REJOINDER_DATA")


def lines(name):
    with gzip.open(DATA / name, "rt", encoding="utf-8") as file:
        return [line.rstrip("\n") for line in file if line != "\n"]


@pytest.fixture(scope="module")
def kb():
    return read_kb(DATA / "mdd" / "movie_kb.txt.gz")


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
