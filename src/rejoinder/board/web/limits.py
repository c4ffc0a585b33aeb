"""How much and how often: sizes of requests while they stream in, and tries in a while."""

import re
import threading
import time
from collections import deque

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SMALL = 256 << 10
"""Bytes of a request that carries no file."""
DESCRIPTION = 4 << 20
"""Bytes of a competition's form: a letter takes up to 12 of them, and one that is too long is shown again, not lost."""
FORM = 64 << 10
"""What a form adds to the file in it."""


class SizeLimit:
    """Ends a request as soon as its body is larger than its path allows, whatever it claimed before."""

    def __init__(self, app: ASGIApp, limits: dict[str, int]) -> None:
        self.app = app
        self.limits = [(re.compile(pattern), most) for pattern, most in limits.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Count what arrives."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        most = next((most for pattern, most in self.limits if pattern.fullmatch(scope["path"])), SMALL)
        claimed = dict(scope["headers"]).get(b"content-length", b"0")
        received = 0

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > most or (claimed.isdigit() and int(claimed) > most):
                raise HTTPException(413, f"larger than {most:,} bytes, which is the limit")
            return message

        await self.app(scope, counted, send)


class RateLimit:
    """At most so many tries in so many seconds, by whatever key; in this process's memory."""

    def __init__(self, most: int, seconds: float) -> None:
        self.most, self.seconds = most, seconds
        self._tries: dict[str, deque[float]] = {}
        self._lock = threading.Lock()

    def check(self, key: str) -> None:
        """Count a try, or refuse it."""
        moment = time.monotonic()
        with self._lock:
            if len(self._tries) > 10_000:
                self._forget(moment)
            tries = self._tries.setdefault(key, deque())
            while tries and tries[0] < moment - self.seconds:
                tries.popleft()
            if len(tries) >= self.most:
                wait = int(tries[0] + self.seconds - moment) + 1
                raise HTTPException(429, f"too many tries; wait {wait} seconds", {"Retry-After": str(wait)})
            tries.append(moment)

    def _forget(self, moment: float) -> None:
        old = [key for key, tries in self._tries.items() if not tries or tries[-1] < moment - self.seconds]
        for key in old:
            del self._tries[key]
