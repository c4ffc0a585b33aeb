"""The board's database: SQLite beside its files by default, PostgreSQL by URL; the same code for both."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import alembic.command
import alembic.config
from alembic.runtime.migration import MigrationContext
from alembic.util import CommandError
from sqlalchemy import Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.orm import Session

from rejoinder.errors import UserError

_MIGRATING = 0x7265_6A6F
"""The PostgreSQL lock that keeps two servers from migrating at once."""


class DatabaseError(UserError):
    """The database cannot be reached, or is not what it should be."""

    def __init__(self, error: DBAPIError | CommandError) -> None:
        told = error.orig if isinstance(error, DBAPIError) else error
        super().__init__(f"database: {str(told).splitlines()[0]}")


class Database:
    """Sessions for reading, which see one moment, and for writing, which happen one after the other where they must."""

    def __init__(self, url: str) -> None:
        self.engine = _engine(url)
        self._immediate = self.engine.execution_options(immediate=True)

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """Yield a session whose objects may be used after it."""
        with Session(self.engine, expire_on_commit=False) as session:
            yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """Yield a session in one transaction: all of it happens, or nothing.

        On SQLite the transaction takes the write lock at once, so that what it reads stays true until it writes. On
        PostgreSQL whoever counts before writing locks the row of the team with `with_for_update`.
        """
        with Session(self._immediate, expire_on_commit=False) as session, session.begin():
            yield session

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """Yield a connection that sees one moment, however long it is used."""
        level = {"isolation_level": "REPEATABLE READ"} if self.engine.dialect.name == "postgresql" else {}
        with self.engine.connect().execution_options(**level) as connection:
            yield connection

    @contextmanager
    def migrating(self) -> Iterator[Connection]:
        """Yield a connection that nobody else migrates beside; all that happens on it does, or nothing."""
        with self._immediate.begin() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATING})
            yield connection

    def migrate(self) -> None:
        """Bring the schema up to date; the first that is done with a database, and so what finds that there is none."""
        try:
            with self.migrating() as connection:
                migrate(connection)
        except (DBAPIError, CommandError) as error:
            raise DatabaseError(error) from None

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


def revision_of(connection: Connection) -> str | None:
    """Return the schema's revision; None: there are no tables."""
    return MigrationContext.configure(connection).get_current_revision()


def migrate(connection: Connection, revision: str = "head") -> None:
    """Bring the schema to a revision."""
    alembic.command.upgrade(_alembic(connection), revision)


def sqlite_url(folder: Path) -> str:
    """Return the URL of the database in a board's folder."""
    return f"sqlite:///{(folder / 'board.db').resolve()}"


def _alembic(connection: Connection) -> alembic.config.Config:
    config = alembic.config.Config()
    config.set_main_option("script_location", "rejoinder.board:migrations")
    config.attributes["connection"] = connection
    return config


def _engine(url: str) -> Engine:
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise UserError("--database: expected a URL such as postgresql://user@host/name or sqlite:///file") from None
    if parsed.drivername in ("postgresql", "postgres"):
        parsed = parsed.set(drivername="postgresql+psycopg")
    if parsed.get_backend_name() not in ("sqlite", "postgresql"):
        raise UserError(f"--database: {parsed.get_backend_name()} is not supported; expected sqlite or postgresql")
    if parsed.get_backend_name() == "postgresql":
        return create_engine(parsed, pool_size=20, max_overflow=30, pool_pre_ping=True)
    engine = create_engine(parsed, pool_size=20, max_overflow=30, connect_args={"timeout": 60})
    event.listen(engine, "connect", _configure_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _configure_sqlite(connection: Any, _: object) -> None:
    connection.isolation_level = None  # transactions begin below, and not when the driver thinks fit
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "busy_timeout=60000"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    immediate = connection.get_execution_options().get("immediate")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")
