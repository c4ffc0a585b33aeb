"""What systems with networks share: prepare arrays, train on them, keep the weights."""

import shlex
import shutil
from collections.abc import Collection, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from numpy.typing import NDArray
from torch import nn

from rejoinder.files import BadInputError
from rejoinder.prepared import HISTORY, WEIGHTS, Training, load_weights, prepare
from rejoinder.systems.system import Lesson, Prepared
from rejoinder.training import train


class Network(NamedTuple):
    """What a learner (`module:class`) is given: its settings, a dataclass, and arrays."""

    settings: Any
    arrays: dict[str, NDArray[Any]]


def train_networks(
    lesson: Lesson[Any], learner: str, how: Training, networks: Mapping[str, Network]
) -> dict[str, Path]:
    """Prepare all networks, then train each in a folder of its own below the lesson's work; return these folders."""
    folders = {name: lesson.work / name for name in networks}
    for name, network in networks.items():
        prepare(folders[name], learner, asdict(network.settings), how, lesson.seed, network.arrays)
    train_folders(lesson, folders.values())
    return folders


def train_folders(lesson: Lesson[Any], folders: Collection[Path]) -> None:
    """Train what was prepared, one folder after the other, unless that is to be done elsewhere."""
    if lesson.prepare_only and not all((folder / WEIGHTS).is_file() for folder in folders):
        raise Prepared(shlex.join(map(str, folders)))
    for folder in folders:
        train(folder, lesson.watch)


def expect_dense(how: Training) -> None:
    """Refuse an optimizer that is for tables of vectors, of which a step changes but a few."""
    if how.optimizer == "adagrad":
        raise ValueError("optimizer is adagrad, for tables of vectors alone; expected adamw")


def keep_trained(work: Path, folder: Path) -> None:
    """Copy the weights and the learning curve of a trained network into a model's folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in (WEIGHTS, HISTORY):
        shutil.copyfile(work / name, folder / name)


def load_trained(network: nn.Module, folder: Path) -> None:
    """Read the weights that `keep_trained` kept into a network."""
    try:
        load_weights(network, folder / WEIGHTS)
    except Exception as error:  # safetensors and torch have many of their own
        problem = " ".join(str(error).split())
        raise BadInputError(folder / WEIGHTS, f"not the weights of this model ({problem})") from None
