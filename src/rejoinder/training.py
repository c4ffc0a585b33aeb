"""One training loop for every neural system; it needs torch, numpy and safetensors, and accelerate for a GPU.

What a system has prepared (see `rejoinder.prepared`) can be trained elsewhere, on a machine that has neither the data
nor the rest of this package's dependencies, and brought back; `rejoinder train` then goes on from what it finds in it:

    python -m rejoinder.training FOLDER...
    accelerate launch -m rejoinder.training FOLDER...
"""

import json
import math
import os
import signal
import sys
import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from rejoinder.errors import UserError, interrupt, is_out_of_memory
from rejoinder.lock import held
from rejoinder.nn.encoders import has_halves, swift
from rejoinder.nn.row_adagrad import RowAdagrad
from rejoinder.prepared import (
    CHECKPOINT,
    HISTORY,
    LEARNER,
    WEIGHTS,
    Training,
    read_learner,
    replace_whole,
    save_weights,
    write_whole,
)
from rejoinder.watch import Advance, Watch, unwatched

_TOO_MUCH = (
    "out of memory; set `batch` lower, and `accumulate` higher by as much, in `training` "
    "(where wrong replies are the batch's others, each context then has fewer of them), or take a smaller network"
)
_UNSAVED = 60.0
"""Seconds between two checkpoints."""
_UNTOLD = 30.0
"""Seconds until the loss is told anew; a GPU has to be waited for."""
_WORTH = 50
"""How many times as long as writing one takes must pass between them, however long that is."""


class Learner(Protocol):
    """What the loop trains: a network with its data."""

    network: nn.Module

    def batches(self, epoch: int) -> Sequence[Any]:
        """Return the epoch's batches, in an order that depends on the seed and the epoch alone."""

    def loss(self, batch: Any) -> Tensor:
        """Return the mean loss of one batch."""

    def evaluate(self) -> float | None:
        """Return the score on dev, higher is better; None: there is no dev."""


class Setup(Protocol):
    """Makes a learner from its settings (a JSON object), the folder of its arrays, a seed and a device."""

    def __call__(self, settings: dict[str, Any], folder: Path, seed: int, device: torch.device) -> Learner:
        """Make it."""


def train(work: Path, watch: Watch = unwatched) -> None:
    """Train what `prepare` wrote until it is done; the weights of the best check are left in `work`.

    Weights without their history, from elsewhere, get an empty one: a model can do without its curve.
    """
    if (work / WEIGHTS).is_file():
        if not (work / HISTORY).is_file():
            (work / HISTORY).touch()
        return
    if not (work / LEARNER).is_file():
        raise UserError(f"{work}: nothing was prepared here; it has no {LEARNER}")
    described = read_learner(work)
    import_module("safetensors.torch")  # for the weights in the end; where it is missing, better now than then
    module, _, class_ = described["learner"].partition(":")
    setup: Setup = getattr(import_module(module), class_)
    try:
        how = Training(**described["training"])
    except TypeError as error:
        raise UserError(f"{work / LEARNER}: prepared by another version ({error}); prepare it anew") from None
    with held(work) if _is_first() else nullcontext(True) as is_ours:
        if not is_ours:
            raise UserError(f"{work}: another process trains it")
        try:
            _Loop(work, setup, described["settings"], how, described["seed"]).run(watch)
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            raise UserError(_TOO_MUCH) from None


def accelerator(precision: str) -> Any:
    """Return accelerate's Accelerator; one process on a CPU needs none of it and gets a plain stand-in."""
    distributed = "LOCAL_RANK" in os.environ
    if not torch.cuda.is_available() and not distributed:
        return _Plain(precision)
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState

    AcceleratorState._reset_state()  # of an earlier training in this process, perhaps in another precision
    gpu = torch.cuda.is_available()
    half = precision == "bf16" or (precision == "auto" and gpu and has_halves(torch.device("cuda")))
    return Accelerator(cpu=not gpu, mixed_precision="bf16" if half else "no")


