"""The server's background work: threads that score what waits, and one that keeps standings and final tables."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from sqlalchemy import update

from rejoinder.board import standings, submissions
from rejoinder.board.competitions import absolute
from rejoinder.board.models import WAITING, Submission, now
from rejoinder.board.scorer import Score
from rejoinder.board.scorer_process import SECONDS, UNLIMITED, FaultError, ScorerDiedError, ScorerProcess
from rejoinder.board.site import Site
from rejoinder.board.sweep import sweep

log = logging.getLogger("rejoinder.board")
POLL = 2.0
"""Seconds after which to look for what another server left, or for a competition that has closed."""
LONG = 3600.0
"""Seconds for tables: final ones of hundreds of runs on thousands of examples take minutes, and nobody else's file."""
REST = 1.0
"""Seconds between two looks at the standings, which under load would take the scorers' time."""


class Jobs:
    """Scorers and their threads; `wake` tells them that there is work."""

    def __init__(self, site: Site, scorers: int, most_bytes: int, seconds: float = SECONDS) -> None:
        self.site, self.most_bytes = site, most_bytes
        self._changed = threading.Condition()
        self._changes = 0
        self._stopped = threading.Event()
        self._leased: set[str] = set()
        self._listeners: dict[str, Callable[[], object]] = {}
        self._scorers = [ScorerProcess(seconds=seconds) for _ in range(scorers)]
        self._keeper = ScorerProcess(UNLIMITED, LONG)
        works: list[Callable[[], None]] = [partial(self._run_scorer, scorer) for scorer in self._scorers]
        works += [self._run_keeper, self._run_renewal]
        self._threads = [threading.Thread(target=work, daemon=True) for work in works]

    def start(self) -> None:
        """Start the threads."""
        sweep(self.site)
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End the threads; what they are at is left for the next start."""
        self._stopped.set()
        for scorer in (*self._scorers, self._keeper):
            scorer.kill()
        self.wake()
        for thread in self._threads:
            thread.join()

    def wake(self) -> None:
        """Say that something changed."""
        with self._changed:
            self._changes += 1
            self._changed.notify_all()

    @contextmanager
    def telling(self, submission_id: str, listener: Callable[[], object]) -> Iterator[None]:
        """Call back when this server has scored a submission; another one may be quicker."""
        self._listeners[submission_id] = listener
        try:
            yield
        finally:
            del self._listeners[submission_id]

    def _rest(self, seen: int, seconds: float) -> None:
        with self._changed:
            if self._changes == seen and not self._stopped.is_set():
                self._changed.wait(seconds)

    def _repeat(self, work: Callable[[], object]) -> None:
        """Work as long as there is some; no single piece of it ends the thread."""
        while not self._stopped.is_set():
            seen = self._changes
            try:
                worked = work()
            except Exception:
                if not self._stopped.is_set():
                    log.exception("background work failed")
                worked = False
            if not worked:
                self._rest(seen, POLL)

    def _run_scorer(self, scorer: ScorerProcess) -> None:
        with scorer:
            scorer.start()
            self._repeat(lambda: self._score_one(scorer))

    def _run_keeper(self) -> None:
        with self._keeper:
            self._repeat(self._keep)

    def _run_renewal(self) -> None:
        while not self._stopped.wait(submissions.LEASE.total_seconds() / 4):
            if leased := list(self._leased):
                renewed = update(Submission).where(Submission.id.in_(leased), Submission.status == WAITING)
                with self.site.database.writing() as session:
                    session.execute(renewed.values(lease=now() + submissions.LEASE))

    def _keep(self) -> None:
        standings.refresh(self.site, self._keeper)
        standings.finish(self.site, self._keeper)
        self._stopped.wait(REST)

    def _score_one(self, scorer: ScorerProcess) -> bool:
        with self.site.database.writing() as session:
            submission = submissions.claim(session)
        if submission is None:
            return False
        with self._lease(submission.id):
            self._score(scorer, submission)
        if listener := self._listeners.get(submission.id):
            listener()
        self.wake()
        return True

    @contextmanager
    def _lease(self, submission_id: str) -> Iterator[None]:
        self._leased.add(submission_id)
        try:
            yield
        finally:
            self._leased.discard(submission_id)

    def _score(self, scorer: ScorerProcess, submission: Submission) -> None:
        track = submission.track
        request = Score(
            files=absolute(self.site, track.files),
            measures=[measure["name"] for measure in track.measures],
            online=track.online,
            run=str(submissions.run_file(self.site, submission.id)),
            name=submission.filename,
            most_bytes=self.most_bytes * submissions.PACKED,
        )
        try:
            answer = scorer.ask(request)
        except ScorerDiedError as error:
            if self._stopped.is_set():
                return  # by our own hand: the run waits for the next start
            answer = {"error": f"{submission.filename}: {error}"}
        except FaultError:
            # the organiser's files, not the team's: it waits, and is tried again when its lease has run out
            log.exception("the truth of %s cannot be read", track.slug)
            return
        if "error" in answer:
            submissions.refuse(self.site, submission.id, answer["error"])
        else:
            submissions.record(self.site, submission.id, answer)
