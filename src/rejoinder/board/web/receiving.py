"""Take a run in, from a form or from the API, and wait a moment for its score."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

from starlette.concurrency import run_in_threadpool

from rejoinder.board import submissions
from rejoinder.board.models import WAITING, Submission, Track, User
from rejoinder.board.web.visitor import Board
from rejoinder.errors import UserError

PATIENCE = 8
"""Seconds to wait for a score before answering that it is still to come."""
SLOT_PATIENCE = 60.0
"""Seconds to wait for a quota slot that a run holds which is being checked, and may turn out to be a mistake."""


async def take_run(board: Board, user: User, track: Track, name: str, chunks: AsyncIterator[bytes]) -> Submission:
    """Store, accept and score a run; what it returns may still be waiting."""
    stored = await submissions.receive(board.site, name, chunks, board.most_bytes)
    scored, loop = asyncio.Event(), asyncio.get_running_loop()
    with board.jobs.telling(stored.id, lambda: loop.call_soon_threadsafe(scored.set)):
        try:
            submission = await _accepted(board, stored, user, track.id)
        except UserError:
            submissions.discard(board.site, stored)
            raise  # whatever else happens, the row may be there: the file stays, and is swept away if it is not
        board.jobs.wake()
        return await _scored(board, submission.id, scored)


async def _scored(board: Board, submission_id: str, scored: asyncio.Event) -> Submission:
    """Return a submission as soon as this server has scored it, or another one has."""
    for _ in range(PATIENCE):
        with suppress(TimeoutError):
            await asyncio.wait_for(scored.wait(), 1)
        found = await run_in_threadpool(_look, board, submission_id)
        if found.status != WAITING:
            break
    return found


async def _accepted(board: Board, stored: submissions.Stored, user: User, track_id: str) -> Submission:
    async for _ in _pauses(SLOT_PATIENCE):
        try:
            return await run_in_threadpool(submissions.accept, board.site, stored, user, track_id)
        except submissions.QuotaError as error:
            if not error.pending:
                raise
    return await run_in_threadpool(submissions.accept, board.site, stored, user, track_id)


async def _pauses(seconds: float) -> AsyncIterator[None]:
    """Yield now and again until the time is over; waiting holds no thread, so many may wait."""
    waited, pause = 0.0, 0.03
    while waited < seconds:
        yield
        await asyncio.sleep(pause)
        waited, pause = waited + pause, min(pause * 1.4, 0.5)


def _look(board: Board, submission_id: str) -> Submission:
    with board.site.database.reading() as session:
        return session.get_one(Submission, submission_id)
