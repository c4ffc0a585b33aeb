"""MiniLM fine-tuned by sentence-transformers' own trainer, on the files that `rankers` trains on, as its peer.

Wants sentence-transformers and datasets. Leaves a run beside the others, and how many pairs a second each trainer took,
below REJOINDER_RANKERS (default build/rankers); `python -m benchmarks rankers` shows both:

python -m benchmarks.trainers            # both
python -m benchmarks.trainers answer     # the run; for a GPU
python -m benchmarks.trainers time       # the speeds; nothing else should be using the machine. Fewer pairs on a CPU
"""

import json
import sys
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import numpy as np
import polars as pl
import torch

from benchmarks.ranker_runs import FOLDER
from benchmarks.rankers import PEER, SPEEDS
from rejoinder.model import Assignment, train_model
from rejoinder.recipe import read_recipe
from rejoinder.runs.convert import write_run
from rejoinder.systems.ranking import rank_by_products
from rejoinder.systems.sentence_encoder import pretrained_source
from rejoinder.systems.system import Prepared
from rejoinder.tasks.load import load_task
from rejoinder.tasks.selection import SelectionTask

EPOCHS, RATE, TOKENS = 2, 5e-5, 200
"""The usual way: in-batch negatives, a low rate, the last tokens of a context."""
TIMED, BATCH, ROUNDS = (40_000, 512, (1, 3)) if torch.cuda.is_available() else (1_920, 64, (1, 2))
"""Pairs and batch of both trainers while they are timed, and for how many epochs: one, and as many as the bi-encoder
that is for such a machine."""
READ = 98
"""Tokens that the peer reads meanwhile: as many of a context as the bi-encoder does, between two marks."""


def main(asked: list[str]) -> None:
    train = load_task(FOLDER / "ubuntu" / "turns" / "train")
    for part in asked or ["time", "answer"]:
        {"time": _time, "answer": _answer}[part](train)


def _time(train: SelectionTask) -> None:
    """Write how many pairs a second each trainer takes."""
    _speeds(_first(train, 10 * BATCH if torch.cuda.is_available() else BATCH), 1)  # warms both up
    speeds = [_speeds(_first(train, TIMED), epochs) for epochs in ROUNDS]
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else f"CPU, {torch.get_num_threads()} cores"
    (FOLDER / SPEEDS).write_text(json.dumps({device: {"pairs": TIMED, "batch": BATCH, "pairs a second": speeds}}))
    print(speeds, flush=True)


def _answer(train: SelectionTask) -> None:
    """Train the peer, and let it answer subtask 1's test."""
    model = _encoder()
    _train_peer(model, train, EPOCHS, batch=128)
    task = load_task(FOLDER / "ubuntu" / "subtask_1" / "test")
    contexts, options = (_vectors(model, texts) for texts in (task.contexts(), task.options["text"].to_list()))
    run = rank_by_products(task, PEER, contexts, options)
    choices = run.choices.with_columns(score=(1 + run.choices["score"]).clip(0, 2) / 2)
    out = FOLDER / "runs" / "ubuntu" / "subtask_1" / f"{PEER}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    write_run(out, msgspec.structs.replace(run, choices=choices), task.unanswered(), "dstc7")


def _speeds(task: SelectionTask, epochs: int) -> dict[str, float]:
    """Return how many pairs a second each trainer takes."""
    model = _encoder()
    model.max_seq_length = READ
    seconds = {PEER: _train_peer(model, task, epochs, BATCH), "rejoinder": _ours(task, epochs)}
    pairs = epochs * task.examples.height
    return {"epochs": epochs} | {name: pairs / taken for name, taken in seconds.items()}


def _first(task: SelectionTask, count: int) -> SelectionTask:
    """Return a task's first examples with their replies alone, for others would be tokenised as well."""
    examples = task.examples.head(count)
    options = task.options[examples["correct"].list.first()]
    correct = pl.Series([[place] for place in range(count)], dtype=pl.List(pl.UInt32))
    return msgspec.structs.replace(task, examples=examples.with_columns(correct=correct), options=options)


def _encoder() -> Any:
    from sentence_transformers import SentenceTransformer

    # weights kept in half precision would be trained in it
    model = SentenceTransformer(pretrained_source("minilm"), model_kwargs={"dtype": torch.float32})
    model.max_seq_length = TOKENS
    model.tokenizer.truncation_side = "left"
    return model


def _train_peer(model: Any, task: SelectionTask, epochs: int, batch: int) -> float:
    """Train on each context with its reply; return the seconds that it took."""
    from datasets import Dataset
    from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    replies = task.options["text"].gather(task.examples["correct"].list.first()).to_list()
    pairs = Dataset.from_dict({"anchor": task.contexts(), "positive": replies})
    with TemporaryDirectory() as folder:
        arguments = SentenceTransformerTrainingArguments(
            output_dir=folder,
            num_train_epochs=epochs,
            per_device_train_batch_size=batch,
            learning_rate=RATE,
            warmup_steps=0.1,
            bf16=torch.cuda.is_available(),
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
        )
        loss = MultipleNegativesRankingLoss(model)
        trainer = SentenceTransformerTrainer(model=model, args=arguments, train_dataset=pairs, loss=loss)
        start = time.perf_counter()
        trainer.train()
        return time.perf_counter() - start


def _ours(task: SelectionTask, epochs: int) -> float:
    """Return the seconds that the bi-encoder takes: tokenising, which the peer does while it trains, and training."""
    recipe = read_recipe("bi-encoder")
    stage = recipe.settings["stages"][-1]
    stage = stage | {"training": stage["training"] | {"epochs": epochs, "batch": BATCH, "checks": 1}}
    recipe = msgspec.structs.replace(recipe, settings=recipe.settings | {"stages": [stage]})
    with TemporaryDirectory() as folder:
        given = Assignment(recipe=recipe, train=(FOLDER / "ubuntu" / "turns" / "train", task))
        start = time.perf_counter()
        with suppress(Prepared):
            train_model(given, Path(folder) / "model", Path(folder) / "work", prepare_only=True)
        tokenised = time.perf_counter() - start
        train_model(given, Path(folder) / "model", Path(folder) / "work")
        history = json.loads((Path(folder) / "model" / "history.json").read_text())
    return tokenised + history[0]["set_up"] + sum(entry["seconds"] for entry in history)


def _vectors(model: Any, texts: list[str]) -> Any:
    vectors = model.encode(texts, batch_size=256, normalize_embeddings=True, show_progress_bar=False)
    return np.asarray(vectors, dtype=np.float32)


if __name__ == "__main__":
    main(sys.argv[1:])
