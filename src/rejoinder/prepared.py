"""A folder in which a training is prepared, and what comes of it; it needs torch, numpy and safetensors alone.

NAME.npy, arrays.json   what is learned from, and the shapes of it
learner.json            which learner, with which settings, is trained how
checkpoint.pt           how far an unfinished training has come
weights.safetensors     what was learned
history.json            the loss, and the score on dev, at each check
"""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import UserError, expect_least, expect_share

if TYPE_CHECKING:
    from torch import Tensor, nn

WEIGHTS = "weights.safetensors"
HISTORY = "history.json"
LEARNER = "learner.json"
_ARRAYS = "arrays.json"
CHECKPOINT = "checkpoint.pt"


@dataclass(frozen=True)
class Training:
    """How a network learns."""

    epochs: int = 10
    """0: the network is taken as it is."""
    most: int = 0
    """Batches after which training ends, however many the epochs have, so that much data takes no longer; 0: any."""
    batch: int = 128
    rate: float = 1e-3
    optimizer: Literal["adamw", "adagrad"] = "adamw"
    """adagrad: for large tables of vectors, of which a step changes but a few; without weight decay and clipping."""
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    warmup: float = 0.0
    """Share of all steps during which the rate rises from zero."""
    weight_decay: float = 0.0
    clip: float = 1.0
    """Largest norm of the gradient; 0: any."""
    accumulate: int = 1
    """Batches whose gradients are summed for one step."""
    checks: int = 1
    """How often an epoch is interrupted to score dev."""
    patience: int = 3
    """Checks without improvement after which training stops; 0: never."""
    precision: Literal["auto", "full", "bf16"] = "auto"
    """auto: bf16 on a GPU that has it and, for a pretrained encoder, on a CPU that computes in it; else full."""

    def __post_init__(self) -> None:
        """Refuse what nothing can be learned by."""
        expect_least(self, batch=1, accumulate=1, checks=1)
        expect_least(self, epochs=0, most=0, rate=0, weight_decay=0, clip=0, patience=0)
        expect_share(self, "warmup")


def prepare(
    work: Path, learner: str, settings: dict[str, Any], training: Training, seed: int, arrays: dict[str, NDArray[Any]]
) -> None:
    """Write all that `train` needs; `learner` is `module:class`. What an earlier try has trained is kept."""
    content = json.dumps({"learner": learner, "settings": settings, "training": asdict(training), "seed": seed})
    if (work / LEARNER).is_file() and _completed(read_learner(work)) == json.loads(content):
        return
    work.mkdir(parents=True, exist_ok=True)
    for stale in (LEARNER, CHECKPOINT, WEIGHTS, HISTORY):
        (work / stale).unlink(missing_ok=True)
    save_arrays(work, arrays)
    write_whole(work / LEARNER, content)


def _completed(learner: dict[str, Any]) -> dict[str, Any]:
    """Return a learner with settings that came later, so that what an earlier version has trained is kept."""
    with suppress(TypeError):  # of one that knew other settings
        return learner | {"training": asdict(Training(**learner["training"]))}
    return learner


def read_learner(work: Path) -> dict[str, Any]:
    """Return what `prepare` wrote of a learner: its `learner`, `settings`, `training` and `seed`."""
    return _read_object(work / LEARNER, "learner", "settings", "training", "seed")


def save_arrays(folder: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays, each to a file of its own, beside those that are there, and the shapes of all."""
    folder.mkdir(parents=True, exist_ok=True)
    shapes = _read_object(folder / _ARRAYS) if (folder / _ARRAYS).is_file() else {}
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
        shapes[name] = array.shape
    write_whole(folder / _ARRAYS, json.dumps(shapes))


def load_arrays(folder: Path) -> dict[str, NDArray[Any]]:
    """Return prepared arrays, mapped rather than read; all of them have to be there, and as long as they were."""
    return {name: _map(folder / f"{name}.npy", shape) for name, shape in _read_object(folder / _ARRAYS).items()}


def _map(path: Path, shape: list[int]) -> NDArray[Any]:
    try:
        array: NDArray[Any] = np.load(path, mmap_mode="r")
    except (OSError, ValueError, EOFError):
        raise _damaged(path) from None
    if [*array.shape] != shape:
        raise _damaged(path)
    return array


def _read_object(path: Path, *keys: str) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        raise _damaged(path) from None
    if not isinstance(found, dict) or not found.keys() >= {*keys}:
        raise _damaged(path)
    return found


def _damaged(path: Path) -> UserError:
    advice = f"copy {path.parent.resolve()} here again, or remove it and prepare it anew"
    return UserError(f"{path}: {'not what was prepared' if path.exists() else 'is missing'}; {advice}")


def write_whole(path: Path, text: str) -> None:
    """Write a text, whole or not at all."""
    temporary = path.with_name(f".{path.name}")
    temporary.write_text(text)
    replace_whole(temporary, path)


def replace_whole(temporary: Path, path: Path) -> None:
    """Put a file in the place of another, and only once all of it is on the disk: a machine may lose its power."""
    with temporary.open("rb") as file:
        os.fsync(file)
    temporary.replace(path)


def save_weights(state: "dict[str, Tensor]", path: Path) -> None:
    """Write weights, in half precision if that is how they are held."""
    from safetensors.torch import save_file

    temporary = path.with_name(f".{path.name}")
    save_file({name: value.contiguous() for name, value in state.items()}, temporary)
    umask = os.umask(0)
    os.umask(umask)
    temporary.chmod(0o666 & ~umask)  # safetensors lets nobody else read them
    replace_whole(temporary, path)


def load_weights(network: "nn.Module", path: Path) -> None:
    """Read weights into a network."""
    from safetensors.torch import load_file

    network.load_state_dict(load_file(path))
