import json
import shutil

import numpy as np
import polars as pl
import pytest

from rejoinder.errors import UserError
from rejoinder.systems.index import Index, Segment
from rejoinder.systems.words import count_words

WIDTH = 96


def options_of(numbers):
    words = np.array(["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"])
    texts = [f"{words[n % 8]} {words[n // 8 % 8]} number{n}" for n in numbers]
    return pl.DataFrame({"id": [f"o{n}" for n in numbers], "text": texts})


def vectors_of(numbers):
    """Make vectors in clusters, as those of texts are, that depend on the number alone."""
    centres = np.random.default_rng(0).normal(size=(50, WIDTH))
    noise = np.stack([np.random.default_rng([1, n]).normal(size=WIDTH) for n in numbers])
    found = centres[np.array(numbers) % 50] + 0.7 * noise
    return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)


def add(index, numbers):
    index.add(options_of(numbers), vectors_of(numbers), count_words(options_of(numbers)["text"].to_list(), 0))


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("index")
    add(Index(folder), list(range(3000)))
    return Index.open(folder)


def test_it_finds_the_nearest_vectors(built):
    queries = vectors_of(list(range(5000, 5050)))
    found = np.array([built.nearest(query, 20, rescored=500) for query in queries])
    exact = np.argsort(-(queries @ vectors_of(list(range(3000))).T), axis=1)[:, :20]
    shared = [len(set(a) & set(b)) for a, b in zip(found, exact, strict=True)]
    assert np.mean(shared) > 19
    # with all of them compared exactly, half precision alone makes a difference
    everything = np.array([built.nearest(query, 20, rescored=3000) for query in queries])
    assert (everything == exact).mean() > 0.95


def test_it_finds_words(built):
    texts = options_of(range(3000))["text"].to_list()
    wanted = [sum(word in ("beta", "number77") for word in text.split()) for text in texts]
    assert built.word_scores(count_words(["what of beta or number77"], 0)).tolist() == wanted
    assert built.word_scores(count_words(["nothing known"], 0)).max() == 0


def test_it_is_mapped_and_about_as_large_as_its_vectors(built):
    assert all(isinstance(segment.vectors.base, np.memmap) for segment in built.segments)
    size = sum(path.stat().st_size for path in built.folder.rglob("*.npy"))
    assert size < 1.5 * 3000 * WIDTH * 2


def test_changes_need_no_rebuild(tmp_path):
    index = Index(tmp_path)
    add(index, list(range(500)))
    stamp = (tmp_path / "1" / "vectors.npy").stat().st_mtime_ns
    add(index, list(range(500, 600)))
    assert index.remove(["o3", "o550", "o9999"]) == 2
    assert (tmp_path / "1" / "vectors.npy").stat().st_mtime_ns == stamp
    for same in (index, Index.open(tmp_path)):
        assert len(same) == 598
        ids = same.options()["id"]
        assert ids[int(same.nearest(vectors_of([555])[0], 1)[0])] == "o555"
        assert ids[int(same.nearest(vectors_of([550])[0], 1)[0])] != "o550"
        assert len(same.nearest(vectors_of([550])[0], 1000)) == 598
        assert ids[int(same.word_scores(count_words(["number555"], 0)).argmax())] == "o555"
        assert same.word_scores(count_words(["number3"], 0)).max() == 0


