"""Take a run in, from a form or from the API, and wait a moment for its score."""

from collections.abc import AsyncIterator

from starlette.concurrency import run_in_threadpool

from rejoinder.board import submissions
from rejoinder.board.models import Submission, Track, User
from rejoinder.board.web.visitor import Board

PATIENCE = 8.0
"""Seconds to wait for a score before answering that it is still to come."""


async def take_run(board: Board, user: User, track: Track, name: str, chunks: AsyncIterator[bytes]) -> Submission:
    """Store, accept and score a run; what it returns may still be waiting."""
    stored = await submissions.receive(board.site, name, chunks, board.most_bytes)
    submission = await run_in_threadpool(submissions.accept, board.site, stored, user, track.id)
    board.jobs.wake()
    return await run_in_threadpool(board.jobs.wait_for, submission.id, PATIENCE)
