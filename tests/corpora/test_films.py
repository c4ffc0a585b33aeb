import numpy as np
import polars as pl
import pytest

from rejoinder.corpora.film_table import read_films
from rejoinder.corpora.films import KINDS, RELATIONS, read_kb

FACTS = """1 Good Morning, Miss Dove directed_by Henry Koster
2 Good Morning, Miss Dove starred_actors Jennifer Jones, Robert Stack
3 Good Morning, Miss Dove has_tags school, lock, stock
4 Good Morning, Miss Dove has_plot A teacher, old and strict, falls ill.

1 Kismet directed_by William Dieterle
2 Kismet release_year 1944

1 Kismet directed_by Vincente Minnelli
2 Kismet starred_actors Robert Stack
3 Kismet release_year 1955
"""
ENTITIES = "Kismet\nRobert Stack\nGood Morning, Miss Dove\nlock, stock\n"


@pytest.fixture
def kb(save):
    save("entities.txt", ENTITIES)
    return read_kb(save("movie_kb.txt", FACTS))


def test_both_directions(kb):
    assert kb.entities[:4] == ENTITIES.split("\n")[:4]
    assert kb.objects("Good Morning, Miss Dove", "starred_actors") == ["Jennifer Jones", "Robert Stack"]
    assert kb.subjects("Robert Stack", "starred_actors") == ["Good Morning, Miss Dove", "Kismet"]
    assert kb.objects("Good Morning, Miss Dove", "has_tags") == ["school", "lock, stock"]
    assert kb.objects("school", "has_tags") == []
    assert kb.plots.rows() == [(0, "A teacher, old and strict, falls ill.")]


def test_an_entity_that_is_listed_twice_is_one(kb, save):
    again = read_kb(save("movie_kb.txt", FACTS), save("twice.txt", "Kismet\n" + ENTITIES))
    assert again.entities == kb.entities
    assert again.rank.tolist() == kb.rank.tolist()
    assert again.objects("Kismet", "release_year") == ["1944", "1955"]


def test_a_file_without_films_is_named(save, complaint):
    assert complaint(read_kb, save("movie_kb.txt", "\n")) == "movie_kb.txt: holds no film"


def test_films_of_one_title_are_apart_and_together(kb):
    assert kb.objects("Kismet", "release_year") == ["1944", "1955"]
    year = RELATIONS.index("release_year")
    years = [[kb.entities[n] for n in kb.by_film[film * len(RELATIONS) + year]] for film in range(3)]
    assert years == [[], ["1944"], ["1955"]]


def test_kinds(kb):
    kind = {name: KINDS[rank] for name, rank in zip(kb.entities, kb.rank.tolist(), strict=True)}
    assert kind["Kismet"] == "film"
    assert kind["Henry Koster"] == "directed_by"
    assert kind["1955"] == "release_year"
    assert kind["school"] == "has_tags"


def test_indices_agree_with_the_facts(kb):
    triples = {(kb.titles[f], r, v) for f, r, v in zip(kb.film, kb.relation, kb.value, strict=True)}
    width = len(RELATIONS)
    forward = {(row // width, row % width, v) for row in range(len(kb) * width) for v in kb.forward[row]}
    backward = {(v, row % width, row // width) for row in range(len(kb) * width) for v in kb.backward[row]}
    assert forward == backward == triples


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("1 Kismet made_by Nobody", "line 1: expected a number, a title, a relation and its values"),
        ("Kismet directed_by Nobody", "line 1: expected a number, a title, a relation and its values"),
        ("1 Kismet directed_by ", "line 1: expected a number, a title, a relation and its values"),
        ("1 A has_genre B\n2 A has_genre C", "line 2: has_genre of 'A' is given twice"),
    ],
)
def test_mistakes(save, complaint, line, problem):
    assert complaint(read_kb, save("kb", f"{line}\n")) == f"kb: {problem}"


def test_tables_hold_the_same_facts(save, tmp_path):
    csv = 'title,year,directors,actors,plot,budget\nKismet,1944-02-01,William Dieterle,A|B,"Long, long ago.",1\n'
    kb = read_kb(save("films.csv", csv))
    assert kb.objects("Kismet", "release_year") == ["1944"]
    assert kb.objects("Kismet", "starred_actors") == ["A", "B"]
    assert kb.plots["plot"].to_list() == ["Long, long ago."]
    table = pl.DataFrame({"title": ["Kismet", "Up"], "has_genre": [["Drama", "Music"], None], "year": [1944, 2009]})
    table.write_parquet(tmp_path / "films.parquet")
    kb = read_kb(tmp_path / "films.parquet")
    assert kb.objects("Kismet", "has_genre") == ["Drama", "Music"]
    assert kb.subjects("2009", "release_year") == ["Up"]


def test_tables_that_will_not_do(save, complaint):
    def read(path):
        return list(read_films(path))

    assert complaint(read, save("a.csv", "name,year\nUp,2009\n")) == "a.csv: title: no such column; found name, year"
    assert complaint(read, save("a.csv", "title,year\n,2009\n")) == "a.csv: row 1: title: is empty"
    assert complaint(read, save("a.csv", "title,a\nUp,2009\n")).startswith("a.csv: no column of facts")


def test_numbers_are_compact(kb):
    assert kb.value.dtype == kb.film.dtype == np.int32
    assert kb.relation.dtype == np.uint8


def test_a_list_of_entities_must_be_that_of_the_films(save, complaint):
    path = save("kb.txt", "1 Kismet release_year 1944\n")
    assert complaint(read_kb, path, save("none.txt", "\n")) == "none.txt: holds no name; expected one a line"
    assert complaint(read_kb, path, save("other.txt", "Alien\n1944\n")).startswith(
        "other.txt: has none of the films of "
    )
    assert read_kb(path, save("own.txt", "1944\nKismet\n")).entities == ["1944", "Kismet"]
