"""Film files with mistakes in them are read, or refused in one clear line; nothing else may happen."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rejoinder.corpora.discussions import read_discussions
from rejoinder.corpora.entities import Parser
from rejoinder.corpora.films import KnowledgeBase, read_kb
from rejoinder.corpora.movielens import read_likes, read_tags
from rejoinder.errors import UserError
from rejoinder.tasks.film_questions import read_patterns
from rejoinder.tasks.film_transfer import read_candidates

KB = KnowledgeBase([], [(name, {"directed_by": ("Jane Doe",), "release_year": ("1999",)}) for name in ("Up", "Heat")])
MOVIES = b"movieId,title,genres\n1,Up (1999),x\n2,Heat (1999),x\n"
FILES = {
    "movie_kb.txt": b"1 Up directed_by Jane Doe\n2 Up release_year 1999\n\n1 Heat has_tags a, b\n",
    "films.csv": b'title,year,directors\nUp,1999,"Jane Doe|X"\nHeat,,\n',
    "ratings.csv": b"userId,movieId,rating,timestamp\n1,1,5.0,9\n1,2,5.0,9\n2,1,5.0,9\n2,2,3.5,9\n",
    "ratings.dat": b"1::1::5::9\n1::2::5::9\n2::1::5::9\n2::2::3::9\n",
    "movies.csv": MOVIES,
    "movies.dat": b"1::Up (1999)::x\n2::Heat (1999)::x\n",
    "tags.csv": b"userId,movieId,tag,timestamp\n1,1,good,9\n",
    "comments.jsonl": b'{"id": "a", "body": "x"}\n{"id": "b", "parent_id": "t1_a", "body": "y"}\n',
    "redial.jsonl": b'{"messages": [{"text": "@1", "senderWorkerId": 1}, {"text": "no", "senderWorkerId": 2}], '
    b'"movieMentions": {"1": "Up (2009)"}}\n',
    "questions.txt": b"who directed [Up]\tJane Doe\n",
    "candidates.txt": b"1 yes\n\n1 no\n",
}

LIKES = [["Up", "Heat"]]
FOUND = {
    "movie_kb.txt": [
        ("Up", {"directed_by": ("Jane Doe",), "release_year": ("1999",)}),
        ("Heat", {"has_tags": ("a", "b")}),
    ],
    "films.csv": [("Up", {"directed_by": ("Jane Doe", "X"), "release_year": ("1999",)}), ("Heat", {})],
    **dict.fromkeys(("ratings.csv", "ratings.dat", "movies.csv", "movies.dat"), LIKES),
    "tags.csv": {0: ("good",)},
    "comments.jsonl": [("x", "y")],
    "redial.jsonl": [("Up", "no")],
    "questions.txt": {"movie to director": {"who directed []": 1}},
    "candidates.txt": ["yes", "no"],
}


def read(folder, name):
    """Read a file, and return what was found in plain words."""
    path = folder / name
    if name.startswith(("movie_kb", "films")):
        return list(read_kb(path).films())
    if name.startswith(("ratings", "movies")):
        likes = read_likes(folder / name.replace("movies", "ratings"), KB)
        return [[KB.entities[film] for film in films] for films in likes.lists()]
    if name.startswith("tags"):
        return read_tags(path, KB)
    if name.endswith(".jsonl"):
        return list(read_discussions(path))
    if name.startswith("questions"):
        return read_patterns(path, KB, Parser(KB.entities, KB.rank))
    return list(read_candidates(path))


@pytest.mark.parametrize("name", FILES)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    place=st.integers(0, 120),
    cut=st.integers(0, 9),
    put=st.binary(max_size=4)
    | st.sampled_from([b"\t", b",", b"::", b"\n", b'"', b"-1", b"9" * 20, b"nan", b"\xb2", b"\x1f\x8b"]),
)
def test_only_clear_errors(tmp_path, name, place, cut, put):
    for other, content in FILES.items():
        (tmp_path / other).write_bytes(content)
    content = FILES[name]
    (tmp_path / name).write_bytes(content[:place] + put + content[place + cut :])
    try:
        found = read(tmp_path, name)
    except UserError as error:
        assert str(error).startswith(str(tmp_path))  # which file
        assert "\n" not in str(error)
    else:
        assert type(found) is type(FOUND[name])


@pytest.mark.parametrize("name", FILES)
def test_whole_files_are_read(tmp_path, name):
    for other, content in FILES.items():
        (tmp_path / other).write_bytes(content)
    assert read(tmp_path, name) == FOUND[name]


def test_a_year_that_is_none_ties_like_an_unknown_one(tmp_path):
    for name in ("ratings.csv", "movies.csv"):
        (tmp_path / name).write_bytes(FILES[name])
    kb = KnowledgeBase([], [("Up", {"release_year": ("soon",)}), ("Heat", {"release_year": ("1999",)})])
    assert [
        [kb.entities[film] for film in films] for films in read_likes(tmp_path / "ratings.csv", kb).lists()
    ] == LIKES