class _Plain:
    """The few calls of an Accelerator that the loop uses, for one process on a CPU."""

    device = torch.device("cpu")
    process_index, num_processes, is_main_process = 0, 1, True

    def __init__(self, precision: str) -> None:
        self.precision = precision

    def prepare(self, network: nn.Module, optimizer: torch.optim.Optimizer) -> Any:
        self.network = network
        return network, optimizer

    def backward(self, loss: Tensor) -> None:
        loss.backward()

    def autocast(self) -> Any:
        if self.precision == "auto":
            return swift(self.network, self.device)
        return torch.autocast("cpu", torch.bfloat16, enabled=self.precision == "bf16")

    def unwrap_model(self, network: nn.Module) -> nn.Module:
        return network

    def wait_for_everyone(self) -> None:
        pass


class _Loop:
    def __init__(self, work: Path, setup: Setup, settings: dict[str, Any], training: Training, seed: int) -> None:
        started = time.perf_counter()
        torch.manual_seed(seed)
        self.work, self.training = work, training
        self.accelerator = accelerator(training.precision)
        self.learner = setup(settings, work, seed, self.accelerator.device)
        self.network = self.learner.network.to(self.accelerator.device)
        self.optimizer = _optimizer(self.network, training)
        self.wrapped, self.optimizer = self.accelerator.prepare(self.network, self.optimizer)
        if self.accelerator.process_index:
            torch.manual_seed(seed + self.accelerator.process_index)  # each draws its own negatives
        self.learner.network = self.wrapped
        self.history: list[dict[str, Any]] = []
        self.best: dict[str, Tensor] = {}
        self.losses: list[Tensor] = []
        """Of the batches since the last check."""
        self.note = ""
        self.epoch = self.place = self.step = 0
        self.set_up = time.perf_counter() - started

    def run(self, watch: Watch) -> None:
        self.started = time.perf_counter()
        self.due = self.started + _UNSAVED
        self.told = self.started
        self._resume()
        first = self._batches(0)
        if self.training.epochs and len(first) == 0:
            if self.learner.batches(0):
                raise UserError(
                    f"there are fewer batches than processes, {self.accelerator.num_processes}: set `batch` lower"
                )
            raise UserError("there is nothing to learn from: no example has an answer, with something wrong beside it")
        sizes = epoch_sizes(self.training, len(first), self.accelerator.num_processes)
        self.steps = sum(len(step_places(self.training, size)) for size in sizes)
        self.wrapped.train()
        where = " on the CPU" if self.accelerator.device.type == "cpu" else ""
        heard = watch if self.accelerator.is_main_process else unwatched
        with heard(f"training{where}", sum(sizes)) as advance:
            advance(self.epoch * len(first) + self.place, self._note())
            while self.epoch < len(sizes) and not self._exhausted():
                batches = first if self.epoch == 0 else self._batches(self.epoch)
                self._epoch(batches[: sizes[self.epoch]], advance)
                self.epoch, self.place = self.epoch + 1, 0
        if self.accelerator.is_main_process:
            self._finish()
        self.accelerator.wait_for_everyone()  # the next stage starts from these weights

    def _batches(self, epoch: int) -> Sequence[Any]:
        """Return this process' share of the batches; all processes get equally many."""
        batches = self.learner.batches(epoch)
        index, processes = self.accelerator.process_index, self.accelerator.num_processes
        return batches if processes == 1 else batches[index : len(batches) // processes * processes : processes]

    def _epoch(self, batches: Sequence[Any], advance: Any) -> None:
        steps, ends = [0, *step_places(self.training, len(batches))], check_places(self.training, len(batches))
        while self.place < len(batches) and not self._exhausted():
            step = bisect_right(steps, self.place)
            self.losses.append(self._forward_backward(batches[self.place], steps[step] - steps[step - 1]))
            self.place += 1
            if self.place == steps[step]:
                self._step()
                if self.place in ends:
                    self._check()
                elif time.perf_counter() > self.due and self.accelerator.num_processes == 1:  # others' clocks differ
                    self._mean_loss()
                    self._save([_random_state()])
            advance(1, self._note())

    def _forward_backward(self, batch: Any, summed: int) -> Tensor:
        """Add the gradient of one of so many batches that are summed for a step."""
        with self.accelerator.autocast():
            loss = self.learner.loss(batch)
        self.accelerator.backward(loss / summed)
        return loss.detach()

    def _step(self) -> None:
        if self.training.clip and self.training.optimizer == "adamw":
            nn.utils.clip_grad_norm_(self.wrapped.parameters(), self.training.clip)
        for group in self.optimizer.param_groups:
            group["lr"] = self.training.rate * rate_factor(self.training, self.step, self.steps)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.step += 1

    def _check(self) -> None:
        loss, seconds = self._mean_loss(), time.perf_counter() - self.started
        self.wrapped.eval()
        with torch.no_grad(), self.accelerator.autocast():
            score = self._of_all(self.learner.evaluate())[0]  # all stop when the first would
        self.wrapped.train()
        record: dict[str, Any] = {"epoch": self.epoch + 1, "step": self.step, "loss": loss, "seconds": seconds}
        record |= {} if self.history else {"set_up": self.set_up}
        record["device"] = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
        self.history.append(record if score is None else record | {"dev": score})
        if score is None or score >= max(entry["dev"] for entry in self.history):
            state = self.accelerator.unwrap_model(self.wrapped).state_dict()
            self.best = {name: value.detach().to("cpu", copy=True) for name, value in state.items()}
        random = self._of_all(_random_state())
        self.losses, self.started = [], time.perf_counter()
        if self.accelerator.is_main_process:
            self._save(random)
        self.accelerator.wait_for_everyone()

    def _mean_loss(self) -> float:
        """Return the loss since the last check; what cannot be gone on from is not to be saved."""
        loss = torch.stack(self.losses).mean().item()
        if not math.isfinite(loss):
            raise UserError(f"the loss became {loss} at step {self.step}; a lower rate may help")
        return loss

    def _of_all(self, own: Any) -> list[Any]:
        """Return what each process has."""
        if self.accelerator.num_processes == 1:
            return [own]
        from accelerate.utils import gather_object

        found: list[Any] = gather_object([own])
        return found

    def _exhausted(self) -> bool:
        scores = [entry["dev"] for entry in self.history if "dev" in entry]
        if not self.training.patience or not scores:
            return False
        return len(scores) - 1 - scores.index(max(scores)) >= self.training.patience

    def _note(self) -> str:
        """Say what the loss is: that of the last check, or of some time after it; and what dev's last score was."""
        last = self.history[-1] if self.history else {}
        if not self.losses:
            loss = last.get("loss")
        elif time.perf_counter() > self.told:
            loss = torch.stack(self.losses).mean().item()
        else:
            return self.note
        self.told = time.perf_counter() + _UNTOLD
        named = {"loss": loss, "dev": last.get("dev")}
        self.note = ", ".join(f"{name} {value:.4f}" for name, value in named.items() if value is not None)
        return self.note

    def _save(self, random: list[Any]) -> None:
        started = time.perf_counter()
        state = {
            "network": self.accelerator.unwrap_model(self.wrapped).state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "place": (self.epoch, self.place, self.step),
            "history": self.history,
            "losses": self.losses,
            "seconds": started - self.started,
            "best": self.best,
            "random_states": random,
        }
        temporary = self.work / f".{CHECKPOINT}"
        torch.save(state, temporary)
        replace_whole(temporary, self.work / CHECKPOINT)
        saved = time.perf_counter()
        self.due = saved + max(_UNSAVED, _WORTH * (saved - started))

    def _resume(self) -> None:
        path = self.work / CHECKPOINT
        if not path.is_file():
            return
        try:
            self._restore(torch.load(path, map_location="cpu", weights_only=True))
        except Exception as error:  # torch has many of its own, and long ones
            if is_out_of_memory(error) or isinstance(error, UserError):
                raise
            raise UserError(f"{path}: not a checkpoint of this training; remove it to start anew") from None

    def _restore(self, state: dict[str, Any]) -> None:
        processes = len(state["random_states"])
        if processes != self.accelerator.num_processes:
            raise UserError(
                f"{self.work / CHECKPOINT}: this training was begun by {processes} at once, and "
                f"{self.accelerator.num_processes} cannot go on with it: launch as many, or remove it to start anew"
            )
        self.accelerator.unwrap_model(self.wrapped).load_state_dict(state["network"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.epoch, self.place, self.step = state["place"]
        self.history, self.best = state["history"], state["best"]
        self.losses = [loss.to(self.accelerator.device) for loss in state["losses"]]
        self.started -= state["seconds"]
        processor, cuda = state["random_states"][self.accelerator.process_index]
        torch.set_rng_state(processor)
        if cuda is not None and torch.cuda.is_available():
            torch.cuda.set_rng_state(cuda)

    def _finish(self) -> None:
        write_whole(self.work / HISTORY, json.dumps(self.history))
        untrained = self.accelerator.unwrap_model(self.wrapped).state_dict()  # of which some may share their memory
        save_weights(self.best or {name: value.clone() for name, value in untrained.items()}, self.work / WEIGHTS)
        (self.work / CHECKPOINT).unlink(missing_ok=True)


def _random_state() -> tuple[Tensor, Tensor | None]:
    return torch.get_rng_state(), torch.cuda.get_rng_state() if torch.cuda.is_available() else None


def epoch_sizes(training: Training, batches: int, processes: int = 1) -> list[int]:
    """Return how many batches each epoch takes of a process' share; the last fewer, where training ends within it."""
    most = min(math.ceil(training.most / processes) or math.inf, training.epochs * batches)
    return [int(min(batches, most - done)) for done in range(0, int(most), max(1, batches))]


def check_places(training: Training, batches: int) -> set[int]:
    """Return after how many of an epoch's batches dev is scored."""
    return {round(batches * (check + 1) / training.checks) for check in range(training.checks)} - {0}


def step_places(training: Training, batches: int) -> list[int]:
    """Return after how many of an epoch's batches a step is taken: when enough are summed, and before each check."""
    return sorted(check_places(training, batches).union(range(training.accumulate, batches + 1, training.accumulate)))


def rate_factor(training: Training, step: int, steps: int) -> float:
    """Return what the rate is multiplied with at a step: it rises during the warm-up, then follows the schedule."""
    warmup = round(training.warmup * steps)
    if step < warmup:
        return (step + 1) / warmup
    done = min(1.0, (step - warmup) / max(1, steps - warmup))
    if training.schedule == "linear":
        return 1 - done
    return 0.5 * (1 + math.cos(math.pi * done)) if training.schedule == "cosine" else 1.0


def _optimizer(network: nn.Module, training: Training) -> torch.optim.Optimizer:
    if training.optimizer == "adagrad":
        return RowAdagrad(network.parameters(), training.rate, getattr(network, "longest", math.inf))
    decayed = _decayed(network, training.weight_decay)
    return torch.optim.AdamW(decayed, lr=training.rate, fused=True)


def _decayed(network: nn.Module, decay: float) -> list[dict[str, Any]]:
    """Spare vectors (biases, norms) from weight decay, as is usual."""
    parameters = [parameter for parameter in network.parameters() if parameter.requires_grad]
    return [
        {"params": [parameter for parameter in parameters if parameter.ndim > 1], "weight_decay": decay},
        {"params": [parameter for parameter in parameters if parameter.ndim <= 1], "weight_decay": 0.0},
    ]


@contextmanager
def _print_progress(title: str, total: int | None) -> Iterator[Advance]:
    done, said = 0, ""

    def advance(amount: int, note: str = "") -> None:
        nonlocal done, said
        done += amount
        if note != said:
            print(f"{title}, {done / total:.0%}: {note}" if total else f"{title}: {note}", flush=True)
        said = note

    yield advance


_USAGE = "usage: python -m rejoinder.training FOLDER... (folders that `rejoinder train --prepare-only` names)"


def _main(folders: list[str]) -> None:
    if not folders or {"-h", "--help"} & {*folders}:
        print(_USAGE, file=sys.stdout if folders else sys.stderr)
        sys.exit(0 if folders else 2)
    signal.signal(signal.SIGTERM, interrupt)  # by which batch systems end what takes too long
    try:
        for folder in folders:
            already = " already" if (Path(folder) / WEIGHTS).is_file() else ""
            train(Path(folder), _print_progress)
            if _is_first():
                print(f"{folder}: trained{already}; `rejoinder train` without --prepare-only makes a model of it")
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()
            sys.stdout.flush()
            os._exit(0)  # threads that torch leaves behind abort some processes that are done, and so the others
    except (UserError, ModuleNotFoundError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt as stop:
        saved = any((Path(folder) / name).is_file() for folder in folders for name in (CHECKPOINT, WEIGHTS))
        how = "goes on from the last checkpoint" if saved else "starts anew: nothing was saved yet"
        print(f"interrupted; the same command {how}", file=sys.stderr)
        sys.exit(143 if stop.args == (signal.SIGTERM,) else 130)


def _is_first() -> bool:
    """Whether this is the first of the processes that were launched together, or the only one."""
    return os.environ.get("RANK", "0") == "0"


if __name__ == "__main__":
    _main(sys.argv[1:])
