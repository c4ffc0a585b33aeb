"""A scorer process with limits of memory and time: started when needed, replaced when it dies."""

import base64
import os
import subprocess
import sys
import threading
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import msgspec

from rejoinder.board.scorer import Request
from rejoinder.errors import UserError

MEMORY = 4 << 30
UNLIMITED = 0
"""For what reads no submitted file: drawing charts reserves far more memory than it uses."""
SECONDS = 300
JOBS = 500
"""Requests after which a scorer is replaced, so that none grows without end."""


class ScorerDiedError(UserError):
    """The scorer crashed, ran out of memory or took too long."""


class FaultError(UserError):
    """The truth cannot be read; no team's mistake."""


class ScorerProcess:
    """A scorer that is started when needed and replaced when it dies."""

    def __init__(self, memory: int = MEMORY, seconds: float = SECONDS) -> None:
        self.memory, self.seconds = memory, seconds
        self.process: subprocess.Popen[bytes] | None = None
        self.jobs = 0
        self.killed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def ask(self, request: Request) -> dict[str, Any]:
        """Return the scorer's answer; raise what stands in its way."""
        process = self.start()
        assert process.stdin and process.stdout
        timer = threading.Timer(self.seconds, process.kill)
        timer.start()
        try:
            process.stdin.write(base64.b64encode(msgspec.msgpack.encode(request)) + b"\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = b""
        finally:
            timer.cancel()
        self.jobs += 1
        if not line.endswith(b"\n"):
            self.stop()
            raise ScorerDiedError(
                "could not be read within the limits of memory and time; the file may be damaged or far too large"
            )
        answer: dict[str, Any] = msgspec.msgpack.decode(base64.b64decode(line))
        if "fault" in answer:
            raise FaultError(answer["fault"])
        return answer

    def start(self) -> subprocess.Popen[bytes]:
        """Return the process, started if it is not there; it needs a second to be ready."""
        if self.jobs >= JOBS or (self.process and self.process.poll() is not None):
            self.stop()
        if self.process is None:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "rejoinder.board.scorer", str(self.memory)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, "POLARS_MAX_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"},
            )
        if self.killed:  # perhaps just now, when there was no process yet
            self.process.kill()
        return self.process

    def kill(self) -> None:
        """End what the process is at, from whatever thread, for good; whoever asks it anything hears that it died."""
        self.killed = True
        if self.process:
            self.process.kill()

    def stop(self) -> None:
        """End the process."""
        if self.process:
            for pipe in (self.process.stdin, self.process.stdout):
                if pipe:
                    with suppress(BrokenPipeError):
                        pipe.close()
            self.process.kill()
            self.process.wait()
        self.process, self.jobs = None, 0
