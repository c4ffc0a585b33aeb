import csv
import re
import tracemalloc
from collections import defaultdict
from itertools import islice
from pathlib import Path

import msgspec
import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from rejoinder.sample import films_ratings, films_threads
from rejoinder.sample.films import Comment, Film, entities, films, ratings, threads, write
from rejoinder.sample.films_facts import real_films

TRICKY = {"M", "Up", "It", "Her", "The Good, the Bad and the Ugly", "Amélie", "Good Morning, Vietnam"}
TRICKY |= {"Good Night, and Good Luck.", "WALL·E", "8½"}
RELATIONS = {"directed_by", "written_by", "starred_actors", "release_year", "in_language", "has_genre"}
RELATIONS |= {"has_imdb_rating", "has_imdb_votes", "has_tags", "has_plot"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("films")
    write(out, 400, seed=2)
    return out


def lines(path: Path) -> list[str]:
    return path.read_text("utf-8").splitlines()


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(tmp_path: Path) -> None:
    size = len(real_films()) + 40
    for name, seed in (("one", 1), ("two", 1), ("three", 2)):
        write(tmp_path / name, size, seed)
    one, two, three = ({p.name: p.read_bytes() for p in (tmp_path / n).iterdir()} for n in ("one", "two", "three"))
    assert set(one) == {"movie_kb.txt", "entities.txt", "movies.csv", "ratings.csv", "threads.jsonl"}
    assert one == two
    assert all(one[name] != three[name] for name in one)


def test_a_smaller_sample_is_the_beginning_of_a_larger_one() -> None:
    assert list(films(330, 4)) == list(islice(films(900, 4), 330))


def test_real_films_are_there_with_their_facts() -> None:
    known = {film.title: film for film in films(1000, 1)}
    assert 200 <= len(real_films()) <= 400
    assert known["The Godfather"].directors == ("Francis Ford Coppola",)
    assert known["8½"].language == "Italian"
    assert known["Blade Runner"].year == 1982
    assert "Harrison Ford" in known["Blade Runner"].actors


def test_tricky_titles_come_first() -> None:
    assert {film.title for film in films(10, 1)} == TRICKY


def test_no_title_comes_twice_even_when_words_run_out() -> None:
    titles = [film.title for film in films(40_000, 3)]
    assert len(set(titles)) == 40_000
    assert any(title.endswith("Part 2") for title in titles)


def test_invented_people_have_careers() -> None:
    made: dict[str, list[Film]] = defaultdict(list)
    for film in islice(films(3000, 1), len(real_films()), None):
        made[film.directors[0]].append(film)
    busy = [by for by in made.values() if len(by) > 4]
    assert len(busy) > 30
    assert np.mean([max(sum(g in film.genres for film in by) for g in by[0].genres) / len(by) for by in busy]) > 0.6


def test_knowledge_base_has_the_official_form(folder: Path) -> None:
    blocks = (folder / "movie_kb.txt").read_text("utf-8").removesuffix("\n\n").split("\n\n")
    assert len(blocks) == 400
    for block, film in zip(blocks, films(400, 2), strict=True):
        rows = [line.split(" ", 1) for line in block.split("\n")]
        assert [number for number, _ in rows] == [str(n) for n in range(1, len(rows) + 1)]
        facts = dict(text.removeprefix(f"{film.title} ").split(" ", 1) for _, text in rows)
        assert set(facts) == RELATIONS
        assert facts["starred_actors"] == ", ".join(film.actors)


def test_entities_are_unique_and_complete(folder: Path) -> None:
    listed = lines(folder / "entities.txt")
    assert len(set(listed)) == len(listed)
    for film in films(400, 2):
        assert {film.title, str(film.year), *film.actors, *film.tags, *film.genres} <= set(listed)


def test_seventy_five_thousand_entities_are_possible() -> None:
    assert sum(1 for _ in entities(films(23_000, 1))) > 75_000


def test_movies_and_ratings_read_like_movielens(folder: Path) -> None:
    with (folder / "movies.csv").open(encoding="utf-8", newline="") as file:
        movies = list(csv.DictReader(file))
    assert list(movies[0]) == ["movieId", "title", "genres"]
    assert movies[4]["title"] == "Good, the Bad and the Ugly, The (1966)"
    assert all(re.fullmatch(r".+ \(\d{4}\)", movie["title"]) for movie in movies)
    rows = [line.split(",") for line in lines(folder / "ratings.csv")]
    assert rows[0] == ["userId", "movieId", "rating", "timestamp"]
    assert {float(row[2]) for row in rows[1:]} <= {n / 2 for n in range(1, 11)}
    assert {row[1] for row in rows[1:]} <= {movie["movieId"] for movie in movies}
    assert len({(row[0], row[1]) for row in rows[1:]}) == len(rows) - 1


def test_threads_are_trees_with_replies_after_their_parents(folder: Path) -> None:
    comments = [msgspec.json.decode(line, type=Comment) for line in lines(folder / "threads.jsonl")]
    assert len(comments) == 8000
    assert len({comment.id for comment in comments}) == 8000
    seen: dict[str, Comment] = {}
    for comment in comments:
        if comment.parent_id is not None:
            parent = seen[comment.parent_id]
            assert parent.link_id == comment.link_id
            assert parent.created_utc < comment.created_utc
            assert parent.author != comment.author
        assert comment.body
        assert not set("{}") & set(comment.body)
        seen[comment.id] = comment


def likes(users: int, known: list[Film]) -> list[list[int]]:
    liked: dict[int, list[int]] = defaultdict(list)
    for rating in ratings(known, users, seed=5):
        if rating.stars >= 4:
            liked[rating.user].append(rating.film - 1)
    return [row for row in liked.values() if len(row) >= 5]


def test_cooccurrence_beats_popularity_beats_chance() -> None:
    known = list(films(500, 5))
    rows = likes(900, known)
    rng = np.random.default_rng(0)
    train, test = rows[:-150], rows[-150:]
    matrix = np.zeros((len(train), len(known)))
    for user, row in enumerate(train):
        matrix[user, row] = 1
    popular = matrix.sum(0)
    together = matrix.T @ matrix / np.sqrt(np.outer(popular + 1, popular + 1))
    ranks = []
    for row in test:
        *given, answer = rng.permutation(row)
        scores = np.array([together[given].sum(0), popular, rng.random(len(known))])
        scores[:, given] = -1
        ranks.append((scores > scores[:, [answer]]).sum(1))
    hits = (np.array(ranks) < 25).mean(0)
    assert hits[0] > hits[1] + 0.1
    assert hits[1] > hits[2] + 0.05


def test_the_reply_can_be_found_among_a_hundred() -> None:
    comments = list(threads(films(500, 1), 6000, seed=1))
    bodies = {comment.id: comment.body for comment in comments}
    pairs = [(bodies[comment.parent_id], comment.body) for comment in comments if comment.parent_id]
    words = TfidfVectorizer().fit(bodies.values())
    rng = np.random.default_rng(0)
    found = []
    for place in range(0, 3000, 10):
        question, answer = pairs[place]
        others = [pairs[i][1] for i in rng.choice(len(pairs), 99, replace=False) if pairs[i][1] != answer]
        scores = (words.transform([question]) @ words.transform([answer, *others]).T).toarray()[0]
        found.append(scores[0] > scores[1:].max())
    assert 0.3 < np.mean(found) < 0.95


def test_popularity_has_a_long_tail() -> None:
    counts = np.bincount([rating.film for rating in ratings(films(1000, 1), 500, seed=1)], minlength=1001)[1:]
    counts = np.sort(counts)[::-1]
    assert counts[:100].sum() > 0.25 * counts.sum()
    assert counts[500:].sum() < 0.35 * counts.sum()


def test_no_films_give_empty_files(tmp_path: Path) -> None:
    write(tmp_path, 0, seed=1)
    assert lines(tmp_path / "ratings.csv") == ["userId,movieId,rating,timestamp"]
    assert lines(tmp_path / "threads.jsonl") == lines(tmp_path / "movie_kb.txt") == []


def test_memory_is_bounded_by_the_catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(films_ratings, "CATALOGUE", 50)
    monkeypatch.setattr(films_threads, "CATALOGUE", 50)
    peaks = []
    for size in (300, 3000):
        list(islice(threads(films(size, 1), 50, 1), 50))
        tracemalloc.start()
        assert sum(rating.film for rating in ratings(films(size, 1), size // 10, 1)) > 0
        assert sum(1 for _ in threads(films(size, 1), size, 1)) == size
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]