def test_texts_take_the_place_of_others_at_once(tmp_path, monkeypatch):
    add(Index(tmp_path), list(range(20)))
    new = options_of(range(5, 10)).with_columns(text=pl.lit("new"))
    given = (new, vectors_of(range(5, 10)), count_words(["new"] * 5, 0))
    with monkeypatch.context() as broken:
        broken.setattr("rejoinder.systems.index.Segment.save", lambda self, folder: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            Index.open(tmp_path).add(*given, instead=True)
    again = Index.open(tmp_path)
    assert again.options()[again.kept()].equals(options_of(range(20)))
    again.add(*given, instead=True)
    again = Index.open(tmp_path)
    texts = dict(again.options()[again.kept()].iter_rows())
    assert len(texts) == len(again) == 20
    assert [texts[f"o{number}"] == "new" for number in range(20)] == [5 <= number < 10 for number in range(20)]


def test_merging_changes_nothing_but_the_folder(tmp_path):
    index = Index(tmp_path)
    for start in range(0, 900, 50):  # more additions than there may be segments
        add(index, list(range(start, start + 50)))
        index.remove([f"o{start + 7}"])
    again = Index.open(tmp_path)
    assert len(again.segments) < 17
    assert len(again) == 900 - 18
    ids = again.options()["id"].to_list()
    for number in (0, 449, 888):
        assert ids[int(again.nearest(vectors_of([number])[0], 1)[0])] == f"o{number}"
        assert ids[int(again.word_scores(count_words([f"number{number}"], 0)).argmax())] == f"o{number}"
    assert {path.name for path in tmp_path.iterdir()} == {
        "index.json",
        *(entry["name"] for entry in json.loads((tmp_path / "index.json").read_text())["segments"]),
    }


def test_once_most_are_removed_the_others_are_written_anew(tmp_path):
    index = Index(tmp_path)
    add(index, list(range(100)))
    add(index, list(range(100, 120)))
    index.remove([f"o{number}" for number in range(59)])
    assert (tmp_path / "1").is_dir()
    index.remove([f"o{number}" for number in range(59, 110)])
    for same in (index, Index.open(tmp_path)):
        assert same.options()["id"].to_list() == [f"o{number}" for number in range(110, 120)]
        assert not len(same.removed())
        assert same.nearest(vectors_of([113])[0], 1).tolist() == [3]
    index.remove([f"o{number}" for number in range(120)])
    assert len(index) == len(Index.open(tmp_path)) == 0


def test_as_many_are_found_as_are_asked_for(built):
    query = vectors_of([5000])[0]
    assert len(built.nearest(query, 2500, rescored=100)) == 2500
    exact = np.argsort(-(query @ vectors_of(list(range(3000))).T))[:250]
    assert len(set(built.nearest(query, 250, rescored=100)) & set(exact)) > 245


def test_what_cannot_be_added_removes_nothing(tmp_path, complaint):
    index = Index(tmp_path)
    add(index, list(range(20)))
    for options, vectors in ((options_of([5]), np.zeros((1, 5), np.float32)), (options_of([5, 5]), vectors_of([5, 5]))):
        complaint(index.add, options, vectors, count_words(options["text"].to_list(), 0), instead=True)
    index.remove(["o7"])
    assert len(index) == len(Index.open(tmp_path)) == 19


def test_rows_that_are_not_there_are_named(tmp_path, complaint):
    index = Index(tmp_path)
    add(index, list(range(20)))
    index.remove(["o7"])
    listed = (tmp_path / "index.json").read_text()
    for row in (20, -1):
        (tmp_path / "index.json").write_text(listed.replace("[7]", f"[{row}]"))
        assert "index.json: removes what the index does not hold" in complaint(Index.open, tmp_path)
    (tmp_path / "index.json").write_text(listed)
    rows = np.load(tmp_path / "1" / "rows.npy")
    np.save(tmp_path / "1" / "rows.npy", rows + 1)
    assert "do not belong together" in complaint(Index.open, tmp_path)


def test_an_index_in_memory_can_be_written(tmp_path):
    index = Index()
    add(index, list(range(100)))
    index.remove(["o5"])
    index.save(tmp_path / "saved")
    assert len(Index.open(tmp_path / "saved")) == 99


def test_mistakes_are_named(tmp_path, complaint):
    index = Index(tmp_path / "index")
    add(index, list(range(20)))
    assert "'o7' is in the index already" in complaint(add, index, [30, 7])
    wide = np.zeros((1, 5), dtype=np.float32)
    assert "holds vectors of 96, not of 5" in complaint(index.add, options_of([50]), wide, count_words(["x"], 0))
    index.remove(["o7"])
    add(index, [7])
    assert "no such file" in complaint(Index.open, tmp_path / "nowhere")
    (tmp_path / "index" / "1" / "codes.npy").write_bytes(b"nonsense")
    assert "codes.npy: damaged" in complaint(Index.open, tmp_path / "index")
    np.save(tmp_path / "index" / "1" / "codes.npy", np.zeros((2, 3), dtype=np.uint64))
    assert "do not belong together" in complaint(Index.open, tmp_path / "index")
    (tmp_path / "index" / "1" / "codes.npy").unlink()
    assert "the index is not whole" in complaint(Index.open, tmp_path / "index")
    for damaged in ("{", '{"segments": [{"name": "1", "removed": ["x"]}]}'):
        (tmp_path / "index" / "index.json").write_text(damaged)
        assert "index.json: damaged" in complaint(Index.open, tmp_path / "index")


@pytest.mark.parametrize("name", ["vectors", "codes", "words", "starts", "rows", "weights"])
def test_files_that_do_not_belong_together(tmp_path, complaint, name):
    add(Index(tmp_path / "index"), list(range(20)))
    path = tmp_path / "index" / "1" / f"{name}.npy"
    whole = np.load(path)
    for part in (whole[:-1], whole[:0]):
        np.save(path, part)
        assert complaint(Index.open, tmp_path / "index") == (
            "index/1: its files do not belong together; the index is damaged: train the model anew"
        )
    np.save(path, whole)
    assert len(Index.open(tmp_path / "index")) == 20
    if name == "starts":
        for strange in (whole[::-1], np.append(whole[1], whole[1:])):
            np.save(path, strange)
            assert "do not belong together" in complaint(Index.open, tmp_path / "index")


def test_segments_that_do_not_belong_together(tmp_path, complaint):
    index, other = Index(tmp_path / "index"), Index(tmp_path / "other")
    add(index, list(range(20)))
    add(index, list(range(20, 30)))
    other.add(options_of([30]), np.ones((1, 5), np.float32), count_words(["x"], 0))
    shutil.rmtree(tmp_path / "index" / "2")
    shutil.copytree(tmp_path / "other" / "1", tmp_path / "index" / "2")
    assert complaint(Index.open, tmp_path / "index").startswith("index: its segments do not belong together; ")


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (["1", "1"], "names the segment 1 twice"),
        (["1", "one"], "names a segment 'one', which is no number"),
        (["²"], "names a segment '²', which is no number"),
        ([""], "names a segment '', which is no number"),
    ],
)
def test_names_that_no_segments_have(tmp_path, complaint, names, problem):
    add(Index(tmp_path), list(range(20)))
    (tmp_path / "index.json").write_text(json.dumps({"segments": [{"name": name} for name in names]}))
    told = f"index.json: {problem}; the index is damaged: train the model anew"
    assert complaint(Index.open, tmp_path) == told


