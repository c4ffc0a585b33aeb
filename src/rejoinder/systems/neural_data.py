"""Selection tasks as arrays for networks: every utterance once, contexts and options as references to them."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rejoinder.errors import UserError
from rejoinder.systems.turns import turns_of
from rejoinder.systems.vocabulary import Vocabulary
from rejoinder.tasks.selection import SelectionTask

Ints = NDArray[np.integer[Any]]


class Utterances:
    """Different texts, numbered as they come."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def rows(self, texts: Iterable[str]) -> Ints:
        """Return the number of each text."""
        numbers = self.numbers
        return np.fromiter((numbers.setdefault(text, len(numbers)) for text in texts), np.int32)

    def tokenised(self, vocabulary: Vocabulary) -> dict[str, Ints]:
        """Return the tokens of all of them."""
        found = vocabulary.tokenise(list(self.numbers))
        tokens = found.tokens.astype(np.uint16) if vocabulary.size < 2**16 and found.letters is None else found.tokens
        arrays: dict[str, Ints] = {"tokens": tokens, "offsets": found.offsets}
        return arrays if found.letters is None else arrays | {"letters": found.letters}


def task_arrays(split: str, task: SelectionTask, texts: Utterances) -> dict[str, Ints]:
    """Return contexts, correct replies and, where examples have no others, their own options.

    `texts` takes the utterances.
    """
    turns = turns_of(task)
    option = texts.rows(task.options["text"])
    arrays = {
        "turns": texts.rows(turns.texts),
        "speakers": turns.repliers.astype(np.uint8),
        "bounds": _bounds(task.examples["turns"]),
        "correct": option[task.examples["correct"].explode().drop_nulls().to_numpy()],
        "correct_bounds": _bounds(task.examples["correct"]),
    }
    if not task.shared and not task.examples["options"].null_count():
        arrays["options"] = option[task.examples["options"].explode().to_numpy()]
        arrays["option_bounds"] = _bounds(task.examples["options"])
    return {f"{split}_{name}": array for name, array in arrays.items()}


def _bounds(lists: pl.Series) -> Ints:
    sizes = lists.list.len().fill_null(0).to_numpy()
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])


def copy_encoder(source: str, folder: Path) -> None:
    """Copy a pretrained encoder from a folder or a hub: tokeniser, configuration, and weights in half precision."""
    import torch
    from transformers import AutoConfig, AutoModel, AutoTokenizer
    from transformers.utils import logging

    from rejoinder.prepared import WEIGHTS, save_weights

    logging.set_verbosity_error()  # it reports a pooling layer that is missing, and nobody uses
    logging.disable_progress_bar()
    try:
        model: Any = AutoModel.from_pretrained(source, dtype=torch.float32)
        parts: list[Any] = [AutoConfig.from_pretrained(source), AutoTokenizer.from_pretrained(source)]
    except Exception as error:  # transformers, tokenizers and safetensors have many of their own
        problem = str(error).partition("\n")[0]
        raise UserError(f"{source}: no encoder that transformers can read ({problem})") from None
    _check_encoder(source, *parts)
    for part in parts:
        part.save_pretrained(folder)
    states = {name: value for name, value in model.state_dict().items() if not name.startswith("pooler.")}
    weights = {f"encoder.model.{name}": value.half() for name, value in states.items()}
    save_weights(weights, folder / WEIGHTS)


def _check_encoder(source: str, config: Any, tokenizer: Any) -> None:
    """Refuse what could be read, but reads nothing or writes as well."""
    if config.is_encoder_decoder:
        raise UserError(f"{source}: {config.model_type} has a decoder besides; expected an encoder alone")
    if len(tokenizer) <= len(tokenizer.all_special_tokens):  # what transformers makes of a folder without any
        raise UserError(f"{source}: its tokeniser knows no words; expected tokenizer.json beside the weights")
    asked = ("pad_token_id", "cls_token_id", "sep_token_id")
    missing = [name.removesuffix("_token_id") for name in asked if getattr(tokenizer, name) is None]
    if missing:
        raise UserError(f"{source}: its tokeniser has no token for {', '.join(missing)}; expected one like BERT's")
