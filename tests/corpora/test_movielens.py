from pathlib import Path

import pytest

from rejoinder.corpora.films import KnowledgeBase
from rejoinder.corpora.movielens import beside, read_likes, read_tags, spellings, tie_films, with_tags

FILMS = [
    ("The City of Lost Children", {"release_year": ("1995",)}),
    ("Kismet", {"release_year": ("1944",)}),
    ("Kismet", {"release_year": ("1955",), "has_tags": ("musical",)}),
    ("L'Avventura", {"release_year": ("1960",)}),
    ("Heat", {"has_genre": ("Crime",)}),
    ("Up", {"release_year": ("2009",)}),
]
MOVIES = [
    (1, "City of Lost Children, The (Cité des enfants perdus, La) (1995)"),
    (2, "Kismet (1955)"),
    (3, "Avventura, L' (Adventure, The) (1960)"),
    (4, "Heat (1995)"),
    (5, "Up (2008)"),
    (6, "Nowhere (1997)"),
    (7, "Kismet (1980)"),
]
RATINGS = [(1, 1, 5), (1, 2, 5), (1, 3, 4), (1, 6, 5), (2, 1, 5), (2, 2, 5), (2, 3, 5), (2, 5, 5), (3, 3, 5), (3, 4, 2)]


@pytest.fixture
def kb():
    return KnowledgeBase([], FILMS)


def names(kb, likes):
    return [[kb.entities[title] for title in likes[user]] for user in range(len(likes))]


def test_titles_are_read():
    assert spellings(MOVIES[0][1])[0][:1] == ["The City of Lost Children"]
    assert "La Cité des enfants perdus" in spellings(MOVIES[0][1])[0]
    assert spellings("Seven (a.k.a. Se7en) (1995)") == (["Seven", "Seven (a.k.a. Se7en)", "Se7en"], "1995")
    assert spellings("Babylon 5") == (["Babylon 5", "Babylon 5"], None)
    assert spellings("Toy\nStory (1995)") == (["Toy\nStory", "Toy\nStory"], "1995")


def test_films_are_told_apart_by_year(kb):
    assert tie_films(kb, [title for _, title in MOVIES]).tolist() == [0, 2, 3, 4, 5, -1, -1]


LIKES = [["The City of Lost Children", "Kismet"], ["The City of Lost Children", "Kismet", "L'Avventura"]]


def test_csv(save, kb):
    save("movies.csv", "movieId,title,genres\n" + "".join(f'{n},"{title}",x\n' for n, title in MOVIES))
    rows = "".join(f"{user},{movie},{stars}.0,99\n" for user, movie, stars in RATINGS)
    assert names(kb, read_likes(save("ratings.csv", f"userId,movieId,rating,timestamp\n{rows}"), kb)) == LIKES


@pytest.mark.parametrize("ending", ["dat", "dat.gz"])
def test_dat(save, kb, ending):
    movies = "".join(f"{n}::{title}::Drama|War\n" for n, title in MOVIES)
    save(f"movies.{ending}", movies.encode("latin-1"))
    rows = "".join(f"{user}::{movie}::{stars}::978300760\n" for user, movie, stars in RATINGS)
    assert names(kb, read_likes(save(f"ratings.{ending}", rows), kb)) == LIKES


def test_tags_become_facts(save, kb):
    save("movies.csv", "movieId,title,genres\n" + "".join(f'{n},"{title}",x\n' for n, title in MOVIES))
    tags = read_tags(save("tags.csv", "userId,movieId,tag,timestamp\n1,2,Arabia,1\n2,2,musical,1\n3,6,no,1\n"), kb)
    more = with_tags(kb, tags)
    assert more.objects("Kismet", "has_tags") == ["musical", "arabia"]
    assert more.entities[: len(kb)] == kb.entities
    assert list(with_tags(kb, {}).films()) == FILMS


def test_films_are_beside_the_ratings_whatever_these_are_called():
    for ratings, movies in (
        ("ratings.csv", "movies.csv"), ("my_ratings.dat.gz", "my_movies.dat.gz"), ("v1.stars.csv", "movies.csv"),
        ("stars.csv.gz", "movies.csv.gz"),
    ):  # fmt: skip
        assert beside(Path("ml") / ratings, "movies") == Path("ml") / movies


def test_mistakes(save, kb, complaint):
    ratings = save("ratings.csv", "userId,movieId,rating\n1,1,5\n")
    assert complaint(read_likes, ratings, kb) == "movies.csv: no such file"
    save("movies.csv", "movieId,title\n1,Up (2009)\n")
    assert complaint(read_likes, ratings, kb).startswith("ratings.csv: no user gave five stars to two films")
    bad = save("ratings.csv", "userId,movieId,stars\n1,1,5\n")
    assert complaint(read_likes, bad, kb) == "ratings.csv: rating: no such column; found userId, movieId, stars"
    worse = save("ratings.csv", "userId,movieId,rating\n1,1,five\n")
    assert complaint(read_likes, worse, kb).startswith("ratings.csv: conversion from `str` to `f64` failed")
    save("movies.dat", "1::Up\n")
    assert complaint(read_likes, save("ratings.dat", "1::1::5::9\n"), kb).startswith("movies.dat: line 1: expected")