def test_options_without_their_columns(tmp_path, complaint):
    add(Index(tmp_path), list(range(20)))
    path = tmp_path / "1" / "options.parquet"
    whole = options_of(range(20))
    for missing, table in (
        ("text", whole.drop("text")),
        ("id", whole.drop("id")),
        ("text", whole.with_columns(pl.col("text").hash())),
    ):
        table.write_parquet(path)
        told = f"1/options.parquet: no column {missing!r} of texts; the index is damaged: train the model anew"
        assert complaint(Index.open, tmp_path) == told


def test_vectors_of_very_different_lengths_are_compared_exactly():
    numbers = list(range(3000))
    lengths = np.random.default_rng(0).lognormal(sigma=1.0, size=(3000, 1)).astype(np.float32)
    vectors, [asked] = vectors_of(numbers) * lengths, vectors_of([5000])
    index = Index()
    index.add(options_of(numbers), vectors, count_words(options_of(numbers)["text"].to_list(), 0))
    assert len(set(index.nearest(asked, 20, rescored=100)) & set(np.argsort(-(vectors @ asked))[:20])) > 18


def test_vectors_whose_signs_tell_nothing_are_compared_exactly():
    vectors, asked = np.abs(vectors_of(list(range(3000)))), np.abs(vectors_of([5000, 5001]))
    index = Index()
    index.add(options_of(list(range(3000))), vectors, count_words(options_of(list(range(3000)))["text"].to_list(), 0))
    gone = [int(np.argmax(vectors @ query)) for query in asked]
    index.remove([f"o{row}" for row in gone])
    for query in asked:
        exact = np.delete(np.argsort(-(vectors @ query)), np.flatnonzero(np.isin(np.argsort(-(vectors @ query)), gone)))
        assert len(set(index.nearest(query, 20, rescored=100)) & set(exact[:20])) > 18  # half precision


