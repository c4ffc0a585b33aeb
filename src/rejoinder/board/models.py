"""What the board remembers. Ids are random, so that they reveal nothing and a backup fits any database."""

import secrets
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import JSON, DateTime, Dialect, ForeignKey, LargeBinary, MetaData, String, UniqueConstraint
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship
from sqlalchemy.types import TypeDecorator

WAITING, SCORED, REFUSED = "waiting", "scored", "refused"
"""States of a submission: accepted, its quota slot reserved; counted; a mistake in the file, which costs nothing."""


def new_id() -> str:
    """Return a random id."""
    return secrets.token_hex(8)


def now() -> datetime:
    """Return the time."""
    return datetime.now(UTC)


class Moment(TypeDecorator[datetime]):
    """A time in UTC; SQLite forgets the zone."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Store UTC."""
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return it with its zone."""
        return None if value is None else value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Text(TypeDecorator[str]):
    """A text, also of a visitor's making; PostgreSQL refuses one with a NUL in it."""

    impl = String
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Store, and look for, something printable in its place."""
        return None if value is None else value.replace("\0", "\ufffd")


class Base(DeclarativeBase):
    """The tables."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(column_0_label)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {  # noqa: RUF012
        datetime: Moment(),
        str: Text(),
        dict[str, Any]: JSON,
        list[dict[str, Any]]: JSON,
        list[str]: JSON,
        bytes: LargeBinary,
    }


class Team(Base):
    """People who share a quota."""

    __tablename__ = "teams"

    id: Mapped[str] = mapped_column(Text(16), primary_key=True, default=new_id)
    name: Mapped[str]
    key: Mapped[str] = mapped_column(unique=True)
    """The name as it is compared."""
    invitation: Mapped[str | None] = mapped_column(unique=True)
    """The hash of the code by which people join."""
    created: Mapped[datetime] = mapped_column(default=now)


class User(Base):
    """Somebody with a password."""

    __tablename__ = "users"

    id: Mapped[str] = mapped_column(Text(16), primary_key=True, default=new_id)
    name: Mapped[str]
    key: Mapped[str] = mapped_column(unique=True)
    password: Mapped[str]
    admin: Mapped[bool] = mapped_column(default=False)
    disabled: Mapped[bool] = mapped_column(default=False)
    team_id: Mapped[str | None] = mapped_column(ForeignKey("teams.id"), index=True)
    created: Mapped[datetime] = mapped_column(default=now)
    team: Mapped[Team | None] = relationship(lazy="joined")


class Visit(Base):
    """A signed-in browser, known by the hash of its cookie."""

    __tablename__ = "visits"

    key: Mapped[str] = mapped_column(primary_key=True)
    user_id: Mapped[str] = mapped_column(ForeignKey("users.id"), index=True)
    expires: Mapped[datetime]
    user: Mapped[User] = relationship(lazy="joined")


class Token(Base):
    """A key to the API, known by its hash."""

    __tablename__ = "tokens"

    id: Mapped[str] = mapped_column(Text(16), primary_key=True, default=new_id)
    key: Mapped[str] = mapped_column(unique=True)
    name: Mapped[str]
    user_id: Mapped[str] = mapped_column(ForeignKey("users.id"), index=True)
    created: Mapped[datetime] = mapped_column(default=now)
    user: Mapped[User] = relationship(lazy="joined")


class Link(Base):
    """A link that works once: to become the first administrator (no user yet), or to set a new password."""

    __tablename__ = "links"

    key: Mapped[str] = mapped_column(primary_key=True)
    user_id: Mapped[str | None] = mapped_column(ForeignKey("users.id"))
    expires: Mapped[datetime]


class Competition(Base):
    """A contest with one or several tracks."""

    __tablename__ = "competitions"

    id: Mapped[str] = mapped_column(Text(16), primary_key=True, default=new_id)
    slug: Mapped[str] = mapped_column(unique=True)
    name: Mapped[str]
    description: Mapped[str]
    opens: Mapped[datetime]
    closes: Mapped[datetime]
    share: Mapped[float]
    """Of the test examples, those that online scores are computed on."""
    quota: Mapped[int]
    """Scored runs of a team in a track."""
    daily: Mapped[int | None]
    digits: Mapped[int]
    ladder: Mapped[bool]
    log2: Mapped[bool]
    """Whether -log2 of the scores is shown."""
    private: Mapped[bool]
    """Whether teams may keep their scores to themselves until the end."""
    finals: Mapped[int]
    """Runs of a team that can enter a track's final table."""
    baselines: Mapped[list[str]]
    secret: Mapped[str]
    """Decides which examples are online."""
    created: Mapped[datetime] = mapped_column(default=now)
    tracks: Mapped[list["Track"]] = relationship(lazy="selectin", order_by="Track.slug", back_populates="competition")

    @property
    def state(self) -> str:
        """Return "soon", "open" or "closed"."""
        moment = now()
        return "soon" if moment < self.opens else "open" if moment < self.closes else "closed"


