"""Pages that look alike to everybody who has not signed in, kept for a moment: what a crowd looks at is made once."""

import asyncio
import time
from collections.abc import Callable

from starlette.concurrency import run_in_threadpool

SECONDS = 1.0
MOST = 500


class PageCache:
    """Rendered pages by address; each is made anew for one visitor while the others get the one before it."""

    def __init__(self) -> None:
        self._pages: dict[str, tuple[float, str]] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def get(self, address: str, make: Callable[[], str]) -> str:
        """Return a page that is no older than a moment, or that was not while a new one is being made."""
        if found := self._fresh(address):
            return found
        lock = self._locks.setdefault(address, asyncio.Lock())
        if lock.locked() and address in self._pages:
            return self._pages[address][1]
        if len(self._locks) > MOST:  # there is one for every page, and for every address without one
            self._pages.clear()
            self._locks.clear()
        async with lock:
            if found := self._fresh(address):
                return found
            page = await run_in_threadpool(make)
            self._pages[address] = (time.monotonic(), page)
            return page

    def _fresh(self, address: str) -> str | None:
        made, page = self._pages.get(address, (-SECONDS, ""))
        return page if time.monotonic() - made < SECONDS else None
