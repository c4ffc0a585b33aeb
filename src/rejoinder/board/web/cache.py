"""Pages that look alike to many, kept for a moment: what a crowd looks at is made once."""

import asyncio
import math
import time
from collections.abc import Callable, Hashable

from starlette.concurrency import run_in_threadpool

SECONDS = 1.0
OLDEST = 5.0
"""Seconds: what is shown while a new page is being made."""
MOST = 500


class PageCache:
    """Rendered pages by what they depend on; each is made anew for one visitor while others get the one before it."""

    def __init__(self) -> None:
        self._pages: dict[Hashable, tuple[float, str]] = {}
        self._locks: dict[Hashable, asyncio.Lock] = {}

    async def get(self, key: Hashable, make: Callable[[], str]) -> str:
        """Return a page that is no older than a moment, or a little older while a new one is being made."""
        if found := self._find(key, SECONDS):
            return found
        lock = self._locks.setdefault(key, asyncio.Lock())
        if lock.locked() and (found := self._find(key, OLDEST)):
            return found
        if len(self._locks) > MOST:  # there is one for every page, and for every address without one
            self._pages.clear()
            self._locks.clear()
        async with lock:
            if found := self._find(key, SECONDS):
                return found
            page = await run_in_threadpool(make)
            self._pages[key] = (time.monotonic(), page)
            return page

    def _find(self, key: Hashable, youth: float) -> str | None:
        made, page = self._pages.get(key, (-math.inf, ""))
        return page if time.monotonic() - made < youth else None