@pytest.mark.parametrize("name", ["vectors", "weights"])
def test_what_is_no_number_is_said_when_it_is_come_upon(tmp_path, complaint, name):
    add(Index(tmp_path / "index"), list(range(200)))
    path = tmp_path / "index" / "1" / f"{name}.npy"
    array = np.load(path)
    array[:] = np.nan
    np.save(path, array)
    index = Index.open(tmp_path / "index")
    told = "index: holds what is no number; the index is damaged: train the model anew"
    if name == "vectors":
        assert complaint(index.nearest, vectors_of([7])[0], 5) == told
    else:
        assert complaint(index.word_scores, count_words(["alpha beta"], 0)) == told


def test_a_folder_that_may_not_be_written_is_named(tmp_path, complaint, monkeypatch):
    index = Index(tmp_path / "index")
    add(index, [1, 2])

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(np, "save", refuse)
    assert complaint(add, index, [3]).endswith("2: cannot be written (Permission denied)")
    assert len(Index.open(tmp_path / "index")) == 2


def test_an_index_that_changes_while_it_is_read_is_read_again(tmp_path, monkeypatch):
    writing = Index(tmp_path / "index")
    for numbers in ([1, 2, 3], [4, 5, 6]):
        add(writing, numbers)
    load, loaded = Segment.load, []

    def merged_meanwhile(folder):
        loaded.append(folder.name)
        if loaded == ["1", "2"]:
            writing.merge()
            writing._write()
        return load(folder)

    monkeypatch.setattr(Segment, "load", merged_meanwhile)
    read = Index.open(tmp_path / "index")
    assert loaded == ["1", "2", "3", "3"]  # one by the writer
    assert read.options()["id"].to_list() == [f"o{number}" for number in range(1, 7)]


def test_an_index_is_not_begun_where_there_is_one(tmp_path):
    add(Index(tmp_path / "index"), [1, 2])
    for begin in (Index, Index().save):
        with pytest.raises(UserError, match=r"there is an index; Index\.open takes it as it is"):
            begin(tmp_path / "index")
    assert len(Index.open(tmp_path / "index")) == 2


@pytest.mark.parametrize("value", [np.nan, np.inf, -1e6])
def test_vectors_that_cannot_be_kept_are_refused(tmp_path, value):
    index = Index(tmp_path / "index")
    add(index, [1, 2])
    vectors = vectors_of([3])
    vectors[0, 5] = value
    with pytest.raises(UserError, match="a vector to add holds what is no number, or none that half precision has"):
        index.add(options_of([3]), vectors, count_words(["gamma"], 0))
    with pytest.raises(UserError, match="1 options, 2 vectors and words of 1 to add"):
        index.add(options_of([3]), vectors_of([3, 4]), count_words(["gamma"], 0))
    assert len(Index.open(tmp_path / "index")) == 2


def test_nothing_is_found_in_an_index_of_nothing():
    index = Index()
    assert (len(index), index.options().height) == (0, 0)
    assert index.nearest(vectors_of([1])[0], 5).tolist() == []
    assert index.word_scores(count_words(["alpha"], 0)).tolist() == []


def test_what_is_found_does_not_depend_on_how_the_index_grew():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(900, WIDTH)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    whole, grown = Index(), Index()
    for index, parts in ((whole, [range(900)]), (grown, [range(600, 900), range(250), range(250, 600)])):
        for numbers in parts:
            options = options_of(numbers)
            index.add(options, vectors[list(numbers)], count_words(options["text"].to_list(), 0))
    ids = grown.options()["id"]
    place = np.array([int(name[1:]) for name in ids])
    for query in rng.normal(size=(50, WIDTH)).astype(np.float32):
        found = grown.nearest(query, 3, rescored=30, place=place)
        assert place[found].tolist() == whole.nearest(query, 3, rescored=30).tolist()
