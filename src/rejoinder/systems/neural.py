"""What systems with networks share: prepare arrays, train on them, keep the weights."""

import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from torch import nn

from rejoinder import training
from rejoinder.files import BadInputError
from rejoinder.systems.system import Lesson, Prepared


def train_network(
    lesson: Lesson[Any],
    name: str,
    learner: str,
    settings: object,
    how: training.Training,
    arrays: dict[str, NDArray[Any]],
) -> Path:
    """Prepare and train one network in a folder of the lesson's work; return that folder.

    `settings` is a dataclass that the learner (`module:class`) takes as a dictionary.
    """
    folder = lesson.work / name
    training.prepare(folder, learner, asdict(settings), how, lesson.seed, arrays)  # type: ignore[call-overload]
    if lesson.prepare_only and not (folder / training.WEIGHTS).is_file():
        raise Prepared(folder)
    training.train(folder, lesson.watch)
    return folder


def keep_trained(work: Path, folder: Path) -> None:
    """Copy the weights and the learning curve of a trained network into a model's folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in (training.WEIGHTS, training.HISTORY):
        shutil.copyfile(work / name, folder / name)


def load_trained(network: nn.Module, folder: Path) -> None:
    """Read the weights that `keep_trained` kept into a network."""
    try:
        training.load_weights(network, folder / training.WEIGHTS)
    except Exception as error:  # safetensors and torch have many of their own
        raise BadInputError(folder / training.WEIGHTS, f"not the weights of this model ({error})") from None