class Track(Base):
    """A test set with its measures: a language and a subtask of a competition."""

    __tablename__ = "tracks"
    __table_args__ = (UniqueConstraint("competition_id", "slug"),)

    id: Mapped[str] = mapped_column(Text(16), primary_key=True, default=new_id)
    competition_id: Mapped[str] = mapped_column(ForeignKey("competitions.id"))
    slug: Mapped[str]
    language: Mapped[str]
    subtask: Mapped[str]
    files: Mapped[dict[str, Any]]
    """truth, options, entities -> path within the board's folder."""
    examples: Mapped[int]
    online: Mapped[bytes]
    """Which examples are online, a bit each; it never leaves the server."""
    measures: Mapped[list[dict[str, Any]]]
    """name, sentence, citation, higher (whether that is better); the first ranks."""
    version: Mapped[int] = mapped_column(default=1)
    """Counts what changes the standings."""
    # large, and read by few of those who look a track up
    standings: Mapped[dict[str, Any] | None] = mapped_column(deferred=True, deferred_group="tables")
    final: Mapped[dict[str, Any] | None] = mapped_column(deferred=True, deferred_group="tables")
    competition: Mapped[Competition] = relationship(lazy="joined", back_populates="tracks")

    @property
    def name(self) -> str:
        """Return what people call it."""
        return " · ".join(part for part in (self.language, self.subtask) if part) or "Main"


class Baseline(Base):
    """A simple system's scores, shown beside the teams'."""

    __tablename__ = "baselines"

    id: Mapped[str] = mapped_column(Text(16), primary_key=True, default=new_id)
    track_id: Mapped[str] = mapped_column(ForeignKey("tracks.id"), index=True)
    name: Mapped[str]
    online: Mapped[bytes]
    whole: Mapped[bytes]


class Entry(Base):
    """A team in a track."""

    __tablename__ = "entries"

    team_id: Mapped[str] = mapped_column(ForeignKey("teams.id"), primary_key=True)
    track_id: Mapped[str] = mapped_column(ForeignKey("tracks.id"), primary_key=True)
    published: Mapped[bool] = mapped_column(default=False)
    best: Mapped[dict[str, Any]]
    """measure -> the submission that holds the team's best released score, and that score."""
    team: Mapped[Team] = relationship(lazy="joined")


class Submission(Base):
    """A run file that a team handed in."""

    __tablename__ = "submissions"
    __table_args__ = (UniqueConstraint("team_id", "track_id", "number"),)

    id: Mapped[str] = mapped_column(Text(16), primary_key=True, default=new_id)
    team_id: Mapped[str] = mapped_column(ForeignKey("teams.id"), index=True)
    track_id: Mapped[str] = mapped_column(ForeignKey("tracks.id"), index=True)
    user_id: Mapped[str] = mapped_column(ForeignKey("users.id"))
    number: Mapped[int]
    filename: Mapped[str]
    size: Mapped[int]
    digest: Mapped[str]
    status: Mapped[str] = mapped_column(default=WAITING, index=True)
    error: Mapped[str | None]
    released: Mapped[dict[str, Any]]
    """measure -> score, low, high: rounded, and only where the Ladder lets them out."""
    picked: Mapped[bool] = mapped_column(default=False)
    """Whether the team wants it in the final table."""
    lease: Mapped[datetime | None]
    """Until when some server is busy with it."""
    created: Mapped[datetime] = mapped_column(default=now)
    scored: Mapped[datetime | None]
    team: Mapped[Team] = relationship(lazy="joined")
    user: Mapped[User] = relationship(lazy="joined")
    track: Mapped[Track] = relationship(lazy="joined")

    @property
    def label(self) -> str:
        """Return the run's name in tables, as the overview papers have it."""
        return f"{self.team.name}-run{self.number}"


class SubmissionScores(Base):
    """A scored submission's scores by example; they never leave the server."""

    __tablename__ = "submission_scores"

    submission_id: Mapped[str] = mapped_column(ForeignKey("submissions.id"), primary_key=True)
    online: Mapped[bytes]
    """On the examples that online scores are computed on."""
    whole: Mapped[bytes]


class Act(Base):
    """An entry of the audit log."""

    __tablename__ = "acts"

    id: Mapped[str] = mapped_column(Text(16), primary_key=True, default=new_id)
    at: Mapped[datetime] = mapped_column(default=now, index=True)
    who: Mapped[str]
    what: Mapped[str]
    subject: Mapped[str]
    detail: Mapped[dict[str, Any]]
