"""Clocks and memory: calls in turn within this process, and commands in processes of their own."""

import gc
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
PYTHON = sys.executable

# A process counts the memory of the one that started it as its own peak until it has grown beyond that, so commands
# are started by a small process and not by this one.
_LAUNCHER = """
import json, resource, subprocess, sys, time
start = time.perf_counter()
done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE)
seconds = time.perf_counter() - start
used = resource.getrusage(resource.RUSAGE_CHILDREN)
peak = used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
print(json.dumps([done.returncode, seconds, peak / 1e6, done.stdout.decode(), used.ru_utime + used.ru_stime]))
"""


class Timing(NamedTuple):
    """Seconds: of the first call, and the median, least and most of those that count."""

    first: float
    median: float
    low: float
    high: float


class Usage(NamedTuple):
    """A process: its seconds, its peak memory in MB, what it printed, and the processors' seconds."""

    seconds: float
    peak: float
    output: str
    processors: float


def clock(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def summarise(seconds: Sequence[float]) -> Timing:
    return Timing(seconds[0], statistics.median(seconds), min(seconds), max(seconds))


def interleave(calls: Mapping[str, Callable[[], Any]], repetitions: int) -> tuple[dict[str, Timing], dict[str, Any]]:
    """Time the calls in turn and return their last results as well; the first round, apart, comes before the others.

    Objects alive before are kept from the garbage collector, so that no call pays for another's input.
    """
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    results: dict[str, Any] = {}
    gc.collect()
    gc.freeze()
    for _ in range(repetitions + 1):
        for name, call in calls.items():
            results.pop(name, None)
            gc.collect()
            taken, results[name] = clock(call)
            seconds[name].append(taken)
    gc.unfreeze()
    timings = {name: summarise(rest)._replace(first=first) for name, (first, *rest) in seconds.items()}
    return timings, results


def run(command: Sequence[str | Path]) -> Usage:
    launched = [PYTHON, "-c", _LAUNCHER, *map(str, command)]
    done = subprocess.run(launched, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    status, *usage = json.loads(done.stdout)
    if status:
        raise RuntimeError(f"{command[0]} failed with status {status}")
    return Usage(*usage)


def run_in_turn(commands: Mapping[str, Sequence[str | Path]], repetitions: int) -> dict[str, list[Usage]]:
    usages: dict[str, list[Usage]] = {name: [] for name in commands}
    for _ in range(repetitions):
        for name, command in commands.items():
            usages[name].append(run(command))
    return usages


def in_child(module: str, function: str, *arguments: object) -> list[str]:
    """Return the command that calls a function of this package in a process of its own and prints its result."""
    return [PYTHON, "-m", "benchmarks.child", module, function, json.dumps(arguments, default=str)]
